//! Tests of the entries that a walk leaves out: hidden, generated, ignored and excluded ones.

use super::tree::{Node, Tree};
use super::{everything, matching};
use crate::limits::IGNORE_FILE_BYTES;
use crate::ops::FileKind;
use crate::path::VPath;
use crate::search::{Child, Exclude, ExcludeRule, Step, Walk, WalkOptions};

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
