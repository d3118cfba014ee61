//! Running commands: the request, the exit status and the output.

use std::collections::VecDeque;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::limits::{COMMAND_BYTES, OUTPUT_BYTES, OUTPUT_HARD_BYTES};
use crate::ops::{TerminalSize, View};
use crate::path::VPath;
use crate::setters::setters;

/// The way the two output streams of a command are collected.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Streams {
    /// Each separately. The order between them is not known.
    #[default]
    Apart,
    /// Both through one pipe, in exact order, as standard output.
    Merged,
}

/// A command line for `sh -c`.
///
/// ```
/// use std::time::Duration;
/// use backend_core::ops::Command;
/// let command = Command::new("cargo test").timeout(Duration::from_secs(600)).env("CI", "1");
/// assert!(command.check().is_ok());
/// assert!(Command::new("true").timeout(Duration::ZERO).check().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Command {
    /// The command line.
    pub line: String,
    /// Directory in which it runs; the backend's working directory by default.
    pub directory: Option<VPath>,
    /// Variables set on top of the sandbox's environment.
    pub environment: Vec<(String, String)>,
    /// Maximum running time. `None` is no limit; zero is `InvalidInput`.
    pub timeout: Option<Duration>,
    /// The way its output is collected.
    pub streams: Streams,
    /// Bytes kept of each stream: half from its beginning, half from its end. Bytes
    /// left out are counted; the command keeps running.
    pub output_bytes: usize,
    /// Output over both streams at which the command is killed.
    pub hard_output_bytes: u64,
    /// Whether processes that the command leaves running are kept.
    pub keep_leftovers: bool,
    /// The terminal that a background shell runs in. `None` is pipes.
    ///
    /// A terminal has one output, which is read as standard output. It is the
    /// controlling terminal of a session of its own, and `TERM` is `xterm-256color`
    /// unless [`environment`](Self::environment) sets it.
    pub terminal: Option<TerminalSize>,
    /// The paths that a policy keeps from it.
    pub view: View,
}

impl Command {
    /// Creates a command for `line` in the working directory, without a time limit.
    pub fn new(line: impl Into<String>) -> Self {
        Self {
            line: line.into(),
            directory: None,
            environment: Vec::new(),
            timeout: None,
            streams: Streams::default(),
            output_bytes: OUTPUT_BYTES,
            hard_output_bytes: OUTPUT_HARD_BYTES,
            keep_leftovers: false,
            terminal: None,
            view: View::default(),
        }
    }

    /// Sets a variable on top of the sandbox's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    setters! {
        /// Sets the directory in which it runs.
        directory: VPath,
        /// Sets the maximum running time.
        timeout: impl Into<Option<Duration>>,
        /// Sets how the output is collected.
        streams: Streams,
        /// Sets how many bytes of each stream are kept.
        output_bytes: usize,
        /// Sets the output at which the command is killed.
        hard_output_bytes: u64,
        /// Sets whether processes that the command leaves running are kept.
        keep_leftovers: bool,
        /// Sets the size of the terminal that it runs in. Only background shells have one.
        terminal: impl Into<Option<TerminalSize>>,
        /// Sets the paths that a policy keeps from it.
        view: View,
    }

    /// Validates the command without running it. Every sandbox calls this first.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a timeout of zero, a NUL character, a command line longer
    /// than the kernel accepts, an invalid variable name, or a terminal without rows or
    /// columns.
    pub fn check(&self) -> Result<()> {
        let refuse = |message: String| Err(Error::invalid_input(message));
        if self.line.contains('\0') {
            return refuse("the command holds a NUL character; remove it".into());
        }
        if self.line.len() > COMMAND_BYTES {
            return refuse(format!(
                "the command has {} bytes, more than {COMMAND_BYTES}; write it to a file and run that",
                self.line.len()
            ));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return refuse(
                "a timeout of zero would end every command at once; leave it out for none".into(),
            );
        }
        for (name, value) in &self.environment {
            if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                return refuse(format!(
                    "{} is not a valid environment variable",
                    crate::path::Quoted::new(name)
                ));
            }
        }
        self.terminal.map_or(Ok(()), TerminalSize::check)
    }

    /// Validates the command as [`check`](Self::check) does, for a call that has no
    /// terminal: every sandbox calls this before it executes or streams a command.
    ///
    /// # Errors
    ///
    /// `InvalidInput` as for `check`, and for a command with a terminal.
    pub fn check_without_terminal(&self) -> Result<()> {
        if self.terminal.is_some() {
            return Err(Error::invalid_input(
                "only background shells have a terminal; start one, or leave the terminal out",
            ));
        }
        self.check()
    }
}

/// The way a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum CommandStatus {
    /// It exited with this code. A nonzero code is a result, not an error.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// It was killed because its time ran out.
    TimedOut,
    /// It was killed because it printed more than [`Command::hard_output_bytes`].
    OutputLimited,
}

impl CommandStatus {
    /// Whether the command exited with code zero.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }
}

impl fmt::Display for CommandStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "exit code {code}"),
            Self::Signalled(signal) => write!(f, "ended by signal {signal}"),
            Self::TimedOut => f.write_str("timed out"),
            Self::OutputLimited => f.write_str("ended for printing too much"),
        }
    }
}

/// The output of a command: all of it, or its beginning and its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Output {
    /// The beginning.
    pub head: Bytes,
    /// The end, if something was left out.
    pub tail: Bytes,
    /// Number of bytes left out between the two.
    pub dropped: u64,
}

impl Output {
    /// Creates output from which nothing was left out.
    pub fn whole(bytes: impl Into<Bytes>) -> Self {
        Self {
            head: bytes.into(),
            ..Self::default()
        }
    }

    /// Whether something was left out.
    pub fn is_truncated(&self) -> bool {
        self.dropped > 0
    }

    /// Returns the output as text. Bytes that are not UTF-8 become U+FFFD, and a
    /// line says how much was left out.
    pub fn text(&self) -> String {
        let head = String::from_utf8_lossy(&self.head);
        if !self.is_truncated() {
            return head.into_owned();
        }
        let tail = String::from_utf8_lossy(&self.tail);
        format!("{head}\n[... {} bytes left out ...]\n{tail}", self.dropped)
    }
}

/// Collects output of any size in bounded memory: the first half of the limit from
/// the beginning, the other half from the end.
///
/// ```
/// use backend_core::ops::OutputBuffer;
/// let mut buffer = OutputBuffer::new(6);
/// buffer.push(b"abcdefghij");
/// let output = buffer.finish();
/// assert_eq!((&output.head[..], &output.tail[..], output.dropped), (&b"abc"[..], &b"hij"[..], 4));
/// ```
#[derive(Debug)]
pub struct OutputBuffer {
    head: Vec<u8>,
    head_limit: usize,
    tail: VecDeque<u8>,
    tail_limit: usize,
    total: u64,
}

impl OutputBuffer {
    /// Creates a buffer that keeps at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            head: Vec::new(),
            head_limit: limit.div_ceil(2),
            tail: VecDeque::new(),
            tail_limit: limit / 2,
            total: 0,
        }
    }

    /// Adds the next piece.
    pub fn push(&mut self, piece: &[u8]) {
        self.total += piece.len() as u64;
        let (head, rest) = piece.split_at(piece.len().min(self.head_limit - self.head.len()));
        self.head.extend_from_slice(head);
        let rest = &rest[rest.len().saturating_sub(self.tail_limit)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.tail_limit);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// Returns the number of bytes that have arrived.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the kept output.
    pub fn finish(self) -> Output {
        let kept = (self.head.len() + self.tail.len()) as u64;
        let dropped = self.total - kept;
        let tail = Vec::from(self.tail);
        if dropped == 0 {
            let mut all = self.head;
            all.extend_from_slice(&tail);
            return Output::whole(all);
        }
        Output {
            head: self.head.into(),
            tail: tail.into(),
            dropped,
        }
    }
}

/// The outcome of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ExecuteOutcome {
    /// The way it ended.
    pub status: CommandStatus,
    /// Standard output; with [`Streams::Merged`], both streams.
    pub stdout: Output,
    /// Standard error.
    pub stderr: Output,
    /// Number of processes it left running. They were ended unless
    /// [`Command::keep_leftovers`] is set.
    pub leftovers: u32,
    /// Running time.
    pub duration: Duration,
}

impl ExecuteOutcome {
    /// Creates an outcome without output.
    pub fn new(status: CommandStatus) -> Self {
        Self {
            status,
            stdout: Output::default(),
            stderr: Output::default(),
            leftovers: 0,
            duration: Duration::ZERO,
        }
    }
}

/// An event of a running command.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Event {
    /// A piece of standard output.
    Stdout(Bytes),
    /// A piece of standard error.
    Stderr(Bytes),
    /// The command ended. Always the last event. The outcome holds no output,
    /// because earlier events have delivered it.
    Ended(ExecuteOutcome),
}

/// The id of a background shell within its sandbox, such as `bg_1`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ShellId(String);

impl ShellId {
    /// Creates an id from its text. Only the sandbox knows whether such a shell exists.
    pub fn new(id: impl Into<String>) -> Self {
        Self(id.into())
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ShellId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The state of a background shell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ShellState {
    /// It is running.
    #[default]
    Running,
    /// It ended.
    Ended(CommandStatus),
}

/// A background shell.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ShellInfo {
    /// Its id.
    pub id: ShellId,
    /// Its command line.
    pub line: String,
    /// The process id inside the sandbox, where there is one.
    pub pid: Option<u32>,
    /// Its state.
    pub state: ShellState,
    /// The size of its terminal, if it runs in one.
    pub terminal: Option<TerminalSize>,
}

impl ShellInfo {
    /// Describes a running shell.
    pub fn new(id: ShellId, line: impl Into<String>, pid: Option<u32>) -> Self {
        Self {
            id,
            line: line.into(),
            pid,
            state: ShellState::Running,
            terminal: None,
        }
    }
}

/// The output of a background shell since the last read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ShellOutput {
    /// New standard output.
    pub stdout: Bytes,
    /// New standard error.
    pub stderr: Bytes,
    /// Bytes printed since the last read that did not fit into the log.
    pub dropped: u64,
    /// The state of the shell.
    pub state: ShellState,
}

impl ShellOutput {
    /// Creates an empty output.
    pub fn new(state: ShellState) -> Self {
        Self {
            stdout: Bytes::new(),
            stderr: Bytes::new(),
            dropped: 0,
            state,
        }
    }
}

/// The action when a sandbox is stopped: keep or purge its files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum StopMode {
    /// Files are kept, and the sandbox can be started again.
    #[default]
    Keep,
    /// Nothing is kept.
    Purge,
}

#[cfg(test)]
mod tests;
