//! Three processes use the sessions of one daemon, and are killed at random: there is one
//! container for each session, none is ended while it is used, and all are ended when
//! no process uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use sessions::{Engine as _, RecordState, Session, SessionId};

use crate::support::docker::{Cleanup, containers, engine, manager, new_space, runtime, variable};
use crate::support::killed::{
    IDLE_TIMEOUT, IDS, Log, between, execute, kill_at_random, sees_its_own, use_sessions,
};

/// The space, set in the processes that will be killed.
const SPACE: &str = "AGENTBOX_TEST_SESSIONS_SPACE";
/// The directory with the files of the sessions and the logs.
const PLACE: &str = "AGENTBOX_TEST_SESSIONS_PLACE";

/// Users at once in each process.
const USERS: usize = 3;
/// How long processes are killed.
const KILLING: Duration = Duration::from_secs(45);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which starts it"]
async fn part_uses_sessions_until_it_is_killed() {
    let Ok(space) = std::env::var(SPACE) else {
        return;
    };
    let place = variable(PLACE);
    let place = Path::new(&place);
    let log = Log::create(&place.join("logs"));
    let engine = engine(&space, &place.join("root")).pool(runtime(), 1);
    use_sessions(engine.build().unwrap(), USERS, &log, use_one).await;
}

/// Uses a session without a pause. A file in memory is lost if its container is stopped
/// meanwhile.
async fn use_one(session: &Session, id: &str, log: &Log) -> Result<(), String> {
    let mark = format!("{:016x}", fastrand::u64(..));
    let container = execute(session, "cat /etc/hostname").await?;
    log.line(&format!("used {id} {container}"));
    execute(session, &format!("echo {mark} > /dev/shm/{mark}")).await?;
    execute(session, &format!("echo {mark} >> {id}.txt")).await?;
    let deadline = Instant::now() + between(0, 10_000);
    while Instant::now() < deadline {
        let found = execute(session, &format!("cat /dev/shm/{mark}")).await?;
        if found != mark {
            return Err(format!("was ended while it was used: {found}"));
        }
        tokio::time::sleep(between(0, 400)).await;
    }
    sees_its_own(session, id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn processes_that_are_killed_share_sessions() {
    let (space, place) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let (root, logs) = (place.path().join("root"), place.path().join("logs"));
    fs::create_dir(&logs).unwrap();
    let part = "docker_processes::part_uses_sessions_until_it_is_killed";
    let variables: [(&str, &OsStr); 2] = [(SPACE, space.as_ref()), (PLACE, place.path().as_ref())];
    kill_at_random(part, &variables, KILLING, (500, 4000), || true).await;
    let mut used = BTreeMap::<_, BTreeSet<_>>::new();
    let lines = Log::read_all(&logs);
    for line in &lines {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["used", id, container] => used.entry(id).or_default().insert(container),
            _ => panic!("{line}"),
        };
    }
    println!("{} uses", lines.len());
    assert_eq!(used.len(), IDS.len(), "all were used: {used:?}");
    for (id, used) in &used {
        assert_eq!(used.len(), 1, "{id} had several containers: {used:?}");
    }
    all_end(&space, &root).await;
}

/// Checks that a later process ends what the killed ones left, once it is idle.
async fn all_end(space: &str, root: &Path) {
    let engine = engine(space, root).build().unwrap();
    let manager = manager(&engine);
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        // Also completes what a killed process was in the middle of.
        engine.maintain(SystemTime::now()).await.unwrap();
        manager.cleanup_idle(Some(IDLE_TIMEOUT)).await.unwrap();
        let running = containers(space, &["running"]);
        if running.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "left: {running:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let mut names = containers(space, &[]);
    names.sort();
    let session = |id: &str| {
        format!(
            "agentbox-s-{space}-{}",
            SessionId::new(id).unwrap().engine_name()
        )
    };
    let mut expected = IDS.map(session);
    expected.sort();
    assert_eq!(names, expected, "one for each session, and no other");
    for record in manager.list().await.unwrap() {
        assert_eq!(record.state, RecordState::Stopped);
        let own = root.join(record.id.as_str()).join("workspace");
        let file = own.join(format!("{}.txt", record.id));
        assert!(file.is_file(), "its files are kept");
        assert!(manager.purge(record.id.as_str()).await.unwrap());
    }
    assert!(containers(space, &[]).is_empty());
}
