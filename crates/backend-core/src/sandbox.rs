//! The [`Sandbox`] trait: a backend that also runs commands.

use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;

use crate::backend::Backend;
use crate::error::Result;
use crate::ops::{Command, Event, ExecuteOutcome, ShellId, ShellInfo, ShellOutput, StopMode};

/// What a running command tells, in order. Dropping it ends the command.
pub type EventStream = BoxStream<'static, Result<Event>>;

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
