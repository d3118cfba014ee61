//! [`Snapshot`]: all sessions at one moment, for dashboards.

use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::events::Counters;
use crate::record::{Record, Usage};
use crate::slot::{Phase, Slot};
use crate::time::{elapsed, moment};

/// All sessions of a manager at one moment. It can be written as JSON.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Snapshot {
    /// The moment, as milliseconds since 1970 where it is written.
    #[serde(with = "moment")]
    pub at: SystemTime,
    /// Sessions that run or are being started.
    pub resident: usize,
    /// The ceiling on them.
    pub max_sessions: Option<usize>,
    /// The sessions, in order of ids.
    pub sessions: Vec<SessionStatus>,
    /// How often things have happened.
    pub counters: Counters,
}

/// One session in a [`Snapshot`].
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SessionStatus {
    /// Its record.
    #[serde(flatten)]
    pub record: Record,
    /// Its status.
    pub status: Status,
    /// Calls under way.
    pub calls: usize,
    /// Seconds since the last use.
    pub idle_seconds: u64,
    /// The resources it uses, where the engine tells.
    pub usage: Option<Usage>,
}

/// The status of an open session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Status {
    /// Its sandbox runs.
    Running,
    /// Its sandbox is stopped, and the next call wakes it.
    Hibernated,
    /// It is being ended.
    Ending,
    /// Its sandbox died with its files.
    Dead,
}

impl SessionStatus {
    /// Describes an open session; `None` for one that is being opened or has ended.
    pub(crate) fn of(slot: &Slot, now: SystemTime) -> Option<Self> {
        let status = match slot.phase() {
            Phase::New | Phase::Ended => return None,
            Phase::Running => Status::Running,
            Phase::Asleep => Status::Hibernated,
            Phase::Closing | Phase::Stuck => Status::Ending,
            Phase::Dead => Status::Dead,
        };
        let record = slot.record()?;
        let idle: Duration = elapsed(record.last_activity, now);
        Some(Self {
            record,
            status,
            calls: slot.calls(),
            idle_seconds: idle.as_secs(),
            usage: None,
        })
    }
}
