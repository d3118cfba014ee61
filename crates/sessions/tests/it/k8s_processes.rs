//! Three processes use the sessions of one cluster, and are killed at random: no session has
//! two pods at once, none is ended while it is used, and all are ended when no process uses
//! them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backend_core::Sandbox as _;
use backend_core::ops::Command as Line;
use futures_util::future::join_all;
use sessions::{Engine as _, RecordState, Session, SessionManager};

use crate::support::k8s::{Place, has_volumes, manager, runtime, variable};

/// The namespace, set in the processes that will be killed.
const NAMESPACE: &str = "AGENTBOX_TEST_SESSIONS_NAMESPACE";
/// The directory of the logs.
const LOGS: &str = "AGENTBOX_TEST_SESSIONS_LOGS";

const IDS: [&str; 4] = ["Alice", "alice", "bob_1", "carol.x"];
const PROCESSES: usize = 3;
/// Users at once in each process.
const USERS: usize = 2;
const IDLE_TIMEOUT: Duration = Duration::from_secs(6);
const WRITE_BACK: Duration = Duration::from_secs(1);
/// How long processes are killed, at least.
const KILLING: Duration = Duration::from_secs(20);
/// The longest wait for anything. Only what never comes about takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// Volumes: for the sessions, and for the pods that killed processes kept ready.
const VOLUMES: usize = 48;

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

    /// Notes that a session was seen in a pod.
    fn seen(&self, id: &str, pod: &str) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        self.line(&format!("seen {id} {pod} {}", now.as_millis()));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which starts it"]
async fn part_uses_sessions_until_it_is_killed() {
    let Ok(namespace) = std::env::var(NAMESPACE) else {
        return;
    };
    let place = Place::of_another(namespace).await;
    let name = format!("{}.log", std::process::id());
    let log = Path::new(&variable(LOGS)).join(name);
    let log = Log(Mutex::new(File::create(log).unwrap()));
    // Some claim pods that are ready, the others create them.
    let engine = place.engine();
    let engine = if fastrand::bool() {
        engine.pool(runtime(), 1)
    } else {
        engine
    };
    let manager = SessionManager::builder()
        .engine(Arc::new(engine.build().unwrap()))
        .idle_timeout(IDLE_TIMEOUT)
        .write_back_interval(WRITE_BACK)
        .build()
        .unwrap();
    manager.start_reaper(Duration::from_secs(1));
    let users = join_all((0..USERS).map(|_| use_sessions(&manager, &log)));
    // It is killed long before, unless the test that started it was.
    let _ = tokio::time::timeout(PATIENCE, users).await;
}

/// Opens one session after the other, uses it for a while, and then leaves it alone, often for
/// longer than its idle timeout.
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

/// Uses a session without a pause. Files outside of its volume are lost if its pod is replaced
/// meanwhile.
async fn use_one(session: &Session, id: &str, log: &Log) -> Result<(), String> {
    let mark = format!("{:016x}", fastrand::u64(..));
    // The first user of a pod gives it a name that no other pod has.
    let named = format!("(set -C; echo {mark} > /tmp/pod) 2>/dev/null; cat /tmp/pod");
    let pod = execute(session, &named).await?;
    log.seen(id, &pod);
    execute(session, &format!("echo {mark} >> {id}.txt")).await?;
    let deadline = Instant::now() + between(0, 10_000);
    while Instant::now() < deadline {
        let found = execute(session, "cat /tmp/pod").await?;
        log.seen(id, &found);
        if found != pod {
            return Err(format!("was ended while it was used: {found}"));
        }
        tokio::time::sleep(between(0, 400)).await;
    }
    execute(session, &format!("grep -q {mark} {id}.txt")).await?;
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
    fn start(place: &Place, logs: &Path) -> Self {
        let part = "k8s_processes::part_uses_sessions_until_it_is_killed";
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", part])
            .env(NAMESPACE, &place.namespace)
            .env(LOGS, logs)
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

/// The lines of all processes: when each pod of a session was seen first and last, and the
/// faults.
#[derive(Debug, Default)]
struct Report {
    seen: BTreeMap<String, BTreeMap<String, (u64, u64)>>,
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
                    ["seen", id, pod, at] => {
                        let at: u64 = at.parse().unwrap();
                        let pods = report.seen.entry(id.to_owned()).or_default();
                        let seen = pods.entry(pod.to_owned()).or_insert((at, at));
                        *seen = (seen.0.min(at), seen.1.max(at));
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
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn processes_that_are_killed_share_sessions() {
    if !has_volumes() {
        return;
    }
    let place = Place::new().await;
    place.make_volumes(VOLUMES).await;
    let logs = tempfile::tempdir().unwrap();
    let start = || Part::start(&place, logs.path());
    let mut parts: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    let mut kills = 0;
    let begun = Instant::now();
    let all_used = || Report::read(logs.path()).seen.len() == IDS.len();
    while begun.elapsed() < KILLING || (begun.elapsed() < PATIENCE && !all_used()) {
        tokio::time::sleep(between(700, 4000)).await;
        let victim = fastrand::usize(..PROCESSES);
        // Killed before the next one starts.
        drop(parts.swap_remove(victim));
        parts.push(start());
        kills += 1;
    }
    drop(parts);
    let report = Report::read(logs.path());
    println!("{kills} kills, {} uses", report.uses);
    assert_eq!(report.faults, Vec::<String>::new());
    assert_eq!(report.seen.len(), IDS.len(), "all were used: {report:?}");
    for (id, pods) in &report.seen {
        let mut times: Vec<_> = pods.values().collect();
        times.sort();
        let overlap = times.windows(2).any(|two| two[1].0 < two[0].1);
        assert!(!overlap, "{id} had two pods at once: {pods:?}");
    }
    all_end(&place).await;
}

/// Checks that a later process ends what the killed ones left, once it is idle.
async fn all_end(place: &Place) {
    let engine = place.engine().build().unwrap();
    let manager = manager(&engine);
    let deadline = Instant::now() + PATIENCE;
    loop {
        // As if the signs of life of the killed processes had become old.
        let later = SystemTime::now() + Duration::from_secs(120);
        engine.maintain(later).await.unwrap();
        manager.cleanup_idle(Some(IDLE_TIMEOUT)).await.unwrap();
        let left = place.pods().await;
        if left.is_empty() {
            break;
        }
        assert!(Instant::now() < deadline, "left: {left:?}");
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    let records = manager.list().await.unwrap();
    assert_eq!(records.len(), IDS.len(), "{records:?}");
    for record in records {
        assert_eq!(record.state, RecordState::Stored);
        assert!(manager.purge(record.id.as_str()).await.unwrap());
    }
    assert!(manager.list().await.unwrap().is_empty());
}
