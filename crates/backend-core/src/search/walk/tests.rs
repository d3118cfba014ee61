//! The walk, driven over a tree in memory.

mod skipped;
mod tree;

use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::limits::{NAME_BYTES, PATH_BYTES, PATH_DEPTH};
use crate::search::{Exclude, Glob};
use tree::{Node, Tree};

fn everything() -> WalkOptions {
    WalkOptions::default().hidden(true).ignored(true)
}

fn matching(pattern: &str) -> WalkOptions {
    WalkOptions::default().pattern(Glob::new(pattern).unwrap())
}

#[test]
fn finds_files_in_path_order_with_their_payloads() {
    let tree = Tree::new(&[
        "/a-b", "/a.b", "/a0", "/a/x", "/a/y/z", "/a b", "/empty/", "/b",
    ])
    .with("/a/text", "12345");
    let log = tree.walk("/", WalkOptions::default());
    let expected = [
        "/a b", "/a-b", "/a.b", "/a/text", "/a/x", "/a/y/z", "/a0", "/b",
    ];
    assert_eq!(log.found, expected);
    assert_eq!(log.bytes, 5);
    assert_eq!(log.entered, ["/", "/a", "/a/y", "/empty"]);
    assert!(log.skipped.is_empty());
}

#[test]
fn passes_over_what_is_no_file_in_silence() {
    let tree = Tree::new(&["/a"])
        .with_node("/link", Node::Link)
        .with_node("/.link", Node::Link)
        .with_node("/fifo", Node::Fifo);
    let mut walk = Walk::new(VPath::root(), everything());
    let mut children = tree.children(&VPath::root());
    children.push(Child::new(".agentbox-tmp-1", FileKind::File, 0));
    children.push(Child::new(".agentbox-tmp-2", FileKind::Directory, 0));
    walk.step();
    walk.entered((), children);
    assert!(matches!(walk.step(), Step::File { path, .. } if path.as_str() == "/a"));
    assert!(matches!(walk.step(), Step::Done));
    assert!(walk.skipped().is_empty());
    assert!(tree.walk("/", WalkOptions::default()).skipped.is_empty());
}

#[test]
fn enters_only_where_the_pattern_can_match() {
    let tree = Tree::new(&[
        "/docs/a.rs",
        "/src/.x/a.rs",
        "/src/a.rs",
        "/src/net/a.rs",
        "/src/net/deep/a.rs",
        "/tests/a.rs",
    ]);
    for (start, pattern, entered, found) in [
        (
            "/",
            "src/**/*.rs",
            &["/", "/src", "/src/net", "/src/net/deep"][..],
            &["/src/a.rs", "/src/net/a.rs", "/src/net/deep/a.rs"][..],
        ),
        (
            "/",
            "{src,tests}/*",
            &["/", "/src", "/tests"],
            &["/src/a.rs", "/tests/a.rs"],
        ),
        (
            "/",
            "/src/*/a.rs",
            &["/", "/src", "/src/net"],
            &["/src/net/a.rs"],
        ),
        (
            "/src",
            "/src/net/*",
            &["/src", "/src/net"],
            &["/src/net/a.rs"],
        ),
        ("/src", "net/*", &["/src", "/src/net"], &["/src/net/a.rs"]),
    ] {
        let log = tree.walk(start, matching(pattern));
        assert_eq!(log.entered, entered, "{pattern}");
        assert_eq!(log.found, found, "{pattern}");
    }
}

#[test]
fn an_unreadable_directory_is_counted_and_passed() {
    let tree = Tree::new(&["/a/x", "/z"]).with_node("/b", Node::UnreadableDirectory);
    let log = tree.walk("/", WalkOptions::default());
    assert_eq!(log.found, ["/a/x", "/z"]);
    assert_eq!(log.skipped.unreadable, 1);
    let log = tree.walk("/missing", WalkOptions::default());
    assert_eq!(log.skipped.unreadable, 1);
}

#[test]
fn names_that_are_none_are_counted_and_passed() {
    let mut walk = Walk::new(VPath::root(), everything());
    walk.step();
    let long = "x".repeat(NAME_BYTES + 1);
    let names = ["", "a/b", "..", "nul\0", long.as_str(), "ok"];
    let children = names.map(|name| Child::new(name, FileKind::File, ()));
    walk.skip_names(2);
    walk.entered((), children.to_vec());
    assert!(matches!(walk.step(), Step::File { path, .. } if path.as_str() == "/ok"));
    assert!(matches!(walk.step(), Step::Done));
    assert_eq!(walk.skipped().unreadable, 5);
    assert_eq!(walk.skipped().not_utf8, 2);
}

#[test]
fn the_longest_path_ends_the_walk() {
    let name = "x".repeat(NAME_BYTES);
    let mut walk = Walk::new(VPath::root(), WalkOptions::default());
    let mut depth = 0;
    while !matches!(walk.step(), Step::Done) {
        depth += 1;
        walk.entered((), vec![Child::new(name.as_str(), FileKind::Directory, ())]);
    }
    assert_eq!(depth, 1 + (PATH_BYTES / (NAME_BYTES + 1)));
    assert_eq!(walk.skipped().unreadable, 1);

    let deepest = VPath::parse(&"/x".repeat(PATH_DEPTH)).unwrap();
    let mut walk: Walk<(), ()> = Walk::new(deepest, WalkOptions::default());
    let mut reads = 0;
    while matches!(walk.step(), Step::IgnoreFile { .. }) {
        walk.ignore_file(None);
        reads += 1;
    }
    assert_eq!(reads, 2 * PATH_DEPTH, "two in each directory above");
    assert!(matches!(walk.step(), Step::Enter { .. }));
}

#[test]
fn handles_are_dropped_once_they_are_not_needed() {
    let handle = Rc::new(());
    let directory = |name: &str| Child::new(name, FileKind::Directory, ());
    let file = |name: &str| Child::new(name, FileKind::File, ());
    let mut walk = Walk::new(VPath::root(), everything());
    let mut answer = |children: Vec<Child<()>>| {
        assert!(matches!(walk.step(), Step::Enter { .. }));
        walk.entered(Rc::clone(&handle), children);
        Rc::strong_count(&handle) - 1
    };
    assert_eq!(answer(vec![directory("a"), file("z")]), 1);
    assert_eq!(answer(vec![directory("b")]), 2);
    assert_eq!(answer(vec![directory("c")]), 2, "a has no other child");
    assert_eq!(answer(vec![file("f")]), 2, "nor has b");
    assert!(matches!(walk.step(), Step::File { path, .. } if path.as_str() == "/a/b/c/f"));
    assert_eq!(Rc::strong_count(&handle) - 1, 2);
    assert!(matches!(walk.step(), Step::File { path, .. } if path.as_str() == "/z"));
    assert_eq!(Rc::strong_count(&handle) - 1, 1);
    assert!(matches!(walk.step(), Step::Done));
    assert_eq!(Rc::strong_count(&handle) - 1, 0);
}

#[test]
fn answers_out_of_turn_change_nothing() {
    let mut walk = Walk::new(VPath::parse("/a").unwrap(), WalkOptions::default());
    let child = || vec![Child::new("x", FileKind::File, ())];
    walk.entered((), child());
    walk.unreadable();
    walk.ignore_file(Some(b"*"));
    for _ in 0..2 {
        let Step::IgnoreFile { path, .. } = walk.step() else {
            panic!("an unanswered step is repeated");
        };
        assert_eq!(path.as_str(), "/.gitignore");
        walk.entered((), child());
        walk.unreadable();
    }
    walk.ignore_file(None);
    walk.step();
    walk.ignore_file(None);
    for _ in 0..2 {
        let Step::Enter { path, name, parent } = walk.step() else {
            panic!("an unanswered step is repeated");
        };
        assert_eq!((path.as_str(), name, parent), ("/a", "a", None));
        walk.ignore_file(Some(b"*"));
    }
    walk.entered((), child());
    walk.entered((), child());
    walk.unreadable();
    assert!(matches!(walk.step(), Step::File { .. }));
    assert!(matches!(walk.step(), Step::Done));
    assert!(walk.skipped().is_empty());
    assert!(format!("{walk:?}").contains("Walk"));
}

#[test]
fn can_move_between_threads() {
    fn check<T: Send + Sync>(_: &T) {}
    check(&Walk::<(), ()>::new(VPath::root(), WalkOptions::default()));
}

/// Walks a tree, and returns the directories that were announced and those that were
/// entered after another one in the same directory.
fn announced(tree: &Tree, options: WalkOptions, most: usize) -> (Vec<String>, Vec<String>) {
    let (mut announced, mut entered) = (Vec::new(), Vec::new());
    let mut firsts = std::collections::HashSet::new();
    let mut walk = Walk::<VPath, u64>::new(VPath::root(), options);
    loop {
        assert!(
            !matches!(walk.step(), Step::IgnoreFile { .. }) || walk.coming(9, |_| true).is_none()
        );
        match walk.step() {
            Step::Done => break,
            Step::File { .. } => {}
            Step::IgnoreFile { path, .. } => {
                let text = tree.text(path).map(<[u8]>::to_vec);
                walk.ignore_file(text.as_deref());
            }
            Step::Enter { path, .. } => {
                let path = path.clone();
                if path.parent().is_some_and(|parent| !firsts.insert(parent)) {
                    entered.push(path.to_string());
                }
                assert!(walk.coming(most, |_| false).is_none());
                while let Some((parent, names)) =
                    walk.coming(most, |parent| path.starts_with(parent))
                {
                    assert!((1..=most).contains(&names.len()));
                    announced.extend(
                        names
                            .iter()
                            .map(|name| parent.child(name).unwrap().to_string()),
                    );
                }
                let children = tree.children(&path);
                walk.entered(path, children);
            }
        }
    }
    (announced, entered)
}

#[test]
fn what_comes_next_is_what_is_asked_for() {
    let tree = Tree::new(&[
        "/a/x",
        "/b/c/x",
        "/b/d/x",
        "/b/dist/x",
        "/b/e/x",
        "/f/x",
        "/f/g/",
        "/.h/x",
        "/target/x",
        "/z/x",
        "/zz/x",
    ])
    .with("/b/.gitignore", "d/\n")
    .with("/.ignore", "z\n");
    for most in [1, 2, 9] {
        let (mut announced, mut entered) = announced(&tree, WalkOptions::default(), most);
        announced.sort();
        entered.sort();
        assert_eq!(announced, ["/b", "/b/dist", "/b/e", "/f", "/target", "/zz"]);
        assert_eq!(announced, entered);
    }
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec!["a", "a-b", "a.b", "a b", "a0", "ab", "b", "é", "a!"])
            .prop_map(str::to_owned),
        "[ab. -]{1,4}".prop_filter("a name", |name| name != "." && name != ".."),
    ]
}

fn trees() -> impl Strategy<Value = Vec<String>> {
    let path =
        prop::collection::vec(names(), 1..5).prop_map(|names| format!("/{}", names.join("/")));
    prop::collection::vec(path, 0..24)
}

/// Returns the files among `paths`: those that are not also a directory of another.
fn files_of(paths: &[String]) -> Vec<String> {
    let is_directory = |path: &String| {
        paths
            .iter()
            .any(|other| other.starts_with(&format!("{path}/")))
    };
    let mut files: Vec<_> = paths
        .iter()
        .filter(|path| !is_directory(path))
        .cloned()
        .collect();
    files.sort();
    files.dedup();
    files
}

proptest! {
    #[test]
    fn the_order_is_that_of_sorted_paths(paths in trees()) {
        let files = files_of(&paths);
        let tree = files.iter().fold(Tree::new(&["/"]), |tree, path| tree.with(path, ""));
        prop_assert_eq!(tree.walk("/", everything()).found, files);
    }

    #[test]
    fn all_that_is_announced_is_entered(
        paths in trees(),
        pattern in prop::sample::select(vec!["**", "a/**", "*/a", "{a,b}/*"]),
        hidden in prop::sample::select(vec!["a.b", "/a/*", "b/**", "* *"]),
        most in 1..4_usize,
    ) {
        let files = files_of(&paths);
        let tree = files.iter().fold(Tree::new(&["/"]), |tree, path| tree.with(path, ""));
        let exclude = Exclude::hide([hidden]).unwrap();
        let options = everything().pattern(Glob::new(pattern).unwrap()).exclude(exclude);
        let (mut announced, mut entered) = announced(&tree, options, most);
        announced.sort();
        entered.sort();
        prop_assert_eq!(announced, entered);
    }

    #[test]
    fn a_pattern_and_an_exclude_find_what_filtering_finds(
        paths in trees(),
        pattern in prop::sample::select(vec!["**", "a*", "a/**", "*/a", "{a,b}/*", "/a/*b", ".*", "**/a.b/**"]),
        hidden in prop::sample::select(vec!["a.b", "/a/*", "b/**", "* *"]),
    ) {
        let files = files_of(&paths);
        let tree = files.iter().fold(Tree::new(&["/"]), |tree, path| tree.with(path, ""));
        let exclude = Exclude::hide([hidden]).unwrap();
        let glob = Glob::new(pattern).unwrap();
        let expected: Vec<_> = files
            .into_iter()
            .filter(|path| {
                let path = VPath::parse(path).unwrap();
                glob.matches(&VPath::root(), &path) && !exclude.hides(&path)
            })
            .collect();
        let options = everything().pattern(glob).exclude(exclude);
        prop_assert_eq!(tree.walk("/", options).found, expected);
    }
}
