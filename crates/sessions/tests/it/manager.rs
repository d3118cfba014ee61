//! Opening, finding and ending sessions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::{BackendExt as _, Error, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use sandbox_runtime::Runtime;
use sessions::{Session, SessionManager};

use crate::support::{Lab, request, settle};

#[tokio::test]
async fn a_returning_user_finds_the_files() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "alice's").await.unwrap();
    let bob = manager.get_or_create("bob").await.unwrap();
    assert!(!bob.exists("a.txt").await.unwrap());

    let again = manager.get_or_create("alice").await.unwrap();
    assert_eq!(again.read_to_string("a.txt").await.unwrap(), "alice's");
    assert!(again.is_same(&alice) && !again.is_same(&bob));
    assert_eq!(lab.made("alice").len(), 1);
    assert_eq!(manager.len(), 2);
    assert!(manager.contains("bob") && !manager.contains("carol"));
    assert_eq!(alice.id(), "alice");
    let listed = manager.list().await.unwrap();
    let ids: Vec<_> = listed.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(ids, ["alice", "bob"]);
}

#[tokio::test]
async fn ids_are_checked_before_anything_happens() {
    let lab = Lab::new();
    let manager = lab.manager();
    for id in ["", "../alice", "a/b", "a b", &"x".repeat(65)] {
        fails(ErrorKind::InvalidInput, manager.get_or_create(id).await);
        fails(ErrorKind::InvalidInput, manager.release(id).await);
        assert!(manager.get(id).is_none());
    }
    assert!(manager.is_empty());
    assert!(lab.running().is_empty());
}

#[tokio::test]
async fn many_callers_share_one_start() {
    let lab = Lab::new();
    let manager = lab.manager();
    lab.hold_starts();
    let open = |_| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.get_or_create("alice").await })
    };
    let callers: Vec<_> = (0..20).map(open).collect();
    lab.starts_held(1).await;
    settle().await;
    assert!(manager.is_empty(), "it is not open before it is started");
    lab.allow_starts(20);
    let mut opened: Vec<Session> = Vec::new();
    for caller in callers {
        opened.push(caller.await.unwrap().unwrap());
    }
    assert!(opened.iter().all(|session| session.is_same(&opened[0])));
    assert_eq!(lab.made("alice").len(), 1);
    assert_eq!(lab.latest("alice").starts(), 1);
}

#[tokio::test]
async fn one_start_does_not_wait_for_another() {
    let lab = Lab::new();
    let manager = lab.manager();
    let bob = manager.get_or_create("bob").await.unwrap();
    lab.hold_starts();
    let slow = tokio::spawn({
        let manager = manager.clone();
        async move { manager.get_or_create("alice").await }
    });
    lab.starts_held(1).await;
    // Neither a call, nor a reopening, nor an end of another session waits.
    bob.write_file("a.txt", "x").await.unwrap();
    manager.get_or_create("bob").await.unwrap();
    assert!(manager.release("bob").await.unwrap());
    lab.allow_starts(1);
    slow.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_cancelled_caller_loses_nothing_and_leaks_nothing() {
    let lab = Lab::new();
    let manager = lab.manager();
    lab.hold_starts();
    let caller = tokio::spawn({
        let manager = manager.clone();
        async move { manager.get_or_create("alice").await }
    });
    lab.starts_held(1).await;
    caller.abort();
    assert!(caller.await.unwrap_err().is_cancelled());
    lab.allow_starts(1);
    settle().await;
    assert!(manager.contains("alice"));
    manager.get_or_create("alice").await.unwrap();
    assert_eq!(lab.made("alice").len(), 1);
    assert!(manager.release("alice").await.unwrap());
    assert!(lab.running().is_empty());
}

#[tokio::test]
async fn a_start_that_fails_registers_nothing_and_is_told_to_all_who_waited() {
    let lab = Lab::new();
    let manager = lab.manager();
    lab.hold_starts();
    lab.fail_starts(Some(|| Error::unavailable("no machine is free")));
    let open = |_| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.get_or_create("alice").await })
    };
    let callers: Vec<_> = (0..5).map(open).collect();
    lab.starts_held(1).await;
    settle().await;
    // Only one start happens: a second one would wait forever.
    lab.allow_starts(1);
    for caller in callers {
        let error = caller.await.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.to_string().contains("no machine is free"), "{error}");
    }
    assert!(manager.is_empty());
    assert!(manager.list().await.unwrap().is_empty());
    assert_eq!(manager.snapshot().await.resident, 0);

    lab.fail_starts(None);
    lab.allow_starts(1);
    manager.get_or_create("alice").await.unwrap();
}

#[tokio::test]
async fn another_runtime_or_tenant_is_a_conflict() {
    let lab = Lab::new();
    let manager = lab.manager();
    let python = Runtime::from_image("py", "python:3.12-slim");
    let node = Runtime::from_image("node", "node:22-slim");
    let first = request("alice").runtime(python.clone()).tenant("acme");
    manager.open(first.clone()).await.unwrap();

    let other = request("alice").runtime(node);
    fails(ErrorKind::Conflict, manager.open(other).await);
    let other = request("alice").tenant("umbrella");
    fails(ErrorKind::Conflict, manager.open(other).await);
    manager.open(first).await.unwrap();
    manager.get_or_create("alice").await.unwrap();
    assert_eq!(lab.made("alice").len(), 1);

    let wrong = request("bob").runtime(Runtime::from_image("NOT A NAME", "x"));
    assert!(manager.open(wrong).await.is_err());
    assert!(!manager.contains("bob"));
}

#[tokio::test]
async fn the_default_runtime_fits_any_session_that_exists() {
    let lab = Lab::new();
    let python = Runtime::from_image("py", "python:3.12-slim");
    let manager = lab.builder().runtime(python.clone()).build().unwrap();
    let node = Runtime::from_image("node", "node:22-slim");
    manager.open(request("alice").runtime(node)).await.unwrap();
    manager.get_or_create("alice").await.unwrap();

    let bob = manager.get_or_create("bob").await.unwrap();
    let found = bob.record().unwrap().runtime;
    assert_eq!(found, Some(sessions::fingerprint(&python)));
}

#[tokio::test]
async fn a_released_session_is_unavailable_and_can_be_opened_again() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    assert!(manager.release("alice").await.unwrap());
    assert!(!manager.release("alice").await.unwrap());
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    fails(ErrorKind::Unavailable, alice.is_alive().await);
    assert!(alice.has_ended());
    assert!(lab.running().is_empty(), "no call starts it again");

    let again = manager.get_or_create("alice").await.unwrap();
    assert!(!again.is_same(&alice));
    assert!(!again.exists("a.txt").await.unwrap());
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
}

#[tokio::test]
async fn the_callback_may_use_the_manager_and_may_panic() {
    let lab = Lab::new();
    let ended = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&ended);
    let own: Arc<Mutex<Option<SessionManager>>> = Arc::default();
    let inside = Arc::clone(&own);
    let manager = lab
        .builder()
        .on_release(move |id| {
            let manager = inside.lock().unwrap().clone().unwrap();
            assert!(!manager.contains(id.as_str()));
            told.lock().unwrap().push(id.to_string());
            assert_ne!(id.as_str(), "panics");
        })
        .build()
        .unwrap();
    *own.lock().unwrap() = Some(manager.clone());
    for id in ["alice", "panics"] {
        manager.get_or_create(id).await.unwrap();
        assert!(manager.release(id).await.unwrap());
    }
    assert_eq!(*ended.lock().unwrap(), ["alice", "panics"]);
    manager.get_or_create("alice").await.unwrap();
    *own.lock().unwrap() = None;
}

#[tokio::test]
async fn a_session_that_cannot_be_ended_takes_no_calls_and_can_be_ended_later() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    lab.latest("alice").fail_to_stop(true);
    fails(ErrorKind::Unavailable, manager.release("alice").await);
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    let reopened = manager.get_or_create("alice").await;
    fails(ErrorKind::Unavailable, reopened);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0);

    lab.latest("alice").fail_to_stop(false);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
    assert!(lab.running().is_empty());
    manager.get_or_create("alice").await.unwrap();
}

#[tokio::test]
async fn a_dead_sandbox_without_its_files_is_never_replaced_by_a_blank_one() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    lab.latest("alice").kill();
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    let error = alice.exists("a.txt").await.unwrap_err();
    assert!(error.to_string().contains("died"), "{error}");
    let reopened = manager.get_or_create("alice").await;
    fails(ErrorKind::Unavailable, reopened);
    assert_eq!(lab.made("alice").len(), 1);

    assert!(manager.release("alice").await.unwrap());
    let anew = manager.get_or_create("alice").await.unwrap();
    assert!(!anew.exists("a.txt").await.unwrap());
}

#[tokio::test]
async fn a_dead_sandbox_whose_files_survive_is_recreated() {
    let lab = Lab::keeping_files();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    lab.latest("alice").kill();
    let again = manager.get_or_create("alice").await.unwrap();
    assert_eq!(again.read_to_string("a.txt").await.unwrap(), "x");

    // A handle finds it by itself, after one call that is told.
    lab.latest("alice").kill();
    fails(ErrorKind::Unavailable, again.exists("a.txt").await);
    assert_eq!(again.read_to_string("a.txt").await.unwrap(), "x");
    assert_eq!(lab.made("alice").len(), 3);
    assert_eq!(lab.running().len(), 1);
}

#[tokio::test]
async fn shutdown_ends_all_and_one_failure_strands_no_other() {
    let lab = Lab::new();
    let manager = lab.manager();
    for id in ["alice", "bob", "carol"] {
        manager.get_or_create(id).await.unwrap();
    }
    lab.latest("bob").fail_to_stop(true);
    lab.hold_starts();
    let late = tokio::spawn({
        let manager = manager.clone();
        async move { manager.get_or_create("dave").await }
    });
    lab.starts_held(1).await;
    let down = tokio::spawn({
        let manager = manager.clone();
        async move { manager.shutdown(Duration::from_secs(10)).await }
    });
    settle().await;
    assert!(!down.is_finished(), "it waits for the start under way");
    lab.allow_starts(1);
    let report = down.await.unwrap();
    assert_eq!(report.ended, 3);
    let failed: Vec<_> = report.failed.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(failed, ["bob"]);
    assert!(report.unfinished.is_empty());
    let dave = late.await.unwrap().unwrap();
    fails(ErrorKind::Unavailable, dave.exists("a.txt").await);
    let running = lab.running();
    assert_eq!(running.len(), 1);
    assert_eq!(running[0].as_str(), "bob");
    let refused = manager.get_or_create("erin").await;
    fails(ErrorKind::Unavailable, refused);
}

#[tokio::test]
async fn a_manager_is_configured_completely() {
    let lab = Lab::new();
    let none = SessionManager::builder().build();
    fails(ErrorKind::Config, none);
    fails(ErrorKind::Config, lab.builder().max_sessions(0).build());
    let interval = lab.builder().write_back_interval(Duration::ZERO).build();
    fails(ErrorKind::Config, interval);
    let outside = std::thread::spawn(move || lab.builder().build().map(|_| ()));
    fails(ErrorKind::Config, outside.join().unwrap());
}
