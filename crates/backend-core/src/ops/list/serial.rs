//! Times, also those before 1970, as seconds and nanoseconds.

use std::time::{Duration, SystemTime};

use serde::de::{Deserialize, Deserializer, Error as _};
use serde::ser::{Error as _, Serialize, Serializer};

const NANOS: u32 = 1_000_000_000;

pub(super) fn serialize<S: Serializer>(
    time: &Option<SystemTime>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let parts = time
        .map(parts)
        .map(|parts| parts.ok_or("the time is out of range"));
    parts
        .transpose()
        .map_err(S::Error::custom)?
        .serialize(serializer)
}

/// Whole seconds since 1970, rounded down, and the nanoseconds above them.
fn parts(time: SystemTime) -> Option<(i64, u32)> {
    match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => Some((i64::try_from(since.as_secs()).ok()?, since.subsec_nanos())),
        Err(before) => {
            let before = before.duration();
            let seconds = -i64::try_from(before.as_secs()).ok()?;
            match before.subsec_nanos() {
                0 => Some((seconds, 0)),
                nanos => Some((seconds.checked_sub(1)?, NANOS - nanos)),
            }
        }
    }
}

pub(super) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SystemTime>, D::Error> {
    let parts = Option::<(i64, u32)>::deserialize(deserializer)?;
    let time = parts.map(|parts| time(parts).ok_or("invalid time"));
    time.transpose().map_err(D::Error::custom)
}

fn time((seconds, nanos): (i64, u32)) -> Option<SystemTime> {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let second = match seconds {
        0.. => SystemTime::UNIX_EPOCH.checked_add(whole)?,
        _ => SystemTime::UNIX_EPOCH.checked_sub(whole)?,
    };
    let rest = (nanos < NANOS).then(|| Duration::from_nanos(nanos.into()))?;
    second.checked_add(rest)
}
