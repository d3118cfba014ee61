//! Running commands: settings, and the runner that owns running commands.

use std::path::PathBuf;
use std::time::Duration;

pub use environment::Environment;
pub use locate::Supervisor;
pub(crate) use runner::Runner;

use crate::supervisor::Confinement;

mod client;
mod direct;
mod environment;
mod job;
mod locate;
mod pump;
mod runner;
mod state;
mod task;
mod temp_dir;

/// The upper bound of [`Commands::linger`].
const LONGEST_LINGER: Duration = Duration::from_secs(24 * 60 * 60);

/// Settings for running commands.
///
/// ```
/// use backend_local::{Commands, Environment, Limits};
///
/// let commands = Commands::new()
///     .environment(Environment::inherit().allow("OPENAI_API_KEY").set("LANG", "C.UTF-8"))
///     .limits(Limits::default().processes(200));
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Commands {
    pub(crate) shell: Option<PathBuf>,
    pub(crate) environment: Environment,
    pub(crate) supervisor: Supervisor,
    pub(crate) confinement: Confinement,
    pub(crate) limits: Limits,
    pub(crate) linger: Option<Duration>,
}

impl Commands {
    /// Uses `/bin/sh`, this process's environment without its secrets, the
    /// supervisor that [`Supervisor::Auto`] finds, no confinement and no
    /// limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the shell: an absolute path, or a name that is looked up in the
    /// commands' `PATH`. It is run as `SHELL -c -- LINE`.
    pub fn shell(mut self, shell: impl Into<PathBuf>) -> Self {
        self.shell = Some(shell.into());
        self
    }

    /// Sets the environment of commands.
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Sets the program that supervises commands.
    pub fn supervisor(mut self, supervisor: Supervisor) -> Self {
        self.supervisor = supervisor;
        self
    }

    /// Sets the files and network that commands may access. Needs a supervisor.
    pub fn confinement(mut self, confinement: Confinement) -> Self {
        self.confinement = confinement;
        self
    }

    /// Sets the resource limits of commands. Needs a supervisor.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets how long processes left behind by a finished command may go on
    /// printing before they are killed.
    ///
    /// At most a day. The default of 50 milliseconds is enough for the last
    /// filter of a pipeline on a machine that is not overloaded. The result is
    /// delayed by up to this time, but not beyond the moment they close the
    /// output.
    pub fn linger(mut self, time: Duration) -> Self {
        self.linger = Some(time.min(LONGEST_LINGER));
        self
    }
}

/// Resource limits of a command. Nothing is limited by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use]
pub struct Limits {
    pub(crate) cpu_seconds: Option<u64>,
    pub(crate) file_bytes: Option<u64>,
    pub(crate) memory_bytes: Option<u64>,
    pub(crate) processes: Option<u64>,
}

impl Limits {
    /// Sets the CPU time of each process, in seconds.
    pub fn cpu_seconds(mut self, seconds: u64) -> Self {
        self.cpu_seconds = Some(seconds);
        self
    }

    /// Sets the size of the largest file that a process may write.
    pub fn file_bytes(mut self, bytes: u64) -> Self {
        self.file_bytes = Some(bytes);
        self
    }

    /// Sets the address space of each process, in bytes.
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.memory_bytes = Some(bytes);
        self
    }

    /// Sets the maximum number of concurrent processes and threads.
    pub fn processes(mut self, processes: u64) -> Self {
        self.processes = Some(processes);
        self
    }
}
