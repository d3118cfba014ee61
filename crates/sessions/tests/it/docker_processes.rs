//! Three processes use the sessions of one daemon, and are killed at random: there is one
//! container for each session, none is ended while it is used, and all are ended when
//! no process uses them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use backend_core::Sandbox as _;
use backend_core::ops::Command as Line;
use futures_util::future::join_all;
use sessions::{Engine as _, RecordState, Session, SessionId, SessionManager};

use crate::support::docker::{Cleanup, containers, engine, manager, new_space, runtime, variable};

/// The space, set in the processes that will be killed.
const SPACE: &str = "AGENTBOX_TEST_SESSIONS_SPACE";
/// The directory with the files of the sessions and the logs.
const PLACE: &str = "AGENTBOX_TEST_SESSIONS_PLACE";

const IDS: [&str; 4] = ["Alice", "alice", "bob_1", "carol.x"];
const PROCESSES: usize = 3;
/// Users at once in each process.
const USERS: usize = 3;
const IDLE_TIMEOUT: Duration = Duration::from_secs(6);
const WRITE_BACK: Duration = Duration::from_secs(1);
/// How long processes are killed.
const KILLING: Duration = Duration::from_secs(45);

fn between(least: u64, most: u64) -> Duration {
    Duration::from_millis(fastrand::u64(least..=most))
}

/// The lines that one process writes: they outlive it.
struct Log(Mutex<File>);

impl Log {
    fn line(&self, text: &str) {
        // One write, so that a kill leaves a whole line or none.
        let line = format!("{}\n", text.replace('\n', " "));
        self.0.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which starts it"]
async fn part_uses_sessions_until_it_is_killed() {
    let Ok(space) = std::env::var(SPACE) else {
        return;
    };
    let place = variable(PLACE);
    let place = Path::new(&place);
    let name = format!("{}.log", std::process::id());
    let log = Log(Mutex::new(
        File::create(place.join("logs").join(name)).unwrap(),
    ));
    let engine = engine(&space, &place.join("root"))
        .pool(runtime(), 1)
        .build()
        .unwrap();
    let manager = SessionManager::builder()
        .engine(Arc::new(engine))
        .idle_timeout(IDLE_TIMEOUT)
        .write_back_interval(WRITE_BACK)
        .build()
        .unwrap();
    manager.start_reaper(Duration::from_secs(1));
    let users = join_all((0..USERS).map(|_| use_sessions(&manager, &log)));
    // It is killed long before, unless the test that started it was.
    let _ = tokio::time::timeout(KILLING * 4, users).await;
}

/// Opens one session after the other, uses it for a while, and then leaves it alone, often
/// for longer than its idle timeout.
async fn use_sessions(manager: &SessionManager, log: &Log) {
    loop {
        let id = fastrand::choice(IDS).unwrap_or(IDS[0]);
        match manager.get_or_create(id).await {
            Ok(session) => {
                if let Err(fault) = use_one(&session, id, log).await {
                    log.line(&format!("fault {id} {fault}"));
                }
            }
            Err(error) => log.line(&format!("fault {id} not opened: {}", error.chain())),
        }
        tokio::time::sleep(between(0, 9000)).await;
    }
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
    let others = execute(session, "ls").await?;
    if others != format!("{id}.txt") {
        return Err(format!("sees the files of others: {others}"));
    }
    Ok(())
}

async fn execute(session: &Session, line: &str) -> Result<String, String> {
    let outcome = session.execute(Line::new(line)).await;
    let outcome = outcome.map_err(|error| format!("{line}: {}", error.chain()))?;
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    if !outcome.status.success() {
        return Err(format!("{line}: {}: {out}{err}", outcome.status));
    }
    Ok(out.trim_end().to_owned())
}

/// One of the processes.
struct Part(Child);

impl Part {
    fn start(space: &str, place: &Path) -> Self {
        let part = "docker_processes::part_uses_sessions_until_it_is_killed";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", part])
            .env(SPACE, space)
            .env(PLACE, place)
            .stdout(Stdio::null())
            .spawn();
        Self(child.unwrap())
    }
}

/// Ends it like a crash.
impl Drop for Part {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The lines of all processes: the containers that each session had, and the faults.
#[derive(Debug, Default)]
struct Report {
    used: BTreeMap<String, BTreeSet<String>>,
    uses: usize,
    faults: Vec<String>,
}

impl Report {
    fn read(logs: &Path) -> Self {
        let mut report = Self::default();
        for entry in fs::read_dir(logs).unwrap() {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            for line in text.lines() {
                match line.split(' ').collect::<Vec<_>>()[..] {
                    ["used", id, container] => {
                        let used = report.used.entry(id.to_owned()).or_default();
                        used.insert(container.to_owned());
                        report.uses += 1;
                    }
                    _ => report.faults.push(line.to_owned()),
                }
            }
        }
        report
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn processes_that_are_killed_share_sessions() {
    let (space, place) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let (root, logs) = (place.path().join("root"), place.path().join("logs"));
    fs::create_dir(&logs).unwrap();
    let start = || Part::start(&space, place.path());
    let mut parts: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    let mut kills = 0;
    let deadline = Instant::now() + KILLING;
    while Instant::now() < deadline {
        tokio::time::sleep(between(500, 4000)).await;
        let victim = fastrand::usize(..PROCESSES);
        // Killed before the next one starts.
        drop(parts.swap_remove(victim));
        parts.push(start());
        kills += 1;
    }
    drop(parts);
    let report = Report::read(&logs);
    println!("{kills} kills, {} uses", report.uses);
    assert_eq!(report.faults, Vec::<String>::new());
    assert_eq!(report.used.len(), IDS.len(), "all were used: {report:?}");
    for (id, used) in &report.used {
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
