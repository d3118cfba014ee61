//! The time of a sandbox's last use.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

/// The last use, and the number of running commands.
#[derive(Debug, Clone, Default)]
pub(super) struct Activity(Arc<UseRecord>);

#[derive(Debug, Default)]
struct UseRecord {
    /// Nanoseconds since 1970.
    last: AtomicU64,
    commands: AtomicUsize,
}

impl Activity {
    pub(super) fn last(&self) -> SystemTime {
        if self.0.commands.load(Ordering::Relaxed) > 0 {
            return SystemTime::now();
        }
        let last = Duration::from_nanos(self.0.last.load(Ordering::Relaxed));
        SystemTime::UNIX_EPOCH + last
    }

    pub(super) fn note(&self) {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        let now = u64::try_from(now).unwrap_or(u64::MAX);
        self.0.last.fetch_max(now, Ordering::Relaxed);
    }

    /// Starts an operation, which ends when the guard is dropped.
    pub(super) fn operation(&self) -> Guard {
        self.guard(false)
    }

    /// Starts a command, which ends when the guard is dropped.
    pub(super) fn command(&self) -> Guard {
        self.0.commands.fetch_add(1, Ordering::Relaxed);
        self.guard(true)
    }

    fn guard(&self, is_command: bool) -> Guard {
        self.note();
        Guard {
            activity: self.clone(),
            is_command,
        }
    }
}

/// A running operation or command.
#[derive(Debug)]
pub(super) struct Guard {
    activity: Activity,
    is_command: bool,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.activity.note();
        if self.is_command {
            self.activity.0.commands.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
