//! Tests of whole searches on real directories.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use backend_core::ErrorKind;
use backend_core::ops::{Entry, FileKind, GlobOrder};
use backend_core::search::{Child, Exclude, Step, Walk, WalkOptions};
use bytes::Bytes;
use futures::executor::block_on;
use proptest::prelude::*;
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};
use tempfile::TempDir;

use super::*;

mod limits;

fn directory(path: &Path) -> impl FnOnce() -> Result<SearchRoot> + Send + 'static {
    let directory = fs::File::open(path).unwrap();
    move || Ok(SearchRoot::Directory(directory.into(), VPath::root()))
}

fn file(path: &Path, name: &str) -> impl FnOnce() -> Result<SearchRoot> + Send + 'static {
    let path =
        VPath::parse(name).map(|name| (fs::File::open(path.join(&name.as_str()[1..])), name));
    let (file, name) = path.unwrap();
    move || Ok(SearchRoot::File(file.unwrap().into(), name))
}

fn nothing_above() -> Arc<ReadAbove> {
    Arc::new(|_: &VPath| None)
}

fn for_lines(pattern: &str) -> GrepQuery {
    GrepQuery::new(pattern, VPath::root())
}

fn for_files(pattern: &str) -> GlobQuery {
    GlobQuery::new(pattern, VPath::root())
}

fn grep_in(root: &Path, query: GrepQuery) -> GrepResult {
    block_on(grep(directory(root), query, nothing_above())).unwrap()
}

fn glob_in(root: &Path, query: GlobQuery) -> GlobResult {
    block_on(glob(directory(root), query, nothing_above())).unwrap()
}

/// Creates a directory with these files, each containing `needle`.
fn tree(files: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for file in files {
        put(root.path(), file, "needle\n");
    }
    root
}

fn put(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

fn hits(found: &GrepResult) -> Vec<String> {
    let lines = found.files.iter().flat_map(|file| {
        file.lines()
            .map(move |line| format!("{}:{}:{}", &file.path, line.number, line.text()))
    });
    lines.collect()
}

/// Everything in a result, independent of how its lines are stored.
fn said(found: &GrepResult) -> (Vec<String>, usize, bool, Skipped) {
    let lines = found.files.iter().flat_map(|file| {
        file.lines()
            .map(move |line| format!("{}{line:?}", &file.path))
    });
    (
        lines.collect(),
        found.matches,
        found.truncated,
        found.skipped,
    )
}

fn paths(found: &GlobResult) -> Vec<&str> {
    found
        .files
        .iter()
        .map(|entry| entry.path.as_str())
        .collect()
}

/// Returns the files beneath `root`, found by a single thread and by path.
fn walk_simply(root: &Path, options: WalkOptions) -> (Vec<(VPath, Skipped)>, Skipped) {
    let mut walk = Walk::new(VPath::root(), options);
    let mut found = Vec::new();
    let on_host = |path: &VPath| root.join(&path.as_str()[1..]);
    loop {
        match walk.step() {
            Step::Done => return (found, walk.skipped()),
            Step::File { path, .. } => found.push((path, walk.skipped())),
            Step::IgnoreFile { path, .. } => {
                let rules = fs::read(on_host(path)).ok();
                walk.ignore_file(rules.as_deref());
            }
            Step::Enter { path, .. } => {
                let entries = fs::read_dir(on_host(path)).unwrap().map(|entry| {
                    let entry = entry.unwrap();
                    let kind = if entry.file_type().unwrap().is_dir() {
                        FileKind::Directory
                    } else {
                        FileKind::File
                    };
                    Child::new(entry.file_name().to_str().unwrap(), kind, ())
                });
                let children = entries.collect();
                walk.entered((), children);
            }
        }
    }
}

fn grep_simply(root: &Path, query: &GrepQuery) -> GrepResult {
    let (options, grep) = query.compile().unwrap();
    let (files, mut skipped) = walk_simply(root, options);
    let mut worker = grep.worker();
    let mut found = GrepCollector::new(query);
    for (path, skipped_before) in files {
        let content = Bytes::from(fs::read(root.join(&path.as_str()[1..])).unwrap());
        if found.add(worker.search_bytes(&path, &content)) {
            skipped = skipped_before;
            break;
        }
    }
    found.finish(skipped)
}

fn glob_simply(root: &Path, query: &GlobQuery) -> GlobResult {
    let (files, mut skipped) = walk_simply(root, query.compile().unwrap());
    let mut found = GlobCollector::new(query);
    for (path, skipped_before) in files {
        let stat = fs::metadata(root.join(&path.as_str()[1..])).unwrap();
        let entry = Entry::file(path, stat.len())
            .with_modified(stat.modified().ok())
            .with_mode(Some(stat.permissions().mode() & 0o7777));
        if found.add(entry).is_break() {
            skipped = skipped_before;
            break;
        }
    }
    found.finish(skipped)
}

/// Names whose order depends on the rule for directories, and ignore files.
fn name() -> impl Strategy<Value = &'static str> {
    let names = [
        "a", "a-", "a.b", "a0", "b", ".h", "build", "x.rs", "x.log", "é",
    ];
    prop::sample::select(names.to_vec())
}

fn content() -> impl Strategy<Value = &'static str> {
    let contents = [
        "",
        "needle",
        "needle\nhay\nneedle\n",
        "hay\n",
        "\0needle",
        "a needle\r\n",
    ];
    prop::sample::select(contents.to_vec())
}

/// Files in up to three nested directories. A path that conflicts with another
/// is left out.
fn random_tree() -> impl Strategy<Value = Vec<(Vec<&'static str>, &'static str)>> {
    let path = prop::collection::vec(name(), 1..4);
    prop::collection::vec((path, content()), 1..250)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn same_as_one_thread(
        files in random_tree(),
        rules in prop::sample::select(vec!["", "*.log\n", "build\n!x.log\n", "a/\n"]),
        max in 1_usize..60,
        context in 0_usize..2,
    ) {
        let root = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = root.path().join(path.join("/"));
            if fs::create_dir_all(path.parent().unwrap()).is_ok() && !path.exists() {
                fs::write(path, content).unwrap();
            }
        }
        fs::write(root.path().join(".gitignore"), rules).unwrap();
        let lines = for_lines("needle").context(context, context);
        let all = grep_in(root.path(), lines.clone());
        prop_assert_eq!(said(&all), said(&grep_simply(root.path(), &lines)));
        let capped = lines.max_matches(max);
        let head = grep_in(root.path(), capped.clone());
        prop_assert_eq!(said(&head), said(&grep_simply(root.path(), &capped)));
        if context == 0 {
            prop_assert_eq!(&hits(&all)[..all.matches.min(max)], &hits(&head)[..]);
        }
        for order in [GlobOrder::Path, GlobOrder::NewestFirst] {
            for limit in [max, 1000] {
                let files = for_files("*").order(order).limit(limit);
                prop_assert_eq!(glob_in(root.path(), files.clone()), glob_simply(root.path(), &files));
            }
        }
    }
}

/// Sizes around the limit for reading whole files, and lines around the limit
/// for searching them.
#[test]
fn large_files_are_searched_like_small_ones() {
    let root = tempfile::tempdir().unwrap();
    for size in [262_143, 262_144, 262_145, 1_000_000] {
        let mut text = "hay\n".repeat(size / 4 + 1);
        text.replace_range(..6, "needle");
        text.truncate(size - 7);
        text.push_str("\nneedle");
        put(root.path(), &size.to_string(), &text);
    }
    put(
        root.path(),
        "long",
        &format!("{}needle", "x".repeat(17 << 20)),
    );
    put(
        root.path(),
        "binary",
        &format!("\0{}", "needle\n".repeat(100_000)),
    );
    for query in [for_lines("needle"), for_lines("needle").context(1, 1)] {
        let found = grep_in(root.path(), query.clone());
        assert_eq!(said(&found), said(&grep_simply(root.path(), &query)));
        assert_eq!(
            (found.matches, found.skipped.long_line, found.skipped.binary),
            (8, 1, 1)
        );
    }
}

#[test]
fn file_is_searched_whatever_the_rules_say() {
    let root = tree(&[".hidden"]);
    put(root.path(), ".gitignore", ".hidden\n");
    let found =
        |query| block_on(grep(file(root.path(), "/.hidden"), query, nothing_above())).unwrap();
    assert_eq!(
        hits(&found(for_lines("needle").files("*.rs"))),
        ["/.hidden:1:needle"]
    );
    let exclude = Exclude::hide([".hidden"]).unwrap();
    assert_eq!(
        found(for_lines("needle").exclude(exclude)),
        GrepResult::default()
    );
}

#[test]
fn wrong_starts_are_errors() {
    let root = tree(&["a"]);
    let found = block_on(glob(
        file(root.path(), "/a"),
        for_files("*"),
        nothing_above(),
    ));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::NotADirectory);
    let device = || {
        Ok(SearchRoot::File(
            fs::File::open("/dev/null").unwrap().into(),
            VPath::root(),
        ))
    };
    let found = block_on(grep(device, for_lines("x"), nothing_above()));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidInput);
    let not_a_directory = fs::File::open(root.path().join("a")).unwrap();
    let start = move || Ok(SearchRoot::Directory(not_a_directory.into(), VPath::root()));
    let found = block_on(grep(start, for_lines("x"), nothing_above()));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::NotADirectory);
}

#[test]
fn without_metadata_no_file_is_touched() {
    let root = tree(&["a", "b/c"]);
    let query = || GlobQuery::new("**", VPath::root());
    let sizes = |query| {
        let found = glob_in(root.path(), query);
        assert_eq!(paths(&found).len(), 2);
        found.files.iter().filter_map(|file| file.size).count()
    };
    assert_eq!(sizes(query()), 2);
    assert_eq!(sizes(query().metadata(false)), 0);
    let newest = query().metadata(false).order(GlobOrder::NewestFirst);
    assert_eq!(sizes(newest), 2, "the order needs times");
}

#[test]
fn query_is_checked_before_anything_is_opened() {
    let open = || -> Result<SearchRoot> { panic!("opened") };
    let found = block_on(grep(open, for_lines("("), nothing_above()));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidInput);
    let found = block_on(glob(open, for_files("["), nothing_above()));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::InvalidInput);
    let found = block_on(glob(
        || Err(Error::not_found()),
        for_files("*"),
        nothing_above(),
    ));
    assert_eq!(found.unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn rules_from_above_hold() {
    let root = tree(&["keep", "drop"]);
    let above: Arc<ReadAbove> =
        Arc::new(|path| (path.as_str() == "/.gitignore").then(|| b"drop\n".to_vec()));
    let start = fs::File::open(root.path()).unwrap();
    let start = move || {
        Ok(SearchRoot::Directory(
            start.into(),
            VPath::parse("/sub").unwrap(),
        ))
    };
    let query = GlobQuery::new("*", VPath::parse("/sub").unwrap());
    let found = block_on(glob(start, query, above)).unwrap();
    assert_eq!(paths(&found), ["/sub/keep"]);
    assert_eq!(found.skipped.ignored, 1);
}

#[test]
fn fifos_are_neither_opened_nor_waited_for() {
    let root = tree(&["a", "sub/b"]);
    for name in [".ignore", ".gitignore", "pipe", "sub/.ignore"] {
        fifo(&root.path().join(name));
    }
    let found = grep_in(root.path(), for_lines("needle"));
    assert_eq!(hits(&found), ["/a:1:needle", "/sub/b:1:needle"]);
    assert_eq!(found.skipped, Skipped::default());
    assert_eq!(
        paths(&glob_in(root.path(), for_files("*"))),
        ["/a", "/sub/b"]
    );
}

#[test]
fn links_are_not_followed() {
    let outside = tree(&["secret", "directory/secret"]);
    let root = tree(&["a"]);
    symlink(outside.path().join("secret"), root.path().join("file")).unwrap();
    symlink(
        outside.path().join("directory"),
        root.path().join("directory"),
    )
    .unwrap();
    symlink(
        outside.path().join("secret"),
        root.path().join(".gitignore"),
    )
    .unwrap();
    symlink("a", root.path().join("inside")).unwrap();
    assert_eq!(
        hits(&grep_in(root.path(), for_lines("needle"))),
        ["/a:1:needle"]
    );
    assert_eq!(paths(&glob_in(root.path(), for_files("*"))), ["/a"]);
}

#[test]
fn strange_names_are_found_or_counted() {
    let root = tree(&["-e", "a\nb", "--help", " ", "\u{1b}[31m"]);
    let not_utf8 = std::ffi::OsStr::from_bytes(b"\xff\xfe");
    fs::write(root.path().join(not_utf8), "needle\n").unwrap();
    let found = glob_in(root.path(), for_files("*"));
    assert_eq!(
        paths(&found),
        ["/\u{1b}[31m", "/ ", "/--help", "/-e", "/a\nb"]
    );
    assert_eq!(found.skipped.not_utf8, 1);
    let found = grep_in(root.path(), for_lines("needle"));
    assert_eq!((found.matches, found.skipped.not_utf8), (5, 1));
}

/// A directory is exchanged for a link to the outside, over and over, while
/// searches run. Files outside must never be found.
#[test]
fn swapped_directory_does_not_lead_outside() {
    let outside = tempfile::tempdir().unwrap();
    let root = tempfile::tempdir().unwrap();
    for number in 0..8 {
        put(outside.path(), &format!("{number}"), "secret\n");
        put(root.path(), &format!("a/{number}"), "needle\n");
    }
    let (real, link) = (root.path().join("a"), root.path().join("b"));
    symlink(outside.path(), &link).unwrap();
    let stop = CancelFlag::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.is_set() {
                renameat_with(CWD, &real, CWD, &link, RenameFlags::EXCHANGE).unwrap();
            }
        });
        let searches = || {
            for _ in 0..300 {
                let found = grep_in(root.path(), for_lines("secret|needle").hidden(true));
                if hits(&found).iter().any(|hit| hit.contains("secret")) {
                    return false;
                }
            }
            true
        };
        let stayed_inside = searches();
        stop.set();
        assert!(stayed_inside);
    });
}
