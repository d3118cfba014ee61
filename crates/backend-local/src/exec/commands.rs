//! [`Commands`]: settings for running commands.

use std::path::PathBuf;
use std::time::Duration;

use super::environment::Environment;
use super::locate::Supervisor;
use crate::supervisor::Confinement;
use crate::supervisor::limits::Limits;

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

    backend_core::setters! {
        /// Sets the environment of commands.
        environment: Environment,
        /// Sets the program that supervises commands.
        supervisor: Supervisor,
        /// Sets the files and network that commands may access. Needs a supervisor.
        confinement: Confinement,
        /// Sets the resource limits of commands. Needs a supervisor.
        limits: Limits,
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
