//! Tests of paths: folding, limits, joining, and the invariants of every path.

use super::*;
use proptest::prelude::*;

fn parse(input: &str) -> String {
    VPath::parse(input).unwrap().as_str().to_owned()
}

#[test]
fn folds_every_spelling_of_the_root() {
    for root in ["", ".", "./", "/", "/.", "//", "a/..", "/a/../", "././"] {
        assert_eq!(parse(root), "/", "{root:?}");
    }
}

#[test]
fn folds_dots_and_slashes() {
    for (input, folded) in [
        ("a//b/./c/", "/a/b/c"),
        ("/a/../b", "/b"),
        ("a..b", "/a..b"),
        ("...", "/..."),
        ("-rf", "/-rf"),
        ("a:b", "/a:b"),
        ("~backup", "/~backup"),
        ("./~", "/~"),
        ("a\nb", "/a\nb"),
        ("%2e%2e/x", "/%2e%2e/x"),
        ("$HOME", "/$HOME"),
        ("a\\b", "/a\\b"),
    ] {
        assert_eq!(parse(input), folded, "{input:?}");
    }
}

#[test]
fn refuses_with_a_reason() {
    let long = "x".repeat(NAME_BYTES + 1);
    let long_path = "abcdefg/".repeat(600);
    let deep = "a/".repeat(PATH_DEPTH + 1);
    for (input, hint) in [
        ("a\0b", "NUL"),
        ("~", "not expanded"),
        ("~/x", "not expanded"),
        ("C:\\x", "Windows"),
        ("c:/x", "Windows"),
        ("..", "above the root"),
        ("a/../..", "above the root"),
        ("/../etc", "above the root"),
        (long.as_str(), "255"),
        (long_path.as_str(), "4095"),
        (deep.as_str(), "256 levels"),
        (".agentbox-tmp-1", "reserved"),
    ] {
        let error = VPath::parse(input).unwrap_err();
        assert!(error.to_string().contains(hint), "{error}");
    }
}

#[test]
fn the_deepest_path_is_a_path() {
    let deep = VPath::parse(&"a/".repeat(PATH_DEPTH)).unwrap();
    assert_eq!(deep.components().count(), PATH_DEPTH);
    assert!(matches!(deep.child("b"), Err(PathError::TooDeep(_, 256))));
}

#[test]
fn messages_escape_and_cut_what_they_quote() {
    let hostile = format!("~/\u{1b}[2J{}", "é".repeat(300));
    let text = VPath::parse(&hostile).unwrap_err().to_string();
    assert!(!text.contains('\u{1b}'), "{text}");
    assert!(text.len() < 500, "{}", text.len());
    let debug = format!("{:?}", Quoted::new("a\nb"));
    assert_eq!(debug, r"'a\nb'");
    for (text, shown) in [
        (
            "log in with 'docker login'",
            r#""log in with 'docker login'""#,
        ),
        (r#"{"a": 1}"#, r#"'{"a": 1}'"#),
        (r#"it's "it""#, r#"'it\'s "it"'"#),
        ("\\'\n", r#""\\'\n""#),
        ("'", r#""'""#),
        ("e\u{301}", "'e\u{301}'"),
    ] {
        assert_eq!(Quoted::new(text).to_string(), shown);
    }
}

#[test]
fn takes_paths_apart() {
    let path = VPath::parse("/a/b").unwrap();
    assert_eq!(path.file_name(), Some("b"));
    assert_eq!(path.parent(), Some(VPath::parse("/a").unwrap()));
    assert_eq!(VPath::parse("/a").unwrap().parent(), Some(VPath::root()));
    assert_eq!(VPath::root().parent(), None);
    assert_eq!(VPath::root().file_name(), None);
    assert_eq!(path.components().collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(VPath::root().components().count(), 0);
    assert_eq!(VPath::root().ancestors().count(), 0);
    assert_eq!(format!("{path} {path:?}"), "/a/b \"/a/b\"");
    assert_eq!(path.as_ref(), "/a/b");
    assert_eq!("/a/b".parse::<VPath>().unwrap(), path);
    assert_eq!(VPath::parse("a/b").unwrap(), path);
    assert_eq!(VPath::default(), VPath::root());
}

#[test]
fn a_sibling_with_the_same_beginning_is_not_beneath() {
    let base = VPath::parse("/w/ok").unwrap();
    let beneath = |p: &str| VPath::parse(p).unwrap().starts_with(&base);
    assert!(beneath("/w/ok") && beneath("/w/ok/x"));
    assert!(!beneath("/w/ok-evil") && !beneath("/w/OK") && !beneath("/w"));
    assert!(base.starts_with(&VPath::root()));
    assert!(VPath::root().starts_with(&VPath::root()));
}

#[test]
fn child_takes_one_name() {
    let root = VPath::root();
    assert_eq!(root.child("a").unwrap().as_str(), "/a");
    for bad in ["", ".", "..", "a/b", "/", "a\0"] {
        assert!(root.child(bad).is_err(), "{bad:?}");
    }
    assert!(root.child(&"x".repeat(256)).is_err());
}

#[test]
fn rebase_moves_a_subtree() {
    let p = |s| VPath::parse(s).unwrap();
    assert_eq!(p("/a/b/c").rebase(&p("/a"), &p("/x")).unwrap(), p("/x/b/c"));
    assert_eq!(p("/a").rebase(&p("/a"), &p("/x")).unwrap(), p("/x"));
    assert_eq!(p("/a/b").rebase(&p("/"), &p("/x")).unwrap(), p("/x/a/b"));
    assert_eq!(p("/x/b").rebase(&p("/x"), &p("/")).unwrap(), p("/b"));
    assert!(p("/ab").rebase(&p("/a"), &p("/x")).is_err());
}

proptest! {
    #[test]
    fn folding_is_idempotent_and_never_escapes(base in "[a-c/.]{0,12}", input in "\\PC{0,40}") {
        let base = VPath::parse(&base).unwrap_or_default();
        if let Ok(path) = base.join(&input) {
            prop_assert_eq!(&VPath::parse(path.as_str()).unwrap(), &path);
            prop_assert!(path.as_str().starts_with('/'));
            prop_assert!(path.components().all(|c| !matches!(c, "" | "." | "..")));
            prop_assert!(path.is_root() || !path.as_str().ends_with('/'));
            prop_assert_eq!(path.components().count(), path.ancestors().count());
        }
    }

    #[test]
    fn any_string_is_a_path_or_a_typed_error(input in any::<String>()) {
        if let Err(error) = VPath::parse(&input) {
            prop_assert!(!error.to_string().is_empty());
        }
    }

    #[test]
    fn what_is_joined_is_beneath_unless_it_climbs(a in "[a-z]{1,3}(/[a-z]{1,3}){0,3}", b in "[a-z.]{1,3}(/[a-z]{1,3}){0,3}") {
        prop_assume!(!b.split('/').any(|c| c == ".."));
        let base = VPath::parse(&a).unwrap();
        let joined = base.join(&b).unwrap();
        prop_assert!(joined.starts_with(&base));
        let rest = joined.strip_prefix(&base).unwrap();
        prop_assert_eq!(base.join(rest).unwrap(), joined.clone());
    }
}
