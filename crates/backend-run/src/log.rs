//! A shell's log whose readers can wait.

use backend_core::ops::ShellOutput;
use backend_core::shells::ShellLog;
use tokio::sync::watch;

/// A [`ShellLog`] that wakes its readers.
#[derive(Debug, Default)]
pub(crate) struct WatchedLog {
    /// To be read. Changes go through [`change`](Self::change).
    pub(crate) kept: ShellLog,
    changed: watch::Sender<()>,
}

impl WatchedLog {
    pub(crate) fn change(&self, change: impl FnOnce(&ShellLog)) {
        change(&self.kept);
        self.changed.send_replace(());
    }

    /// Waits for the end of the shell.
    pub(crate) async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.kept.is_running() && changed.changed().await.is_ok() {}
    }

    /// Takes the available output, waiting until there is some.
    pub(crate) async fn next(&self) -> ShellOutput {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(output) = self.kept.take() {
                return output;
            }
            // Cannot fail: the sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }
}
