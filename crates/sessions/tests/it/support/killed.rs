//! Processes that use the sessions of one engine at once, and are killed at random.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use backend_core::Sandbox as _;
use backend_core::ops::Command as Line;
use futures_util::future::join_all;
use sessions::{Engine, Session, SessionManager};

pub(crate) const IDS: [&str; 4] = ["Alice", "alice", "bob_1", "carol.x"];
pub(crate) const IDLE_TIMEOUT: Duration = Duration::from_secs(8);
const PROCESSES: usize = 3;
/// The interval of writing back. A write may take three times as long before a session that is in
/// use seems idle to other processes.
const WRITE_BACK: Duration = Duration::from_secs(2);
/// The longest wait for anything. Only what never comes about takes this long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// The longest life of a process. It is killed long before, unless the test that started it
/// was.
const LIFE: Duration = Duration::from_secs(180);

pub(crate) fn between(least: u64, most: u64) -> Duration {
    Duration::from_millis(fastrand::u64(least..=most))
}

/// The lines that one process writes: they outlive it.
pub(crate) struct Log(Mutex<File>);

impl Log {
    /// Creates the log of this process in a directory.
    pub(crate) fn create(logs: &Path) -> Self {
        let path = logs.join(format!("{}.log", std::process::id()));
        Self(Mutex::new(File::create(path).unwrap()))
    }

    pub(crate) fn line(&self, text: &str) {
        // One write, so that a kill leaves a whole line or none.
        let line = format!("{}\n", text.replace('\n', " "));
        self.0.lock().unwrap().write_all(line.as_bytes()).unwrap();
    }

    /// Returns the lines of all processes.
    pub(crate) fn read_all(logs: &Path) -> Vec<String> {
        let texts = fs::read_dir(logs).unwrap().map(|entry| {
            let text = fs::read_to_string(entry.unwrap().path()).unwrap();
            text.lines().map(str::to_owned).collect::<Vec<_>>()
        });
        texts.flatten().collect()
    }
}

/// Opens one session after the other, uses it for a while, and then leaves it alone, often for
/// longer than its idle timeout. Several users do so at once.
pub(crate) async fn use_sessions(
    engine: impl Engine,
    users: usize,
    log: &Log,
    use_one: impl AsyncFn(&Session, &str, &Log) -> Result<(), String>,
) {
    let manager = SessionManager::builder()
        .engine(Arc::new(engine))
        .idle_timeout(IDLE_TIMEOUT)
        .write_back_interval(WRITE_BACK)
        .build()
        .unwrap();
    manager.start_reaper(Duration::from_secs(1));
    let one_user = async || {
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
            tokio::time::sleep(between(0, 12_000)).await;
        }
    };
    let users: Vec<_> = (0..users).map(|_| one_user()).collect();
    let _: Result<Vec<()>, _> = tokio::time::timeout(LIFE, join_all(users)).await;
}

pub(crate) async fn execute(session: &Session, line: &str) -> Result<String, String> {
    let outcome = session.execute(Line::new(line)).await;
    let outcome = outcome.map_err(|error| format!("{line}: {}", error.chain()))?;
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    if !outcome.status.success() {
        return Err(format!("{line}: {}: {out}{err}", outcome.status));
    }
    Ok(out.trim_end().to_owned())
}

/// Fails if there are other files than that of the session.
pub(crate) async fn sees_its_own(session: &Session, id: &str) -> Result<(), String> {
    let found = execute(session, "ls").await?;
    if found != format!("{id}.txt") {
        return Err(format!("sees the files of others: {found}"));
    }
    Ok(())
}

/// One of the processes.
struct Part(Child);

impl Part {
    fn start(part: &str, variables: &[(&str, &OsStr)]) -> Self {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", part])
            .envs(variables.iter().copied())
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

/// Runs a part of this program in several processes with these variables, kills one after the
/// other at random within these milliseconds, and starts another in its place: for some time,
/// and until it was enough.
pub(crate) async fn kill_at_random(
    part: &str,
    variables: &[(&str, &OsStr)],
    killing: Duration,
    (least, most): (u64, u64),
    is_enough: impl Fn() -> bool,
) {
    let start = || Part::start(part, variables);
    let mut parts: Vec<_> = (0..PROCESSES).map(|_| start()).collect();
    let begun = Instant::now();
    while begun.elapsed() < killing || (begun.elapsed() < PATIENCE && !is_enough()) {
        tokio::time::sleep(between(least, most)).await;
        let victim = fastrand::usize(..PROCESSES);
        // Killed before the next one starts.
        drop(parts.swap_remove(victim));
        parts.push(start());
    }
}
