//! Tests of watches on a real directory.

use std::path::Path;

use backend_core::limits::WATCH_EVENTS;
use backend_core::ops::{Change, WatchEvent};
use backend_core::{ErrorKind, VPath};
use futures::{FutureExt as _, StreamExt as _};

use super::*;
use crate::LocalBackend;

/// A directory in memory, where one can be made, because tests make many files.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

/// Watches a directory without the loop that handles its events.
fn open(root: &Path, path: &str) -> (Watcher, Arc<ChangeSender>, ChangeStream) {
    let fs = RootedFs::open(&LocalBackend::builder(root)).unwrap();
    let query = WatchQuery::new(VPath::parse(path).unwrap());
    let root = fs.watch_root(&query.path, query.links).unwrap();
    let (sender, stream) = channel();
    let sender = Arc::new(sender);
    let cancel = CancelFlag::default();
    let watcher = Watcher::begin(root, query, Arc::clone(&sender), &cancel).unwrap();
    (watcher, sender, stream)
}

/// Waits for events, and handles all that there are.
fn settle(watcher: &mut Watcher) {
    futures::executor::block_on(watcher.inotify().readable()).unwrap();
    while let Next::Until(_) = watcher.step().unwrap() {
        std::thread::yield_now();
    }
}

fn unread(stream: &mut ChangeStream) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    while let Some(Some(event)) = stream.next().now_or_never() {
        events.push(event.unwrap());
    }
    events
}

fn created(path: &str) -> WatchEvent {
    Change::created(VPath::parse(path).unwrap()).into()
}

#[test]
fn a_reader_that_reads_nothing_costs_no_more_than_the_queue() {
    const FILES: usize = 100_000;
    let root = directory();
    let many = root.path().join("many");
    std::fs::create_dir(&many).unwrap();
    for number in 0..FILES {
        std::fs::File::create(many.join(number.to_string())).unwrap();
    }
    let (mut watcher, _sender, mut stream) = open(root.path(), "/");
    assert_eq!(unread(&mut stream), []);
    std::fs::remove_dir_all(&many).unwrap();
    settle(&mut watcher);
    let events = unread(&mut stream);
    assert!(events.len() <= WATCH_EVENTS + 1, "{}", events.len());
    let lost = events
        .iter()
        .filter(|event| **event == WatchEvent::Overflow);
    assert_eq!(lost.count(), 1);
    assert_eq!(events.last(), Some(&WatchEvent::Overflow));
    // It goes on.
    std::fs::create_dir(root.path().join("new")).unwrap();
    std::fs::create_dir(root.path().join("new/deep")).unwrap();
    settle(&mut watcher);
    assert_eq!(unread(&mut stream), [created("/new"), created("/new/deep")]);
}

/// The kernel drops events if they are not read. What was missed is found by a scan.
#[test]
fn events_that_the_kernel_dropped_are_said_to_be_lost() {
    let limit = std::fs::read_to_string("/proc/sys/fs/inotify/max_queued_events").unwrap();
    let limit: usize = limit.trim().parse().unwrap();
    let root = directory();
    std::fs::create_dir_all(root.path().join("before/moved")).unwrap();
    let (mut watcher, _sender, mut stream) = open(root.path(), "/");
    for number in 0..=limit {
        std::fs::File::create(root.path().join(number.to_string())).unwrap();
    }
    // None of these is reported by the kernel.
    std::fs::create_dir_all(root.path().join("new/deep")).unwrap();
    std::fs::rename(root.path().join("before/moved"), root.path().join("after")).unwrap();
    settle(&mut watcher);
    let events = unread(&mut stream);
    assert_eq!(events.last(), Some(&WatchEvent::Overflow));
    for (path, told) in [
        ("new/deep/a", created("/new/deep/a")),
        ("after/b", created("/after/b")),
    ] {
        std::fs::create_dir(root.path().join(path)).unwrap();
        settle(&mut watcher);
        assert_eq!(unread(&mut stream), [told]);
    }
}

#[test]
fn a_limit_of_the_kernel_is_named() {
    let error = crate::fs::watch_refused(rustix::io::Errno::NOSPC);
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.message().contains("fs.inotify.max_user_watches"));
    let error = crate::fs::watch_refused(rustix::io::Errno::MFILE);
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("fs.inotify.max_user_instances"));
}

#[tokio::test]
async fn the_loop_ends_when_the_stream_is_dropped() {
    let root = directory();
    let (watcher, sender, stream) = open(root.path(), "/");
    let inotify = Arc::downgrade(&watcher.inotify());
    let handle = engine::handle().unwrap();
    let running = handle.spawn(async move { run(watcher, &sender).await });
    drop(stream);
    running.await.unwrap().unwrap();
    assert_eq!(inotify.strong_count(), 0);
}
