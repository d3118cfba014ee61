//! The walk, driven over a tree in memory.

use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;

use super::*;
use crate::limits::{IGNORE_FILE_BYTES, NAME_BYTES, PATH_BYTES, PATH_DEPTH};
use crate::search::{Exclude, ExcludeRule, Glob};

/// A tree in memory: the node at each path, parents included.
#[derive(Debug, Default)]
struct Tree {
    nodes: BTreeMap<String, Node>,
}

#[derive(Debug)]
enum Node {
    File(Vec<u8>),
    Directory,
    UnreadableDirectory,
    Link,
    Fifo,
}

impl Node {
    fn kind(&self) -> FileKind {
        match self {
            Self::File(_) => FileKind::File,
            Self::Directory | Self::UnreadableDirectory => FileKind::Directory,
            Self::Link => FileKind::Link,
            Self::Fifo => FileKind::Other,
        }
    }
}

impl Tree {
    /// Creates a tree of empty files; a path that ends with `/` is a directory.
    fn new(paths: &[&str]) -> Self {
        paths
            .iter()
            .fold(Self::default(), |tree, path| tree.with(path, ""))
    }

    fn with(self, path: &str, text: &str) -> Self {
        match path.strip_suffix('/') {
            Some(path) => self.with_node(path, Node::Directory),
            None => self.with_node(path, Node::File(text.as_bytes().to_vec())),
        }
    }

    fn with_node(mut self, path: &str, node: Node) -> Self {
        let path = VPath::parse(path).unwrap();
        for above in path.ancestors() {
            let parent = self.nodes.entry(above.to_string());
            parent.or_insert(Node::Directory);
        }
        self.nodes.insert(path.to_string(), node);
        self
    }

    fn children(&self, directory: &VPath) -> Vec<Child<u64>> {
        let beneath = self.nodes.iter().rev().filter_map(|(path, node)| {
            let path = VPath::parse(path).unwrap();
            let name = path.strip_prefix(directory)?;
            (!name.is_empty() && !name.contains('/')).then(|| (name.to_owned(), node))
        });
        beneath
            .map(|(name, node)| {
                let size = match node {
                    Node::File(text) => text.len() as u64,
                    _ => 0,
                };
                Child::new(name, node.kind(), size)
            })
            .collect()
    }

    fn walk(&self, start: &str, options: WalkOptions) -> Log {
        let mut log = Log::default();
        let mut walk = Walk::<VPath, u64>::new(VPath::parse(start).unwrap(), options);
        loop {
            match walk.step() {
                Step::Enter { parent, name, path } => {
                    let opened = parent.map(|parent| parent.child(name).unwrap());
                    assert!(opened.is_none_or(|opened| opened == *path));
                    log.entered.push(path.to_string());
                    match self.nodes.get(path.as_str()) {
                        Some(Node::Directory) => {
                            let (path, children) = (path.clone(), self.children(path));
                            walk.entered(path, children);
                        }
                        _ => walk.unreadable(),
                    }
                }
                Step::IgnoreFile {
                    directory,
                    name,
                    path,
                } => {
                    let parent = directory.cloned().or(path.parent()).unwrap();
                    assert_eq!(parent.child(name).unwrap(), *path);
                    log.read.push(path.to_string());
                    match self.nodes.get(path.as_str()) {
                        Some(Node::File(text)) => walk.ignore_file(Some(text)),
                        _ => walk.ignore_file(None),
                    }
                }
                Step::File {
                    directory,
                    path,
                    payload,
                } => {
                    assert_eq!(path.parent().as_ref(), Some(directory));
                    log.found.push(path.to_string());
                    log.bytes += payload;
                }
                Step::Done => break,
            }
        }
        assert!(matches!(walk.step(), Step::Done), "done stays done");
        log.skipped = walk.skipped();
        log
    }
}

/// The record of a walk.
#[derive(Debug, Default)]
struct Log {
    found: Vec<String>,
    entered: Vec<String>,
    read: Vec<String>,
    bytes: u64,
    skipped: Skipped,
}

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
fn hidden_entries_must_be_asked_for() {
    let tree = Tree::new(&[
        "/.env",
        "/.git/config",
        "/.github/ci.yml",
        "/.github/.x/y",
        "/a",
        "/sub/.env",
        "/sub/.git",
    ]);
    let hidden = |pattern: &str| matching(pattern).hidden(true);
    for (options, found, skipped) in [
        (WalkOptions::default(), &["/a"][..], 5),
        (
            WalkOptions::default().hidden(true),
            &[
                "/.env",
                "/.github/.x/y",
                "/.github/ci.yml",
                "/a",
                "/sub/.env",
            ],
            2,
        ),
        (matching(".env"), &["/.env", "/sub/.env"], 3),
        (matching("/.env"), &["/.env"], 0),
        (matching("*"), &["/a"], 5),
        (matching(".github/**"), &["/.github/ci.yml"], 2),
        (
            hidden(".github/**"),
            &["/.github/.x/y", "/.github/ci.yml"],
            0,
        ),
        (matching(".git/*"), &["/.git/config"], 1),
        (hidden("**/.git"), &["/sub/.git"], 0),
        (hidden("*.yml"), &["/.github/ci.yml"], 2),
    ] {
        let what = format!("{options:?}");
        let log = tree.walk("/", options);
        assert_eq!(log.found, found, "{what}");
        assert_eq!(log.skipped.hidden, skipped, "{what}");
    }
}

#[test]
fn the_start_is_never_hidden_or_ignored() {
    let tree = Tree::new(&["/x/.git/hooks/a", "/x/.git/b"]).with("/.gitignore", ".git/");
    let log = tree.walk("/x/.git", WalkOptions::default());
    assert_eq!(log.found, ["/x/.git/b", "/x/.git/hooks/a"]);
}

#[test]
fn generated_directories_must_be_asked_for() {
    let tree = Tree::new(&[
        "/.venv/a.js",
        "/a.js",
        "/node_modules/m/dist/a.js",
        "/sub/build/a.js",
        "/sub/build/target/b.js",
        "/sub/dist",
        "/targets/a.js",
    ]);
    let hidden = || WalkOptions::default().hidden(true);
    let all = [
        "/.venv/a.js",
        "/a.js",
        "/node_modules/m/dist/a.js",
        "/sub/build/a.js",
        "/sub/build/target/b.js",
        "/sub/dist",
        "/targets/a.js",
    ];
    let made = ["/sub/build/a.js", "/sub/build/target/b.js"];
    for (options, found, skipped) in [
        (
            WalkOptions::default(),
            &["/a.js", "/sub/dist", "/targets/a.js"][..],
            2,
        ),
        (hidden(), &["/a.js", "/sub/dist", "/targets/a.js"], 3),
        (hidden().generated(true), &all, 0),
        (hidden().ignored(true), &all, 0),
        // A pattern names a directory anywhere, and then everything in it.
        (matching("sub/build/**"), &made, 0),
        (matching("**/build/**"), &made, 1),
        (matching("{sub,x}/{build,dist}/**"), &made, 0),
        (matching("/**/m/dist/*"), &[], 2),
        (
            matching("/node_modules/**"),
            &["/node_modules/m/dist/a.js"],
            0,
        ),
        (matching(".venv/*"), &["/.venv/a.js"], 0),
        // But not by a wildcard, nor where it names a file.
        (matching("sub/b*/**"), &[], 1),
        (matching("**/build"), &[], 2),
        (matching("**/dist"), &["/sub/dist"], 2),
    ] {
        let what = format!("{options:?}");
        let log = tree.walk("/", options);
        assert_eq!(log.found, found, "{what}");
        assert_eq!(log.skipped.generated, skipped, "{what}");
    }
    let log = tree.walk("/sub/build", WalkOptions::default());
    assert_eq!(
        (log.found, log.skipped.generated),
        (vec!["/sub/build/a.js".into()], 1)
    );
    let exclude = Exclude::hide(["/sub/build"]).unwrap();
    let log = tree.walk("/sub", WalkOptions::default().exclude(exclude));
    assert!(log.skipped.is_empty(), "what is excluded stays unseen");
}

#[test]
fn ignore_files_say_better_what_is_generated() {
    let tree = Tree::new(&[
        "/alone/dist/a",
        "/git/dist/a",
        "/git/sub/build/a",
        "/git/target/a",
    ])
    .with("/git/.gitignore", "target/\n")
    .with("/alone/.gitignore", "# no rule\n");
    let log = tree.walk("/", WalkOptions::default());
    assert_eq!(log.found, ["/git/dist/a", "/git/sub/build/a"]);
    assert_eq!((log.skipped.ignored, log.skipped.generated), (1, 1));
    // The same for a start beneath the ignore file.
    let log = tree.walk("/git/sub", WalkOptions::default());
    assert_eq!(log.found, ["/git/sub/build/a"]);
    let tree = Tree::new(&["/build/a", "/dist/a"]).with("/.ignore", "!build/\n");
    let log = tree.walk("/", WalkOptions::default());
    assert_eq!(log.found, ["/build/a", "/dist/a"]);
}

#[test]
fn ignore_files_keep_their_precedence() {
    let tree = |files: &[(&str, &str)]| {
        files.iter().fold(
            Tree::new(&["/a.log", "/d/a.log", "/d/e/a.log"]),
            |tree, (path, text)| tree.with(path, text),
        )
    };
    for (files, found, ignored) in [
        (&[("/.gitignore", "*.log")][..], &[][..], 3),
        (
            &[("/.gitignore", "*.log"), ("/d/.gitignore", "!*.log")],
            &["/d/a.log", "/d/e/a.log"],
            1,
        ),
        (
            &[
                ("/.gitignore", "*.log"),
                ("/d/.gitignore", "!*.log"),
                ("/d/e/.gitignore", "*.log"),
            ],
            &["/d/a.log"],
            2,
        ),
        (
            &[("/.ignore", "!*.log"), ("/d/e/.gitignore", "*.log")],
            &["/a.log", "/d/a.log", "/d/e/a.log"],
            0,
        ),
        (
            &[("/.ignore", "*.log"), ("/d/.ignore", "!*.log")],
            &["/d/a.log", "/d/e/a.log"],
            1,
        ),
        (
            &[("/.gitignore", "*.log\n!a.log\n/a.log")],
            &["/d/a.log", "/d/e/a.log"],
            1,
        ),
        (
            &[("/.gitignore", "d/\n!a.log"), ("/d/.gitignore", "!*")],
            &["/a.log"],
            1,
        ),
        (&[("/.gitignore", "/d/e")], &["/a.log", "/d/a.log"], 1),
        (&[("/d/.gitignore", "a.log")], &["/a.log"], 2),
    ] {
        let log = tree(files).walk("/", WalkOptions::default());
        assert_eq!(log.found, found, "{files:?}");
        assert_eq!(log.skipped.ignored, ignored, "{files:?}");
        let all = tree(files).walk("/", WalkOptions::default().ignored(true));
        assert_eq!(all.found, ["/a.log", "/d/a.log", "/d/e/a.log"]);
        assert!(
            all.read.is_empty(),
            "no ignore file is read: {:?}",
            all.read
        );
    }
}

#[test]
fn ignore_rules_end_with_their_directory() {
    let tree = Tree::new(&["/a/b/x", "/a/x", "/c/x", "/x"])
        .with("/a/b/.gitignore", "x")
        .with("/a/.ignore", "z");
    let log = tree.walk("/", WalkOptions::default());
    assert_eq!(log.found, ["/a/x", "/c/x", "/x"]);
}

#[test]
fn ignore_files_above_the_start_apply() {
    let tree = Tree::new(&["/w/p/a.log", "/w/p/b", "/w/p/out/c"])
        .with("/.gitignore", "*.log")
        .with("/w/.ignore", "/p/out");
    let log = tree.walk("/w/p", WalkOptions::default());
    assert_eq!(log.found, ["/w/p/b"]);
    assert_eq!(log.skipped.ignored, 2);
    let above = ["/.gitignore", "/.ignore", "/w/.gitignore", "/w/.ignore"];
    assert_eq!(log.read, above);
    assert!(log.skipped.unreadable == 0, "a missing one is no loss");
}

#[test]
fn ignore_files_are_read_only_where_they_are_regular_files() {
    let tree = Tree::new(&["/a/x", "/b/x"])
        .with_node("/.ignore", Node::Fifo)
        .with_node("/a/.gitignore", Node::Link)
        .with("/b/.ignore/", "");
    let log = tree.walk("/", WalkOptions::default());
    assert!(log.read.is_empty(), "{:?}", log.read);
    assert_eq!(log.found, ["/a/x", "/b/x"]);
}

#[test]
fn ignoring_does_not_unhide_and_naming_does_not_unignore() {
    let tree = Tree::new(&["/.env", "/a"]).with("/.gitignore", "!.env\n.npmrc");
    let log = tree.walk("/", WalkOptions::default());
    assert_eq!(log.found, ["/a"]);
    assert_eq!((log.skipped.hidden, log.skipped.ignored), (2, 0));

    let log = tree.with("/.npmrc", "").walk("/", matching(".npmrc"));
    assert!(log.found.is_empty());
    assert_eq!((log.skipped.hidden, log.skipped.ignored), (2, 1));
}

#[test]
fn an_ignore_file_that_cannot_be_honoured_is_counted() {
    let large = "\n".repeat(IGNORE_FILE_BYTES + 1);
    let tree = Tree::new(&["/d/a"])
        .with("/.ignore", &large)
        .with("/d/.ignore", &large);
    assert_eq!(
        tree.walk("/d", WalkOptions::default()).skipped.unreadable,
        2
    );
    let exclude = Exclude::hide(["/d/.ignore"]).unwrap();
    let log = tree.walk("/d", WalkOptions::default().exclude(exclude));
    assert_eq!(log.skipped.unreadable, 1, "what is hidden stays unseen");

    let mut walk = Walk::new(VPath::root(), WalkOptions::default());
    walk.step();
    walk.entered((), vec![Child::new(".ignore", FileKind::File, ())]);
    assert!(matches!(walk.step(), Step::IgnoreFile { .. }));
    walk.ignore_file(None);
    assert_eq!(walk.skipped().unreadable, 1);
}

#[test]
fn excluded_entries_stay_unseen() {
    let tree = Tree::new(&[
        "/.env",
        "/a",
        "/keys/.x",
        "/keys/a",
        "/keys/pub/a",
        "/z.log",
    ])
    .with("/.gitignore", "*.log")
    .with_node("/keys/locked", Node::UnreadableDirectory);
    let hide = Exclude::hide(["/keys", ".env", ".gitignore", "*.log"]).unwrap();
    let log = tree.walk("/", WalkOptions::default().exclude(hide));
    assert_eq!(log.found, ["/a"]);
    assert_eq!(log.entered, ["/"], "a hidden directory is not entered");
    assert!(log.skipped.is_empty(), "{:?}", log.skipped);

    let keep = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("/keys/pub"),
        ExcludeRule::keep("/keys/locked/*"),
        ExcludeRule::hide("/keys"),
    ]])
    .unwrap();
    let log = tree.walk("/", WalkOptions::default().exclude(keep));
    assert_eq!(log.found, ["/a", "/keys/pub/a"]);
    assert_eq!(log.entered, ["/", "/keys", "/keys/locked", "/keys/pub"]);
    assert_eq!((log.skipped.hidden, log.skipped.ignored), (2, 1));
    assert_eq!(log.skipped.unreadable, 0, "it is hidden that it is there");
}

#[test]
fn rules_for_what_is_excluded_but_entered_count_nothing() {
    let tree = Tree::new(&["/keys/.x/a", "/keys/out/a", "/keys/b"]).with("/.gitignore", "out");
    let exclude = Exclude::from_layers(vec![vec![
        ExcludeRule::keep("a"),
        ExcludeRule::hide("/keys"),
    ]])
    .unwrap();
    let log = tree.walk("/keys", WalkOptions::default().exclude(exclude.clone()));
    assert!(log.found.is_empty() && log.skipped.is_empty(), "{log:?}");

    let mut walk = Walk::new(
        VPath::parse("/keys").unwrap(),
        everything().exclude(exclude),
    );
    walk.step();
    walk.skip_names(3);
    walk.entered((), vec![Child::new("a/b", FileKind::File, ())]);
    assert!(matches!(walk.step(), Step::Done));
    assert!(walk.skipped().is_empty(), "{:?}", walk.skipped());
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
