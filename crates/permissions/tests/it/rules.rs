//! Tests of the paths that rules cover, and of the rule that decides.
use backend_testkit::path;
use permissions::rules::{PathRule, PathRules, Preset, Rules, Ruleset};
use permissions::{Action, Layer, Op, OpClass, Reason, Verdict};

use Action::{Allow, Ask, Deny};

/// Creates a ruleset with these rules for reading.
fn reading(default: Action, rules: &[(&str, Action)]) -> Ruleset {
    let mut section = PathRules::default();
    section.default = default;
    section.rules = rules
        .iter()
        .map(|(pattern, action)| PathRule::new(pattern, *action).unwrap())
        .collect();
    let mut ruleset = Ruleset::default();
    ruleset.default = Deny;
    ruleset.read = Some(section);
    ruleset
}

fn in_work(ruleset: &Ruleset) -> Rules {
    ruleset.compile(&path("/project"))
}

fn read(rules: &Rules, text: &str) -> Action {
    rules.judge(Op::Read, &path(text)).action
}

/// Returns the index of the deciding rule.
fn decided_by(rules: &Rules, text: &str) -> Option<usize> {
    match rules.judge(Op::Read, &path(text)).reason {
        Reason::Rule(rule) => Some(rule.index),
        _ => None,
    }
}

#[test]
fn a_pattern_covers_what_it_should() {
    for (pattern, covered, not_covered) in [
        // A pattern for everything beneath a directory covers the directory too.
        (
            "/etc/**",
            "/etc /etc/passwd /etc/a/b",
            "/ /etcetera /x/etc /project/etc",
        ),
        (
            "**/.ssh/**",
            "/root/.ssh /root/.ssh/id /.ssh /project/a/.ssh/b/c",
            "/root /root/x.ssh",
        ),
        ("/**", "/ /a /a/b", ""),
        ("**", "/ /a /a/b", ""),
        ("*", "/ /a /a/b", ""),
        ("/a/**/*", "/a /a/b /a/b/c", "/ab"),
        ("{/a/**,/b/*/**}", "/a /a/x /b/c /b/c/d", "/b /c"),
        // A single name, or a leading `**`, applies to the whole tree; a path to the
        // working directory.
        (".env", "/.env /project/.env /root/a/.env", "/.env2"),
        ("**/*.pem", "/k.pem /project/a/k.pem /root/k.pem", "/pem"),
        (
            "{*.key,conf/*.ini}",
            "/a/x.key /project/conf/a.ini",
            "/conf/a.ini /project/x/conf/a.ini",
        ),
        (
            "src/**",
            "/project/src /project/src/a/b",
            "/src /src/a /project /project/a/src",
        ),
        (
            "./src/*.rs",
            "/project/src/a.rs",
            "/project/src/a/b.rs /src/a.rs",
        ),
        ("/src/*", "/src/a", "/project/src/a"),
        // Mistakes known from other libraries.
        ("/a[!b]c", "/axc", "/a/c /abc"),
        ("/?", "/é", "//"),
        ("/x\\*", "/x*", "/xy"),
    ] {
        let rules = in_work(&reading(Deny, &[(pattern, Allow)]));
        for text in covered.split(' ') {
            assert_eq!(read(&rules, text), Allow, "{pattern} covers {text}");
        }
        for text in not_covered.split(' ').filter(|text| !text.is_empty()) {
            assert_eq!(read(&rules, text), Deny, "{pattern} does not cover {text}");
        }
    }
}

#[test]
fn a_working_directory_is_plain_text() {
    let rules = reading(Deny, &[("a/*", Allow)]).compile(&path("/w*[x]{y,z}"));
    assert_eq!(read(&rules, "/w*[x]{y,z}/a/b"), Allow);
    assert_eq!(read(&rules, "/wx/a/b"), Deny);
    assert_eq!(rules.judge_text(Op::Read, "a/b").unwrap().action, Allow);
    assert_eq!(rules.working_dir(), &path("/w*[x]{y,z}"));
}

#[test]
fn denials_and_questions_protect_what_lies_inside() {
    for action in [Deny, Ask] {
        let patterns = ["**/secrets*", "/etc", "[k]eys/*"].map(|pattern| (pattern, action));
        let rules = in_work(&reading(Allow, &patterns));
        let inside = "/secrets /a/secrets/x/y /a/secrets.d/x /etc /etc/passwd /etc/a/b \
            /project/keys/a /project/keys/a/b/c";
        for text in inside.split_whitespace() {
            assert_eq!(read(&rules, text), action, "{text}");
        }
        for text in "/ /a /a/my-secrets /x/etc /project/keys /keys/a".split(' ') {
            assert_eq!(read(&rules, text), Allow, "{text}");
        }
    }
    let rules = in_work(&reading(Deny, &[("/etc", Allow)]));
    assert_eq!(read(&rules, "/etc"), Allow);
    // What is allowed does not extend.
    assert_eq!(read(&rules, "/etc/passwd"), Deny);
}

#[test]
fn the_first_rule_decides() {
    let rules = in_work(&reading(
        Ask,
        &[
            ("/secrets/public/**", Allow),
            ("/secrets", Deny),
            ("/secrets/late", Allow),
            ("/*", Allow),
        ],
    ));
    for (text, action, by) in [
        ("/secrets/public", Allow, Some(0)),
        ("/secrets/public/a/b", Allow, Some(0)),
        ("/secrets", Deny, Some(1)),
        ("/secrets/x", Deny, Some(1)),
        ("/secrets/late", Deny, Some(1)),
        ("/a", Allow, Some(3)),
        ("/a/b", Ask, None),
    ] {
        assert_eq!(read(&rules, text), action, "{text}");
        assert_eq!(decided_by(&rules, text), by, "{text}");
    }
}

#[test]
fn a_question_from_above_is_a_floor() {
    let rules = in_work(&reading(
        Allow,
        &[
            ("/d/free", Allow),
            ("/d", Ask),
            ("/d/x", Allow),
            ("/d/y", Deny),
            ("/d/z", Ask),
        ],
    ));
    for (text, action, by) in [
        ("/d/free", Allow, Some(0)),
        ("/d/free/a", Ask, Some(1)),
        ("/d", Ask, Some(1)),
        ("/d/x", Ask, Some(1)),
        ("/d/other", Ask, Some(1)),
        ("/d/y", Deny, Some(3)),
        ("/d/y/beneath", Deny, Some(3)),
        ("/d/z", Ask, Some(1)),
        ("/e", Allow, None),
    ] {
        assert_eq!(read(&rules, text), action, "{text}");
        assert_eq!(decided_by(&rules, text), by, "{text}");
    }
    let denied = in_work(&reading(Deny, &[("/d", Ask)]));
    assert_eq!(read(&denied, "/d"), Ask, "the rule covers it");
    // The default is stronger than the floor.
    let vote = denied.judge(Op::Read, &path("/d/x"));
    assert_eq!(vote.action, Deny);
    assert!(matches!(vote.reason, Reason::Default(Op::Read)));
}

#[test]
fn sections_that_are_missing() {
    let mut ruleset = Ruleset::default();
    let rules = in_work(&ruleset);
    for op in Op::ALL {
        let vote = rules.judge(op, &path("/a"));
        let (action, why) = match op {
            Op::Move | Op::Copy => (Allow, Reason::Unspecified),
            Op::Delete => (Ask, Reason::Default(Op::Write)),
            op => (Ask, Reason::Default(op)),
        };
        assert_eq!(
            (vote.action, vote.reason, vote.layer),
            (action, why, Layer::Rules),
            "{op}"
        );
    }

    ruleset.write = reading(Ask, &[("/a", Deny)]).read;
    ruleset.moves = Some(PathRules::default());
    let rules = in_work(&ruleset);
    let vote = rules.judge(Op::Delete, &path("/a"));
    assert_eq!(vote.to_string(), "rules: deny, by rule 1 of write ('/a')");
    let Reason::Rule(rule) = vote.reason else {
        panic!("a rule decides");
    };
    assert_eq!((rule.op, rule.index), (Op::Write, 0));
    assert_eq!(
        rules.judge(Op::Move, &path("/a")).reason,
        Reason::Default(Op::Move)
    );

    ruleset.delete = Some(PathRules::default());
    let vote = in_work(&ruleset).judge(Op::Delete, &path("/a"));
    assert_eq!(
        (vote.action, vote.reason),
        (Allow, Reason::Default(Op::Delete))
    );
}

#[test]
fn every_section_speaks_for_its_operation() {
    let is_path = |op: &Op| op.class() != OpClass::Execute;
    for op in Op::ALL.into_iter().filter(is_path) {
        let mut ruleset = Ruleset::default();
        let pattern = format!("/only-{op}");
        *ruleset.section_mut(op).unwrap() = reading(Allow, &[(&pattern, Deny)]).read;
        let rules = in_work(&ruleset);
        for other in Op::ALL {
            let follows = op == Op::Write && other == Op::Delete;
            let denied = rules.judge(other, &path(&pattern)).action == Deny;
            assert_eq!(denied, op == other || follows, "{op}, {other}");
        }
        assert_eq!(ruleset.section(op).unwrap().rules.len(), 1);
    }
    let mut ruleset = Ruleset::default();
    ruleset.execute = Preset::Readonly.ruleset().execute;
    let vote = in_work(&ruleset).judge(Op::Execute, &path("/a"));
    assert_eq!(
        (vote.action, vote.reason),
        (Deny, Reason::Default(Op::Execute))
    );
    for op in [Op::Execute, Op::Terminal] {
        assert!(ruleset.section_mut(op).is_none() && ruleset.section(op).is_none());
    }
    ruleset.terminal = Preset::Permissive.ruleset().terminal;
    let vote = in_work(&ruleset).judge(Op::Terminal, &path("/a"));
    assert_eq!(
        (vote.action, vote.reason),
        (Allow, Reason::Default(Op::Terminal))
    );
}

#[test]
fn of_several_spellings_the_strongest_counts() {
    let rules = in_work(&reading(Allow, &[("/a", Ask), ("/b", Deny), ("/c", Deny)]));
    let all = |texts: &[&str]| {
        let votes = texts.iter().map(|text| rules.judge(Op::Read, &path(text)));
        votes.map(Verdict::from).reduce(Verdict::and_all)
    };
    let action = |texts: &[&str]| all(texts).map(|verdict| verdict.action());
    assert_eq!(action(&["/x"]), Some(Allow));
    assert_eq!(action(&["/x", "/a", "/y"]), Some(Ask));
    let strongest = all(&["/a", "/c", "/b"]).unwrap();
    assert_eq!(*strongest.decisive(), rules.judge(Op::Read, &path("/c")));
    assert_eq!(all(&[]), None, "nothing is known, so nothing is allowed");
}

#[test]
fn a_typed_path_is_folded_first() {
    let rules = in_work(&reading(
        Allow,
        &[("/project/key", Deny), ("/etc/**", Deny)],
    ));
    let typed = |text: &str| rules.judge_text(Op::Read, text).map(|vote| vote.action);
    for text in "key ./key x/../key /project//key ../project/key/ ../etc/./passwd".split(' ') {
        assert_eq!(typed(text), Ok(Deny), "{text}");
    }
    assert_eq!(typed("keys"), Ok(Allow));
    assert!(typed("../../..").is_err() && typed("~/x").is_err() && typed("a\0").is_err());
}

#[test]
fn the_most_lenient_answer() {
    for (default, rules, best) in [
        (Deny, &[][..], Deny),
        (Ask, &[("/a", Deny)], Ask),
        (Deny, &[("/a", Ask)], Ask),
        (Deny, &[("/a", Ask), ("b", Allow)], Allow),
        (Allow, &[("**", Deny)], Deny),
        (Allow, &[("/**", Ask)], Ask),
        (Allow, &[("*", Deny), ("/a", Allow)], Deny),
        (Allow, &[("/a", Ask), ("{x,**}", Deny)], Ask),
        (Allow, &[("/*", Deny)], Allow),
        (Allow, &[("work/**", Deny)], Allow),
    ] {
        let rules_of = in_work(&reading(default, rules));
        assert_eq!(rules_of.most_lenient(Op::Read), best, "{default} {rules:?}");
    }
    let nothing = in_work(&reading(Allow, &[]));
    let best = |op| nothing.most_lenient(op);
    assert_eq!(best(Op::Ls), Deny, "the default of the ruleset");
    assert_eq!(best(Op::Delete), Deny, "as write");
    assert_eq!(best(Op::Move), Allow, "neutral");
    assert_eq!(best(Op::Execute), nothing.commands().most_lenient());
}

#[test]
fn the_strongest_answer_beneath() {
    let rules = in_work(&reading(
        Allow,
        &[
            ("/free/**", Allow),
            ("/a/secret", Deny),
            ("/b", Ask),
            ("/c/*/x", Ask),
            ("/d/x/**", Deny),
            ("/b/y", Deny),
        ],
    ));
    let beneath = |op, text: &str| rules.strongest_beneath(op, &path(text));
    for (text, action) in [
        ("/", Deny),
        ("/free", Allow),
        ("/free/a", Allow),
        ("/a", Deny),
        ("/a/secret", Deny),
        ("/a/secret/x", Deny),
        ("/a/other", Allow),
        ("/b", Deny),
        ("/b/x", Ask),
        ("/c", Ask),
        ("/c/1", Ask),
        ("/c/1/y", Allow),
        ("/d", Deny),
        ("/e", Allow),
    ] {
        assert_eq!(beneath(Op::Read, text), action, "{text}");
    }
    assert_eq!(beneath(Op::Ls, "/e"), Deny, "the default");
    assert_eq!(beneath(Op::Copy, "/a"), Allow, "neutral");
}

#[test]
fn votes_share_their_rule() {
    let rules = in_work(&reading(Allow, &[("/a", Deny)]));
    let reasons = ["/a", "/a/b"].map(|text| rules.judge(Op::Read, &path(text)).reason);
    let [Reason::Rule(one), Reason::Rule(two)] = reasons else {
        panic!("a rule decides");
    };
    assert!(std::sync::Arc::ptr_eq(&one, &two));
}

#[test]
fn an_id_names_the_content() {
    let ids: std::collections::HashSet<_> = Preset::ALL
        .map(|preset| in_work(&preset.ruleset()).id().to_owned())
        .into();
    assert_eq!(ids.len(), Preset::ALL.len());
    let id = Preset::Strict.ruleset().id();
    assert!(ids.contains(&id) && id.len() == 64 && id.bytes().all(|b| b.is_ascii_hexdigit()));
    let loaded = Ruleset::from_toml(&Preset::Strict.ruleset().to_toml().unwrap()).unwrap();
    assert_eq!(loaded.id(), id);
}
