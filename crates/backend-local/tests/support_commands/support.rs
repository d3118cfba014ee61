//! What the tests of commands share: backends of both kinds, tokens that name a
//! test's processes, and a look for survivors.

#![allow(dead_code, reason = "each test program uses a part")]

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command as HostCommand;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::ops::{Command, ExecuteOutcome};
use backend_core::{Backend, Sandbox};
use backend_local::{Commands, LocalBackend, Supervisor};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags};
use tempfile::TempDir;

/// How long a test waits for what must happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A directory with a backend on it.
pub(crate) struct Place {
    pub(crate) backend: LocalBackend,
    pub(crate) directory: Arc<TempDir>,
    pub(crate) supervised: bool,
}

impl Place {
    pub(crate) async fn run(&self, command: impl Into<Line>) -> ExecuteOutcome {
        self.backend.execute(command.into().0).await.unwrap()
    }
}

/// A command, or the line of one.
pub(crate) struct Line(pub Command);

impl From<&str> for Line {
    fn from(line: &str) -> Self {
        Self(Command::new(line))
    }
}

impl From<String> for Line {
    fn from(line: String) -> Self {
        Self(Command::new(line))
    }
}

impl From<Command> for Line {
    fn from(command: Command) -> Self {
        Self(command)
    }
}

/// The settings of supervised commands.
pub(crate) fn supervised() -> Commands {
    Commands::new().supervisor(Supervisor::Program(
        env!("CARGO_BIN_EXE_agentbox-supervisor").into(),
    ))
}

/// A backend with these settings.
pub(crate) fn with(commands: Commands) -> Place {
    let directory = Arc::new(tempfile::tempdir().unwrap());
    let backend = LocalBackend::builder(directory.path())
        .enable_execute(true)
        .commands(commands)
        .open()
        .unwrap();
    assert!(backend.as_sandbox().is_some());
    Place {
        backend,
        directory,
        supervised: true,
    }
}

/// A backend with a supervisor.
pub(crate) fn place() -> Place {
    with(supervised())
}

/// A backend of each kind.
pub(crate) fn places() -> [Place; 2] {
    let mut direct = with(Commands::new().supervisor(Supervisor::None));
    direct.supervised = false;
    [place(), direct]
}

/// Names the processes of a test: a number of seconds that no other test sleeps.
pub(crate) fn token() -> String {
    format!("9{:012}", fastrand::u64(0..1_000_000_000_000))
}

/// Processes that have `token` in their arguments.
pub(crate) fn survivors(token: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(token) {
            found.push(pid);
        }
    }
    found
}

/// Says what a process is, for messages.
pub(crate) fn describe(pid: i32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    format!("{} | {}", read("cmdline").replace('\0', " "), read("stat"))
}

/// A handle to a process.
pub(crate) fn handle(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Waits for a process's end. Returns whether it came.
pub(crate) fn wait(handle: &OwnedFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).unwrap();
    let mut polled = [PollFd::new(handle, PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&limit)).unwrap() == 1
}

/// Waits until no process has `token`; fails with what is left.
pub(crate) fn gone(token: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = survivors(token);
        let Some(&pid) = left.first() else {
            return;
        };
        let patience = until.saturating_duration_since(Instant::now());
        if handle(pid).is_some_and(|handle| !wait(&handle, patience)) {
            let left: Vec<String> = left.iter().map(|&pid| describe(pid)).collect();
            kill(token);
            panic!("survivors: {left:#?}");
        }
    }
}

/// Fails if a process has `token` now.
pub(crate) fn none(token: &str) {
    let left = survivors(token);
    let shown: Vec<String> = left.iter().map(|&pid| describe(pid)).collect();
    if !left.is_empty() {
        kill(token);
    }
    assert!(shown.is_empty(), "survivors: {shown:#?}");
}

/// Kills what has `token`.
pub(crate) fn kill(token: &str) {
    for pid in survivors(token) {
        if let Some(handle) = handle(pid) {
            let _ = rustix::process::pidfd_send_signal(handle, rustix::process::Signal::KILL);
        }
    }
}

/// Makes a FIFO that a command tells by that it is ready.
pub(crate) fn fifo(directory: &Path) -> std::path::PathBuf {
    let path = directory.join(format!("ready-{}", fastrand::u64(..)));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

/// Waits until somebody has written to the FIFO and closed it.
pub(crate) async fn ready(fifo: std::path::PathBuf) -> String {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = tell.send(fs::read_to_string(fifo).unwrap());
    });
    tokio::time::timeout(PATIENCE, told).await.unwrap().unwrap()
}

/// This program, told to run one of its ignored tests.
pub(crate) fn this_test(name: &str) -> HostCommand {
    this_program(&std::env::current_exe().unwrap(), name)
}

/// A copy of this program, told the same.
pub(crate) fn this_program(program: &Path, name: &str) -> HostCommand {
    let mut command = HostCommand::new(program);
    command.args([
        "--ignored",
        "--exact",
        name,
        "--nocapture",
        "--test-threads=1",
    ]);
    command
}
