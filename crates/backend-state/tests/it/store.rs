//! Features of a store in memory: snapshots, limits, sharing, size.
use std::time::Duration;

use backend_core::limits::PATH_DEPTH;
use backend_core::ops::{CopyOptions, GrepQuery, RenameOptions};
use backend_core::{Backend as _, BackendExt as _, ErrorKind, VPath};
use backend_state::{Snapshot, StateBackend};
use backend_testkit::fake::PausedClock;
use backend_testkit::{block_on, path};

#[tokio::test]
async fn a_snapshot_keeps_what_later_changes() {
    let backend = StateBackend::new();
    backend.write_file("a", "old").await.unwrap();
    let before = backend.snapshot();
    backend.write_file("a", "new").await.unwrap();
    backend.write_file("b", "more").await.unwrap();
    let after = backend.restore(before.clone());
    assert_eq!(after.len(), 2);
    assert_eq!(backend.read_to_string("a").await.unwrap(), "old");
    assert!(!backend.exists("b").await.unwrap());
    assert_eq!(backend.snapshot(), before);
}

#[tokio::test]
async fn clones_share_one_store() {
    let backend = StateBackend::default();
    let clone = backend.clone();
    clone.write_file("a", "x").await.unwrap();
    assert!(backend.exists("a").await.unwrap());
    assert!(format!("{backend:?}").contains("files: 1"), "{backend:?}");
    let builder = StateBackend::builder().snapshot(backend.snapshot());
    assert!(format!("{builder:?}").contains("max_file_bytes"));
}

#[tokio::test]
async fn limits_are_kept_and_nothing_is_lost() {
    let backend = StateBackend::builder()
        .max_file_bytes(100)
        .max_total_bytes(1_000)
        .build();
    backend.write_file("a", "x".repeat(100)).await.unwrap();
    let kind = |error: backend_core::Error| error.kind();
    let large = backend.write_file("a", "x".repeat(101)).await;
    assert_eq!(large.map_err(kind), Err(ErrorKind::TooLarge));
    let (old, new) = ("x".repeat(100), "y".repeat(101));
    let grown = backend.replace_text("a", &old, &new).await;
    assert_eq!(grown.map_err(kind), Err(ErrorKind::TooLarge));
    backend.write_file("b", "").await.unwrap();
    let full = backend.write_file("c/d", "x".repeat(100)).await;
    assert_eq!(full.map_err(kind), Err(ErrorKind::TooLarge));
    assert_eq!(backend.list_dir(".").await.unwrap().total, 2);
    assert_eq!(backend.read_to_string("a").await.unwrap(), "x".repeat(100));
    backend.delete_file("b").await.unwrap();
    backend.write_file("c", "").await.unwrap();
}

#[tokio::test]
async fn a_store_that_was_restored_too_full_can_be_emptied() {
    let backend = StateBackend::builder().max_total_bytes(600).build();
    let large = Snapshot::from_files([("/a", "1"), ("/b", "2"), ("/c", "3")]).unwrap();
    backend.restore(large);
    assert!(backend.write_file("d", "4").await.is_err());
    backend.delete_file("a").await.unwrap();
    backend.write_file("b", "").await.unwrap();
}

#[tokio::test]
async fn rewriting_keeps_the_time_of_creation() {
    let clock = PausedClock::new();
    let shown = clock.clone();
    let backend = StateBackend::builder().clock(move || shown.now()).build();
    backend.write_file("a", "1").await.unwrap();
    let created = clock.now();
    clock.advance(Duration::from_secs(5));
    backend.write_file("a", "2").await.unwrap();
    backend.copy_to("a", "b").await.unwrap();
    let files: Vec<_> = backend.snapshot().iter().collect();
    assert_eq!(files[0].created, Some(created));
    assert_eq!(files[0].modified, Some(clock.now()));
    assert_eq!(files[1].created, Some(clock.now()));
}

#[tokio::test]
async fn moving_and_copying_trees_keeps_count() {
    let files = [("/a/1", "x"), ("/a/b/2", "y"), ("/c", "z")];
    let snapshot = Snapshot::from_files(files).unwrap();
    let backend = StateBackend::builder().snapshot(snapshot).build();
    let options = CopyOptions::default().recursive(true);
    backend
        .copy(&path("/a"), &path("/d"), options)
        .await
        .unwrap();
    assert_eq!(backend.snapshot().len(), 5);
    let options = RenameOptions::default();
    backend
        .rename(&path("/d"), &path("/e/f"), options)
        .await
        .unwrap();
    assert_eq!(backend.snapshot().len(), 5);
    backend.delete_tree("/a").await.unwrap();
    let left: Vec<_> = backend.snapshot().iter().map(|file| file.path).collect();
    assert_eq!(left, [path("/c"), path("/e/f/1"), path("/e/f/b/2")]);
    assert_eq!(backend.snapshot().len(), 3);
}

#[test]
fn a_long_search_lets_others_in() {
    let files = (0..2_000).map(|n| (format!("/f{n}"), "needle\n".repeat(100)));
    let snapshot = Snapshot::from_files(files).unwrap();
    let backend = StateBackend::builder().snapshot(snapshot).build();
    let query = GrepQuery::new("n.*e", VPath::root()).max_matches(usize::MAX);
    let mut search = backend.grep(query);
    let waker = futures::task::noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    let mut polls = 0;
    while search.as_mut().poll(&mut context).is_pending() {
        polls += 1;
    }
    assert!(polls > 2, "it never paused");
}

#[tokio::test]
async fn the_deepest_path_there_is_works() {
    let backend = StateBackend::new();
    let deep = format!("{}/f", "/d".repeat(PATH_DEPTH - 1));
    backend.write_file(&deep, "needle").await.unwrap();
    let options = CopyOptions::default().recursive(true);
    backend
        .copy(&path("/d"), &path("/e"), options)
        .await
        .unwrap();
    assert_eq!(backend.search_text("needle").await.unwrap().matches, 2);
    let json = backend.snapshot().to_json().unwrap();
    assert_eq!(Snapshot::from_json(json).unwrap(), backend.snapshot());
    backend.delete_tree("/d").await.unwrap();
    assert_eq!(backend.snapshot().len(), 1);
}

/// Otherwise a model could nest trees in trees until the stack overflows.
#[tokio::test]
async fn moving_trees_into_trees_cannot_go_on() {
    let backend = StateBackend::new();
    let deep = "/d".repeat(100);
    let mut moves = 0;
    for round in 0..20 {
        let inner = format!("/t{round}{deep}");
        backend
            .write_file(&format!("{inner}/f"), "x")
            .await
            .unwrap();
        let (from, to) = (path("/all"), path(&format!("{inner}/all")));
        let options = RenameOptions::default();
        let moved = match round {
            0 => Ok(()),
            _ => backend.rename(&from, &to, options).await,
        };
        if let Err(error) = moved {
            assert_eq!(error.kind(), ErrorKind::InvalidPath);
            break;
        }
        moves += 1;
        let (from, to) = (path(&format!("/t{round}")), path("/all"));
        backend.rename(&from, &to, options).await.unwrap();
    }
    assert_eq!(moves, 2);
    let json = backend.snapshot().to_json().unwrap();
    assert_eq!(Snapshot::from_json(json).unwrap(), backend.snapshot());
}

#[test]
fn a_million_files_work() {
    let files = (0..1_000_000).map(|n| (format!("/d{}/f{n}", n / 1_000), "x"));
    let snapshot = Snapshot::from_files(files).unwrap();
    let backend = StateBackend::builder().snapshot(snapshot).build();
    let kept = backend.snapshot();
    block_on(async {
        assert_eq!(backend.list_dir("d7").await.unwrap().total, 1_000);
        backend.write_file("d7/new", "y").await.unwrap();
        assert_eq!(
            backend.find_files("d999/*").await.unwrap().files.len(),
            1_000
        );
    });
    assert_eq!(
        (kept.len(), backend.snapshot().len()),
        (1_000_000, 1_000_001)
    );
}
