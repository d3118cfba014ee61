//! Tests of the entries that listings and searches of a real tree leave out in a scope.
use backend_core::Backend as _;
use backend_core::ops::{GlobQuery, GrepQuery, LsOptions, Skipped};
use backend_core::search::Exclude;
use backend_mounts::{Derive, Scope};
use backend_state::{Snapshot, StateBackend};
use backend_testkit::{block_on, path};
use permissions::Op;

use crate::support::scope::{mount, scope};

const FILES: &str = "/a/b/one.md /a/b/two.txt /a/c/three.md /a/file /data/.env /data/.md \
    /data/Four.MD /data/README /data/dir.md/five.txt /data/ends. /data/special/deep/six.md \
    /data/special/seven.md /data/sub/eight.md /data/sub/x.tar.gz /data/v1.2. /etc/passwd /top.md \
    /we*ird/[x]/nine.md";

fn words(text: &'static str) -> Vec<&'static str> {
    text.split(' ').collect()
}

fn tree(files: &[&'static str]) -> StateBackend {
    let files = files.iter().map(|file| (*file, "needle"));
    let snapshot = Snapshot::from_files(files).unwrap();
    StateBackend::builder().snapshot(snapshot).build()
}

fn ls(scope: &Scope, at: &str) -> Vec<String> {
    let options = LsOptions::default().exclude(scope.exclude(Op::Ls));
    let listing = block_on(tree(&words(FILES)).ls(&path(at), options)).unwrap();
    assert_eq!(listing.total, listing.entries.len());
    let paths = listing.entries.into_iter().map(|entry| entry.path);
    paths.map(|path| path.as_str().to_owned()).collect()
}

fn glob(scope: &Scope, at: &str) -> Vec<String> {
    let query = GlobQuery::new("**", path(at)).hidden(true).ignored(true);
    let query = query.exclude(scope.exclude(Op::Glob));
    let found = block_on(tree(&words(FILES)).glob(query)).unwrap();
    assert_eq!(found.skipped, Skipped::default(), "nothing is told");
    let paths = found.files.into_iter().map(|entry| entry.path);
    paths.map(|path| path.as_str().to_owned()).collect()
}

fn grep_with(exclude: Exclude, at: &str) -> Vec<String> {
    let query = GrepQuery::new("needle", path(at)).hidden(true);
    let found = block_on(tree(&words(FILES)).grep(query.exclude(exclude))).unwrap();
    let paths = found.files.iter().map(|file| &file.path);
    paths.map(|path| path.as_str().to_owned()).collect()
}

fn grep(scope: &Scope, at: &str) -> Vec<String> {
    grep_with(scope.exclude(Op::Grep), at)
}

fn beneath(directories: &[&str]) -> Vec<&'static str> {
    let lies_in = |file: &&str| {
        let mut directories = directories.iter();
        directories.any(|directory| path(file).starts_with(&path(directory)))
    };
    FILES.split(' ').filter(lies_in).collect()
}

#[test]
fn a_whole_tree_is_searched_at_no_cost() {
    let scope = scope([mount("/")]);
    for op in [Op::Ls, Op::Glob, Op::Grep] {
        assert!(scope.exclude(op).is_none(), "{op}");
    }
    assert_eq!(glob(&scope, "/"), words(FILES));
}

#[test]
fn a_listing_shows_the_way_to_what_can_be_read() {
    let scope = scope([mount("/a/b"), mount("/data")]);
    assert_eq!(ls(&scope, "/"), ["/a", "/data"]);
    assert_eq!(ls(&scope, "/a"), ["/a/b"]);
    assert_eq!(ls(&scope, "/a/b"), ["/a/b/one.md", "/a/b/two.txt"]);
    assert_eq!(ls(&scope, "/data").len(), 9, "suffixes do not matter");
    let child = scope.derive(Derive::new().read(["/data/special/deep"]));
    let child = child.unwrap();
    assert_eq!(ls(&child, "/"), ["/data"]);
    assert_eq!(ls(&child, "/data"), ["/data/special"]);
    assert_eq!(ls(&child, "/data/special"), ["/data/special/deep"]);
    let deep = ls(&child, "/data/special/deep");
    assert_eq!(deep, ["/data/special/deep/six.md"]);
    let nothing = scope.derive(Derive::new()).unwrap();
    assert_eq!(ls(&nothing, "/"), [""; 0]);
}

#[test]
fn a_search_finds_exactly_what_can_be_read() {
    let mounted = scope([mount("/a/b"), mount("/data")]);
    assert_eq!(glob(&mounted, "/"), beneath(&["/a/b", "/data"]));
    assert_eq!(glob(&mounted, "/data/sub"), beneath(&["/data/sub"]));
    assert_eq!(grep(&mounted, "/"), beneath(&["/a/b", "/data"]));
    let child = Derive::new().read(["/data/special", "/a/b"]);
    let child = mounted.derive(child).unwrap();
    assert_eq!(glob(&child, "/"), beneath(&["/a/b", "/data/special"]));
    assert_eq!(grep(&child, "/"), beneath(&["/a/b", "/data/special"]));
    let grandchild = child.derive(Derive::new().read(["/data/special/deep"]));
    let grandchild = grandchild.unwrap();
    assert_eq!(glob(&grandchild, "/"), beneath(&["/data/special/deep"]));
    assert_eq!(grep(&grandchild, "/"), beneath(&["/data/special/deep"]));
    let nothing = grandchild.derive(Derive::new()).unwrap();
    assert!(glob(&nothing, "/").is_empty() && grep(&nothing, "/").is_empty());
    assert!(
        grep(&nothing, "/top.md").is_empty(),
        "a named file is no exception"
    );
}

#[test]
fn a_nested_mount_that_is_not_covered_is_hidden() {
    let scope = scope([mount("/"), mount("/data"), mount("/data/special")]);
    let data = scope.derive(Derive::new().read(["/data"])).unwrap();
    let mut expected = beneath(&["/data"]);
    expected.retain(|file| !file.starts_with("/data/special"));
    assert_eq!(glob(&data, "/"), expected);
    assert_eq!(grep(&data, "/"), expected);
    assert!(!ls(&data, "/data").contains(&"/data/special".to_owned()));
    let deeper = Derive::new().read(["/data", "/data/special/deep"]);
    let deeper = scope.derive(deeper).unwrap();
    assert!(ls(&deeper, "/data").contains(&"/data/special".to_owned()));
    assert_eq!(ls(&deeper, "/data/special"), ["/data/special/deep"]);
    let spanning = Derive::new().read(["/data"]).span_nested();
    let spanning = scope.derive(spanning).unwrap();
    assert_eq!(glob(&spanning, "/"), beneath(&["/data"]));
    let root = scope.derive(Derive::new().read(["/"])).unwrap();
    let mut expected = words(FILES);
    expected.retain(|file| !file.starts_with("/data/"));
    assert_eq!(glob(&root, "/"), expected);
}

#[test]
fn what_a_mount_is_missing_for_is_not_found() {
    // A mount at /a/file/x is configured, and /a/file is a file.
    let scope = scope([mount("/a/file/x")]);
    assert!(glob(&scope, "/").is_empty() && grep(&scope, "/").is_empty());
    assert!(grep(&scope, "/a/file").is_empty());
}

#[test]
fn names_that_look_like_patterns_are_names() {
    let weird = scope([mount("/we*ird/[x]")]);
    assert_eq!(glob(&weird, "/"), ["/we*ird/[x]/nine.md"]);
    assert_eq!(ls(&weird, "/"), ["/we*ird"]);
    let other = scope([mount("/*")]);
    assert!(glob(&other, "/").is_empty() && ls(&other, "/").is_empty());
}

#[test]
fn grep_leaves_out_suffixes_that_are_not_allowed() {
    let find = |suffixes: &[&str]| {
        let data = mount("/data").suffixes(suffixes.to_vec());
        grep(&scope([data, mount("/a")]), "/data")
    };
    let markdown = "/data/Four.MD /data/special/deep/six.md /data/special/seven.md \
        /data/sub/eight.md";
    let markdown = words(markdown);
    assert_eq!(find(&[".md"]), markdown);
    assert_eq!(find(&[".mD", "txt", ".tar.gz"]), markdown);
    let bare = "/data/.env /data/.md /data/README /data/ends. /data/v1.2.";
    assert_eq!(find(&[""]), words(bare));
    let others = "/data/dir.md/five.txt /data/sub/x.tar.gz";
    assert_eq!(find(&[".gz", ".TXT"]), words(others));
    assert!(find(&[]).is_empty());
    let nested = scope([
        mount("/").suffixes([".md"]),
        mount("/data").suffixes([""]),
        mount("/data/special"),
    ]);
    let expected = "/a/b/one.md /a/c/three.md /data/.env /data/.md /data/README /data/ends. \
        /data/special/deep/six.md /data/special/seven.md /data/v1.2. /top.md /we*ird/[x]/nine.md";
    assert_eq!(grep(&nested, "/"), words(expected));
    assert_eq!(glob(&nested, "/"), words(FILES), "names are shown");
}

#[test]
fn grep_leaves_out_what_nobody_said_yes_to() {
    let scope = scope([
        mount("/a").read_approval(true),
        mount("/a/b"),
        mount("/data").read_approval(true),
    ]);
    assert_eq!(grep(&scope, "/"), beneath(&["/a/b"]));
    let granted = scope.exclude_granted(Op::Grep, |mount| mount.mount_point == path("/data"));
    assert_eq!(grep_with(granted, "/"), beneath(&["/a/b", "/data"]));
    let all = scope.exclude_granted(Op::Grep, |_| true);
    assert_eq!(grep_with(all, "/"), beneath(&["/a", "/data"]));
    let child = scope.derive(Derive::new().read(["/data/sub"])).unwrap();
    let all = child.exclude_granted(Op::Grep, |_| true);
    assert_eq!(
        grep_with(all, "/"),
        beneath(&["/data/sub"]),
        "no more than the scope"
    );
    assert_eq!(
        glob(&scope, "/"),
        beneath(&["/a", "/data"]),
        "names are shown"
    );
    for op in [Op::Ls, Op::Glob] {
        assert_eq!(scope.exclude_granted(op, |_| false), scope.exclude(op));
    }
}
