//! [`AuditLog`]: the last decisions, in memory and as JSON.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use super::{Audit, AuditEvent, DecidedBy, Outcome};
use crate::approval::text;
use crate::{Action, Op, Target};

/// Bytes of any one text in an [`AuditRecord`]; the middle of a longer one is
/// left out.
pub const RECORD_TEXT_BYTES: usize = 2_000;

/// One decision, to be kept or sent.
///
/// Text stands in it as it is, only cut: JSON escapes what has to be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct AuditRecord {
    /// When, in milliseconds since 1970.
    pub time: u64,
    /// The conversation it belongs to.
    pub session: String,
    /// The tool that was called, if one was.
    pub tool: Option<String>,
    /// What was to be done.
    pub op: Op,
    /// To what: the path or the command line.
    pub target: String,
    /// What the layers said together.
    pub action: Action,
    /// Which of them decided.
    pub layer: String,
    /// What each of them said, one a line, the strongest first.
    pub reason: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Who decided.
    pub by: DecidedBy,
    /// What the answer said besides.
    pub note: Option<String>,
    /// How long the answer took, in milliseconds, if somebody was asked.
    pub waited: Option<u64>,
}

impl AuditRecord {
    /// The record as one line of JSON, without the line end.
    pub fn to_json_line(&self) -> String {
        // Text and numbers can all be written.
        serde_json::to_string(self).unwrap_or_default()
    }
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
            },
            action: event.verdict.action(),
            layer: event.verdict.decisive().layer.to_string(),
            reason: cut(&event.verdict.to_string()),
            outcome: event.outcome,
            by: event.by,
            note: event.note.map(cut),
            waited: event.waited.map(millis),
        }
    }
}

/// The last decisions, for tests and for whoever shows them. Clones are one log.
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
    /// A log of the last `capacity` decisions, at least one.
    pub fn new(capacity: usize) -> Self {
        Self {
            ring: Arc::default(),
            capacity: capacity.max(1),
        }
    }

    /// What a guard is given so that it writes to this log.
    pub fn audit(&self) -> Audit {
        let log = self.clone();
        Audit::new(move |event| log.push(AuditRecord::from(event)))
    }

    /// Adds a record. The oldest goes if there is no room.
    pub fn push(&self, record: AuditRecord) {
        let mut ring = self.lock();
        while ring.records.len() >= self.capacity {
            ring.records.pop_front();
            ring.dropped += 1;
        }
        ring.records.push_back(record);
    }

    /// What is in it, the oldest first.
    pub fn records(&self) -> Vec<AuditRecord> {
        self.lock().records.iter().cloned().collect()
    }

    /// How many went because there was no room.
    pub fn dropped(&self) -> u64 {
        self.lock().dropped
    }

    /// Empties it.
    pub fn clear(&self) {
        *self.lock() = Ring::default();
    }

    fn lock(&self) -> MutexGuard<'_, Ring> {
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for AuditLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ring = self.lock();
        f.debug_struct("AuditLog")
            .field("records", &ring.records.len())
            .field("dropped", &ring.dropped)
            .finish()
    }
}
