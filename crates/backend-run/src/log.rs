//! A shell's log whose readers can wait.

use backend_core::limits::ATTACHED_BYTES;
use backend_core::ops::ShellOutput;
use backend_core::shells::ShellLog;
use backend_core::{Error, ErrorKind, Result};
use tokio::sync::watch;

/// A [`ShellLog`] that wakes its readers, and the shell when there is room.
#[derive(Debug, Default)]
pub(crate) struct WatchedLog {
    /// To be read. Changes go through [`change`](Self::change).
    pub(crate) kept: ShellLog,
    changed: watch::Sender<()>,
    /// Changes when output was taken or a connection was detached.
    taken: watch::Sender<()>,
}

impl WatchedLog {
    pub(crate) fn change<T>(&self, change: impl FnOnce(&ShellLog) -> T) -> T {
        let changed = change(&self.kept);
        self.changed.send_replace(());
        changed
    }

    /// Waits for the end of the shell.
    pub(crate) async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.kept.is_running() && changed.changed().await.is_ok() {}
    }

    /// Checks that the shell belongs to this connection, or to a caller without one.
    ///
    /// # Errors
    ///
    /// `Conflict` if it belongs to another connection.
    pub(crate) fn check(&self, attached: Option<u64>) -> Result<()> {
        let message = match (attached, self.kept.attached()) {
            (expected, found) if expected == found => return Ok(()),
            (Some(_), Some(_)) => "another connection took over; attach again to take it back",
            (Some(_), None) => "the connection was detached; attach again to go on",
            (None, _) => {
                "a connection is attached and takes the output; read from it, or detach it first"
            }
        };
        Err(Error::new(ErrorKind::Conflict, message))
    }

    /// Takes the available output for an attached connection, or for a reader without
    /// one. Returns `None` if there is no output and more may come.
    ///
    /// # Errors
    ///
    /// `Conflict` if the output belongs to another connection.
    pub(crate) fn take(&self, attached: Option<u64>) -> Result<Option<ShellOutput>> {
        self.check(attached)?;
        let output = self.kept.take();
        self.taken.send_replace(());
        Ok(output)
    }

    /// Takes the available output, waiting until there is some.
    pub(crate) async fn next(&self, attached: Option<u64>) -> Result<ShellOutput> {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(output) = self.take(attached)? {
                return Ok(output);
            }
            // Cannot fail: the sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }

    /// Attaches a connection and returns its number.
    pub(crate) fn attach(&self) -> u64 {
        self.change(ShellLog::attach)
    }

    pub(crate) fn detach(&self, number: u64) {
        self.kept.detach(number);
        self.taken.send_replace(());
    }

    /// Waits until the attached connection, if there is one, has read enough.
    pub(crate) async fn room(&self) {
        let is_full = || self.kept.attached().is_some() && self.kept.unread() >= ATTACHED_BYTES;
        if !is_full() {
            return;
        }
        let mut taken = self.taken.subscribe();
        while is_full() && taken.changed().await.is_ok() {}
    }
}
