//! A shell's log whose readers can wait.

use backend_core::ops::{CommandStatus, ShellOutput, ShellState};
use backend_core::shells::ShellLog;
use tokio::sync::watch;

/// A [`ShellLog`] that wakes its readers.
#[derive(Debug, Default)]
pub(crate) struct WatchedLog {
    kept: ShellLog,
    changed: watch::Sender<()>,
}

impl WatchedLog {
    /// Appends standard output. The oldest output is dropped if the log is
    /// full.
    pub(crate) fn push_stdout(&self, piece: &[u8]) {
        self.kept.push_stdout(piece);
        self.changed.send_replace(());
    }

    /// Like [`push_stdout`](Self::push_stdout), for standard error.
    pub(crate) fn push_stderr(&self, piece: &[u8]) {
        self.kept.push_stderr(piece);
        self.changed.send_replace(());
    }

    pub(crate) fn end(&self, status: CommandStatus) {
        self.kept.end(status);
        self.changed.send_replace(());
    }

    pub(crate) fn state(&self) -> ShellState {
        self.kept.state()
    }

    pub(crate) fn is_running(&self) -> bool {
        self.kept.is_running()
    }

    /// Takes the available output. Returns `None` if there is none and more may
    /// come.
    pub(crate) fn take(&self) -> Option<ShellOutput> {
        self.kept.take()
    }

    /// Waits for the end of the shell.
    pub(crate) async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_running() && changed.changed().await.is_ok() {}
    }

    /// Takes the available output, waiting until there is some.
    pub(crate) async fn next(&self) -> ShellOutput {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(output) = self.take() {
                return output;
            }
            // Cannot fail: the sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }
}
