//! The manager on local sessions: restarts, ceilings, reaping and several processes.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{Command, ShellState};
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use sessions::{
    CapacityError, Engine, EventKind, RecordState, Session, SessionManager, SessionManagerBuilder,
};

use super::{engine, id, request};

const SOON: Duration = Duration::from_secs(60);

fn manager(root: &Path) -> SessionManagerBuilder {
    let engine: Arc<dyn Engine> = Arc::new(engine(root));
    SessionManager::builder().engine(engine)
}

#[tokio::test(flavor = "multi_thread")]
async fn files_outlive_the_manager() {
    let root = tempfile::tempdir().unwrap();
    let first = manager(root.path()).build().unwrap();
    let alice = first.get_or_create("alice").await.unwrap();
    let line = Command::new("echo done > result.txt");
    assert!(alice.execute(line).await.unwrap().status.success());
    let shutdown = first.shutdown(SOON).await;
    assert_eq!(shutdown.ended, 1);
    assert!(shutdown.failed.is_empty() && shutdown.unfinished.is_empty());
    let error = alice.read_to_string("result.txt").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);

    let second = manager(root.path()).build().unwrap();
    assert_eq!(second.list().await.unwrap()[0].state, RecordState::Stored);
    let alice = second.get_or_create("alice").await.unwrap();
    assert_eq!(alice.read_to_string("result.txt").await.unwrap(), "done\n");
    let bob = second.get_or_create("bob").await.unwrap();
    assert!(!bob.exists("result.txt").await.unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_ceiling_the_least_recently_used_sleeps_and_wakes() {
    let root = tempfile::tempdir().unwrap();
    let manager = manager(root.path()).max_sessions(2).build().unwrap();
    for name in ["a", "b", "c"] {
        let session = manager.get_or_create(name).await.unwrap();
        session.write_file("name", name.to_owned()).await.unwrap();
    }
    assert_eq!(manager.counters().hibernated, 1);
    let state = |name: &str| {
        let (manager, name) = (manager.clone(), name.to_owned());
        async move {
            let records = manager.list().await.unwrap();
            let mut found = records.iter().filter(|record| record.id.as_str() == name);
            found.next().unwrap().state
        }
    };
    assert_ne!(state("a").await, RecordState::Running);
    assert_eq!(state("c").await, RecordState::Running);
    let first = manager.get("a").unwrap();
    assert_eq!(first.read_to_string("name").await.unwrap(), "a");
    assert_eq!(state("a").await, RecordState::Running);
    assert_eq!(manager.counters().woken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn running_commands_and_shells_keep_their_session() {
    let root = tempfile::tempdir().unwrap();
    let manager = manager(root.path()).max_sessions(1).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    let shell = alice.shell_start(Command::new("sleep 600")).await.unwrap();
    assert_eq!(manager.cleanup_idle(Some(Duration::ZERO)).await.unwrap(), 0);
    let error = manager.get_or_create("bob").await.unwrap_err();
    assert!(CapacityError::of(&error).is_some(), "{error}");
    let shells = alice.shell_list().await.unwrap();
    assert_eq!(shells[0].state, ShellState::Running);
    alice.shell_kill(&shell.id).await.unwrap();
    manager.get_or_create("bob").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_ends_and_its_files_stay() {
    let root = tempfile::tempdir().unwrap();
    let manager = manager(root.path()).build().unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    alice.write_file("file", "kept").await.unwrap();
    tokio::time::sleep(Duration::from_millis(20)).await;
    let reaped = manager.cleanup_idle(Some(Duration::from_millis(5))).await;
    assert_eq!(reaped.unwrap(), 1);
    assert!(!manager.contains("alice"));
    let again = manager.get_or_create("alice").await.unwrap();
    assert_eq!(again.read_to_string("file").await.unwrap(), "kept");
    assert!(manager.purge("alice").await.unwrap());
    assert!(manager.list().await.unwrap().is_empty());
}

/// Returns what a command prints.
async fn printed(session: &Session, command: Command) -> String {
    let outcome = session.execute(command).await.unwrap();
    assert!(outcome.status.success(), "{}", outcome.stderr.text());
    outcome.stdout.text().trim_end().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_reach_commands_of_every_process_and_end_with_the_sandbox() {
    let root = tempfile::tempdir().unwrap();
    let one = manager(root.path()).build().unwrap();
    let other = manager(root.path()).build().unwrap();
    let with = |value: &str| request("alice").env("TOKEN", value);
    let ask = || Command::new("echo $TOKEN");
    let mine = one.open(with("secret")).await.unwrap();
    assert_eq!(printed(&mine, ask()).await, "secret");
    assert_eq!(printed(&mine, ask().env("TOKEN", "own")).await, "own");
    let theirs = other.get_or_create("alice").await.unwrap();
    assert_eq!(printed(&theirs, ask()).await, "secret");
    let shell = mine.shell_start(Command::new("echo $TOKEN > shell; sleep 600"));
    let shell = shell.await.unwrap();
    while theirs.read_to_string("shell").await.unwrap_or_default() != "secret\n" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    mine.shell_kill(&shell.id).await.unwrap();

    one.open(with("newer")).await.unwrap();
    assert_eq!(printed(&mine, ask()).await, "newer");
    other.release("alice").await.unwrap();
    let theirs = other.get_or_create("alice").await.unwrap();
    assert_eq!(printed(&theirs, ask()).await, "newer");

    other.release("alice").await.unwrap();
    one.release("alice").await.unwrap();
    let anew = one.get_or_create("alice").await.unwrap();
    assert_eq!(printed(&anew, ask()).await, "");
    let shown = format!("{:?}", with("secret"));
    assert!(!shown.contains("secret"), "{shown}");
    let wrong = one.open(request("alice").env("A=B", "")).await;
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_can_ask_to_end_a_session() {
    let root = tempfile::tempdir().unwrap();
    let interval = Duration::from_millis(5);
    let manager = manager(root.path()).write_back_interval(interval);
    let manager = manager.build().unwrap();
    let other = engine(root.path());
    assert!(!other.request_release(&id("alice")).await.unwrap());
    let alice = manager.get_or_create("alice").await.unwrap();
    let bob = manager.get_or_create("bob").await.unwrap();
    alice.write_file("file", "kept").await.unwrap();
    let shell = alice.shell_start(Command::new("sleep 600"));
    shell.await.unwrap();
    let mut events = manager.events();
    assert!(other.request_release(&id("alice")).await.unwrap());
    let ended = async {
        loop {
            let event = events.recv().await.unwrap();
            if event.kind == EventKind::Released {
                return event.id;
            }
        }
    };
    let ended = tokio::time::timeout(SOON, ended).await.unwrap();
    assert_eq!(ended, id("alice"));
    assert!(alice.has_ended() && !bob.has_ended());
    let record = other.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Stored);
    // The request is not for the next life.
    let again = manager.get_or_create("alice").await.unwrap();
    assert_eq!(again.read_to_string("file").await.unwrap(), "kept");
    assert!(!root.path().join("alice/release").exists());
    let requested = other.release_requests().await.unwrap();
    assert!(requested.is_empty(), "it has no session open");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_managers_share_a_session() {
    let root = tempfile::tempdir().unwrap();
    let one = manager(root.path()).build().unwrap();
    let other = manager(root.path()).build().unwrap();
    let (mine, theirs) = tokio::join!(one.get_or_create("alice"), other.get_or_create("alice"));
    let (mine, theirs) = (mine.unwrap(), theirs.unwrap());
    mine.write_file("file", "1").await.unwrap();
    assert_eq!(theirs.read_to_string("file").await.unwrap(), "1");
    // One ends its own part only.
    assert!(one.release("alice").await.unwrap());
    theirs.write_file("file", "2").await.unwrap();
    let again = one.get_or_create("alice").await.unwrap();
    assert_eq!(again.read_to_string("file").await.unwrap(), "2");
}
