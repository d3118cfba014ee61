//! A set agrees with its globs matched one by one.

use proptest::prelude::*;

use super::*;
use crate::search::glob::tests::{paths, patterns};

fn set(patterns: &[&str]) -> GlobSet {
    patterns
        .iter()
        .map(|pattern| Glob::new(pattern).unwrap())
        .collect()
}

fn one_by_one(globs: &[Glob], relative: &str) -> Vec<usize> {
    globs
        .iter()
        .enumerate()
        .filter(|(_, glob)| glob.matches_relative(relative))
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn tells_which_globs_match() {
    let set = set(&[
        "*.pem",
        "/etc/**",
        "{a,b}/c",
        "/?",
        "[!x]y",
        "*secret*",
        "a/*/z",
        "**/.ssh/**",
        "é*",
    ]);
    assert!(set.0.finder.is_some(), "large enough to look for texts");
    for (relative, found) in [
        ("k.pem", vec![0]),
        ("etc/secret.pem", vec![0, 1, 5]),
        ("a/c", vec![2]),
        ("x/a/c", vec![]),
        ("é", vec![3, 8]),
        ("x/xy", vec![]),
        ("x/zy", vec![4]),
        ("a/b/z", vec![6]),
        ("root/.ssh/id", vec![7]),
        ("root/.ssh", vec![]),
        ("", vec![]),
        ("a/", vec![]),
    ] {
        assert_eq!(
            set.matches(relative).collect::<Vec<_>>(),
            found,
            "{relative}"
        );
        assert_eq!(set.first(relative), found.first().copied(), "{relative}");
    }
}

#[test]
fn small_and_empty_sets_are_sets() {
    assert!(set(&[]).globs().is_empty() && set(&[]).first("a").is_none());
    let small = set(&["b", "a"]);
    assert_eq!((small.globs().len(), small.first("x/a")), (2, Some(1)));
    assert_eq!(format!("{small:?}"), r#"GlobSet([Glob("b"), Glob("a")])"#);
}

#[test]
fn a_set_can_be_large() {
    let names: Vec<_> = (0..3_000)
        .map(|n| format!("{{/**/name{n},/d{n}/**}}"))
        .collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let set = set(&names);
    assert_eq!(set.first("x/name2999"), Some(2999));
    assert_eq!(set.matches("d7/name2998").collect::<Vec<_>>(), [7, 2998]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn equals_the_globs_one_by_one(
        patterns in prop::collection::vec(patterns(), 0..40),
        texts in prop::collection::vec(paths(), 12),
    ) {
        let globs: Vec<_> = patterns.iter().filter_map(|text| Glob::new(text).ok()).collect();
        let quick = GlobSet::made_quickly(globs.iter().cloned());
        let set = GlobSet::new(globs.iter().cloned());
        for text in &texts {
            let expected = one_by_one(&globs, text);
            prop_assert_eq!(set.first(text), expected.first().copied());
            prop_assert_eq!(&quick.matches(text).collect::<Vec<_>>(), &expected, "{}", text);
            prop_assert_eq!(set.matches(text).collect::<Vec<_>>(), expected, "{}", text);
        }
    }
}
