//! Three processes use the sessions of one service, and are killed at random: each session has
//! one sandbox, none is stopped while it is used, and all are stopped when no process uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use backend_core::Sandbox as _;
use backend_core::ops::Command;
use sessions::{RecordState, Session};

use crate::support::daytona::{Place, account, engine, manager};
use crate::support::killed::{
    IDLE_TIMEOUT, IDS, Log, PATIENCE, between, execute, kill_at_random, sees_its_own, use_sessions,
};

/// The address of the service, set in the processes that will be killed.
const URL: &str = "AGENTBOX_TEST_SESSIONS_URL";
/// Its key.
const KEY: &str = "AGENTBOX_TEST_SESSIONS_KEY";
/// The directory of the logs.
const LOGS: &str = "AGENTBOX_TEST_SESSIONS_LOGS";

/// Users at once in each process.
const USERS: usize = 2;
/// How long processes are killed, at least.
const KILLING: Duration = Duration::from_secs(10);
/// The longest time of a change of labels, while other processes compete for the processors.
const SETTLE: Duration = Duration::from_millis(500);

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which starts it"]
async fn part_uses_sessions_until_it_is_killed() {
    let (Some(url), Some(key), Some(logs)) = (variable(URL), variable(KEY), variable(LOGS)) else {
        return;
    };
    let log = Log::create(Path::new(&logs));
    let engine = engine(account(&url, &key)).settle_time(SETTLE);
    use_sessions(engine.build().unwrap(), USERS, &log, use_one).await;
}

/// Uses a session without a pause. A shell in the background ends if its sandbox is stopped
/// meanwhile.
async fn use_one(session: &Session, id: &str, log: &Log) -> Result<(), String> {
    let mark = format!("{:016x}", fastrand::u64(..));
    // The first user of a sandbox gives it a name that no other one has.
    let named = format!("(set -C; echo {mark} > /tmp/name) 2>/dev/null; cat /tmp/name");
    let name = execute(session, &named).await?;
    log.line(&format!("used {id} {name}"));
    let shell = session.shell_start(Command::new("sleep 300")).await;
    let shell = shell.map_err(|error| error.chain().to_string())?;
    execute(session, &format!("echo {mark} >> {id}.txt")).await?;
    let deadline = Instant::now() + between(0, 8_000);
    while Instant::now() < deadline {
        execute(session, &format!("grep -q {mark} {id}.txt")).await?;
        tokio::time::sleep(between(0, 400)).await;
    }
    let ended = session.shell_kill(&shell.id).await;
    if !ended.map_err(|error| error.chain().to_string())? {
        return Err("was stopped while it was used".to_owned());
    }
    sees_its_own(session, id).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_are_killed_share_sessions() {
    let place = Place::new().await;
    let logs = tempfile::tempdir().unwrap();
    let part = "daytona_processes::part_uses_sessions_until_it_is_killed";
    let url = place.standin.api_url();
    let variables: [(&str, &OsStr); 3] = [
        (URL, url.as_ref()),
        (KEY, place.standin.api_key().as_ref()),
        (LOGS, logs.path().as_ref()),
    ];
    let all_used = || {
        let lines = Log::read_all(logs.path());
        let is_of = |id, line: &String| line.starts_with(&format!("used {id} "));
        IDS.iter()
            .all(|id| lines.iter().any(|line| is_of(id, line)))
    };
    kill_at_random(part, &variables, KILLING, (700, 4000), all_used).await;
    let mut used = BTreeMap::<_, BTreeSet<_>>::new();
    let lines = Log::read_all(logs.path());
    for line in &lines {
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["used", id, name] => used.entry(id).or_default().insert(name),
            _ => panic!("{line}"),
        };
    }
    println!("{} uses", lines.len());
    assert_eq!(used.len(), IDS.len(), "all were used: {used:?}");
    for (id, names) in &used {
        assert_eq!(names.len(), 1, "{id} had several sandboxes: {names:?}");
    }
    all_end(&place).await;
}

/// Checks that a later process ends what the killed ones left, once it is idle.
async fn all_end(place: &Place) {
    let engine = engine(place.account()).settle_time(SETTLE);
    let manager = manager(&engine.build().unwrap());
    let deadline = Instant::now() + PATIENCE;
    let is_running = |(_, state): &(String, String)| state == "started";
    while place.states().iter().any(is_running) {
        manager.cleanup_idle(Some(IDLE_TIMEOUT)).await.unwrap();
        assert!(Instant::now() < deadline, "left: {:?}", place.states());
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let records = manager.list().await.unwrap();
    assert_eq!(records.len(), IDS.len(), "{records:?}");
    for record in records {
        assert_eq!(record.state, RecordState::Stopped);
        assert!(manager.purge(record.id.as_str()).await.unwrap());
    }
    assert_eq!(place.states(), []);
}
