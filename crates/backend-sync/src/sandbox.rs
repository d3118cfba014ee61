//! [`SyncSandbox`]: a sandbox's operations as blocking calls.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::ops::{
    Command, Event, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, Signal, StopMode, TerminalSize,
};
use backend_core::{Backend, CommandPaths, Error, Operation, Result, Sandbox, TracedPath, VPath};
use bytes::Bytes;

use crate::backend::SyncBackend;
use crate::calls::blocking_calls;
use crate::cancel::Cancel;
use crate::connection::SyncConnection;
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
        let names = known.map(|sandbox| sandbox.command_names(directory));
        names.unwrap_or_default()
    }

    /// Runs a command and returns its output as it is printed. Dropping the iterator
    /// ends the command.
    pub fn stream(&self, command: Command) -> Result<SyncStream<Event>> {
        let stream = self.call(Operation::Stream, |backend| async move {
            sandbox(&backend)?.stream(command).await
        })?;
        Ok(SyncStream::new(self.calls.clone(), stream))
    }

    /// Connects to a port of a command.
    ///
    /// See [`Sandbox::connect`].
    pub fn connect(&self, port: u16) -> Result<SyncConnection> {
        let connection = self.call(Operation::Connect, move |backend| async move {
            sandbox(&backend)?.connect(port).await
        })?;
        Ok(SyncConnection::new(&self.calls, connection))
    }

    /// Attaches to a background shell.
    ///
    /// # Errors
    ///
    /// As for [`Sandbox::shell_attach`].
    pub fn shell_attach(&self, id: &ShellId) -> Result<SyncConnection> {
        let id = id.clone();
        let connection = self.call(Operation::Shell, move |backend| async move {
            sandbox(&backend)?.shell_attach(&id).await
        })?;
        Ok(SyncConnection::new(&self.calls, connection))
    }

    blocking_calls! {
        Sandbox, |backend| sandbox(&backend)?;

        /// Resolves paths as seen by a command that runs in `directory`.
        Execute: trace(directory: &VPath, paths: &[String];) -> Vec<TracedPath>;

        /// Makes the sandbox ready.
        Start: start(;) -> ();

        /// Ends every command and stops the sandbox.
        Stop: stop(; mode: StopMode) -> ();

        /// Whether the sandbox is running.
        Start: is_alive(;) -> bool;

        /// Runs a command to completion.
        Execute: execute(; command: Command) -> ExecuteOutcome;

        /// Starts a background command with standard input open.
        Shell: shell_start(; command: Command) -> ShellInfo;

        /// Takes the output of a shell since the last read, waiting up to `wait`.
        Shell: shell_read(id: &ShellId; wait: Duration) -> ShellOutput;

        /// Writes to a shell's standard input; `None` closes it.
        Shell: shell_write(id: &ShellId; input: Option<Bytes>) -> ();

        /// Ends a shell and everything it started. Returns whether it was still running.
        Shell: shell_kill(id: &ShellId;) -> bool;

        /// Lists the shells, in the order they were started.
        Shell: shell_list(;) -> Vec<ShellInfo>;

        /// Changes the size of a shell's terminal.
        Shell: shell_resize(id: &ShellId; size: TerminalSize) -> ();

        /// Sends a signal to a shell.
        Shell: shell_signal(id: &ShellId; signal: Signal) -> ();
    }
}
