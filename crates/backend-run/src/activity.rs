//! The time of a sandbox's last use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::watch;

/// The time when an operation last began or ended, and the number of running
/// commands. Clones share both.
///
/// The default has never been used, and its last use is in 1970.
#[derive(Debug, Clone, Default)]
pub struct Activity(Arc<UseRecord>);

#[derive(Debug, Default)]
struct UseRecord {
    /// Nanoseconds since 1970.
    last: AtomicU64,
    commands: watch::Sender<usize>,
}

impl Activity {
    /// Returns the time of the last use, which is now while a command runs.
    pub fn last(&self) -> SystemTime {
        if *self.0.commands.borrow() > 0 {
            return SystemTime::now();
        }
        let last = Duration::from_nanos(self.0.last.load(Ordering::Relaxed));
        SystemTime::UNIX_EPOCH + last
    }

    /// Records a use.
    pub fn touch(&self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        // Not the maximum: after the clock was set back, a sandbox would seem to be in use
        // until the clock has caught up.
        self.0.last.store(now, Ordering::Relaxed);
    }

    /// Records an operation, which ends when the guard is dropped.
    pub fn operation(&self) -> UseGuard {
        self.guard(false)
    }

    /// Records a command, which runs until the guard is dropped.
    pub fn command(&self) -> UseGuard {
        self.0.commands.send_modify(|commands| *commands += 1);
        self.guard(true)
    }

    fn guard(&self, is_command: bool) -> UseGuard {
        self.touch();
        UseGuard {
            activity: self.clone(),
            is_command,
        }
    }

    /// Waits until no command runs.
    pub async fn idle(&self) {
        let mut commands = self.0.commands.subscribe();
        // Cannot fail: the sender lives as long as `self`.
        let _ = commands.wait_for(|commands| *commands == 0).await;
    }
}

/// An operation or command in progress.
#[derive(Debug)]
#[must_use = "the use ends when the guard is dropped"]
pub struct UseGuard {
    activity: Activity,
    is_command: bool,
}

impl Drop for UseGuard {
    fn drop(&mut self) {
        self.activity.touch();
        if self.is_command {
            let commands = &self.activity.0.commands;
            commands.send_modify(|commands| *commands = commands.saturating_sub(1));
        }
    }
}
