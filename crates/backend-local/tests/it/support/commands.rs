//! Shared by the tests of commands: backends of both kinds, and processes.

use std::fs;
use std::path::Path;
use std::process::Command as HostCommand;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, ExecuteOutcome};
use backend_core::{Backend, Sandbox};
use backend_local::{Commands, LocalBackend, Supervisor};
use tempfile::TempDir;

pub(crate) use backend_testkit::processes::*;

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

    /// Lets `line` time out after it has printed `printed`. A busy machine
    /// needs longer for that than an idle one.
    pub(crate) async fn time_out(&self, line: &str, printed: &str) -> ExecuteOutcome {
        for limit in LIMITS {
            let outcome = self.run(Command::new(line).timeout(limit)).await;
            assert_eq!(outcome.status, CommandStatus::TimedOut);
            if outcome.stdout.text().starts_with(printed) {
                return outcome;
            }
        }
        panic!("`{line}` did not print {printed:?} before its time ran out");
    }
}

/// Timeouts to try for a command that must get somewhere before it times out.
pub(crate) const LIMITS: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(2), PATIENCE];

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

/// Returns the settings of supervised commands.
pub(crate) fn supervised() -> Commands {
    Commands::new().supervisor(Supervisor::Program(
        env!("CARGO_BIN_EXE_agentbox-supervisor").into(),
    ))
}

/// Returns a backend with these settings.
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

/// Returns a backend with a supervisor.
pub(crate) fn place() -> Place {
    with(supervised())
}

/// Returns a backend of each kind.
pub(crate) fn places() -> [Place; 2] {
    let mut direct = with(Commands::new().supervisor(Supervisor::None));
    direct.supervised = false;
    [place(), direct]
}

/// Creates a FIFO through which a command reports that it is ready.
pub(crate) fn fifo(directory: &Path) -> std::path::PathBuf {
    let path = directory.join(format!("ready-{}", fastrand::u64(..)));
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    path
}

/// Waits until a command has written to the FIFO and closed it.
pub(crate) async fn ready(fifo: std::path::PathBuf) -> String {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = tell.send(fs::read_to_string(fifo).unwrap());
    });
    tokio::time::timeout(PATIENCE, told).await.unwrap().unwrap()
}

/// Runs a part of a test in a separate process.
pub(crate) fn passes(part: &mut HostCommand) {
    let output = part.output().unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    // An unknown test name would succeed as well.
    assert!(shown.contains("1 passed"), "{output:?}");
}

/// Returns a command that runs one of this program's ignored tests.
pub(crate) fn this_test(name: &str) -> HostCommand {
    this_program(&std::env::current_exe().unwrap(), name)
}

/// Returns the same for a copy of this program.
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
