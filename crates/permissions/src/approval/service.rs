//! [`ApprovalService`]: handles questions and issues permits.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _, Shared, WeakShared};

use super::grants::{self, GrantCoverage};
use super::limits::{LINE_BYTES, NOTE_BYTES};
use super::permit::Issued;
use super::{
    Answer, Approver, ApproverError, Fingerprint, Grant, GrantId, Grants, Permit, PermitSource,
    Question, text,
};
use crate::Refusal;

/// Handles questions and issues permits.
///
/// Accesses that are already granted are not asked about. If a call is granted in part,
/// only the rest is asked. Equal questions at the same time are asked once, and every
/// waiting caller gets the answer. A caller can stop waiting by dropping the future. The
/// question is withdrawn only when the last waiting caller does so.
///
/// A permit means that the approver agreed, not that the access is allowed: a denial of
/// any layer still applies, and the guard judges the call again.
///
/// Clones share one service.
///
/// ```
/// use std::sync::Arc;
/// use permissions::approval::{ApprovalService, Grants, Strict};
/// use permissions::{Question, Refusal};
///
/// let service = ApprovalService::new(Arc::new(Strict), Grants::new());
/// let question = Question::for_tool("s1", "send_mail", serde_json::json!({}));
/// let refusal = futures::executor::block_on(service.authorize(question)).unwrap_err();
/// assert_eq!(
///     refusal.to_string(),
///     "send_mail() was not approved: Strict mode: send_mail requires approval"
/// );
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct ApprovalService {
    approver: Arc<dyn Approver>,
    grants: Grants,
    remember_denials: bool,
    refuse_truncated: bool,
    in_flight: Arc<InFlight>,
}

impl ApprovalService {
    /// Creates an approval service with an approver.
    pub fn new(approver: Arc<dyn Approver>, grants: Grants) -> Self {
        Self {
            approver,
            grants,
            remember_denials: false,
            refuse_truncated: false,
            in_flight: Arc::default(),
        }
    }

    /// Restricts it to grants given under the policy with this id. With a new id
    /// when the rules change, accesses granted under the old rules are asked about again.
    pub fn policy_id(mut self, policy: impl Into<Arc<str>>) -> Self {
        self.grants = self.grants.for_policy(policy);
        self
    }

    /// Sets whether a no is remembered. By default, the approver is asked again.
    pub fn remember_denials(mut self, remember: bool) -> Self {
        self.remember_denials = remember;
        self.in_flight = Arc::default();
        self
    }

    /// Sets whether questions that cannot be shown in full are refused. Approval of a
    /// long change or command would also cover the part that was not shown. The refusal
    /// says to do it in parts.
    pub fn refuse_truncated(mut self, refuse_truncated: bool) -> Self {
        self.refuse_truncated = refuse_truncated;
        self
    }

    /// Returns a service with another approver that shares the remembered answers.
    pub fn with_approver(&self, approver: Arc<dyn Approver>) -> Self {
        Self {
            approver,
            in_flight: Arc::default(),
            ..self.clone()
        }
    }

    /// Returns the remembered answers that apply here.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Returns the questions that wait for an answer, the oldest first.
    pub fn pending(&self) -> Vec<Pending> {
        let mut pending: Vec<_> = self
            .in_flight
            .lock()
            .values()
            .map(|flight| flight.pending.clone())
            .collect();
        pending.sort_unstable_by_key(|pending| pending.id);
        pending
    }

    /// Obtains approval for everything in the question.
    ///
    /// # Errors
    ///
    /// [`Refusal::Declined`] if the answer is no, [`Refusal::ApprovalRequired`] if there
    /// is no answer.
    pub async fn authorize(&self, question: Question) -> Result<Permit, Refusal> {
        loop {
            let coverage = self.grants.coverage(&question);
            if let Some(denial) = self.remembered_denial(&coverage) {
                let note = denial.note.clone();
                return Err(Refusal::declined(question.what(), note.unwrap_or_default()));
            }
            if let [first, ..] = coverage.grants[..]
                && coverage.uncovered.is_empty()
            {
                let source = PermitSource::Grant(first);
                return Ok(self.permit(&question, source, coverage.grants, None));
            }
            if let Some(unseen) = question.effect.unseen().filter(|_| self.refuse_truncated) {
                let note = format!("it is too long to show in full, {unseen}; do it in parts");
                return Err(Refusal::declined(question.what(), note));
            }
            let Some(flight) = self.join(&question, &coverage) else {
                continue;
            };
            let result = flight.await;
            return match &result.answer {
                Ok(answer) if answer.approved => {
                    if !self.still_granted(&question, &coverage) {
                        continue;
                    }
                    let source = PermitSource::Answer;
                    Ok(self.permit(&question, source, coverage.grants, Some(&result)))
                }
                Ok(_) => {
                    let note = result.note.clone().unwrap_or_default();
                    Err(Refusal::declined(question.what(), note))
                }
                Err(error) => {
                    let why = error.to_string();
                    let why = text::cut(&why, NOTE_BYTES);
                    Err(Refusal::approval_required(question.what(), why))
                }
            };
        }
    }

    /// Creates a permit for all of `question`. `result` is that of asking, if it was asked.
    fn permit(
        &self,
        question: &Question,
        source: PermitSource,
        grants: Vec<GrantId>,
        result: Option<&QuestionResult>,
    ) -> Permit {
        Permit::new(Issued {
            id: self.in_flight.number(),
            fingerprint: question.fingerprint(),
            asked: question.asked.clone(),
            bound: question.bound().to_vec(),
            source,
            grants,
            note: result.and_then(|result| result.note.clone()),
            waited: result.map(|result| result.waited),
        })
    }

    /// Returns whether the accesses that were not asked about are still granted. A grant
    /// may have been revoked or have expired while the approver decided about the rest.
    fn still_granted(&self, question: &Question, before: &GrantCoverage) -> bool {
        if before.grants.is_empty() {
            return true;
        }
        let now = self.grants.coverage(question);
        self.remembered_denial(&now).is_none()
            && now
                .uncovered
                .iter()
                .all(|item| before.uncovered.contains(item))
    }

    /// Returns the remembered no, if this service respects it.
    fn remembered_denial<'a>(&self, coverage: &'a GrantCoverage) -> Option<&'a Grant> {
        coverage.denial.as_ref().filter(|_| self.remember_denials)
    }

    /// Joins an equal question in flight, or asks. Returns `None` if the grants have
    /// changed since `coverage` was computed.
    fn join(&self, question: &Question, coverage: &GrantCoverage) -> Option<SharedResult> {
        let open = coverage.uncovered.iter();
        let asked = open.filter_map(|item| question.asked.get(*item).cloned());
        let part = question.clone().only(asked.collect());
        let call = question.fingerprint();
        let key = Key {
            policy: self.grants.policy().cloned(),
            call,
            shown: part.shown_fingerprint(),
        };

        let mut in_flight = self.in_flight.lock();
        if let Some(flight) = in_flight
            .get(&key)
            .and_then(|flight| flight.shared.upgrade())
        {
            return Some(flight);
        }
        // A question that has just ended added its grant before it left the map.
        if self.grants.coverage(question) != *coverage {
            return None;
        }
        let pending = Pending {
            id: self.in_flight.number(),
            question: Arc::new(part),
        };
        let guard = InFlightGuard {
            in_flight: Arc::clone(&self.in_flight),
            key: key.clone(),
            id: pending.id,
        };
        let service = self.clone();
        let open = coverage.uncovered.clone();
        let asking = Arc::clone(&pending.question);
        let shared = async move {
            // Removed from the map when this ends or is dropped.
            let _guard = guard;
            Arc::new(service.ask(&asking, call, open).await)
        }
        .boxed()
        .shared();
        if let Some(weak) = shared.downgrade() {
            in_flight.insert(
                key,
                InFlightQuestion {
                    pending,
                    shared: weak,
                },
            );
        }
        Some(shared)
    }

    /// Asks the approver, and remembers the answer.
    async fn ask(
        &self,
        question: &Question,
        call: Fingerprint,
        items: Vec<usize>,
    ) -> QuestionResult {
        let begun = Instant::now();
        // Called inside the future, so that a panic before the first await is caught too.
        let answer = async { self.approver.ask(question).await };
        let answer = AssertUnwindSafe(answer).catch_unwind().await;
        let answer = answer.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        let waited = begun.elapsed();
        let mut note = None;
        if let Ok(given) = &answer {
            note = grants::note(given);
            if (given.approved || self.remember_denials)
                && let Err(why) = self.grants.record_part(question, call, items, given)
            {
                let said = note.map_or_else(String::new, |note| format!("{note} "));
                note = Some(format!("{said}(not remembered: {why})"));
            }
        }
        QuestionResult {
            answer,
            note,
            waited,
        }
    }
}

fn panicked(panic: &(dyn Any + Send)) -> ApproverError {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("for no known reason");
    let message = text::line(message, LINE_BYTES);
    ApproverError::new(format!("the approver panicked ({message}); check its log"))
}

/// A question that waits for an answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Pending {
    /// The question's number, unique for the service.
    pub id: u64,
    /// The question.
    pub question: Arc<Question>,
}

/// The result of a question, for all waiting callers.
struct QuestionResult {
    answer: Result<Answer, ApproverError>,
    note: Option<String>,
    waited: Duration,
}

/// The pending result, shared by all waiting callers.
type SharedResult = Shared<BoxFuture<'static, Arc<QuestionResult>>>;

/// Identifies a question in flight. Calls with equal keys share one.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    /// The policy for which the answer is remembered.
    policy: Option<Arc<str>>,
    call: Fingerprint,
    /// The part of the call that is asked about.
    shown: Fingerprint,
}

/// The questions in flight, waiting for an answer.
#[derive(Default)]
struct InFlight {
    numbers: AtomicU64,
    by_key: Mutex<HashMap<Key, InFlightQuestion>>,
}

struct InFlightQuestion {
    pending: Pending,
    /// Weak, because only the waiting callers keep the question alive.
    shared: WeakShared<BoxFuture<'static, Arc<QuestionResult>>>,
}

impl InFlight {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, InFlightQuestion>> {
        backend_core::sync::lock(&self.by_key)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for InFlight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InFlight").field(&self.lock().len()).finish()
    }
}

/// Removes a question from the map when it ends, in any way.
struct InFlightGuard {
    in_flight: Arc<InFlight>,
    key: Key,
    id: u64,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        let mut in_flight = self.in_flight.lock();
        // A new question may have started under this key meanwhile.
        if in_flight
            .get(&self.key)
            .is_some_and(|flight| flight.pending.id == self.id)
        {
            in_flight.remove(&self.key);
        }
    }
}
