//! [`Clock`], and times as they are written: milliseconds since 1970.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The source of the current time.
///
/// ```
/// use std::time::SystemTime;
/// use sessions::Clock;
///
/// let stopped = Clock::new(|| SystemTime::UNIX_EPOCH);
/// assert_eq!(stopped.now(), SystemTime::UNIX_EPOCH);
/// assert!(Clock::default().now() > stopped.now());
/// ```
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    /// Creates a clock that shows what `now` returns, for tests.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// Returns the current time.
    pub fn now(&self) -> SystemTime {
        (self.0)()
    }
}

/// The clock of the system.
impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// Returns the time between two moments, which is zero if the clock was set back.
pub(crate) fn elapsed(from: SystemTime, to: SystemTime) -> Duration {
    to.duration_since(from).unwrap_or_default()
}

fn to_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A moment as milliseconds since 1970.
pub(crate) mod moment {
    use super::{Duration, SystemTime, UNIX_EPOCH, elapsed, to_millis};
    use serde::{Deserialize as _, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(to_millis(elapsed(UNIX_EPOCH, *time)))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let millis = Duration::from_millis(u64::deserialize(from)?);
        let time = UNIX_EPOCH.checked_add(millis);
        time.ok_or_else(|| serde::de::Error::custom("the time is out of range"))
    }
}

/// A length of time in milliseconds, or none.
pub(crate) mod span {
    use super::{Duration, to_millis};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    pub(crate) fn serialize<S: Serializer>(
        span: &Option<Duration>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        span.map(to_millis).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}
