//! The [`Sandbox`] trait: a backend that also runs commands.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::stream::BoxStream;

use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{
    Command, Event, ExecuteOutcome, ResolveOptions, ShellId, ShellInfo, ShellOutput, StopMode,
};
use crate::path::VPath;

/// Paths that are resolved at once.
const TRACED_AT_ONCE: usize = 16;

/// What a running command tells, in order. Dropping it ends the command.
pub type EventStream = BoxStream<'static, Result<Event>>;

/// The names that the files of a sandbox have for its commands.
///
/// By default they are those of the backend: in a container, `/a` is `/a` for both.
/// A backend that shows a directory of its host as `/` says so here, because its
/// commands see the host's paths. Whoever judges a command by the paths it names
/// needs this to know which files are meant.
///
/// ```
/// use backend_core::{CommandNames, VPath};
///
/// let path = |text| VPath::parse(text);
/// let names = CommandNames::default().with_root(VPath::root(), path("/srv/project")?);
/// assert_eq!(names.roots(), [(VPath::root(), path("/srv/project")?)]);
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandNames {
    roots: Vec<(VPath, VPath)>,
    aliases: Vec<(VPath, VPath)>,
    home: Option<VPath>,
}

impl CommandNames {
    /// Says that commands see the backend's directory `directory` at `there`, and
    /// that directory's parent above it.
    #[must_use]
    pub fn with_root(mut self, directory: VPath, there: VPath) -> Self {
        self.roots.push((directory, there));
        self
    }

    /// Says that commands also reach the backend's directory `directory` at
    /// `there`, through a link.
    #[must_use]
    pub fn with_alias(mut self, directory: VPath, there: VPath) -> Self {
        self.aliases.push((directory, there));
        self
    }

    /// Says what `~` stands for in commands.
    #[must_use]
    pub fn with_home(mut self, home: VPath) -> Self {
        self.home = Some(home);
        self
    }

    /// Directories of the backend, and where commands see them. What lies in none
    /// has the same name for both.
    pub fn roots(&self) -> &[(VPath, VPath)] {
        &self.roots
    }

    /// Directories of the backend, and where links let commands see them.
    pub fn aliases(&self) -> &[(VPath, VPath)] {
        &self.aliases
    }

    /// What `~` stands for, where that is known: a path as commands see it.
    pub fn home(&self) -> Option<&VPath> {
        self.home.as_ref()
    }
}

/// Where a path leads that a command uses.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reached {
    /// To this path of the backend.
    Inside(VPath),
    /// To this path of the system that commands see, which the backend does not
    /// show.
    Outside(String),
    /// Nobody knows: links go in a circle, or the way cannot be followed.
    Unknown,
}

/// A backend that runs commands where its files are.
///
/// # What holds for every command
///
/// - It is run by `sh -c` in its own process group, in
///   [`Command::directory`] or the working directory, with its standard input at
///   the end of file. A missing program is exit code 127.
/// - How it ended is typed. A code other than zero and death by a signal in a
///   sandbox that lives are results; a sandbox that goes away, also in the middle
///   of a command, is `Unavailable`.
/// - When its time runs out, when it prints more than it may, when the future or
///   stream is dropped and when the sandbox stops, the whole process tree ends:
///   TERM, [`KILL_GRACE`](crate::limits::KILL_GRACE), KILL, wait. What was
///   printed so far comes back.
/// - A process that keeps the output open delays the answer by at most that
///   grace. What a finished command leaves running in its group is ended too and
///   counted, unless [`Command::keep_leftovers`] says otherwise.
/// - Bytes that are not UTF-8 are kept. Output over
///   [`Command::output_bytes`] keeps its beginning and its end and says how much
///   is missing.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn start(&self) -> Result<()>;
/// async fn stop(&self, mode: StopMode) -> Result<()>;
/// async fn is_alive(&self) -> Result<bool>;
/// async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<Reached>>;
/// async fn execute(&self, command: Command) -> Result<ExecuteOutcome>;
/// async fn stream(&self, command: Command) -> Result<EventStream>;
/// async fn shell_start(&self, command: Command) -> Result<ShellInfo>;
/// async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput>;
/// async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()>;
/// async fn shell_kill(&self, id: &ShellId) -> Result<bool>;
/// async fn shell_list(&self) -> Result<Vec<ShellInfo>>;
/// ```
#[async_trait]
pub trait Sandbox: Backend {
    /// Names the sandbox; stable for its life. No I/O.
    fn id(&self) -> String;

    /// Makes the sandbox ready. Operations do so by themselves when they must;
    /// a sandbox that runs already is a success.
    ///
    /// # Errors
    ///
    /// `Unavailable` with the next step if it cannot be started.
    async fn start(&self) -> Result<()>;

    /// Ends every command and the sandbox. Stopping twice is a success.
    ///
    /// # Errors
    ///
    /// `Unavailable` if whoever runs the sandbox cannot be reached.
    async fn stop(&self, mode: StopMode) -> Result<()>;

    /// Whether the sandbox runs. Never starts one.
    ///
    /// # Errors
    ///
    /// `Unavailable` if that cannot be known.
    async fn is_alive(&self) -> Result<bool>;

    /// When the sandbox was last used, by an operation that began or ended. No
    /// I/O. While commands run, this is now.
    fn last_activity(&self) -> SystemTime;

    /// The names that files have for a command that runs in `directory`: those of
    /// the backend, by default. No I/O.
    fn command_names(&self, directory: &VPath) -> CommandNames {
        let _ = directory;
        CommandNames::default()
    }

    /// Where each of `paths` leads for a command that runs in `directory`, through
    /// every link. They are absolute paths as commands see them, not folded. What
    /// does not exist is kept as it is.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn trace(&self, directory: &VPath, paths: &[String]) -> Result<Vec<Reached>> {
        let _ = directory;
        let mut reached = Vec::new();
        for paths in paths.chunks(TRACED_AT_ONCE) {
            let resolved = paths.iter().map(|path| async move {
                let path = VPath::parse(path).ok()?;
                self.resolve(&path, ResolveOptions::default()).await.ok()
            });
            let resolved = join_all(resolved).await.into_iter();
            reached.extend(resolved.map(|path| path.map_or(Reached::Unknown, Reached::Inside)));
        }
        Ok(reached)
    }

    /// Runs a command to its end.
    ///
    /// # Errors
    ///
    /// `InvalidInput` as [`Command::check`] says; `NotFound` and
    /// `NotADirectory` for its directory; `PermissionDenied` where commands are
    /// switched off; `Unavailable`.
    async fn execute(&self, command: Command) -> Result<ExecuteOutcome>;

    /// Runs a command and tells what it prints as it does.
    ///
    /// The stream ends after [`Event::Ended`] or an error. A reader that is slow
    /// slows the command down; nothing is dropped.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute).
    async fn stream(&self, command: Command) -> Result<EventStream>;

    /// Starts a command that stays, with standard input open.
    ///
    /// # Errors
    ///
    /// As [`execute`](Self::execute); `TooLarge` if there are
    /// [`SHELLS`](crate::limits::SHELLS) already and none has ended.
    async fn shell_start(&self, command: Command) -> Result<ShellInfo>;

    /// Takes what a shell printed since the last look, waiting up to `wait` for
    /// something new or its end.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell.
    async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput>;

    /// Writes to a shell's standard input; `None` closes it.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` if it has ended or its
    /// input is closed.
    async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()>;

    /// Ends a shell and everything it started. Returns whether it still ran.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell.
    async fn shell_kill(&self, id: &ShellId) -> Result<bool>;

    /// Lists the shells, in the order they were started.
    ///
    /// # Errors
    ///
    /// `Unavailable`.
    async fn shell_list(&self) -> Result<Vec<ShellInfo>>;
}

/// Runs `futures` at the same time and returns their outputs in order.
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
        match running.iter().all(|(_, output)| output.is_some()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        }
    })
    .await;
    running
        .into_iter()
        .filter_map(|(_, output)| output)
        .collect()
}
