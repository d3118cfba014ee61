//! The time of a sandbox's last use.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

/// Records uses: when the last one began or ended, and the number of running
/// commands.
#[derive(Debug)]
pub(crate) struct Activity(Mutex<UseRecord>);

#[derive(Debug)]
struct UseRecord {
    last: SystemTime,
    /// The number of running commands.
    running: usize,
}

impl Default for Activity {
    fn default() -> Self {
        Self(Mutex::new(UseRecord {
            last: SystemTime::now(),
            running: 0,
        }))
    }
}

impl Activity {
    fn noted(&self) -> MutexGuard<'_, UseRecord> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the start of a use, which ends when the guard is dropped.
    pub(crate) fn used(self: &Arc<Self>) -> UseGuard {
        self.noted().last = SystemTime::now();
        UseGuard {
            activity: Arc::clone(self),
            is_command: false,
        }
    }

    /// Records a command that runs until the guard is dropped.
    pub(crate) fn runs(self: &Arc<Self>) -> UseGuard {
        let mut noted = self.noted();
        noted.last = SystemTime::now();
        noted.running += 1;
        drop(noted);
        UseGuard {
            activity: Arc::clone(self),
            is_command: true,
        }
    }

    /// Returns the time of the last use, which is now while a command runs.
    pub(crate) fn last(&self) -> SystemTime {
        let noted = self.noted();
        match noted.running {
            0 => noted.last,
            _ => SystemTime::now(),
        }
    }
}

/// A use in progress.
#[derive(Debug)]
pub(crate) struct UseGuard {
    activity: Arc<Activity>,
    is_command: bool,
}

impl Drop for UseGuard {
    fn drop(&mut self) {
        let mut noted = self.activity.noted();
        noted.last = SystemTime::now();
        if self.is_command {
            noted.running = noted.running.saturating_sub(1);
        }
    }
}
