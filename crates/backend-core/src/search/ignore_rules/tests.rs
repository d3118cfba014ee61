//! Precedence of ignore files.

use ignore::Match;
use ignore::gitignore::GitignoreBuilder;
use proptest::prelude::*;

use super::*;

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Returns the rules of one `.gitignore` file in the root.
fn git(text: &[u8]) -> IgnoreRules {
    let mut rules = IgnoreRules::default();
    rules.push(&VPath::root(), IgnoreFile::Git, text).unwrap();
    rules
}

fn ignores(rules: &IgnoreRules, text: &str) -> bool {
    match text.strip_suffix('/') {
        Some(directory) => rules.is_ignored(&path(directory), true),
        None => rules.is_ignored(&path(text), false),
    }
}

#[test]
fn reads_lines_as_git_does() {
    for (text, ignored, kept) in [
        ("*.log", "/a/b.log", "/a/log"),
        ("/a", "/a", "/b/a"),
        ("a/b", "/a/b", "/x/a/b"),
        ("build/", "/x/build/", "/x/build"),
        ("**/x", "/a/b/x", "/a/b/y"),
        ("a/**", "/a/b/c", "/a/"),
        ("*\n!keep", "/a", "/keep"),
        ("!keep\nke*", "/keep", "/a"),
        ("# comment\na", "/a", "/# comment"),
        ("\\#a", "/#a", "/a"),
        ("\\!a", "/!a", "/a"),
        ("a   ", "/a", "/a   "),
        ("a\\ ", "/a ", "/a"),
        ("a\\   ", "/a ", "/a"),
        ("a\\\\  ", "/a\\", "/a"),
        ("\u{feff}a\r\nb\r\n", "/a", "/\u{feff}a"),
        ("a\r\nb\r\n", "/b", "/b\r"),
        ("[ab]c", "/ac", "/cc"),
        ("{a,b}", "/{a,b}", "/a"),
        ("\\{a", "/{a", "/a"),
        ("[{]a", "/{a", "/\\a"),
        ("[]{]a", "/{a", "/\\a"),
        ("[!{]a", "/xa", "/{a"),
        ("{{name}}/build", "/{{name}}/build", "/name/build"),
        ("}{", "/}{", "/a"),
        ("[\\]]a", "/]a", "/\\a"),
        ("a//b\nc", "/c", "/a/b"),
        ("./a\n../a\n/\nc", "/c", "/a"),
    ] {
        let rules = git(text.as_bytes());
        assert!(ignores(&rules, ignored), "{text:?} ignores {ignored}");
        assert!(!ignores(&rules, kept), "{text:?} keeps {kept}");
    }
}

#[test]
fn passes_over_what_it_cannot_read() {
    let long = format!("{}\nb", "*a".repeat(PATH_BYTES));
    for text in [
        &b"[z-a]\nb"[..],
        b"[a\nb",
        b"[{a\nb",
        b"{a\\\nb",
        b"\xff*\nb",
        long.as_bytes(),
    ] {
        let rules = git(text);
        assert!(ignores(&rules, "/b"));
        for kept in ["/a", "/aa", "/[a", "/{a", "/[{a", "/{a\\"] {
            assert!(!ignores(&rules, kept), "{kept}");
        }
    }
}

#[test]
fn keeps_only_files_that_hold_rules() {
    for text in [&b""[..], b"\n\r\n  \n# only a comment\n"] {
        let rules = git(text);
        assert!(rules.is_empty() && !ignores(&rules, "/a"));
    }
}

#[test]
fn refuses_what_is_too_large() {
    let mut rules = IgnoreRules::default();
    let mut push = |text: &[u8]| rules.push(&VPath::root(), IgnoreFile::Git, text);
    assert_eq!(push(&vec![b'\n'; IGNORE_FILE_BYTES]), Ok(()));
    assert_eq!(push(&vec![b'\n'; IGNORE_FILE_BYTES + 1]), Err(TooLarge));
    let costly: String = (0..85)
        .map(|i| format!("{i}{}\n", "?".repeat(4_000)))
        .collect();
    assert_eq!(push(costly.as_bytes()), Err(TooLarge));
}

#[test]
fn nested_braces_cannot_exhaust_the_stack() {
    let half = PATH_BYTES / 2;
    for text in [
        format!("{}{}", "{".repeat(half), "}".repeat(half)),
        format!("[{}{}", "{".repeat(half - 1), "}".repeat(half)),
    ] {
        assert!(!ignores(&git(text.as_bytes()), "/a"));
    }
}

#[test]
fn deeper_beats_shallower_and_ignore_beats_gitignore() {
    let mut rules = IgnoreRules::default();
    let mut push = |directory: &str, file, text: &str| {
        rules.push(&path(directory), file, text.as_bytes()).unwrap();
    };
    push("/", IgnoreFile::Plain, "!plain\n!both");
    push("/", IgnoreFile::Git, "x\nplain\nboth");
    push("/a", IgnoreFile::Git, "!x\nplain\nboth");
    push("/a/b", IgnoreFile::Plain, "both");
    for (text, ignored) in [
        ("/a/b/x", false),
        ("/a/b/plain", false),
        ("/a/b/both", true),
        ("/a/b/other", false),
    ] {
        assert_eq!(ignores(&rules, text), ignored, "{text}");
    }
}

#[test]
fn going_back_forgets() {
    let mut rules = git(b"a");
    let mark = rules.mark();
    rules.push(&path("/d"), IgnoreFile::Git, b"b").unwrap();
    rules.push(&path("/d"), IgnoreFile::Plain, b"!a").unwrap();
    assert!(ignores(&rules, "/d/b") && !ignores(&rules, "/d/a"));
    rules.reset(mark);
    assert!(!ignores(&rules, "/d/b") && ignores(&rules, "/d/a"));
}

/// Generates lines on which both parsers agree. This parser reads braces and
/// backslashes in classes as git does, and skips empty components.
fn line() -> impl Strategy<Value = String> {
    let name = prop_oneof![
        4 => "[ab]{1,2}",
        3 => "[ab*?]{1,3}",
        1 => Just("**".to_owned()),
        1 => "\\[!?[ab]\\]b?",
        1 => "a?\\\\[ab*?]",
    ];
    let path = prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    ("!?", "/?", path, "/?", " ?")
        .prop_map(|(not, from, path, to, space)| format!("{not}{from}{path}{to}{space}"))
}

proptest! {
    #[test]
    fn agrees_with_the_ignore_crate(
        lines in prop::collection::vec(line(), 1..12),
        names in prop::collection::vec("[ab*?]{1,2}", 1..5),
        is_directory: bool,
    ) {
        let mut builder = GitignoreBuilder::new("");
        for line in &lines {
            builder.add_line(None, line).unwrap();
        }
        let relative = names.join("/");
        let expected = match builder.build().unwrap().matched(&relative, is_directory) {
            Match::None => None,
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
        };
        let rules = Rules::parse(lines.join("\n").as_bytes()).unwrap();
        prop_assert_eq!(rules.decide(&relative, is_directory), expected);
    }
}
