//! Derived globs match what they should, and so does their text.

use proptest::prelude::*;

use super::*;
use crate::search::glob::tests::{paths, patterns};

fn root() -> VPath {
    VPath::root()
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Parses the glob again from its text.
fn again(glob: &Glob) -> Glob {
    Glob::new(glob.as_str()).unwrap_or_else(|error| panic!("{glob}: {error}"))
}

#[test]
fn a_directory_stands_in_front_as_plain_text() {
    let base = path("/a*b/{c,[d]}/é\\");
    let globs = Glob::new("{x/[!]\\-a-c]?,**/y,z}")
        .unwrap()
        .from_root(&base);
    let texts: Vec<_> = globs.iter().map(Glob::as_str).collect();
    assert_eq!(
        texts,
        [
            "/a\\*b/\\{c\\,\\[d]\\}/é\\\\/x/[!\\]\\-a-c]?",
            "/**/y",
            "/**/z"
        ]
    );
    assert!(again(&globs[0]).matches(&root(), &path("/a*b/{c,[d]}/é\\/x/dé")));
    assert!(!again(&globs[0]).matches(&root(), &path("/aXb/{c,[d]}/é\\/x/dé")));
}

#[test]
fn what_lies_beneath_and_what_lies_above() {
    let glob = |text: &str| Glob::new(text).unwrap();
    for (text, beneath, whole) in [
        ("/a", "/a/**", None),
        ("/a/**", "/a/**", Some("/a")),
        ("/a/**/*", "/a/**", Some("/a")),
        ("/**/.ssh/**", "/**/.ssh/**", Some("/**/.ssh")),
        ("/**", "/**", None),
        ("*", "**", None),
        ("/*", "/*/**", None),
        ("{a,b/**}", "{**/a/**,b/**}", None),
        (
            "/{a,b/**,c/d/**}",
            "{/a/**,/b/**,/c/d/**}",
            Some("{/b,/c/d}"),
        ),
    ] {
        assert_eq!(glob(text).beneath().as_str(), beneath);
        let directories = glob(text).whole_directories();
        assert_eq!(directories.as_ref().map(Glob::as_str), whole);
    }
}

#[test]
fn the_required_text_is_the_longest() {
    for (pattern, required) in [
        ("*", ""),
        ("?", ""),
        ("[ab]*", ""),
        ("*.pem", ".pem"),
        ("/etc/**", "etc/"),
        ("**/.ssh/**", ".ssh/"),
        ("a/**/bcd", "bcd"),
        ("/a/b/*c/de", "a/b/"),
        ("/a/*/b/**/c", "/b/"),
        ("/abc/*/d", "abc/"),
        ("/x/ab*cdefg?h/*", "cdefg"),
    ] {
        let glob = Glob::new(pattern).unwrap();
        let texts: Vec<_> = glob
            .compiled_alternatives()
            .iter()
            .map(Alternative::required_text)
            .collect();
        assert_eq!(texts, [required], "{pattern}");
    }
}

#[test]
fn a_pattern_is_seen_from_above_its_start() {
    for (pattern, seen) in [
        ("a*", Some("/s/t/**/a*")),
        ("**", Some("/s/t/**")),
        ("x/{a,b}", Some("{/s/t/x/a,/s/t/x/b}")),
        ("/r/s/a", Some("/s/a")),
        ("/q/a", None),
    ] {
        let below = Glob::new(pattern)
            .unwrap()
            .below(&path("/r/s/t"), &path("/r"));
        let below = below.unwrap();
        assert_eq!(below.as_ref().map(Glob::as_str), seen, "{pattern}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn derived_globs_say_what_they_should(
        pattern in patterns(),
        base in paths(),
        texts in prop::collection::vec(paths(), 8),
    ) {
        let Ok(glob) = Glob::new(&pattern) else {
            return Ok(());
        };
        for base in [root(), path(&base)] {
            let globs = glob.from_root(&base);
            let texts = texts.iter().map(|text| path(text));
            for path in texts.clone().chain(texts.filter_map(|path| path.rebase(&root(), &base).ok())) {
                for one in &globs {
                    let found = one.matches(&root(), &path);
                    prop_assert_eq!(again(one).matches(&root(), &path), found, "{}", one);
                    let above = path.ancestors().any(|above| one.matches(&root(), &above));
                    let beneath = one.beneath();
                    prop_assert_eq!(
                        beneath.matches(&root(), &path),
                        above || (found && one.alternative_ends_in_any_depth()),
                        "{} on {}", beneath, path
                    );
                    prop_assert_eq!(again(&beneath).matches(&root(), &path), beneath.matches(&root(), &path));
                    if let Some(whole) = one.whole_directories()
                        && whole.matches(&root(), &path) {
                        prop_assert!(one.matches_all_beneath(&root(), &path));
                    }
                }
                let anywhere = globs.iter().any(|one| one.matches(&root(), &path));
                prop_assert!(anywhere || !glob.matches(&base, &path), "{:?} on {}", globs, path);
                if base.is_root() {
                    prop_assert_eq!(anywhere, glob.matches(&base, &path));
                }
            }
        }
    }

    #[test]
    fn what_is_seen_from_below_is_the_same(
        pattern in patterns(),
        start in paths(),
        between in paths(),
        texts in prop::collection::vec(paths(), 8),
    ) {
        let Ok(glob) = Glob::new(&pattern) else {
            return Ok(());
        };
        let start = path(&start);
        for directory in [path(&between), path(&between).rebase(&root(), &start).unwrap()] {
            let Ok(below) = glob.below(&start, &directory) else {
                continue;
            };
            for text in &texts {
                let beneath = path(text);
                let whole = beneath.rebase(&root(), &directory).unwrap();
                if beneath.is_root() {
                    continue;
                }
                let seen = |glob: &Glob| glob.matches(&root(), &beneath);
                let found = below.as_ref().is_some_and(seen);
                prop_assert_eq!(found, glob.matches(&start, &whole), "{:?} on {}", below, whole);
                prop_assert_eq!(below.as_ref().map(again).is_some_and(|glob| seen(&glob)), found);
            }
        }
    }
}

impl Glob {
    fn alternative_ends_in_any_depth(&self) -> bool {
        self.compiled_alternatives()
            .iter()
            .all(Alternative::ends_in_any_depth)
    }
}
