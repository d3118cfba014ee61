//! [`SyncSandbox`]: a sandbox's operations as blocking calls.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::ops::{
    Command, Event, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, StopMode,
};
use backend_core::{Backend, CommandPaths, Error, Operation, Result, Sandbox, TracedPath, VPath};
use bytes::Bytes;

use crate::backend::SyncBackend;
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::stream::SyncStream;

/// A backend that runs commands, as blocking calls. It derefs to the [`SyncBackend`]
/// for its files.
///
/// The methods are those of [`Sandbox`]. Their behaviour and errors are documented
/// there.
///
/// ```no_run
/// # fn main() -> backend_core::Result<()> {
/// use std::sync::Arc;
/// use backend_core::ops::{Command, Event};
/// use backend_local::LocalBackend;
/// use backend_sync::SyncBackend;
///
/// let local = LocalBackend::builder("work").enable_execute(true).open()?;
/// let files = SyncBackend::new(Arc::new(local));
/// let sandbox = files.as_sandbox().expect("a backend that runs commands");
/// for event in sandbox.stream(Command::new("make test"))? {
///     match event? {
///         Event::Stdout(piece) | Event::Stderr(piece) => drop(piece),
///         _ => {}
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct SyncSandbox(SyncBackend);

impl Deref for SyncSandbox {
    type Target = SyncBackend;

    fn deref(&self) -> &SyncBackend {
        &self.0
    }
}

/// Returns the backend as a sandbox.
fn sandbox(backend: &Arc<dyn Backend>) -> Result<&dyn Sandbox> {
    let gone = || Error::unsupported("the backend no longer runs commands; open another one");
    backend.as_sandbox().ok_or_else(gone)
}

impl SyncBackend {
    /// Returns this backend as a sandbox, if it runs commands. No I/O.
    pub fn as_sandbox(&self) -> Option<SyncSandbox> {
        let is_sandbox = self.backend.as_sandbox().is_some();
        is_sandbox.then(|| SyncSandbox(self.clone()))
    }
}

impl SyncSandbox {
    /// Returns a handle that runs its calls on another engine.
    #[must_use]
    pub fn on(self, engine: &Engine) -> Self {
        Self(self.0.on(engine))
    }

    /// Returns a handle whose calls end when `cancel` is cancelled. A running command
    /// is ended.
    #[must_use]
    pub fn cancelled_by(self, cancel: &Cancel) -> Self {
        Self(self.0.cancelled_by(cancel))
    }

    /// Returns the sandbox's id. No I/O.
    pub fn id(&self) -> String {
        sandbox(self.inner()).map_or_else(|_| String::new(), |sandbox| sandbox.id())
    }

    /// Returns when the sandbox was last used. No I/O.
    pub fn last_activity(&self) -> SystemTime {
        let known = sandbox(self.inner());
        known.map_or(SystemTime::UNIX_EPOCH, |sandbox| sandbox.last_activity())
    }

    /// Returns the names that files have for a command that runs in `directory`. No
    /// I/O.
    pub fn command_names(&self, directory: &VPath) -> CommandPaths {
        let known = sandbox(self.inner());
        known.map_or_else(
            |_| CommandPaths::default(),
            |sandbox| sandbox.command_names(directory),
        )
    }

    /// Resolves paths as seen by a command that runs in `directory`.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::trace`].
    pub fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        let (directory, paths) = (directory.clone(), paths.to_vec());
        self.call(Operation::Execute, move |backend| async move {
            sandbox(&backend)?.trace(&directory, &paths).await
        })
    }

    /// Makes the sandbox ready.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::start`].
    pub fn start(&self) -> Result<()> {
        self.call(Operation::Start, |backend| async move {
            sandbox(&backend)?.start().await
        })
    }

    /// Ends every command and stops the sandbox.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::stop`].
    pub fn stop(&self, mode: StopMode) -> Result<()> {
        self.call(Operation::Stop, move |backend| async move {
            sandbox(&backend)?.stop(mode).await
        })
    }

    /// Whether the sandbox is running.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::is_alive`].
    pub fn is_alive(&self) -> Result<bool> {
        self.call(Operation::Start, |backend| async move {
            sandbox(&backend)?.is_alive().await
        })
    }

    /// Runs a command to completion.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::execute`].
    pub fn execute(&self, command: Command) -> Result<ExecuteOutcome> {
        self.call(Operation::Execute, |backend| async move {
            sandbox(&backend)?.execute(command).await
        })
    }

    /// Runs a command and returns its output as it is printed. Dropping the iterator
    /// ends the command.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::stream`].
    pub fn stream(&self, command: Command) -> Result<SyncStream<Event>> {
        let stream = self.call(Operation::Stream, |backend| async move {
            sandbox(&backend)?.stream(command).await
        })?;
        Ok(SyncStream::new(self.calls.clone(), stream))
    }

    /// Starts a background command with standard input open.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::shell_start`].
    pub fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        self.call(Operation::Shell, |backend| async move {
            sandbox(&backend)?.shell_start(command).await
        })
    }

    /// Takes the output of a shell since the last read, waiting up to `wait`.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::shell_read`].
    pub fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        let id = id.clone();
        self.call(Operation::Shell, move |backend| async move {
            sandbox(&backend)?.shell_read(&id, wait).await
        })
    }

    /// Writes to a shell's standard input; `None` closes it.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::shell_write`].
    pub fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        let id = id.clone();
        self.call(Operation::Shell, |backend| async move {
            sandbox(&backend)?.shell_write(&id, input).await
        })
    }

    /// Ends a shell and everything it started. Returns whether it was still running.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::shell_kill`].
    pub fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        let id = id.clone();
        self.call(Operation::Shell, |backend| async move {
            sandbox(&backend)?.shell_kill(&id).await
        })
    }

    /// Lists the shells, in the order they were started.
    ///
    /// # Errors
    ///
    /// See [`Sandbox::shell_list`].
    pub fn shell_list(&self) -> Result<Vec<ShellInfo>> {
        self.call(Operation::Shell, |backend| async move {
            sandbox(&backend)?.shell_list().await
        })
    }
}
