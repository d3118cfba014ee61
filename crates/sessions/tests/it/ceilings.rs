//! Ceilings on running sessions, hibernation and waking.

use std::sync::Arc;
use std::time::Duration;

use backend_core::{BackendExt as _, Command, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use backend_testkit::fake::HOLD;
use sessions::{CapacityError, CapacityScope, Status};

use crate::support::{Lab, MINUTE, request, settle};

#[tokio::test]
async fn a_ceiling_counts_starts_under_way_and_serves_what_is_open() {
    let lab = Lab::new();
    let manager = lab.builder().max_sessions(2).build().unwrap();
    manager.get_or_create("alice").await.unwrap();
    lab.hold_starts();
    let slow = tokio::spawn({
        let manager = manager.clone();
        async move { manager.get_or_create("bob").await }
    });
    lab.starts_held(1).await;
    let full = fails(ErrorKind::RateLimited, manager.get_or_create("carol").await);
    let capacity = CapacityError::of(&full).unwrap();
    assert_eq!(capacity.scope, CapacityScope::Overall);
    assert_eq!(capacity.limit, 2);
    assert!(capacity.retry_after >= Duration::from_secs(1));
    assert!(full.is_retryable());
    assert!(!manager.contains("carol"));

    manager.get_or_create("alice").await.unwrap();
    lab.allow_starts(2);
    slow.await.unwrap().unwrap();
    manager.release("alice").await.unwrap();
    manager.get_or_create("carol").await.unwrap();
}

#[tokio::test]
async fn a_start_that_fails_gives_its_place_back() {
    let lab = Lab::new();
    let manager = lab.builder().max_sessions(1).build().unwrap();
    lab.fail_starts(Some(|| backend_core::Error::unavailable("no")));
    for _ in 0..3 {
        fails(ErrorKind::Unavailable, manager.get_or_create("alice").await);
    }
    lab.fail_starts(None);
    manager.get_or_create("alice").await.unwrap();
}

#[tokio::test]
async fn a_tenant_has_its_own_ceiling() {
    let lab = Lab::new();
    let manager = lab.builder().max_sessions_per_tenant(1).build().unwrap();
    manager.open(request("a1").tenant("acme")).await.unwrap();
    manager
        .open(request("u1").tenant("umbrella"))
        .await
        .unwrap();
    manager.open(request("free")).await.unwrap();
    let full = manager.open(request("a2").tenant("acme")).await;
    let full = fails(ErrorKind::RateLimited, full);
    let scope = &CapacityError::of(&full).unwrap().scope;
    assert_eq!(*scope, CapacityScope::Tenant(Arc::from("acme")));
    manager.release("a1").await.unwrap();
    manager.open(request("a2").tenant("acme")).await.unwrap();
}

#[tokio::test]
async fn the_least_recently_used_session_sleeps_and_its_next_call_wakes_it() {
    let lab = Lab::keeping_files();
    let manager = lab.builder().max_sessions(2).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "alice's").await.unwrap();
    lab.clock.advance(MINUTE);
    let bob = manager.get_or_create("bob").await.unwrap();
    lab.clock.advance(MINUTE);
    alice.exists("a.txt").await.unwrap();
    lab.clock.advance(MINUTE);

    manager.get_or_create("carol").await.unwrap();
    let snapshot = manager.snapshot().await;
    let states = snapshot.sessions.iter();
    let states: Vec<_> = states.map(|s| (s.record.id.as_str(), s.status)).collect();
    assert_eq!(
        states,
        [
            ("alice", Status::Running),
            ("bob", Status::Hibernated),
            ("carol", Status::Running),
        ]
    );
    assert_eq!(snapshot.resident, 2);
    assert!(!bob.is_alive().await.unwrap(), "looking does not wake it");
    assert_eq!(manager.len(), 3);

    lab.clock.advance(MINUTE);
    assert!(!bob.exists("a.txt").await.unwrap());
    assert!(bob.is_alive().await.unwrap());
    assert!(!alice.is_alive().await.unwrap(), "its place is bob's");
    lab.clock.advance(MINUTE);
    assert_eq!(alice.read_to_string("a.txt").await.unwrap(), "alice's");
    assert_eq!(lab.running().len(), 2);
    let counters = manager.counters();
    assert_eq!((counters.hibernated, counters.woken), (3, 2));
}

#[tokio::test]
async fn a_session_in_use_does_not_sleep() {
    let lab = Lab::keeping_files();
    let manager = lab.builder().max_sessions(1).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    let command = tokio::spawn({
        let alice = alice.clone();
        async move { alice.execute(Command::new(HOLD)).await }
    });
    settle().await;
    fails(ErrorKind::RateLimited, manager.get_or_create("bob").await);
    lab.latest("alice").finish();
    command.await.unwrap().unwrap();

    let shell = alice.shell_start(Command::new("server")).await.unwrap();
    fails(ErrorKind::RateLimited, manager.get_or_create("bob").await);
    alice.shell_kill(&shell.id).await.unwrap();
    let bob = manager.get_or_create("bob").await.unwrap();

    // A call that cannot be given a place is told so, and may come again.
    let command = tokio::spawn(async move { bob.execute(Command::new(HOLD)).await });
    settle().await;
    fails(ErrorKind::RateLimited, alice.exists("a.txt").await);
    lab.latest("bob").finish();
    command.await.unwrap().unwrap();
    alice.exists("a.txt").await.unwrap();
}

#[tokio::test]
async fn a_session_sleeps_only_after_the_time_that_is_set() {
    let lab = Lab::keeping_files();
    let builder = lab.builder().max_sessions(1).hibernate_after(MINUTE);
    let manager = builder.build().unwrap();
    manager.get_or_create("alice").await.unwrap();
    lab.clock.advance(MINUTE / 2);
    let full = fails(ErrorKind::RateLimited, manager.get_or_create("bob").await);
    let retry_after = CapacityError::of(&full).unwrap().retry_after;
    assert_eq!(retry_after, MINUTE / 2);
    lab.clock.advance(retry_after);
    manager.get_or_create("bob").await.unwrap();
}

#[tokio::test]
async fn many_calls_wake_a_session_once() {
    let lab = Lab::keeping_files();
    let manager = lab.builder().max_sessions(1).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    let bob = manager.get_or_create("bob").await.unwrap();
    assert!(!alice.is_alive().await.unwrap());
    let call = |_| {
        let alice = alice.clone();
        tokio::spawn(async move { alice.exists("a.txt").await })
    };
    for call in (0..20).map(call).collect::<Vec<_>>() {
        call.await.unwrap().unwrap();
    }
    assert_eq!(lab.made("alice").len(), 2);
    assert!(!bob.is_alive().await.unwrap());
}

#[tokio::test]
async fn a_sleeping_session_that_was_purged_is_not_woken_blank() {
    let lab = Lab::keeping_files();
    let manager = lab.builder().max_sessions(1).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    manager.get_or_create("bob").await.unwrap();
    manager.purge("alice").await.unwrap();
    lab.forget_files("alice");
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    assert_eq!(lab.made("alice").len(), 1);
}

#[tokio::test]
async fn a_sleeping_session_ends_after_its_timeout() {
    let lab = Lab::keeping_files();
    let manager = lab.builder().max_sessions(1).build().unwrap();
    manager.get_or_create("alice").await.unwrap();
    let bob = manager.get_or_create("bob").await.unwrap();
    lab.clock.advance(50 * MINUTE);
    bob.exists("a.txt").await.unwrap();
    lab.clock.advance(20 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
    assert!(!manager.contains("alice") && manager.contains("bob"));
}
