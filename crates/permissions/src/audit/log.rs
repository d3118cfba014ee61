//! [`AuditLog`]: the most recent decisions, in memory and as JSON.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use backend_core::Enforcement;
use backend_core::sync::lock;
use serde::{Deserialize, Serialize};

use super::{Audit, AuditEvent, DecidedBy, Outcome};
use crate::approval::text;
use crate::rules::level;
use crate::{Action, Op, Target};

/// Maximum bytes of each text in an [`AuditRecord`]. A longer one lacks its middle.
pub const RECORD_TEXT_BYTES: usize = 2_000;

/// One decision, in a form that can be stored or sent.
///
/// Text is truncated but otherwise unchanged, because JSON does the escaping.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditRecord {
    /// The time of the decision, in milliseconds since 1970.
    pub time: u64,
    /// The session the call belongs to.
    pub session: String,
    /// The tool that was called, if one was.
    pub tool: Option<String>,
    /// The operation that was judged.
    pub op: Op,
    /// The path or the command line it applies to.
    pub target: String,
    /// The combined decision of the layers.
    pub action: Action,
    /// The layer that decided.
    pub layer: String,
    /// The vote of each layer, one per line, the strongest first.
    pub reason: String,
    /// The outcome.
    pub outcome: Outcome,
    /// The party that decided.
    pub by: DecidedBy,
    /// The note that came with the answer.
    pub note: Option<String>,
    /// The time the answer took, in milliseconds, if the approver was asked.
    pub waited: Option<u64>,
    /// For a command: the level at which denied paths are kept from it.
    #[serde(
        default,
        with = "level::enforcement",
        skip_serializing_if = "Option::is_none"
    )]
    pub enforcement: Option<Enforcement>,
}

impl From<&AuditEvent<'_>> for AuditRecord {
    fn from(event: &AuditEvent<'_>) -> Self {
        let cut = |text: &str| text::cut(text, RECORD_TEXT_BYTES).into_owned();
        let millis =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let since = event.time.duration_since(SystemTime::UNIX_EPOCH);
        Self {
            time: millis(since.unwrap_or_default()),
            session: cut(event.session),
            tool: event.tool.map(cut),
            op: event.access.op,
            target: match &event.access.target {
                Target::Path(path) => cut(path.as_str()),
                Target::Command(line) => cut(line),
                Target::Port(_) => event.access.target.to_string(),
            },
            action: event.verdict.action(),
            layer: event.verdict.decisive().layer.to_string(),
            reason: cut(&event.verdict.to_string()),
            outcome: event.outcome,
            by: event.by,
            note: event.note.map(cut),
            waited: event.waited.map(millis),
            enforcement: event.enforcement,
        }
    }
}

/// The most recent decisions, for tests and for display. Clones share one log.
#[derive(Clone)]
pub struct AuditLog {
    ring: Arc<Mutex<Ring>>,
    capacity: usize,
}

#[derive(Default)]
struct Ring {
    records: VecDeque<AuditRecord>,
    dropped: u64,
}

impl AuditLog {
    /// Creates a log of the last `capacity` decisions, at least one.
    pub fn new(capacity: usize) -> Self {
        Self {
            ring: Arc::default(),
            capacity: capacity.max(1),
        }
    }

    /// Returns an [`Audit`] that writes to this log, to be passed to a guard.
    pub fn audit(&self) -> Audit {
        let log = self.clone();
        Audit::new(move |event| log.push(AuditRecord::from(event)))
    }

    /// Adds a record. Drops the oldest one if the log is full.
    pub fn push(&self, record: AuditRecord) {
        let mut ring = lock(&self.ring);
        while ring.records.len() >= self.capacity {
            ring.records.pop_front();
            ring.dropped += 1;
        }
        ring.records.push_back(record);
    }

    /// Returns the records, the oldest first.
    pub fn records(&self) -> Vec<AuditRecord> {
        lock(&self.ring).records.iter().cloned().collect()
    }

    /// Returns how many records were dropped because the log was full.
    pub fn dropped(&self) -> u64 {
        lock(&self.ring).dropped
    }

    /// Removes all records and resets the count of dropped ones.
    pub fn clear(&self) {
        *lock(&self.ring) = Ring::default();
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = lock(&self.ring);
        f.debug_struct("AuditLog")
            .field("records", &ring.records.len())
            .field("dropped", &ring.dropped)
            .finish()
    }
}
