//! Watching a store in memory, beyond what the conformance suite checks.

use backend_core::limits::WATCH_EVENTS;
use backend_core::ops::{Change, CopyOptions, WatchEvent, WatchQuery};
use backend_core::{Backend as _, BackendExt as _, VPath, WatchStream};
use backend_state::StateBackend;
use backend_testkit::path;
use futures::{FutureExt as _, StreamExt as _};

async fn watch(backend: &StateBackend, at: &str) -> WatchStream {
    backend.watch(WatchQuery::new(path(at))).await.unwrap()
}

/// Returns the events that can be read without waiting.
fn unread(stream: &mut WatchStream) -> Vec<WatchEvent> {
    let mut events = Vec::new();
    while let Some(Some(event)) = stream.next().now_or_never() {
        events.push(event.unwrap());
    }
    events
}

fn told(changes: impl IntoIterator<Item = Change>) -> Vec<WatchEvent> {
    changes.into_iter().map(WatchEvent::from).collect()
}

#[tokio::test]
async fn a_change_is_told_when_its_call_returns() {
    let backend = StateBackend::new();
    backend.write_file("d/a", "1").await.unwrap();
    let mut stream = watch(&backend, "/").await;
    backend.write_file("d/a", "2").await.unwrap();
    backend.write_file("d/a", "3").await.unwrap();
    backend.move_to("d/a", "e/f/b").await.unwrap();
    backend.delete_tree("e").await.unwrap();
    let [e, f, b] = ["/e", "/e/f", "/e/f/b"].map(path);
    let expected = told([
        Change::changed(path("/d/a")),
        Change::created(e.clone()),
        Change::created(f.clone()),
        Change::renamed(path("/d/a"), b.clone()),
        Change::deleted(b),
        Change::deleted(f),
        Change::deleted(e),
    ]);
    assert_eq!(unread(&mut stream), expected);
}

#[tokio::test]
async fn a_snapshot_that_is_restored_tells_what_differs() {
    let backend = StateBackend::new();
    for name in ["same", "changed", "gone/deep", "was_file"] {
        backend.write_file(name, "old").await.unwrap();
    }
    let before = backend.snapshot();
    backend.write_file("changed", "new").await.unwrap();
    backend.delete_tree("gone").await.unwrap();
    backend.delete_file("was_file").await.unwrap();
    backend.write_file("was_file/new", "").await.unwrap();
    let mut stream = watch(&backend, "/").await;
    backend.restore(before.clone());
    let expected = told([
        Change::changed(path("/changed")),
        Change::created(path("/gone")),
        Change::created(path("/gone/deep")),
        Change::deleted(path("/was_file/new")),
        Change::deleted(path("/was_file")),
        Change::created(path("/was_file")),
    ]);
    assert_eq!(unread(&mut stream), expected);
    backend.restore(before);
    assert_eq!(unread(&mut stream), []);
}

#[tokio::test]
async fn a_fork_has_its_own_watches() {
    let backend = StateBackend::new();
    let fork = backend.fork();
    let mut stream = watch(&backend, "/").await;
    fork.write_file("a", "").await.unwrap();
    assert_eq!(unread(&mut stream), []);
    drop((backend, fork));
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn a_reader_that_never_reads_costs_no_more_than_the_queue() {
    let backend = StateBackend::new();
    for number in 0..1_000 {
        let name = format!("d/{number}");
        backend.write_file(name, "").await.unwrap();
    }
    let mut stream = watch(&backend, "/").await;
    for number in 0..20 {
        let to: VPath = path(&format!("/copy{number}"));
        let options = CopyOptions::default().recursive(true);
        backend.copy(&path("/d"), &to, options).await.unwrap();
    }
    let events = unread(&mut stream);
    assert_eq!(events.len(), WATCH_EVENTS + 1);
    let lost = |event: &&WatchEvent| **event == WatchEvent::Overflow;
    assert_eq!(events.iter().filter(lost).count(), 1);
    assert!(events.last().is_some_and(|event| lost(&event)));
    backend.delete_file("d/7").await.unwrap();
    assert_eq!(unread(&mut stream), told([Change::deleted(path("/d/7"))]));
}
