//! Tests of a search's resource use: handles, and time after the call was
//! dropped.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use backend_core::ErrorKind;
use futures::executor::block_on;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};
use tempfile::TempDir;

use super::{
    directory, for_files, for_lines, glob_in, grep_in, hits, nothing_above, paths, put, tree,
};
use crate::search::*;

/// Nested directories, each with a file listed after them, so that all stay
/// open.
fn deep_tree(depth: usize) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for depth in 0..depth {
        put(root.path(), &format!("{}b", "a/".repeat(depth)), "needle\n");
    }
    root
}

/// Runs a part in a separate process.
fn passes_alone(part: &str) {
    let itself = std::env::current_exe().unwrap();
    let part = format!("search::tests::limits::{part}");
    let child = std::process::Command::new(itself)
        .args(["--exact", &part, "--ignored"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(
        child.status.success() && said.contains("1 passed"),
        "{said}"
    );
}

#[test]
fn too_many_open_files_is_an_error() {
    passes_alone("part_runs_out_of_handles");
}

#[test]
fn unreadable_is_counted() {
    passes_alone("part_unreadable_is_counted");
}

#[test]
#[ignore = "a part of another test, which starts it"]
fn part_unreadable_is_counted() {
    // Root may read everything because of its capabilities. They are per
    // thread, and the engine's threads inherit those that this one has left.
    let none = CapabilitySet::empty();
    let sets = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, sets).unwrap();
    let root = tree(&["a", "closed/b", "secret"]);
    let close = |name: &str| {
        let nobody = fs::Permissions::from_mode(0o000);
        fs::set_permissions(root.path().join(name), nobody).unwrap();
    };
    close("closed");
    close("secret");
    let found = grep_in(root.path(), for_lines("needle"));
    assert_eq!(hits(&found), ["/a:1:needle"]);
    assert_eq!(found.skipped.unreadable, 2);
    let found = glob_in(root.path(), for_files("*"));
    assert_eq!(
        (paths(&found), found.skipped.unreadable),
        (vec!["/a", "/secret"], 1)
    );
    fs::set_permissions(
        root.path().join("closed"),
        fs::Permissions::from_mode(0o700),
    )
    .unwrap();
}

#[test]
#[ignore = "a part of another test, which starts it"]
fn part_runs_out_of_handles() {
    let root = deep_tree(60);
    assert_eq!(grep_in(root.path(), for_lines("needle")).matches, 60);
    let all = getrlimit(Resource::Nofile);
    let few = Rlimit {
        current: Some(40),
        ..all
    };
    setrlimit(Resource::Nofile, few).unwrap();
    let found = |max| {
        let start = directory(root.path());
        block_on(grep(
            start,
            for_lines("needle").max_matches(max),
            nothing_above(),
        ))
    };
    assert_eq!(found(1_000).unwrap_err().kind(), ErrorKind::Unavailable);
    let files = block_on(glob(
        directory(root.path()),
        for_files("*"),
        nothing_above(),
    ));
    assert_eq!(files.unwrap_err().kind(), ErrorKind::Unavailable);
    setrlimit(Resource::Nofile, all).unwrap();
    assert_eq!(found(1_000).unwrap().matches, 60);
}

/// Drops a search after it has started, and returns how long its threads lived
/// on.
fn drop_search(root: &Path, query: GrepQuery) -> Duration {
    let (begun, has_begun) = mpsc::channel();
    let (alive, lives) = mpsc::channel::<()>();
    let open = directory(root);
    let open = move || {
        begun.send(()).unwrap();
        open()
    };
    // Dropped with the last thread that refers to it.
    let above: Arc<ReadAbove> = Arc::new(move |_| {
        let _ = &alive;
        None
    });
    let mut search = Box::pin(grep(open, query, above));
    let waker = futures::task::noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    assert!(search.as_mut().poll(&mut context).is_pending());
    has_begun.recv().unwrap();
    // Wait until the search is in progress, unless it ends before.
    let _ = lives.recv_timeout(Duration::from_millis(30));
    let dropped = std::time::Instant::now();
    drop(search);
    let end = lives.recv_timeout(2 * SOON);
    assert_eq!(
        end,
        Err(mpsc::RecvTimeoutError::Disconnected),
        "still at work"
    );
    dropped.elapsed()
}

/// Far less than the slowest search takes, and enough for a busy machine.
const SOON: Duration = Duration::from_secs(60);

#[test]
fn dropped_search_stops_soon() {
    let root = tempfile::tempdir().unwrap();
    let text = "a line of hay, of which there is a lot\n".repeat(5_000);
    put(root.path(), "large", &text.repeat(300));
    put(root.path(), "small/0", &text);
    for number in 1..2_000 {
        let link = root.path().join(format!("small/{number}"));
        fs::hard_link(root.path().join("small/0"), link).unwrap();
    }
    // A slow pattern: nothing can be skipped.
    let slow = || for_lines(r"(?i)[a-z ]+[0-9]{3}\b");
    let began = std::time::Instant::now();
    futures::executor::block_on(grep(directory(root.path()), slow(), nothing_above())).unwrap();
    let whole = began.elapsed();
    for query in [slow(), slow(), slow().files("small/*")] {
        let lived_on = drop_search(root.path(), query);
        assert!(lived_on < whole / 2, "{lived_on:?} of {whole:?}");
    }
    // A pattern that takes seconds for each of the small files.
    let very_slow = for_lines("(a.{0,200}){1,20}Q");
    let lived_on = drop_search(root.path(), very_slow.files("small/*"));
    assert!(lived_on < SOON, "{lived_on:?}");
}
