//! Watches over the wire: slow readers, ends, and what they do to other calls.

use std::sync::Arc;

use backend_core::limits::WATCH_EVENTS;
use backend_core::ops::{Change, CopyOptions, StopMode, WatchEvent, WatchQuery};
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Sandbox as _};
use backend_state::StateBackend;
use backend_testkit::{fails, path};
use futures::StreamExt as _;

use crate::support::pipe::piped;

/// A reader that reads nothing holds up neither the sandbox nor other calls. It is told
/// that changes were lost, and then goes on.
#[tokio::test]
async fn a_reader_that_never_reads_holds_up_nothing() {
    let state = StateBackend::new();
    for number in 0..1_000 {
        let name = format!("d/{number}");
        state.write_file(name, "").await.unwrap();
    }
    let sandbox = piped(state.clone());
    let mut changes = sandbox.watch(WatchQuery::new(path("/"))).await.unwrap();
    let copies = 60;
    for number in 0..copies {
        let to = path(&format!(
            "/a-name-that-fills-the-window-of-the-stream-{number}"
        ));
        let options = CopyOptions::default().recursive(true);
        sandbox.copy(&path("/d"), &to, options).await.unwrap();
    }
    let mut told = 0;
    while changes.next().await.unwrap().unwrap() != WatchEvent::Overflow {
        told += 1;
    }
    assert!(told < copies * 1_000, "nothing was lost");
    assert!(told >= WATCH_EVENTS, "{told}");
    sandbox.write_file("later", "").await.unwrap();
    let later = WatchEvent::from(Change::created(path("/later")));
    while changes.next().await.unwrap().unwrap() != later {}
}

#[tokio::test]
async fn dropping_the_stream_ends_the_watch_there() {
    let state = StateBackend::new();
    let sandbox = piped(state.clone());
    let changes = sandbox.watch(WatchQuery::new(path("/"))).await.unwrap();
    drop(changes);
    // As many watches as there may be calls: each must make room for the next.
    for _ in 0..600 {
        let watched = sandbox.watch(WatchQuery::new(path("/"))).await;
        drop(watched.unwrap());
    }
    sandbox.write_file("a", "").await.unwrap();
}

#[tokio::test]
async fn the_stream_ends_with_the_sandbox() {
    let sandbox = Arc::new(piped(StateBackend::new()));
    let mut changes = sandbox.watch(WatchQuery::new(path("/"))).await.unwrap();
    let before = sandbox.last_activity();
    sandbox.stop(StopMode::Keep).await.unwrap();
    let error = changes.next().await.unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.to_string().contains("watch '/'"), "{error}");
    assert!(changes.next().await.is_none());
    assert!(before <= sandbox.last_activity());
}

#[tokio::test]
async fn a_lost_channel_is_told_and_a_new_watch_works() {
    let sandbox = piped(StateBackend::new());
    let query = || WatchQuery::new(path("/"));
    let mut changes = sandbox.watch(query()).await.unwrap();
    sandbox.machine().kill_agents();
    let error = fails(ErrorKind::Unavailable, changes.next().await.unwrap());
    assert!(
        error.to_string().starts_with("pipe: watch '/': "),
        "{error}"
    );
    assert!(changes.next().await.is_none());
    let mut changes = sandbox.watch(query()).await.unwrap();
    sandbox.write_file("a", "").await.unwrap();
    let created = WatchEvent::from(Change::created(path("/a")));
    assert_eq!(changes.next().await.unwrap().unwrap(), created);
    assert_eq!(sandbox.machine().spawned(), 2);
}

/// A watch is no activity: a sandbox may be stopped although it is watched.
#[tokio::test]
async fn a_watch_is_no_use_of_the_sandbox() {
    let sandbox = piped(StateBackend::new());
    let _changes = sandbox.watch(WatchQuery::new(path("/"))).await.unwrap();
    let (one, two) = (sandbox.last_activity(), sandbox.last_activity());
    // While a call or a command runs, the last activity is now.
    assert_eq!(one, two);
}
