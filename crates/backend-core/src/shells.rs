//! Bookkeeping of background shells, for sandboxes that run them: a table of the
//! shells, and a log of the output of each. It does no I/O and never waits: code
//! that pushes to a log must wake the readers itself.
//!
//! ```
//! use std::sync::Arc;
//! use backend_core::ops::CommandStatus;
//! use backend_core::shells::{ShellLog, ShellTable, shell_id};
//!
//! let table = ShellTable::<Arc<ShellLog>>::new();
//! let number = table.reserve(|log| !log.is_running())?;
//! let log = Arc::new(ShellLog::new());
//! table.fill(number, Some(Arc::clone(&log)));
//!
//! log.push_stdout(b"listening\n");
//! log.end(CommandStatus::Exited(0));
//! let output = table.find(&shell_id(number))?.take().unwrap();
//! assert_eq!(output.stdout, "listening\n");
//! # Ok::<(), backend_core::Error>(())
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use crate::error::{Error, ErrorKind, Result};
use crate::limits::{SHELL_LOG_BYTES, SHELLS};
use crate::ops::{CommandStatus, ShellId, ShellOutput, ShellState};
use crate::path::Quoted;
use crate::sync::lock;

/// Prefix of the ids of shells.
const PREFIX: &str = "bg_";

/// Returns the id of the shell with this number.
pub fn shell_id(number: u64) -> ShellId {
    ShellId::new(format!("{PREFIX}{number}"))
}

/// The shells of one sandbox, at most [`SHELLS`] of them.
///
/// Numbers are never reused. When the table is full, the oldest shell that has
/// ended is removed.
#[derive(Debug)]
pub struct ShellTable<S>(Mutex<TableState<S>>);

#[derive(Debug)]
struct TableState<S> {
    /// Number of shells started so far.
    last: u64,
    /// Shells by number; `None` while a shell is starting.
    shells: BTreeMap<u64, Option<S>>,
}

impl<S> Default for ShellTable<S> {
    fn default() -> Self {
        Self(Mutex::new(TableState {
            last: 0,
            shells: BTreeMap::new(),
        }))
    }
}

impl<S: Clone> ShellTable<S> {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reserves an entry for a shell that is about to start and returns its number.
    ///
    /// # Errors
    ///
    /// `TooLarge` if the table is full and no shell has ended.
    pub fn reserve(&self, has_ended: impl Fn(&S) -> bool) -> Result<u64> {
        let mut listed = lock(&self.0);
        if listed.shells.len() >= SHELLS {
            let ended = |shell: &Option<S>| shell.as_ref().is_some_and(&has_ended);
            let found = listed.shells.iter().find(|(_, shell)| ended(shell));
            let Some((&oldest, _)) = found else {
                return Err(Error::too_large(format!(
                    "{SHELLS} background shells are already running; kill one first"
                )));
            };
            listed.shells.remove(&oldest);
        }
        listed.last += 1;
        let number = listed.last;
        listed.shells.insert(number, None);
        Ok(number)
    }

    /// Fills the reserved entry with a started shell, or releases it for `None`.
    /// Returns `true` if the shell is listed: the entry may be gone by now.
    pub fn fill(&self, number: u64, shell: Option<S>) -> bool {
        let mut listed = lock(&self.0);
        let is_listed = shell.is_some() && listed.shells.contains_key(&number);
        if is_listed {
            listed.shells.insert(number, shell);
        } else {
            listed.shells.remove(&number);
        }
        is_listed
    }

    /// Returns the shell with this id.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is none, or it is still starting.
    pub fn find(&self, id: &ShellId) -> Result<S> {
        let number = id.as_str().strip_prefix(PREFIX);
        let number = number.and_then(|number| number.parse().ok());
        let number = number.filter(|number| shell_id(*number) == *id);
        let found = number.and_then(|number| lock(&self.0).shells.get(&number).cloned().flatten());
        found.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!(
                    "there is no background shell {}; list them to see which there are",
                    Quoted::new(id.as_str())
                ),
            )
        })
    }

    /// Returns the started shells, the oldest first.
    pub fn list(&self) -> Vec<S> {
        lock(&self.0).shells.values().flatten().cloned().collect()
    }

    /// Removes the shells for which `keep` returns `false`. Reserved entries stay.
    pub fn retain(&self, keep: impl Fn(&S) -> bool) {
        let keep = |shell: &Option<S>| shell.as_ref().is_none_or(&keep);
        lock(&self.0).shells.retain(|_, shell| keep(shell));
    }

    /// Removes all shells, including those that are starting.
    pub fn clear(&self) {
        lock(&self.0).shells.clear();
    }
}

/// The unread output of a shell, and its state.
///
/// The last [`SHELL_LOG_BYTES`] of each stream are kept; lost bytes are counted. While
/// a connection is attached nothing is dropped: code that pushes must wait for the
/// connection when there is [much to read](Self::unread).
#[derive(Debug, Default)]
pub struct ShellLog(Mutex<LogState>);

#[derive(Debug, Default)]
struct LogState {
    stdout: VecDeque<u8>,
    stderr: VecDeque<u8>,
    dropped: u64,
    state: ShellState,
    /// Number of connections that were attached so far.
    attachments: u64,
    /// The connection that is attached.
    attached: Option<u64>,
}

impl ShellLog {
    /// Creates the log of a running shell that has printed nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds standard output.
    pub fn push_stdout(&self, piece: &[u8]) {
        let mut kept = lock(&self.0);
        let limit = kept.limit();
        let lost = push(&mut kept.stdout, piece, limit);
        kept.dropped += lost;
    }

    /// Adds standard error.
    pub fn push_stderr(&self, piece: &[u8]) {
        let mut kept = lock(&self.0);
        let limit = kept.limit();
        let lost = push(&mut kept.stderr, piece, limit);
        kept.dropped += lost;
    }

    /// Attaches a connection, in place of the one before, and returns its number.
    pub fn attach(&self) -> u64 {
        let mut kept = lock(&self.0);
        kept.attachments += 1;
        kept.attached = Some(kept.attachments);
        kept.attachments
    }

    /// Detaches the connection with this number, if it is still attached.
    pub fn detach(&self, number: u64) {
        let mut kept = lock(&self.0);
        kept.attached = kept.attached.filter(|attached| *attached != number);
    }

    /// Returns the number of the connection that is attached.
    pub fn attached(&self) -> Option<u64> {
        lock(&self.0).attached
    }

    /// Returns the number of unread bytes.
    pub fn unread(&self) -> usize {
        let kept = lock(&self.0);
        kept.stdout.len() + kept.stderr.len()
    }

    /// Records how the shell ended.
    pub fn end(&self, status: CommandStatus) {
        lock(&self.0).state = ShellState::Ended(status);
    }

    /// Returns whether the shell is running or how it ended.
    pub fn state(&self) -> ShellState {
        lock(&self.0).state
    }

    /// Whether the shell is running.
    pub fn is_running(&self) -> bool {
        self.state() == ShellState::Running
    }

    /// Takes the unread output. Returns `None` if there is none and more may come.
    pub fn take(&self) -> Option<ShellOutput> {
        let mut kept = lock(&self.0);
        let nothing = kept.stdout.is_empty() && kept.stderr.is_empty();
        if nothing && kept.state == ShellState::Running {
            return None;
        }
        let mut output = ShellOutput::new(kept.state);
        output.stdout = Vec::from(std::mem::take(&mut kept.stdout)).into();
        output.stderr = Vec::from(std::mem::take(&mut kept.stderr)).into();
        output.dropped = std::mem::take(&mut kept.dropped);
        Some(output)
    }
}

impl LogState {
    fn limit(&self) -> usize {
        match self.attached {
            Some(_) => usize::MAX,
            None => SHELL_LOG_BYTES,
        }
    }
}

/// Appends to a stream and drops its oldest bytes. Returns how many were lost.
fn push(stream: &mut VecDeque<u8>, piece: &[u8], limit: usize) -> u64 {
    stream.extend(piece);
    let over = stream.len().saturating_sub(limit);
    stream.drain(..over);
    over as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_ended_makes_room() {
        let table = ShellTable::new();
        let start = |running: bool| {
            let number = table.reserve(|running: &bool| !running)?;
            assert!(table.fill(number, Some(running)));
            Ok::<_, Error>(number)
        };
        start(true).unwrap();
        assert_eq!(start(false).unwrap(), 2);
        assert_eq!(start(false).unwrap(), 3);
        for _ in 3..SHELLS {
            start(true).unwrap();
        }
        start(true).unwrap();
        let gone = table.find(&shell_id(2)).unwrap_err();
        assert_eq!(gone.kind(), ErrorKind::NotFound);
        assert!(!table.find(&shell_id(3)).unwrap());
        start(true).unwrap();
        assert_eq!(start(true).unwrap_err().kind(), ErrorKind::TooLarge);
        assert_eq!(table.list().len(), SHELLS);
    }

    #[test]
    fn a_place_may_be_gone_when_the_shell_has_started() {
        let table = ShellTable::new();
        let number = table.reserve(|()| true).unwrap();
        assert!(table.find(&shell_id(number)).is_err(), "it only starts");
        table.retain(|()| false);
        assert!(
            table.fill(number, Some(())),
            "a shell that is starting is kept"
        );
        assert!(table.find(&shell_id(number)).is_ok());
        let number = table.reserve(|()| true).unwrap();
        table.clear();
        assert!(!table.fill(number, Some(())));
        assert!(table.list().is_empty());
        let number = table.reserve(|()| true).unwrap();
        assert_eq!(number, 3, "numbers are given once");
        assert!(!table.fill(number, None));
    }

    #[test]
    fn ids_are_what_they_are() {
        let table = ShellTable::new();
        let number = table.reserve(|()| true).unwrap();
        table.fill(number, Some(()));
        for id in [
            "bg_01",
            "bg_+1",
            "1",
            "bg_",
            "",
            "BG_1",
            "bg_99999999999999999999",
        ] {
            assert!(table.find(&ShellId::new(id)).is_err(), "{id}");
        }
        assert!(table.find(&ShellId::new("bg_1")).is_ok());
    }

    #[test]
    fn a_log_keeps_the_last_and_counts_the_rest() {
        let log = ShellLog::new();
        assert!(log.take().is_none());
        log.push_stdout(&vec![b'a'; SHELL_LOG_BYTES]);
        log.push_stdout(b"bc");
        log.push_stderr(b"e");
        let output = log.take().unwrap();
        assert_eq!(output.stdout.len(), SHELL_LOG_BYTES);
        assert!(output.stdout.ends_with(b"abc"));
        assert_eq!((&*output.stderr, output.dropped), (&b"e"[..], 2));
        assert!(log.take().is_none());
        log.end(CommandStatus::Exited(1));
        let output = log.take().unwrap();
        assert_eq!(output.state, ShellState::Ended(CommandStatus::Exited(1)));
        assert_eq!(output.dropped, 0);
    }

    #[test]
    fn nothing_is_dropped_while_a_connection_is_attached() {
        let log = ShellLog::new();
        log.push_stdout(&vec![b'a'; SHELL_LOG_BYTES]);
        let first = log.attach();
        log.push_stdout(b"b");
        log.push_stderr(b"c");
        assert_eq!(log.unread(), SHELL_LOG_BYTES + 2);
        let second = log.attach();
        assert_eq!(log.attached(), Some(second));
        log.detach(first);
        assert_eq!(log.attached(), Some(second), "another one took over");
        let output = log.take().unwrap();
        assert_eq!(
            (output.stdout.len(), output.dropped),
            (SHELL_LOG_BYTES + 1, 0)
        );
        log.detach(second);
        assert_eq!(log.attached(), None);
        log.push_stdout(&vec![b'a'; SHELL_LOG_BYTES + 1]);
        assert_eq!(log.take().unwrap().dropped, 1);
    }
}
