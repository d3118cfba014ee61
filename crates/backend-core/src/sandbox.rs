//! The [`Sandbox`] trait: a backend that also runs commands.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::stream::BoxStream;

use crate::backend::Backend;
use crate::connection::Connection;
use crate::error::{Error, Operation, Result};
use crate::ops::{
    Command, Event, ExecuteOutcome, ResolveOptions, ShellId, ShellInfo, ShellOutput, Signal,
    StopMode, TerminalSize,
};
use crate::path::VPath;

/// Number of paths resolved concurrently.
const TRACED_AT_ONCE: usize = 16;

/// The events of a running command, in order. Dropping the stream ends the command.
pub type EventStream = BoxStream<'static, Result<Event>>;

/// Maps the paths of a backend to the paths that its commands see.
///
/// By default both are equal: in a container, `/a` is `/a` for both. A backend that
/// shows a directory of its host as `/` says so here, because its commands see the
/// host's paths. Code that checks a command by the paths it names needs this
/// mapping to know which files are meant.
///
/// ```
/// use backend_core::{CommandPaths, VPath};
///
/// let path = |text| VPath::parse(text);
/// let names = CommandPaths::default().with_root(VPath::root(), path("/srv/project")?);
/// assert_eq!(names.roots(), [(VPath::root(), path("/srv/project")?)]);
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandPaths {
    roots: Vec<(VPath, VPath)>,
    aliases: Vec<(VPath, VPath)>,
    home: Option<VPath>,
}

impl CommandPaths {
    crate::setters! {
        /// Declares that commands see the backend's directory `directory` at `there`.
        /// For them its parent is the parent of `there`.
        fn with_root(self, directory: VPath, there: VPath) { self.roots.push((directory, there)) }

        /// Declares that commands also reach the backend's directory `directory` at
        /// `there`, through a link.
        fn with_alias(self, directory: VPath, there: VPath) {
            self.aliases.push((directory, there));
        }

        /// Sets the path that `~` means in commands.
        fn with_home(self, home: VPath) { self.home = Some(home) }
    }

    /// Returns directories of the backend and the paths at which commands see them.
    /// Everything outside of them has the same path for both.
    pub fn roots(&self) -> &[(VPath, VPath)] {
        &self.roots
    }

    /// Returns directories of the backend and the links through which commands see them.
    pub fn aliases(&self) -> &[(VPath, VPath)] {
        &self.aliases
    }

    /// Returns the meaning of `~`, if it is known: a path as commands see it.
    pub fn home(&self) -> Option<&VPath> {
        self.home.as_ref()
    }
}

/// The target of a path that a command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TracedPath {
    /// This path of the backend.
    Inside(VPath),
    /// This path of the system that commands see, which the backend does not show.
    Outside(String),
    /// Not known: links form a loop, or the path cannot be followed.
    Unknown,
}

/// A backend that runs commands where its files are.
///
/// # Rules for every command
///
/// - It is run by `sh -c` in its own process group, in
///   [`Command::directory`] or the working directory, with its standard input at
///   the end of file. A missing program is exit code 127.
/// - The way it ended is typed. A nonzero code and death by a signal are results
///   while the sandbox lives. A sandbox that goes away, even in the middle of a
///   command, is `Unavailable`.
/// - The whole process tree ends when the time runs out, when the command prints
///   more than it may, when the future or stream is dropped and when the sandbox
///   stops: TERM, [`KILL_GRACE`](crate::limits::KILL_GRACE), KILL, wait. The output
///   printed so far is returned.
/// - A process that keeps the output open delays the result by at most that grace
///   period. Processes that a finished command leaves running in its group are
///   ended too and counted, unless [`Command::keep_leftovers`] is set.
/// - It has no terminal, and none of the host's can be reached from it. A background
///   shell with [`Command::terminal`] has one of its own.
/// - Bytes that are not UTF-8 are kept. Output over [`Command::output_bytes`] keeps
///   its beginning and its end and says how much is missing.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn start(&self) -> Result<()>;
/// async fn stop(&self, mode: StopMode) -> Result<()>;
/// async fn is_alive(&self) -> Result<bool>;
/// async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>>;
/// async fn execute(&self, command: Command) -> Result<ExecuteOutcome>;
/// async fn stream(&self, command: Command) -> Result<EventStream>;
/// async fn shell_start(&self, command: Command) -> Result<ShellInfo>;
/// async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput>;
/// async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()>;
/// async fn shell_kill(&self, id: &ShellId) -> Result<bool>;
/// async fn shell_list(&self) -> Result<Vec<ShellInfo>>;
/// async fn connect(&self, port: u16) -> Result<Connection>;
/// async fn shell_attach(&self, id: &ShellId) -> Result<Connection>;
/// async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()>;
/// async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()>;
/// ```
#[async_trait]
pub trait Sandbox: Backend {
    /// Returns the id of the sandbox, which never changes. No I/O.
    fn id(&self) -> String;

    /// Makes the sandbox ready. Operations do this themselves when needed. If the
    /// sandbox is already running, this is a success.
    ///
    /// # Errors
    ///
    /// `Unavailable` with the next step if it cannot be started.
    async fn start(&self) -> Result<()>;

    /// Ends every command and the sandbox. Stopping twice is a success.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the service that runs the sandbox cannot be reached.
    async fn stop(&self, mode: StopMode) -> Result<()>;

    /// Whether the sandbox is running. Never starts one.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the state cannot be determined.
    async fn is_alive(&self) -> Result<bool>;

    /// Returns the time of the last use: when an operation last began or ended.
    /// While commands run, this is now. No I/O.
    fn last_activity(&self) -> SystemTime;

    /// Returns the mapping between paths of the backend and paths of a command that
    /// runs in `directory`. By default they are equal. No I/O.
    fn command_names(&self, directory: &VPath) -> CommandPaths {
        let _ = directory;
        CommandPaths::default()
    }

    /// Follows each of `paths` through every link, for a command that runs in
    /// `directory`. They are absolute paths as commands see them, not folded.
    /// Components that do not exist are kept as they are.
    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<TracedPath>> {
        let _ = directory;
        let mut reached = Vec::new();
        for paths in paths.chunks(TRACED_AT_ONCE) {
            let resolved = paths.iter().map(|path| async move {
                let path = VPath::parse(path).ok()?;
                self.resolve(&path, ResolveOptions::default()).await.ok()
            });
            let resolved = join_all(resolved).await.into_iter();
            reached
                .extend(resolved.map(|path| path.map_or(TracedPath::Unknown, TracedPath::Inside)));
        }
        Ok(reached)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// `InvalidInput` as for [`Command::check`]; `NotFound` and `NotADirectory` for
    /// its directory; `PermissionDenied` where commands are switched off; `Unavailable`.
    async fn execute(&self, command: Command) -> Result<ExecuteOutcome>;

    /// Runs a command and returns its output as it is printed.
    ///
    /// The stream ends after [`Event::Ended`] or an error. A slow reader slows the
    /// command down; nothing is dropped.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    async fn stream(&self, command: Command) -> Result<EventStream>;

    /// Starts a command in the background, with standard input open.
    ///
    /// With [`Command::terminal`] it runs in a terminal of its own, as the first process
    /// of a session. All its processes end with it, whichever job they belong to.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute); `TooLarge` if there are
    /// [`SHELLS`](crate::limits::SHELLS) shells already and none has ended;
    /// `Unsupported` for a terminal without
    /// [`Capabilities::terminals`](crate::Capabilities::terminals).
    async fn shell_start(&self, command: Command) -> Result<ShellInfo>;

    /// Takes the output of a shell since the last read, waiting up to `wait` for
    /// new output or the end of the shell.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` while a connection is attached,
    /// which takes the output instead.
    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput>;

    /// Writes to a shell's standard input; `None` closes it. In a terminal `None` types
    /// the end-of-file character, which a program that reads whole lines takes for the
    /// end at the beginning of a line; the input stays open.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` if it has ended or its
    /// input is closed.
    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()>;

    /// Ends a shell and everything it started. Returns `true` if it was still running.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell.
    async fn shell_kill(&self, id: &ShellId) -> Result<bool>;

    /// Lists the shells, in the order they were started.
    async fn shell_list(&self) -> Result<Vec<ShellInfo>>;

    /// Connects to a TCP port on the loopback interface that commands see.
    ///
    /// The connection is made where the commands run, so it needs no network between
    /// the caller and the sandbox. IPv4 is tried first, then IPv6.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for port 0; `NotFound` if nothing listens on the port;
    /// `Unsupported` where [`Capabilities::ports`](crate::Capabilities::ports) is not
    /// set; `PermissionDenied` where commands are switched off; `Unavailable`.
    async fn connect(&self, port: u16) -> Result<Connection> {
        let _ = port;
        let error = Error::unsupported("ports cannot be reached here; run a client as a command");
        Err(error.during(Operation::Connect).on(self.info().name))
    }

    /// Attaches a connection to a shell: its output arrives, and input is sent.
    ///
    /// The unread output comes first, of which the last
    /// [`SHELL_LOG_BYTES`](crate::limits::SHELL_LOG_BYTES) are kept, then output as it is
    /// printed. Without a terminal both streams arrive, in no particular order between
    /// them. While attached nothing is dropped: a slow reader slows the shell down. The
    /// output ends when the shell ends.
    ///
    /// Input is passed on byte for byte. Finishing the sender closes nothing; a terminal's
    /// end-of-file character can be sent as any other byte.
    ///
    /// Dropping the incoming half detaches, and the shell runs on. Bytes that were on
    /// their way are lost. There is one connection at a time: another takes over, and the
    /// earlier one ends with `Conflict`.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Unsupported` where connections cannot be
    /// attached.
    async fn shell_attach(&self, id: &ShellId) -> Result<Connection> {
        let _ = id;
        Err(no_terminals(self))
    }

    /// Changes the size of a shell's terminal. Its foreground processes are told with
    /// `SIGWINCH`.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a size of zero; `NotFound` if there is no such shell;
    /// `Conflict` if it has no terminal or has ended; `Unsupported` where there are no
    /// terminals.
    async fn shell_resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        let _ = (id, size);
        Err(no_terminals(self))
    }

    /// Sends a signal to a shell: to the foreground processes of its terminal, or without
    /// one to its process group.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` if it has ended; `Unsupported`
    /// where signals cannot be sent.
    async fn shell_signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        let _ = (id, signal);
        Err(no_terminals(self))
    }
}

fn no_terminals(sandbox: &(impl Sandbox + ?Sized)) -> Error {
    let error = Error::no_terminals().during(Operation::Shell);
    error.on(sandbox.info().name)
}

/// Runs `futures` concurrently and returns their outputs in order.
async fn join_all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut running: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    poll_fn(|context| {
        for (future, output) in &mut running {
            if output.is_none()
                && let Poll::Ready(ready) = future.as_mut().poll(context)
            {
                *output = Some(ready);
            }
        }
        if running.iter().all(|(_, output)| output.is_some()) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
    running
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}
