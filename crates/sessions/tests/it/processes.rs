//! Several managers on one engine, as several processes are.

use std::time::Duration;

use backend_core::{BackendExt as _, Command, ErrorKind, Sandbox as _};
use backend_testkit::fails;
use backend_testkit::fake::HOLD;
use sessions::{RecordState, WRITE_BACK_INTERVAL};

use crate::support::{MINUTE, SharedEngine, request, settle};

/// Lets the times of use be written back.
async fn write_back() {
    tokio::time::sleep(WRITE_BACK_INTERVAL * 2).await;
    settle().await;
}

#[tokio::test(start_paused = true)]
async fn two_processes_that_open_one_session_have_one_sandbox() {
    let engine = SharedEngine::default();
    let (one, two) = (engine.process().build(), engine.process().build());
    let (one, two) = (one.unwrap(), two.unwrap());
    let (a, b) = tokio::join!(one.get_or_create("alice"), two.get_or_create("alice"));
    let (a, b) = (a.unwrap(), b.unwrap());
    a.write_file("a.txt", "x").await.unwrap();
    assert_eq!(b.read_to_string("a.txt").await.unwrap(), "x");
    assert_eq!(engine.made(), 1);
    assert_eq!(two.list().await.unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_sandbox_that_was_started_ahead_is_not_started_again() {
    let engine = SharedEngine::default();
    let manager = engine.process().build().unwrap();
    let starts = |user: &str| engine.sandbox(user).unwrap().starts();
    manager.get_or_create("alice").await.unwrap();
    assert_eq!(starts("alice"), 1);
    engine.start_ahead();
    let bob = manager.get_or_create("bob").await.unwrap();
    assert_eq!(starts("bob"), 0);
    bob.write_file("a.txt", "x").await.unwrap();
    let again = manager.get_or_create("bob").await.unwrap();
    assert_eq!(again.read_to_string("a.txt").await.unwrap(), "x");
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_it_is_opened_is_created_anew() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    engine.end_at_touch();
    let two = engine.process().build().unwrap();
    let alice = two.get_or_create("alice").await.unwrap();
    assert_eq!(alice.read_to_string("a.txt").await.unwrap(), "x");
    assert_eq!(engine.made(), 2);
}

#[tokio::test(start_paused = true)]
async fn no_process_ends_what_another_one_starts() {
    let engine = SharedEngine::default();
    engine.set_start_time(MINUTE);
    let creates = engine.process().build().unwrap();
    let attaches = engine.process().build().unwrap();
    let idle = engine.process().build().unwrap();
    let opening = [&creates, &attaches].map(|manager| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.get_or_create("alice").await })
    });
    for _ in 0..3 {
        engine.clock().advance(61 * MINUTE);
        write_back().await;
        assert_eq!(idle.cleanup_idle(None).await.unwrap(), 0, "it starts");
    }
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    assert_eq!(engine.made(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_ends_while_it_starts_is_created_anew() {
    let engine = SharedEngine::default();
    engine.set_start_time(MINUTE);
    let creates = engine.process().build().unwrap();
    let attaches = engine.process().build().unwrap();
    let ends = engine.process().build().unwrap();
    let opening = [&creates, &attaches].map(|manager| {
        let manager = manager.clone();
        tokio::spawn(async move { manager.get_or_create("alice").await })
    });
    write_back().await;
    assert!(ends.release("alice").await.unwrap());
    for opened in opening {
        opened.await.unwrap().unwrap();
    }
    assert_eq!(engine.made(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_ended_again_and_again_fails() {
    let engine = SharedEngine::default();
    engine.set_start_time(MINUTE);
    let manager = engine.process().build().unwrap();
    let opening = tokio::spawn(async move { manager.get_or_create("alice").await });
    let ends = engine.process().build().unwrap();
    while !opening.is_finished() {
        write_back().await;
        ends.release("alice").await.unwrap();
    }
    let error = fails(ErrorKind::Unavailable, opening.await.unwrap());
    assert!(error.to_string().contains("killed"), "{error}");
    assert_eq!(engine.made(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_is_purged_while_it_wakes_is_not_made_anew() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    assert!(two.release("alice").await.unwrap());
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    engine.set_start_time(MINUTE);
    let wakes = alice.clone();
    let wakes = tokio::spawn(async move { wakes.exists("a.txt").await });
    write_back().await;
    assert!(two.purge("alice").await.unwrap());
    let error = fails(ErrorKind::Unavailable, wakes.await.unwrap());
    assert!(error.to_string().contains("was deleted"), "{error}");
    assert_eq!(engine.made(), 2, "no blank one is made");
    assert!(alice.has_ended());
}

#[tokio::test(start_paused = true)]
async fn a_use_that_hangs_keeps_no_other_from_being_written() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let mut calls = Vec::new();
    for id in ["alice", "bob"] {
        let session = one.get_or_create(id).await.unwrap();
        let call = async move { session.execute(Command::new(HOLD)).await };
        calls.push(tokio::spawn(call));
    }
    settle().await;
    engine.hang_at_touch("bob");
    for _ in 0..3 {
        engine.clock().advance(59 * MINUTE);
        write_back().await;
        two.cleanup_idle(None).await.unwrap();
        assert!(engine.sandbox("alice").is_some(), "it is in use");
    }
    engine.sandbox("alice").unwrap().finish();
    calls.remove(0).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_use_begins_only_if_other_processes_can_read_of_one() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    write_back().await;
    engine.hang_at_touch("alice");
    // It is used all the time, and nothing of that is written.
    for _ in 0..5 {
        engine.clock().advance(10 * MINUTE);
        alice.exists("a.txt").await.unwrap();
        write_back().await;
    }
    engine.clock().advance(10 * MINUTE);
    let late = tokio::spawn(async move { alice.exists("a.txt").await });
    settle().await;
    assert!(!late.is_finished(), "another process may be ending it");
}

#[tokio::test(start_paused = true)]
async fn no_process_ends_what_another_one_uses() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    two.get_or_create("alice").await.unwrap();
    let three = engine.process().build().unwrap();
    let command = tokio::spawn(async move { alice.execute(Command::new(HOLD)).await });
    settle().await;
    for _ in 0..3 {
        engine.clock().advance(61 * MINUTE);
        write_back().await;
        assert_eq!(two.cleanup_idle(None).await.unwrap(), 0, "it has it open");
        assert_eq!(three.cleanup_idle(None).await.unwrap(), 0, "it does not");
    }
    engine.sandbox("alice").unwrap().finish();
    command.await.unwrap().unwrap();
    write_back().await;
    engine.clock().advance(59 * MINUTE);
    assert_eq!(three.cleanup_idle(None).await.unwrap(), 0);
    engine.clock().advance(2 * MINUTE);
    assert_eq!(three.cleanup_idle(None).await.unwrap(), 1);
    assert!(engine.sandbox("alice").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_a_process_left_behind_is_ended_and_found_again() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    // As if it were killed.
    drop((one, alice));
    let two = engine.process().build().unwrap();
    assert!(!two.contains("alice"));
    engine.clock().advance(61 * MINUTE);
    assert_eq!(two.cleanup_idle(None).await.unwrap(), 1);
    let listed = two.list().await.unwrap();
    assert_eq!(listed[0].state, RecordState::Stored);
    let again = two.get_or_create("alice").await.unwrap();
    assert_eq!(again.read_to_string("a.txt").await.unwrap(), "x");
    assert_eq!(engine.made(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_another_process_ended_is_recreated_on_its_files() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    assert!(two.release("alice").await.unwrap());
    fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
    assert_eq!(alice.read_to_string("a.txt").await.unwrap(), "x");

    assert!(two.purge("alice").await.unwrap());
    for _ in 0..2 {
        let error = fails(ErrorKind::Unavailable, alice.exists("a.txt").await);
        assert!(error.to_string().contains("was deleted"), "{error}");
    }
    assert_eq!(engine.made(), 2, "no blank one is made");
}

#[tokio::test(start_paused = true)]
async fn a_use_after_a_long_pause_wakes_what_another_process_ended() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    alice.write_file("a.txt", "x").await.unwrap();
    engine.clock().advance(61 * MINUTE);
    assert_eq!(two.cleanup_idle(None).await.unwrap(), 1);
    assert_eq!(alice.read_to_string("a.txt").await.unwrap(), "x");
    assert_eq!(engine.made(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_may_be_in_use_elsewhere_does_not_sleep() {
    let engine = SharedEngine::default();
    let one = engine.process().max_sessions(1).build().unwrap();
    let two = engine.process().build().unwrap();
    one.get_or_create("alice").await.unwrap();
    let elsewhere = two.get_or_create("alice").await.unwrap();
    let command = tokio::spawn(async move { elsewhere.execute(Command::new(HOLD)).await });
    settle().await;
    for _ in 0..3 {
        engine.clock().advance(MINUTE);
        write_back().await;
        fails(ErrorKind::RateLimited, one.get_or_create("bob").await);
    }
    engine.sandbox("alice").unwrap().finish();
    command.await.unwrap().unwrap();
    write_back().await;
    engine.clock().advance(MINUTE);
    one.get_or_create("bob").await.unwrap();
    assert!(engine.sandbox("alice").is_none());
}

#[tokio::test(start_paused = true)]
async fn a_process_that_shuts_down_leaves_what_another_one_used_later() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    one.get_or_create("alice").await.unwrap();
    one.get_or_create("bob").await.unwrap();
    let alice = two.get_or_create("alice").await.unwrap();
    engine.clock().advance(MINUTE);
    alice.write_file("a.txt", "x").await.unwrap();
    write_back().await;
    let report = one.shutdown(Duration::from_secs(10)).await;
    assert_eq!(report.ended, 2);
    assert!(engine.sandbox("bob").is_none());
    assert_eq!(alice.read_to_string("a.txt").await.unwrap(), "x");
    assert_eq!(engine.made(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_calls_are_one_write() {
    let engine = SharedEngine::default();
    let manager = engine.process().build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    write_back().await;
    let before = engine.touches();
    for _ in 0..100 {
        engine.clock().advance(Duration::from_millis(10));
        alice.exists("a.txt").await.unwrap();
    }
    assert_eq!(engine.touches(), before, "a call writes nothing");
    write_back().await;
    assert_eq!(engine.touches(), before + 1);
    write_back().await;
    assert_eq!(engine.touches(), before + 1, "nothing was used since");
}

#[tokio::test(start_paused = true)]
async fn a_use_after_a_long_pause_is_written_before_it_begins() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    write_back().await;
    // It is past its idle timeout, and no reaper has looked yet.
    engine.clock().advance(61 * MINUTE);
    let command = tokio::spawn(async move { alice.execute(Command::new(HOLD)).await });
    settle().await;
    assert_eq!(two.cleanup_idle(None).await.unwrap(), 0);
    engine.sandbox("alice").unwrap().finish();
    command.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_shell_is_a_use_in_every_process() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    let two = engine.process().build().unwrap();
    let alice = one.get_or_create("alice").await.unwrap();
    let shell = alice.shell_start(Command::new("server")).await.unwrap();
    for _ in 0..3 {
        engine.clock().advance(59 * MINUTE);
        write_back().await;
        assert_eq!(two.cleanup_idle(None).await.unwrap(), 0, "a shell runs");
    }
    alice.shell_kill(&shell.id).await.unwrap();
    write_back().await;
    engine.clock().advance(61 * MINUTE);
    assert_eq!(two.cleanup_idle(None).await.unwrap(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_session_counts_for_its_tenant_whoever_opens_it() {
    let engine = SharedEngine::default();
    let one = engine.process().build().unwrap();
    for id in ["a1", "a2"] {
        one.open(request(id).tenant("acme")).await.unwrap();
    }
    let two = engine.process().max_sessions_per_tenant(1).build().unwrap();
    two.get_or_create("a1").await.unwrap();
    fails(ErrorKind::RateLimited, two.get_or_create("a2").await);
    two.get_or_create("b1").await.unwrap();
}
