//! [`Grant`]: one remembered answer, and the JSON form of all of them.

use std::collections::HashSet;
use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use super::key::{GrantKey, Matcher, NotRemembered};
use super::{Grants, Store, StoredGrant};
use crate::approval::limits::GRANTS;

/// The version of the saved form.
const VERSION: u32 = 1;

/// The number of a grant, unique in a store, even if that is saved and loaded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct GrantId(u64);

impl GrantId {
    pub(super) fn new(number: u64) -> Self {
        Self(number)
    }
}

impl fmt::Display for GrantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// One remembered answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Grant {
    /// The grant's number.
    pub id: GrantId,
    /// The session it applies to.
    pub session: String,
    /// The accesses it covers.
    pub key: GrantKey,
    /// Whether the answer was yes.
    pub approved: bool,
    /// The question, in one line that is safe to print.
    pub what: String,
    /// The note that came with the answer.
    pub note: Option<String>,
    /// The time of the answer, in milliseconds.
    #[serde(with = "millis")]
    pub created: SystemTime,
    /// The time when it expires; never if `None`.
    #[serde(with = "millis_if")]
    pub expires: Option<SystemTime>,
    /// The policy it was given under.
    pub policy: Option<String>,
}

impl Grant {
    /// Returns whether the grant is valid at this time. One with an expiry is not valid
    /// before its creation, so that setting the clock back does not prolong it.
    pub fn is_valid(&self, now: SystemTime) -> bool {
        self.expires
            .is_none_or(|expires| self.created <= now && now < expires)
    }

    pub(super) fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns whether both are about the same accesses.
    pub(super) fn covers_same(&self, other: &Self) -> bool {
        self.session == other.session && self.key == other.key && self.policy == other.policy
    }
}

/// The reason why saved grants cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GrantsError {
    /// Not the JSON that [`Grants::to_json`] writes.
    #[error("not a saved grants file: {0}; remove the file to start over")]
    Json(#[from] serde_json::Error),
    /// Written by another version.
    #[error("the saved grants have version {0}, not {VERSION}; remove the file to start over")]
    Version(u32),
    /// A grant has a key that is not valid.
    #[error("grant {0} cannot be used: {1}")]
    Key(GrantId, NotRemembered),
    /// Two grants have the same number, or a number is out of range.
    #[error("grant {0} has an invalid number; remove it")]
    Number(GrantId),
    /// Too many grants.
    #[error("there are {0} grants, more than the {GRANTS} that are kept; remove some")]
    TooMany(usize),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    version: u32,
    next: u64,
    grants: Vec<Grant>,
}

impl Grants {
    /// Serializes all valid grants, to be loaded by [`from_json`](Self::from_json).
    pub fn to_json(&self) -> String {
        let next = self.lock().next;
        let saved = Saved {
            version: VERSION,
            next,
            grants: self.list(),
        };
        // Text, numbers and lists always serialize.
        serde_json::to_string_pretty(&saved).unwrap_or_default()
    }

    /// Loads grants written by [`to_json`](Self::to_json).
    pub fn from_json(json: &str) -> Result<Self, GrantsError> {
        let grants = Self::new();
        grants.restore(json)?;
        Ok(grants)
    }

    /// Replaces all grants with those written by [`to_json`](Self::to_json), except those
    /// that have expired since.
    ///
    /// # Errors
    ///
    /// [`GrantsError`], which describes the problem. The store is unchanged then.
    pub fn restore(&self, json: &str) -> Result<(), GrantsError> {
        let version: Version = serde_json::from_str(json)?;
        if version.version != VERSION {
            return Err(GrantsError::Version(version.version));
        }
        let saved: Saved = serde_json::from_str(json)?;
        if saved.grants.len() > GRANTS {
            return Err(GrantsError::TooMany(saved.grants.len()));
        }
        if saved.next == u64::MAX {
            return Err(GrantsError::Number(GrantId(saved.next)));
        }
        let now = (self.clock)();
        let mut numbers = HashSet::new();
        let mut kept = Vec::with_capacity(saved.grants.len());
        for grant in saved.grants {
            let id = grant.id;
            if !numbers.insert(id) || id.0 >= saved.next {
                return Err(GrantsError::Number(id));
            }
            let matcher = Matcher::new(&grant.key).map_err(|why| GrantsError::Key(id, why))?;
            if !grant.has_expired(now) {
                kept.push(StoredGrant { grant, matcher });
            }
        }
        let mut store = self.lock();
        // Numbers assigned here are not reused.
        let next = saved.next.max(store.next);
        *store = Store { next, kept };
        Ok(())
    }
}

/// Parsed first, so that another version is reported as such.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

mod millis {
    use super::*;
    use serde::{Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        let since = time.duration_since(SystemTime::UNIX_EPOCH);
        let millis = since.unwrap_or_default().as_millis();
        to.serialize_u64(u64::try_from(millis).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<SystemTime, D::Error> {
        let since = Duration::from_millis(u64::deserialize(from)?);
        let time = SystemTime::UNIX_EPOCH.checked_add(since);
        time.ok_or_else(|| serde::de::Error::custom("the time is out of range"))
    }
}

mod millis_if {
    use super::*;
    use serde::{Deserializer, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Millis(#[serde(with = "millis")] SystemTime);

    pub(super) fn serialize<S: Serializer>(
        time: &Option<SystemTime>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        time.map(Millis).serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<SystemTime>, D::Error> {
        Ok(Option::<Millis>::deserialize(from)?.map(|millis| millis.0))
    }
}
