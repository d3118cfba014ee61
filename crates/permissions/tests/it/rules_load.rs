//! Tests of loading rulesets from text: accepted forms, and the errors for others.
use backend_core::VPath;
use permissions::rules::{
    CommandPattern, LoadError, PATTERN_BYTES, PathPattern, PatternError, Preset, Ruleset,
};
use permissions::{Action, Op};

fn toml(text: &str) -> LoadError {
    Ruleset::from_toml(text).expect_err(text)
}

fn json(text: &str) -> LoadError {
    Ruleset::from_json(text).expect_err(text)
}

/// Writes errors: the text, the place, and a word that the message has.
macro_rules! errors {
    ($($text:literal => $($expected:literal),+;)+) => {
        [$(($text, $($expected),+)),+]
    };
}

#[test]
fn reads_both_formats() {
    let written = r#"
        default = "deny"

        [read]
        default = "allow"
        rules = [
            { pattern = "**/.ssh/**", action = "deny", description = "keys", hide = true },
        ]

        [move]
        default = "ask"

        [execute]
        dangerous = "deny"
        opaque = "allow"
        [[execute.rules]]
        pattern = "git *"
        action = "allow"
    "#;
    let ruleset = Ruleset::from_toml(written).unwrap();
    assert_eq!(ruleset.default, Action::Deny);
    let read = ruleset.section(Op::Read).unwrap();
    assert!(read.default == Action::Allow && read.rules[0].hide);
    assert_eq!(read.rules[0].description, "keys");
    assert_eq!(ruleset.section(Op::Move).unwrap().default, Action::Ask);
    let execute = ruleset.execute.as_ref().unwrap();
    assert_eq!(
        (execute.default, execute.opaque),
        (Action::Allow, Action::Allow)
    );
    assert_eq!(execute.rules[0].pattern.as_str(), "git *");
    let same = r#"{"default": "deny", "read": {"default": "allow", "rules": [
        {"pattern": "**/.ssh/**", "action": "deny", "description": "keys", "hide": true}]},
        "move": {"default": "ask"}, "execute": {"opaque": "allow", "rules": [
        {"pattern": "git *", "action": "allow"}]}}"#;
    assert_eq!(Ruleset::from_json(same).unwrap(), ruleset);
    assert_eq!(Ruleset::from_toml("").unwrap(), Ruleset::default());
    assert_eq!(Ruleset::from_json("{}").unwrap(), Ruleset::default());
}

#[test]
fn what_is_written_is_read_back() {
    let mut rulesets: Vec<_> = Preset::ALL.map(Preset::ruleset).into();
    rulesets.push(Ruleset::default());
    rulesets.push(
        Ruleset::builder()
            .rule(Op::Move, "/a \"b\"\\*\u{e9}/**", Action::Ask, "two\nlines")
            .rule(Op::Execute, "echo '*'", Action::Deny, "")
            .rule(Op::Delete, "x", Action::Allow, "")
            .hide("y", "")
            .build()
            .unwrap(),
    );
    for ruleset in rulesets {
        let toml = ruleset.to_toml().unwrap();
        assert_eq!(Ruleset::from_toml(&toml).unwrap(), ruleset, "{toml}");
        let json = ruleset.to_json().unwrap();
        assert_eq!(Ruleset::from_json(&json).unwrap(), ruleset, "{json}");
    }
}

#[test]
fn toml_errors_name_the_place() {
    for (text, line, column, names) in errors! {
        "defualt = \"ask\"" => 1, 1, "defualt";
        "default = \"ask\"\n[read]\ndefault = \"alow\"" => 3, 11, "alow";
        "[read]\nrule = []" => 2, 1, "rule";
        "[reed]\n" => 1, 2, "reed";
        "[read]\n[[read.rules]]\npattern = \"a[b\"\naction = \"deny\"" => 3, 11, "'a[b'";
        "[read]\n[[read.rules]]\npattern = \"a\"\naction = \"deny\"\nhidden = true" =>
            5, 1, "hidden";
        "[read]\n[[read.rules]]\npattern = \"a\"\n" => 2, 1, "action";
        "[read]\nrules = [{ pattern = \"a/\", action = \"deny\" }]" => 2, 22, "'a/'";
        "[execute]\nrules = [{ pattern = \" \", action = \"deny\" }]" => 2, 22, "' '";
        "[execute]\nrules = [{ pattern = \"a\", action = \"deny\", hide = true }]" => 2, 44, "hide";
        "default = \"ask\"\ndefault = \"deny\"" => 2, 1, "default";
        "[read]\n[write]\n[read]\n" => 3, 2, "read";
        "default = 3" => 1, 11, "default = 3";
        "x" => 1, 2, "x";
        "[read]\n[[read.rules]]\npattern = \"a\"\naction = \"ask\"\nhide = true" => 2, 1, "'hide'";
        "[ls]\n[[ls.rules]]\npattern = \"a\"\naction = \"deny\"\nhide = true" => 1, 1, "rule 'a'";
        "read = [\"allow\"]" => 1, 8, "expected a table";
        "[read]\nrules = [[\"a\", \"allow\"]]" => 2, 10, "expected a table";
    } {
        let error = toml(text);
        assert_eq!((error.line, error.column), (line, column), "{error}");
        assert!(error.to_string().contains(names), "{error}");
        assert!(
            error
                .to_string()
                .contains(&format!("line {line}, column {column}")),
            "{error}"
        );
    }
}

#[test]
fn json_errors_name_the_place() {
    for (text, line, names) in errors! {
        "{\n\"defualt\": \"ask\"}" => 2, "defualt";
        "{\"read\":\n{\"default\":\n\"alow\"}}" => 3, "alow";
        "{\n\n\"reed\": {}}" => 3, "reed";
        "{\"read\": {\"rules\": [\n{\"pattern\": \"a[b\",\n\"action\": \"deny\"}]}}" => 2, "'a[b'";
        "{\"read\": {\"rules\": [\n{\"action\": \"deny\", \"pattern\": \"a/\"}\n]}}" => 2, "'a/'";
        "{\"read\": {\"rules\": [\n{\"action\": \"deny\"}\n]}}" => 2, "pattern";
        "{\"execute\": {\"rules\": [\n{\"action\": \"deny\", \"pattern\": \"\"}\n]}}" => 2, "''";
        "{\"default\": \"ask\",\n\"default\": \"deny\"}" => 2, "default";
        "{\"read\": {}, \"write\": {},\n\"read\": {}}" => 2, "read";
        "{\"default\": 3}" => 1, "expected value";
        "{\"default\": \"ask\"} x" => 1, "trailing";
        "{\"read\":\n{\"default\":" => 2, "EOF";
        "" => 1, "EOF";
        "[]" => 1, "expected a table";
        "{\"read\": {\"rules\":\n[{\"pattern\": \"a\", \"action\": \"ask\", \"hide\": true}]}}" =>
            2, "'hide'";
        "{\"move\": {\"rules\":\n[{\"pattern\": \"a\", \"action\": \"deny\", \"hide\": true}]}}" =>
            2, "rule 'a'";
        "{\"read\": [\"allow\"]}" => 1, "expected a table";
        "{\"read\": {\"rules\":\n[[\"a\", \"allow\"]]}}" => 2, "expected a table";
    } {
        let error = json(text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(names), "{names} in {error}");
    }
    let error = json("{\"defualt\": \"ask\"}");
    assert_eq!((error.line, error.column), (1, 10));
    assert!(!error.message.contains("line"), "said once: {error}");
}

#[test]
fn errors_are_short_and_printable() {
    let long = format!("default = \"{}\u{1b}\"", "é".repeat(10_000));
    let text = toml(&long).to_string();
    assert!(!text.contains('\u{1b}'), "{text}");
    let text = toml("default = \"alow\"").to_string();
    assert!(text.contains("near 'default = \"alow\"'"), "{text}");
    let hostile = format!("{{\"x\": \"{}\u{7f}\"}}", "é".repeat(1_000));
    let error = json(&hostile);
    assert!(error.near.to_string().len() < 500);
    let nested = "[".repeat(100_000);
    assert!(Ruleset::from_json(&nested).is_err() && Ruleset::from_toml(&nested).is_err());
    let nested = format!("a = {nested}");
    assert!(Ruleset::from_toml(&nested).is_err());
}

#[test]
fn patterns_are_checked() {
    for (pattern, hint) in [
        ("", "names no file"),
        ("a[b", "never closed"),
        ("{a", "never closed"),
        ("a}", "closes nothing"),
        ("[z-a]", "backwards"),
        ("a\\", "escapes nothing"),
        ("a/", "ends with '/'"),
        ("../a", "'..'"),
        ("~", "'~'"),
        ("~/a", "'~'"),
        ("{~/a,b}", "'~'"),
        ("{~,b}", "'~'"),
        ("a\0b", "NUL"),
        ("{/a,b}", "begin with '/'"),
    ] {
        let error = PathPattern::new(pattern).unwrap_err().to_string();
        assert!(error.contains(hint), "{pattern}: {error}");
        assert_eq!(
            pattern.parse::<PathPattern>().unwrap_err().to_string(),
            error
        );
    }
    for pattern in ["*~", "a/~", "**/~$*", "[~]"] {
        assert!(PathPattern::new(pattern).is_ok(), "{pattern}");
    }
    let (longest, longer) = ("a".repeat(PATTERN_BYTES), "a".repeat(PATTERN_BYTES + 1));
    assert!(PathPattern::new(&longest).is_ok() && CommandPattern::new(&longest).is_ok());
    assert!(matches!(
        PathPattern::new(&longer),
        Err(PatternError::TooLong(_, 4_001))
    ));
    assert!(matches!(
        CommandPattern::new(&longer),
        Err(PatternError::TooLong(_, 4_001))
    ));
    assert!(matches!(
        CommandPattern::new("a\0"),
        Err(PatternError::Nul(_))
    ));
    assert!(matches!(
        CommandPattern::new(" \n"),
        Err(PatternError::Empty(_))
    ));
    assert_eq!(CommandPattern::new("a *").unwrap().to_string(), "a *");
}

#[test]
fn the_first_ruleset_of_the_manual_means_what_it_says() {
    let page = include_str!("../../../../docs/permissions.md");
    let (_, page) = page.split_once("## A first ruleset\n\n```toml\n").unwrap();
    let (ruleset, _) = page.split_once("```\n").unwrap();
    let rules = Ruleset::from_toml(ruleset)
        .unwrap()
        .compile(&VPath::parse("/project").unwrap());
    let said = |op, path| rules.judge_text(op, path).unwrap().action;
    for (op, action) in [
        (Op::Read, Action::Allow),
        (Op::Write, Action::Allow),
        (Op::Edit, Action::Allow),
        (Op::Delete, Action::Ask),
        (Op::Ls, Action::Allow),
        (Op::Glob, Action::Allow),
        (Op::Grep, Action::Allow),
        (Op::Execute, Action::Ask),
    ] {
        assert_eq!(said(op, "src/a.rs"), action, "{op:?}");
    }
    for (op, path, action) in [
        (Op::Read, "secrets/public/a", Action::Allow),
        (Op::Read, "secrets/a", Action::Deny),
        (Op::Read, ".env", Action::Deny),
        (Op::Write, "vendor/a.c", Action::Ask),
        (Op::Edit, "vendor/a.c", Action::Ask),
    ] {
        assert_eq!(said(op, path), action, "{op:?} {path}");
    }
}
