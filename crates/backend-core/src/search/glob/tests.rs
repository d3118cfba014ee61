//! The dialect against a slow reference matcher and globset.

mod reference;

use proptest::prelude::*;

use super::*;
use crate::limits::PATH_DEPTH;

fn glob(pattern: &str) -> Glob {
    Glob::new(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"))
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Whether `pattern` matches `text` in a search that starts at the root.
fn matches(pattern: &str, text: &str) -> bool {
    glob(pattern).matches(&VPath::root(), &path(text))
}

#[test]
fn matches_what_it_says() {
    for (pattern, text) in [
        ("*", "a"),
        ("*", "a/b/c"),
        ("*.rs", "a/b/main.rs"),
        ("*.rs", "é/main.rs"),
        ("./*.rs", "a/b/main.rs"),
        ("src/*.rs", "src/main.rs"),
        ("./src//./*.rs", "src/main.rs"),
        ("**", "a"),
        ("**", "a/.b/c"),
        ("**/**", "a"),
        ("**/x", "x"),
        ("**/x", "a/b/x"),
        ("a/**", "a/b"),
        ("a/**", "a/b/c"),
        ("a/**/c", "a/c"),
        ("a/**/c", "a/b/b/c"),
        ("a/**/b/**/c", "a/x/b/b/y/c"),
        ("a/**/b/*", "a/b/b/c"),
        ("a**b", "aXYb"),
        ("***", "a/b"),
        ("a?c", "aéc"),
        ("[a-cx]", "x"),
        ("[!a]", "b"),
        ("[^a]", "b"),
        ("[]]", "]"),
        ("[!]]", "x"),
        ("[a-]", "-"),
        ("[-a]", "-"),
        ("[\\]]", "]"),
        ("[a\\-z]", "-"),
        ("[é-ü]", "ö"),
        ("a]b", "a]b"),
        ("a,b", "a,b"),
        ("{a,b}", "b"),
        ("{a}", "a"),
        ("x{,.gz}", "x"),
        ("x{,.gz}", "x.gz"),
        ("{a,b{c,d/e}}", "bd/e"),
        ("{src,tests}/**/*.{rs,toml}", "tests/x.toml"),
        ("{src/*.rs,*.toml}", "a/b/x.toml"),
        ("{**,a}/x", "b/x"),
        ("[{,}]", ","),
        ("{[,],b}", ","),
        ("{\\,,b}", ","),
        ("\\*", "*"),
        ("\\{a\\}", "{a}"),
        ("a\\/b", "a/b"),
        ("*a*b*c", "xaybzbbc"),
        ("*a?c*e", "acabcde"),
        ("/a/*", "a/b"),
        ("{/a,/b}/c", "b/c"),
    ] {
        assert!(matches(pattern, text), "{pattern} should match {text}");
    }
}

#[test]
fn matches_nothing_else() {
    for (pattern, text) in [
        ("*.rs", "main.RS"),
        ("src/*.rs", "src/a/main.rs"),
        ("src/*.rs", "x/src/main.rs"),
        ("a/**", "a"),
        ("a/**/c", "a/b/d"),
        ("a/b", "a"),
        ("a/b", "a/b/c"),
        ("**/a/b", "b"),
        ("**/a/*", "b/c/d"),
        ("a?c", "a/c"),
        ("a[!b]c", "a/c"),
        ("a[/]c", "a/c"),
        ("a[.-0]c", "a/c"),
        ("ab*bc", "abc"),
        ("*a?", "a"),
        ("[a-c]", "d"),
        ("\\*", "a"),
        ("a*b*c", "abab"),
        ("?", "ab"),
        ("/a", "b/a"),
        ("/a/b", "x/a/b"),
    ] {
        assert!(!matches(pattern, text), "{pattern} should not match {text}");
    }
}

#[test]
fn absolute_patterns_are_matched_from_the_root() {
    let start = path("/project");
    let file = path("/project/src/a.rs");
    assert!(glob("/project/**/*.rs").matches(&start, &file));
    assert!(!glob("/src/*.rs").matches(&start, &file));
    assert!(glob("src/*.rs").matches(&start, &file));
    assert!(!glob("work/src/*.rs").matches(&start, &file));
    assert!(!glob("*.rs").matches(&path("/other"), &file));
    assert!(!glob("**").matches(&start, &start));
    assert!(!glob("/**").matches(&VPath::root(), &VPath::root()));
    assert!(glob("/a").is_absolute() && !glob("a").is_absolute());
}

#[test]
fn refuses_with_a_reason() {
    use GlobError as E;
    let quoted = |pattern| Quoted::new(pattern);
    for (pattern, error, hint) in [
        ("", E::Empty, "'**'"),
        (".", E::Empty, "'**'"),
        ("./", E::Empty, "'**'"),
        ("/", E::Empty, "'**'"),
        ("{,a}", E::Empty, "'**'"),
        ("a\0", E::Nul(quoted("a\0")), "remove"),
        ("../a", E::ParentComponent(quoted("../a")), "path instead"),
        ("a/{..,b}", E::ParentComponent(quoted("a/{..,b}")), "'..'"),
        ("\\.\\.", E::ParentComponent(quoted("\\.\\.")), "'..'"),
        ("dir/", E::TrailingSlash(quoted("dir/")), "dir/**"),
        ("dir/.", E::TrailingSlash(quoted("dir/.")), "dir/**"),
        ("a/{b,}", E::TrailingSlash(quoted("a/{b,}")), "dir/**"),
    ] {
        let found = Glob::new(pattern).unwrap_err();
        assert_eq!(found, error, "{pattern:?}");
        assert!(found.to_string().contains(hint), "{found}");
    }
    let long = "a".repeat(PATTERN_BYTES + 1);
    assert_eq!(Glob::new(&long), Err(E::TooLong(PATTERN_BYTES + 1)));
    for many in ["{a,b}".repeat(9), format!("{{{}}}", "a,".repeat(300))] {
        let found = Glob::new(&many).unwrap_err();
        assert!(matches!(found, E::TooManyAlternatives(_)), "{found}");
        assert!(found.to_string().contains("{a,b}"), "{found}");
    }
    assert!(Glob::new(&"{a,b}".repeat(8)).is_ok(), "256 are fine");
}

#[test]
fn syntax_errors_say_where() {
    for (pattern, byte, hint) in [
        ("a[b", 1, "'[' is never closed"),
        ("[]", 0, "'[' is never closed"),
        ("[!]", 0, "'[' is never closed"),
        ("[a-", 0, "'[' is never closed"),
        ("{[a,b}", 1, "'[' is never closed"),
        ("é{a,{b}", 2, "'{' is never closed"),
        ("a}b", 1, "'}' closes nothing"),
        ("a\\", 1, "escapes nothing"),
        ("[a\\", 2, "escapes nothing"),
        ("x[z-a]", 1, "backwards"),
        ("{a,/b}", 0, "begin with '/'"),
    ] {
        let error = Glob::new(pattern).unwrap_err();
        let GlobError::Syntax { message, at, .. } = &error else {
            panic!("{pattern}: {error}");
        };
        assert!(message.contains(hint), "{pattern}: {message}");
        assert_eq!(*at, byte, "{pattern}");
        assert!(error.to_string().contains(&format!("byte {byte}")));
    }
}

#[test]
fn an_absolute_pattern_must_meet_the_start() {
    let check = |pattern: &str, start: &str| glob(pattern).check_start(&path(start));
    for (pattern, start) in [
        ("*.rs", "/project"),
        ("/project/*.rs", "/project"),
        ("/project/src/*.rs", "/project"),
        ("/project/**/*.rs", "/project/src"),
        ("/{docs,project}/**", "/project"),
        ("/**/x", "/project"),
        ("/project/a.rs", "/project/a.rs"),
    ] {
        assert_eq!(check(pattern, start), Ok(()), "{pattern} from {start}");
    }
    for (pattern, start) in [
        ("/docs/**", "/project"),
        ("/project/*.rs", "/project/src"),
        ("/p*/x", "/docs"),
        ("/x", "/project"),
    ] {
        let error = check(pattern, start).unwrap_err();
        assert!(matches!(error, GlobError::Outside { .. }));
        assert!(error.to_string().contains("relative pattern"), "{error}");
    }
}

#[test]
fn directories_that_cannot_hold_a_match_are_known() {
    let may = |pattern: &str, start: &str, directory: &str| {
        glob(pattern).may_match_beneath(&path(start), &path(directory))
    };
    assert!(may("src/**/*.rs", "/", "/"));
    assert!(may("src/**/*.rs", "/", "/src/a/b"));
    assert!(!may("src/**/*.rs", "/", "/docs"));
    assert!(!may("{src,tests}/*", "/", "/docs") && may("{src,tests}/*", "/", "/tests"));
    assert!(!may("src/*", "/", "/src/a"));
    assert!(may("*.rs", "/project", "/project/any/where"));
    assert!(may("src/*", "/project", "/project/src") && !may("src/*", "/project", "/project/docs"));
    assert!(
        may("/project/src/*", "/project", "/project")
            && !may("/project/src/*", "/project", "/project/docs")
    );
    assert!(
        may("src/*", "/project/a", "/project"),
        "the start lies beneath it"
    );
    assert!(!may("src/*", "/project/a", "/project/b"));
}

#[test]
fn literal_prefixes_are_those_of_all_alternatives() {
    for (pattern, prefix) in [
        ("a/b/*", "a/b"),
        ("/a/b/c", "a/b"),
        ("a/{b,c}/d", "a"),
        ("a/b/{c,d/e}", "a/b"),
        ("{a,b}/c", ""),
        ("a/**", "a"),
        ("a", ""),
        ("a/b*/c", "a"),
    ] {
        assert_eq!(glob(pattern).literal_prefix(), prefix, "{pattern}");
    }
}

#[test]
fn only_a_literal_dot_names_what_is_hidden() {
    for (pattern, name) in [
        (".env", ".env"),
        ("**/.env*", ".env.local"),
        (".github/**", ".github"),
        ("{a,.b}/c", ".b"),
        ("\\.x", ".x"),
        (".?[a-z]*", ".gitignore"),
    ] {
        assert!(glob(pattern).names_hidden(name), "{pattern} names {name}");
    }
    for (pattern, name) in [
        ("*", ".env"),
        ("**", ".env"),
        ("?env", ".env"),
        ("[.]env", ".env"),
        (".env", ".envrc"),
        (".a/.b", ".c"),
    ] {
        assert!(!glob(pattern).names_hidden(name), "{pattern} names {name}");
    }
}

#[test]
fn prints_and_compares_as_it_was_written() {
    let glob: Glob = "./{a,b}".parse().unwrap();
    assert_eq!(glob.to_string(), "./{a,b}");
    assert_eq!(format!("{glob:?}"), "Glob(\"./{a,b}\")");
    assert_eq!(glob.clone(), glob);
    assert_ne!(glob, Glob::new("a").unwrap());
    assert!("[".parse::<Glob>().is_err());
}

#[test]
fn hostile_patterns_end() {
    let name = "a".repeat(255);
    let deep = "a/".repeat(PATH_DEPTH);
    let patterns = [
        "{a,".repeat(PATTERN_BYTES / 3),
        "{".repeat(PATTERN_BYTES),
        "[".repeat(PATTERN_BYTES),
        "[!".repeat(PATTERN_BYTES / 2),
        "{a}".repeat(PATTERN_BYTES / 3),
        "{a,b}".repeat(PATTERN_BYTES / 5),
        format!("{}a{}", "{".repeat(5_000), "}".repeat(5_000)),
        format!("{}{}", "{a,b}".repeat(8), "x".repeat(PATTERN_BYTES - 40)),
        format!(
            "{}{}{}",
            "{".repeat(4_000),
            "x".repeat(8_000),
            "}".repeat(4_000)
        ),
        format!("{}b", "*a".repeat(PATTERN_BYTES / 2 - 1)),
        format!("{}b", "**/".repeat(PATTERN_BYTES / 3 - 1)),
        format!("{}b", "**/a/".repeat(PATTERN_BYTES / 5 - 1)),
        format!("**/{}b", "[!b]*".repeat(PATTERN_BYTES / 5 - 1)),
    ];
    // A backtracking matcher would take practically forever on these.
    for pattern in &patterns {
        if let Ok(glob) = Glob::new(pattern) {
            for text in [&name, deep.trim_end_matches('/')] {
                glob.matches_relative(text);
                glob.may_match_beneath(&VPath::root(), &path(text));
            }
        }
    }
}

/// Generates patterns that mostly compile and sometimes match one of [`paths`].
pub(in crate::search) fn patterns() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec!["a", "b"]),
        2 => prop::sample::select(vec!["é", ".", "-", ",", "]", "!"]),
        6 => prop::sample::select(vec!["*", "*", "?", "**"]),
        3 => prop::sample::select(vec![
            "[ab]", "[!a]", "[^b.]", "[a-b]", "[]a]", "[!]]", "[b-]", "[\\]-é]", "[/a]", "[,{]",
        ]),
        1 => prop::sample::select(vec!["\\*", "\\a", "\\{", "\\}", "\\,", "\\/", "\\.", "\\\\"]),
    ];
    let component = prop_oneof![
        3 => prop::collection::vec(piece, 1..4).prop_map(|pieces| pieces.concat()),
        1 => Just("**".to_owned()),
    ];
    let text = (
        prop::sample::select(vec!["", "", "", "./", "/"]),
        prop::collection::vec(component, 1..4),
    )
        .prop_map(|(head, components)| head.to_owned() + &components.join("/"));
    text.prop_recursive(3, 16, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4)
                .prop_map(|branches| format!("{{{}}}", branches.join(","))),
            (inner.clone(), inner).prop_map(|(one, other)| format!("{one}{other}")),
        ]
    })
}

pub(in crate::search) fn paths() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        "[ab]{1,2}",
        "[ab.é*,\\]!-]{1,3}".prop_filter("a name", |name| name != "." && name != ".."),
    ];
    prop::collection::vec(name, 1..5).prop_map(|names| names.join("/"))
}

/// Checks every property of a glob for `text` against the reference.
fn agrees_with_reference(pattern: &str, text: &str) -> Result<(), TestCaseError> {
    let Ok(glob) = Glob::new(pattern) else {
        return Ok(());
    };
    let found = glob.matches_relative(text);
    prop_assert_eq!(
        found,
        reference::matches(pattern, text),
        "{} on {}",
        pattern,
        text
    );
    let whole = path(text);
    prop_assert_eq!(glob.matches(&VPath::root(), &whole), found);
    if found {
        for directory in whole.ancestors() {
            prop_assert!(glob.may_match_beneath(&VPath::root(), &directory));
        }
        prop_assert!(glob.check_start(&VPath::root()).is_ok());
        let prefix = glob.literal_prefix();
        let behind = text.strip_prefix(prefix).unwrap_or_default();
        prop_assert!(prefix.is_empty() || behind.starts_with('/'));
    }
    if glob.matches_all_beneath(&VPath::root(), &whole) {
        for below in ["x", "é.b", "x/y/-"] {
            let below = format!("{text}/{below}");
            prop_assert!(glob.matches_relative(&below), "{} on {}", pattern, below);
        }
    }
    for name in text.split('/') {
        let named = reference::expand(pattern)
            .iter()
            .flat_map(|alternative| reference::components(alternative))
            .filter(|component| component.starts_with('.') || component.starts_with("\\."))
            .any(|component| reference::name_matches(&component, name));
        prop_assert_eq!(glob.names_hidden(name), named, "{} names {}", pattern, name);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn equals_the_reference(pattern in patterns(), texts in prop::collection::vec(paths(), 8)) {
        for text in &texts {
            agrees_with_reference(&pattern, text)?;
        }
    }

    #[test]
    fn equals_the_reference_on_noise(
        pattern in "[ab./*?\\[\\]!{},\\\\-]{0,14}",
        texts in prop::collection::vec(paths(), 8),
    ) {
        for text in &texts {
            agrees_with_reference(&pattern, text)?;
        }
    }

    #[test]
    fn equals_globset_where_the_dialects_meet(
        components in prop::collection::vec(
            prop::sample::select(vec!["a", "b", "*", "a*", "*b", "*.b", "**", "a*b*", ".a", "**a"]),
            1..5,
        ),
        texts in prop::collection::vec(paths(), 8),
    ) {
        let pattern = components.join("/");
        let anywhere = if components.len() == 1 { "**/" } else { "" };
        let theirs = globset::GlobBuilder::new(&format!("{anywhere}{pattern}"))
            .literal_separator(true)
            .build()
            .unwrap()
            .compile_matcher();
        let ours = glob(&pattern);
        for text in &texts {
            prop_assert_eq!(ours.matches_relative(text), theirs.is_match(text), "{} on {}", pattern, text);
        }
    }

    #[test]
    fn any_string_is_a_glob_or_a_typed_error(pattern in any::<String>(), text in paths()) {
        match Glob::new(&pattern) {
            Ok(glob) => { glob.matches_relative(&text); }
            Err(error) => prop_assert!(!error.to_string().is_empty()),
        }
    }
}
