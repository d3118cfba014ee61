//! Several processes and one directory, with kills.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, ErrorKind, Sandbox};
use sessions::{Claim, Engine as _, LocalEngine, RecordState};

use super::{create, engine, id, request};

/// Sessions that the processes use in turn.
const IDS: [&str; 3] = ["alice", "bob", "carol"];

/// How often a process is killed.
const KILLS: usize = 12;

/// A process that uses sessions until it is killed. The tests start it in the directory of
/// sessions.
#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_user() {
    let engine = engine(Path::new("."));
    let mut random = fastrand::Rng::new();
    let name = format!("{}.log", std::process::id());
    let mut round = 0_u32;
    println!("ready");
    loop {
        let session = IDS[random.usize(..IDS.len())];
        let sandbox = get_or_create(&engine, session).await;
        // Each process appends to its own file, which no other may lose.
        let before = sandbox.read_to_string(&name).await.unwrap_or_default();
        let lines = before.lines().count();
        let text = format!("{before}{round}\n");
        sandbox.write_file(&name, text).await.unwrap();
        let after = sandbox.read_to_string(&name).await.unwrap();
        assert_eq!(after.lines().count(), lines + 1);
        let record = engine.record(&id(session)).await.unwrap();
        assert_eq!(record.unwrap().state, RecordState::Running);
        if random.bool() {
            engine.stop(&id(session)).await.unwrap();
        }
        round += 1;
    }
}

/// Opens a session as a manager does.
async fn get_or_create(engine: &LocalEngine, session: &str) -> Arc<dyn Sandbox> {
    loop {
        if let Some(attached) = engine.attach(&id(session)).await.unwrap() {
            return attached.sandbox;
        }
        if let Claim::Created(sandbox) = engine.claim(&request(session)).await.unwrap() {
            return sandbox;
        }
    }
}

/// Starts a process and waits until it uses sessions.
fn start(root: &Path, part: &str) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("local::processes::{part}")])
        .args(["--ignored", "--nocapture"])
        .current_dir(root)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let stdout = child.stdout.as_mut().unwrap();
    let lines = BufReader::new(stdout).lines();
    let told = lines
        .map_while(Result::ok)
        .any(|line| line.contains("ready"));
    assert!(told, "the process ended before it was ready");
    child
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_processes_leave_sessions_that_open() {
    let root = tempfile::tempdir().unwrap();
    let mut random = fastrand::Rng::with_seed(20);
    let mut users: Vec<_> = (0..3).map(|_| start(root.path(), "part_user")).collect();
    for _ in 0..KILLS {
        let pause = Duration::from_millis(random.u64(5..60));
        tokio::time::sleep(pause).await;
        let which = random.usize(..users.len());
        let mut killed = std::mem::replace(&mut users[which], start(root.path(), "part_user"));
        // Before its end it must not have failed on its own.
        assert_eq!(killed.try_wait().unwrap(), None);
        killed.kill().unwrap();
        killed.wait().unwrap();
    }
    for mut user in users {
        assert_eq!(user.try_wait().unwrap(), None);
        user.kill().unwrap();
        user.wait().unwrap();
    }
    let engine = engine(root.path());
    for record in engine.list().await.unwrap() {
        // The kernel has released every lock.
        assert_eq!(record.state, RecordState::Stored, "{}", record.id);
        let sandbox = create(&engine, record.id.as_str()).await;
        assert!(!sandbox.list_dir(".").await.unwrap().entries.is_empty());
        assert!(engine.purge(&record.id).await.unwrap());
    }
    assert!(engine.list().await.unwrap().is_empty());
}

/// A process that uses one session until it is killed.
#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_holder() {
    let _sandbox = create(&engine(Path::new(".")), "alice").await;
    println!("ready");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_its_processes_until_the_last_is_killed() {
    let root = tempfile::tempdir().unwrap();
    let mut holder = start(root.path(), "part_holder");
    let builder = LocalEngine::builder(root.path()).time_to_live(Duration::ZERO);
    let engine = builder.open().unwrap();
    let claim = engine.claim(&request("alice")).await.unwrap();
    assert!(matches!(claim, Claim::Taken));
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Running);
    let error = engine.purge(&id("alice")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(!engine.stop(&id("alice")).await.unwrap(), "not ours");
    let later = SystemTime::now() + Duration::from_secs(1_000);
    engine.maintain(later).await.unwrap();
    assert_eq!(engine.list().await.unwrap().len(), 1, "it is in use");
    holder.kill().unwrap();
    holder.wait().unwrap();
    drop(create(&engine, "alice").await);
    engine.maintain(later).await.unwrap();
    assert!(engine.list().await.unwrap().is_empty(), "past its time");
}
