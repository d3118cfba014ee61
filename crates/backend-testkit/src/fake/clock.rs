//! A clock that stands still.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use backend_core::sync::lock;

/// A clock that shows the same time until it is changed. Clones share the time.
///
/// ```
/// use std::time::Duration;
/// use backend_testkit::fake::PausedClock;
/// let clock = PausedClock::new();
/// let before = clock.now();
/// assert_eq!(clock.now(), before);
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(clock.now(), before + Duration::from_secs(60));
/// ```
#[derive(Debug, Clone)]
pub struct PausedClock(Arc<Mutex<SystemTime>>);

impl PausedClock {
    /// Creates a clock that shows the first second of 2024.
    pub fn new() -> Self {
        let first = SystemTime::UNIX_EPOCH + Duration::from_secs(1_704_067_200);
        Self(Arc::new(Mutex::new(first)))
    }

    /// Returns the time it shows.
    pub fn now(&self) -> SystemTime {
        *lock(&self.0)
    }

    /// Moves it forward.
    pub fn advance(&self, by: Duration) {
        self.set(self.now() + by);
    }

    /// Sets the time it shows.
    pub fn set(&self, time: SystemTime) {
        *lock(&self.0) = time;
    }
}

impl Default for PausedClock {
    fn default() -> Self {
        Self::new()
    }
}
