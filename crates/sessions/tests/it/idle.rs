//! Ending sessions that are idle or old.

use std::time::Duration;

use backend_core::{BackendExt as _, Command, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use backend_testkit::fake::HOLD;

use crate::support::{Lab, MINUTE, request, settle};

#[tokio::test]
async fn an_idle_session_is_ended_after_its_timeout() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    lab.clock.advance(59 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0);
    alice.exists("a.txt").await.unwrap();
    lab.clock.advance(59 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0, "it was used");
    lab.clock.advance(2 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
    assert!(lab.running().is_empty() && manager.is_empty());
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0);
}

#[tokio::test]
async fn timeouts_are_of_the_pass_the_session_or_the_manager() {
    let lab = Lab::new();
    let manager = lab.builder().idle_timeout(10 * MINUTE).build().unwrap();
    manager.get_or_create("default").await.unwrap();
    let short = request("short").idle_timeout(MINUTE);
    manager.open(short).await.unwrap();
    lab.clock.advance(2 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
    assert!(!manager.contains("short") && manager.contains("default"));
    assert_eq!(manager.cleanup_idle(Some(MINUTE)).await.unwrap(), 1);
    assert!(manager.is_empty());
}

#[tokio::test]
async fn touching_is_a_use_and_looking_is_none() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    lab.clock.advance(50 * MINUTE);
    assert!(manager.touch("alice") && !manager.touch("bob"));
    lab.clock.advance(50 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0);
    alice.is_alive().await.unwrap();
    manager.get("alice").unwrap().record().unwrap();
    manager.snapshot().await;
    manager.list().await.unwrap();
    lab.clock.advance(11 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
}

#[tokio::test]
async fn work_under_way_keeps_a_session() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    let command = tokio::spawn({
        let alice = alice.clone();
        async move { alice.execute(Command::new(HOLD)).await }
    });
    settle().await;
    lab.clock.advance(5 * 60 * MINUTE);
    assert_eq!(manager.cleanup_idle(Some(Duration::ZERO)).await.unwrap(), 0);
    assert_eq!(manager.snapshot().await.sessions[0].calls, 1);
    lab.latest("alice").finish();
    command.await.unwrap().unwrap();
    assert_eq!(manager.cleanup_idle(Some(MINUTE)).await.unwrap(), 0);

    let shell = alice.shell_start(Command::new("server")).await.unwrap();
    lab.clock.advance(5 * 60 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0, "a shell runs");
    alice.shell_kill(&shell.id).await.unwrap();
    lab.clock.advance(2 * 60 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
}

#[tokio::test]
async fn a_session_ends_at_its_maximum_lifetime() {
    let lab = Lab::new();
    let manager = lab.builder().max_lifetime(30 * MINUTE).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    let command = tokio::spawn({
        let alice = alice.clone();
        async move { alice.execute(Command::new(HOLD)).await }
    });
    settle().await;
    lab.clock.advance(31 * MINUTE);
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0, "a call runs");
    lab.latest("alice").finish();
    command.await.unwrap().unwrap();

    // Opening it again is a new life.
    let again = manager.get_or_create("alice").await.unwrap();
    again.exists("a.txt").await.unwrap();
    assert_eq!(lab.made("alice").len(), 2);
    assert_eq!(lab.running().len(), 1);
    lab.clock.advance(31 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
}

#[tokio::test]
async fn sleep_does_not_make_a_session_younger() {
    let lab = Lab::keeping_files();
    let builder = lab.builder().max_lifetime(30 * MINUTE).max_sessions(1);
    let manager = builder.build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    lab.clock.advance(20 * MINUTE);
    manager.get_or_create("bob").await.unwrap();
    alice.exists("a.txt").await.unwrap();
    lab.clock.advance(20 * MINUTE);
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
}

#[tokio::test]
async fn what_the_reaper_cannot_end_is_open_and_tried_again() {
    let lab = Lab::new();
    let manager = lab.manager();
    let alice = manager.get_or_create("alice").await.unwrap();
    lab.latest("alice").fail_to_stop(true);
    lab.clock.advance(61 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0);
    assert_eq!(manager.counters().failed, 1);
    alice.exists("a.txt").await.unwrap();
    lab.latest("alice").fail_to_stop(false);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 0, "it was used");
    lab.clock.advance(61 * MINUTE);
    assert_eq!(manager.cleanup_idle(None).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_reaper_runs_in_the_background_until_it_is_stopped() {
    let lab = Lab::new();
    let manager = lab.manager();
    manager.get_or_create("alice").await.unwrap();
    lab.clock.advance(61 * MINUTE);
    manager.start_reaper(sessions::REAPER_INTERVAL);
    tokio::time::sleep(Duration::from_secs(301)).await;
    settle().await;
    assert!(manager.is_empty());

    manager.get_or_create("bob").await.unwrap();
    lab.clock.advance(61 * MINUTE);
    assert!(manager.stop_reaper() && !manager.stop_reaper());
    tokio::time::sleep(Duration::from_secs(3000)).await;
    assert!(manager.contains("bob"));
}
