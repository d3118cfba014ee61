//! A record of every decision, for logs and for observers.
//!
//! Every decision becomes a `tracing` event with the target `permissions`: DEBUG if the
//! layers allow the access, INFO if it was approved, WARN if it was refused. Callbacks
//! receive the same data as an [`AuditEvent`], and [`AuditLog`] keeps the most recent
//! ones.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{Enforcement, Quoted};
use serde::{Deserialize, Serialize};
use tracing::{Level, enabled, event};

use crate::action::names;
use crate::approval::{GrantId, Permit, PermitSource};
use crate::{Access, Verdict};

mod log;

pub use log::{AuditLog, AuditRecord, RECORD_TEXT_BYTES};

/// The target of the `tracing` events.
const TARGET: &str = "permissions";

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Outcome {
    /// The layers allow it.
    Allowed,
    /// The access was approved, now or earlier.
    Permitted,
    /// The access was refused.
    Refused,
}

names!(Outcome::as_str {
    Allowed = "allowed",
    Permitted = "permitted",
    Refused = "refused",
});

/// The party that made a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DecidedBy {
    /// The layers: a rule, a mount, a default.
    Policy,
    /// The approver.
    Answer,
    /// A remembered answer.
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
/// use permissions::{Access, Action, Layer, Op, Verdict, Vote, Reason};
///
/// let access = Access::file(Op::Write, VPath::parse("/etc/hosts")?);
/// let verdict = Verdict::from(Vote::new(Layer::Rules, Action::Deny, Reason::Default(Op::Write)));
/// let log = AuditLog::new(100);
/// let mut event = AuditEvent::new("session-1", &access, &verdict, Outcome::Refused);
/// event.tool = Some("write_file");
/// log.audit().record(&event);
/// assert_eq!(log.records()[0].target, "/etc/hosts");
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct AuditEvent<'a> {
    /// The time of the decision.
    pub time: SystemTime,
    /// The session the call belongs to.
    pub session: &'a str,
    /// The tool that was called, if one was.
    pub tool: Option<&'a str>,
    /// The access that was judged.
    pub access: &'a Access,
    /// The verdict of the layers.
    pub verdict: &'a Verdict,
    /// The outcome.
    pub outcome: Outcome,
    /// The party that decided.
    pub by: DecidedBy,
    /// The note that came with the answer.
    pub note: Option<&'a str>,
    /// The time the answer took, if the approver was asked.
    pub waited: Option<Duration>,
    /// For a command: the level at which denied paths are kept from it.
    pub enforcement: Option<Enforcement>,
}

impl<'a> AuditEvent<'a> {
    /// Creates an event for a decision of the layers, dated now.
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
            enforcement: None,
        }
    }

    /// Records `permit` as the reason, with its note and the time it took.
    #[must_use]
    pub fn permit(mut self, permit: &'a Permit) -> Self {
        self.by = match permit.source() {
            PermitSource::Answer => DecidedBy::Answer,
            PermitSource::Grant(id) => DecidedBy::Grant(id),
        };
        self.note = permit.note();
        self.waited = permit.waited();
        self
    }
}

type Sink = Arc<dyn Fn(&AuditEvent<'_>) + Send + Sync>;

/// The receivers of every decision. By default, only `tracing` receives them.
///
/// Callbacks run one after the other as part of the judged call, so they should be quick.
/// If one panics, the panic is logged, and the call and the other callbacks go on.
#[derive(Clone, Default)]
pub struct Audit(Arc<[Sink]>);

impl Audit {
    /// Creates an audit that also reports to `sink`.
    pub fn new(sink: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        Self::default().and(sink)
    }

    /// Adds `sink` to the receivers.
    #[must_use]
    pub fn and(self, sink: impl Fn(&AuditEvent<'_>) + Send + Sync + 'static) -> Self {
        let sink: Sink = Arc::new(sink);
        Self(self.0.iter().cloned().chain([sink]).collect())
    }

    /// Returns whether any receiver listens to decisions with this outcome, so that an
    /// event is worth creating. Without receivers, the check costs a few nanoseconds.
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
            // State that a panicking callback leaves inconsistent is only its own.
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

/// Emits the event to `tracing`. Text from outside is quoted and truncated.
fn trace(event: &AuditEvent<'_>) {
    // The macro needs the level as a constant at each call site.
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
                    enforcement = event.enforcement.map(Enforcement::as_str),
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
