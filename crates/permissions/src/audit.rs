//! A record of every decision, for logs and for whoever wants to watch.
//!
//! Every decision becomes a `tracing` event of the target `permissions`: DEBUG
//! for what the layers allow, INFO for what somebody permitted, WARN for what was
//! refused. Callbacks get the same as an [`AuditEvent`]; [`AuditLog`] keeps the
//! last of them.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::Quoted;
use serde::{Deserialize, Serialize};
use tracing::{Level, enabled, event};

use crate::approval::{GrantId, Permit, PermitSource};
use crate::{Access, Verdict};

mod log;

pub use log::{AuditLog, AuditRecord, RECORD_TEXT_BYTES};

/// The target of the `tracing` events.
const TARGET: &str = "permissions";

/// How a decision ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// The layers allow it.
    Allowed,
    /// Somebody said yes, now or before.
    Permitted,
    /// It was refused.
    Refused,
}

impl Outcome {
    /// The word for it in a record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Permitted => "permitted",
            Self::Refused => "refused",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Who decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DecidedBy {
    /// The layers: a rule, a mount, a default.
    Policy,
    /// Whoever was asked.
    Answer,
    /// An answer that was remembered.
    Grant(GrantId),
}

impl fmt::Display for DecidedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Policy => f.write_str("policy"),
            Self::Answer => f.write_str("answer"),
            Self::Grant(id) => write!(f, "grant {id}"),
        }
    }
}

/// One decision.
///
/// ```
/// use backend_core::VPath;
/// use permissions::audit::{AuditEvent, AuditLog, Outcome};
/// use permissions::{Access, Action, Layer, Op, Verdict, Vote, Why};
///
/// let access = Access::file(Op::Write, VPath::parse("/etc/hosts")?);
/// let verdict = Verdict::from(Vote::new(Layer::Rules, Action::Deny, Why::Default(Op::Write)));
/// let log = AuditLog::new(100);
/// let event = AuditEvent::new("session-1", &access, &verdict, Outcome::Refused);
/// log.audit().record(&event.tool("write_file"));
/// assert_eq!(log.records()[0].target, "/etc/hosts");
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditEvent<'a> {
    /// When.
    pub time: SystemTime,
    /// The conversation it belongs to.
    pub session: &'a str,
    /// The tool that was called, if one was.
    pub tool: Option<&'a str>,
    /// What was to be done.
    pub access: &'a Access,
    /// What the layers said.
    pub verdict: &'a Verdict,
    /// How it ended.
    pub outcome: Outcome,
    /// Who decided.
    pub by: DecidedBy,
    /// What the answer said besides.
    pub note: Option<&'a str>,
    /// How long the answer took, if somebody was asked.
    pub waited: Option<Duration>,
}

impl<'a> AuditEvent<'a> {
    /// A decision of the layers, at this moment.
    pub fn new(
        session: &'a str,
        access: &'a Access,
        verdict: &'a Verdict,
        outcome: Outcome,
    ) -> Self {
        Self {
            time: SystemTime::now(),
            session,
            tool: None,
            access,
            verdict,
            outcome,
            by: DecidedBy::Policy,
            note: None,
            waited: None,
        }
    }

    /// Names the tool that was called.
    #[must_use]
    pub fn tool(mut self, tool: &'a str) -> Self {
        self.tool = Some(tool);
        self
    }

    /// Says who decided.
    #[must_use]
    pub fn by(mut self, by: DecidedBy) -> Self {
        self.by = by;
        self
    }

    /// Says that `permit` decided, with its note and how long it took.
    #[must_use]
    pub fn permit(mut self, permit: &'a Permit) -> Self {
        self.by = match permit.how() {
            PermitSource::Answer => DecidedBy::Answer,
            PermitSource::Grant(id) => DecidedBy::Grant(id),
        };
        self.note = permit.note();
        self.waited = permit.waited();
        self
    }

    /// Adds what the answer said besides.
    #[must_use]
    pub fn note(mut self, note: &'a str) -> Self {
        self.note = Some(note);
        self
    }

    /// Adds how long the answer took.
    #[must_use]
    pub fn waited(mut self, time: Duration) -> Self {
        self.waited = Some(time);
        self
    }
}

type Sink = Arc<dyn Fn(&AuditEvent<'_>) + Send + Sync>;

/// Who is told of every decision. The default tells `tracing` alone.
///
/// Callbacks are called one after the other by whoever makes the call that is
/// judged, so they should be quick. One that panics is reported and passed over:
/// the call goes on, and so do the other callbacks.
#[derive(Clone, Default)]
pub struct Audit(Arc<[Sink]>);

impl Audit {
    /// Tells `sink` too.
    pub fn new(sink: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        Self::default().and(sink)
    }

    /// Tells `sink` as well as those it told before.
    #[must_use]
    pub fn and(self, sink: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        let sink: Sink = Arc::new(sink);
        Self(self.0.iter().cloned().chain([sink]).collect())
    }

    /// Whether anybody listens to anything.
    pub fn listens(&self) -> bool {
        self.listens_to(Outcome::Refused)
    }

    /// Whether anybody listens to decisions that end like this, so that an event
    /// is worth making. Where nobody does this costs a few nanoseconds.
    pub fn listens_to(&self, outcome: Outcome) -> bool {
        !self.0.is_empty()
            || match outcome {
                Outcome::Allowed => enabled!(target: TARGET, Level::DEBUG),
                Outcome::Permitted => enabled!(target: TARGET, Level::INFO),
                Outcome::Refused => enabled!(target: TARGET, Level::WARN),
            }
    }

    /// Records a decision.
    pub fn record(&self, event: &AuditEvent<'_>) {
        trace(event);
        for sink in self.0.iter() {
            // What a callback leaves behind when it panics is its own.
            if catch_unwind(AssertUnwindSafe(|| sink(event))).is_err() {
                tracing::error!(target: TARGET, "an audit callback panicked; its record is lost");
            }
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Audit").field(&self.0.len()).finish()
    }
}

/// The event for `tracing`. Text from outside is quoted and cut.
fn trace(event: &AuditEvent<'_>) {
    // The level has to be known where the event is written down.
    macro_rules! write_down {
        ($level:expr) => {
            if enabled!(target: TARGET, $level) {
                let decisive = event.verdict.decisive();
                event!(
                    target: TARGET,
                    $level,
                    session = %Quoted::new(event.session),
                    tool = event.tool.map(|tool| tracing::field::display(Quoted::new(tool))),
                    op = event.access.op.as_str(),
                    target = %Quoted::new(&event.access.target.to_string()),
                    outcome = event.outcome.as_str(),
                    by = %event.by,
                    layer = %decisive.layer,
                    reason = %Quoted::new(&decisive.to_string()),
                    note = event.note.map(|note| tracing::field::display(Quoted::new(note))),
                    waited = event.waited.map(tracing::field::debug),
                    "{}", event.outcome.as_str()
                );
            }
        };
    }
    match event.outcome {
        Outcome::Allowed => write_down!(Level::DEBUG),
        Outcome::Permitted => write_down!(Level::INFO),
        Outcome::Refused => write_down!(Level::WARN),
    }
}
