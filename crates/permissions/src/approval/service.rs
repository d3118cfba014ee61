//! [`ApprovalService`]: handles questions and issues permits.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, FutureExt as _, Shared, WeakShared};

use super::grants::{self, Standing};
use super::limits::{LINE_BYTES, NOTE_BYTES};
use super::{Answer, Approver, ApproverError, Fingerprint, Grant, Grants, Permit, Question, text};
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
pub struct ApprovalService {
    approver: Arc<dyn Approver>,
    grants: Grants,
    remember_denials: bool,
    refuse_truncated: bool,
    flights: Arc<Flights>,
}

impl ApprovalService {
    /// Creates an approval service with an approver.
    pub fn new(approver: Arc<dyn Approver>, grants: Grants) -> Self {
        Self {
            approver,
            grants,
            remember_denials: false,
            refuse_truncated: false,
            flights: Arc::default(),
        }
    }

    /// Restricts it to grants given under the policy with this id. With a new id
    /// when the rules change, accesses granted under the old rules are asked about again.
    #[must_use]
    pub fn policy_id(mut self, policy: impl Into<Arc<str>>) -> Self {
        self.grants = self.grants.for_policy(policy);
        self
    }

    /// Sets whether a no is remembered. By default it is not, and the approver is asked
    /// again.
    #[must_use]
    pub fn remember_denials(mut self, remember: bool) -> Self {
        self.remember_denials = remember;
        self.flights = Arc::default();
        self
    }

    /// Sets whether questions that cannot be shown in full are refused. Approval of a
    /// long change or command would also cover the part that was not shown. The refusal
    /// says to do it in parts.
    #[must_use]
    pub fn refuse_truncated(mut self, refuse_truncated: bool) -> Self {
        self.refuse_truncated = refuse_truncated;
        self
    }

    /// Returns a service like this one with another approver. The remembered answers are
    /// shared.
    #[must_use]
    pub fn with_approver(&self, approver: Arc<dyn Approver>) -> Self {
        Self {
            approver,
            grants: self.grants.clone(),
            remember_denials: self.remember_denials,
            refuse_truncated: self.refuse_truncated,
            flights: Arc::default(),
        }
    }

    /// Returns the remembered answers that apply here.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Returns the questions that wait for an answer, the oldest first.
    pub fn pending(&self) -> Vec<Pending> {
        let mut pending: Vec<_> = self
            .flights
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
            let standing = self.grants.standing(&question);
            if let Some(denial) = self.counts(&standing) {
                return Err(Refusal::Declined {
                    what: question.what(),
                    note: denial.note.clone().unwrap_or_default(),
                });
            }
            if let Some(first) = standing.by.first().filter(|_| standing.open.is_empty()) {
                let id = self.flights.number();
                return Ok(Permit::granted(id, &question, *first, standing.by.clone()));
            }
            if let Some(unseen) = question.effect.unseen().filter(|_| self.refuse_truncated) {
                return Err(Refusal::Declined {
                    what: question.what(),
                    note: format!("it is too long to be asked about, {unseen}; do it in parts"),
                });
            }
            let Some(flight) = self.join(&question, &standing) else {
                continue;
            };
            let settled = flight.await;
            return match &settled.answer {
                Ok(answer) if answer.approved => {
                    if !self.still_stands(&question, &standing) {
                        continue;
                    }
                    Ok(Permit::answered(
                        self.flights.number(),
                        &question,
                        standing.by,
                        settled.note.clone(),
                        settled.waited,
                    ))
                }
                Ok(_) => Err(Refusal::Declined {
                    what: question.what(),
                    note: settled.note.clone().unwrap_or_default(),
                }),
                Err(error) => Err(Refusal::ApprovalRequired {
                    what: question.what(),
                    why: text::cut(&error.to_string(), NOTE_BYTES).into_owned(),
                }),
            };
        }
    }

    /// Returns whether the accesses that were not asked about are still granted. A grant
    /// may have been revoked or have expired while the approver decided about the rest.
    fn still_stands(&self, question: &Question, before: &Standing) -> bool {
        if before.by.is_empty() {
            return true;
        }
        let now = self.grants.standing(question);
        self.counts(&now).is_none() && now.open.iter().all(|item| before.open.contains(item))
    }

    /// Returns the remembered no, if this service respects it.
    fn counts<'a>(&self, standing: &'a Standing) -> Option<&'a Grant> {
        standing.denial.as_ref().filter(|_| self.remember_denials)
    }

    /// Joins an equal question in flight, or asks. Returns `None` if the grants have
    /// changed since `standing` was computed.
    fn join(&self, question: &Question, standing: &Standing) -> Option<Asking> {
        let open = standing.open.iter();
        let asked = open.filter_map(|item| question.asked.get(*item).cloned());
        let part = question.clone().only(asked.collect());
        let call = question.fingerprint();
        let key = Key {
            policy: self.grants.policy().cloned(),
            call,
            shown: part.shown_fingerprint(),
        };

        let mut flights = self.flights.lock();
        if let Some(flight) = flights.get(&key).and_then(|flight| flight.shared.upgrade()) {
            return Some(flight);
        }
        // A question that has just ended added its grant before it left the map.
        if self.grants.standing(question) != *standing {
            return None;
        }
        let pending = Pending {
            id: self.flights.number(),
            question: Arc::new(part),
        };
        let landing = Landing {
            flights: Arc::clone(&self.flights),
            key: key.clone(),
            id: pending.id,
        };
        let service = self.clone();
        let open = standing.open.clone();
        let asking = Arc::clone(&pending.question);
        let shared = async move {
            // Removed from the map when this ends or is dropped.
            let _landing = landing;
            Arc::new(service.ask(&asking, call, open).await)
        }
        .boxed()
        .shared();
        if let Some(weak) = shared.downgrade() {
            flights.insert(
                key,
                Flight {
                    pending,
                    shared: weak,
                },
            );
        }
        Some(shared)
    }

    /// Asks the approver, and remembers the answer.
    async fn ask(&self, question: &Question, call: Fingerprint, items: Vec<usize>) -> Settled {
        let begun = Instant::now();
        // Called inside the future, so that a panic before the first await is caught too.
        let answer = async { self.approver.ask(question).await };
        let answer = AssertUnwindSafe(answer).catch_unwind().await;
        let answer = answer.unwrap_or_else(|panic| Err(panicked(panic.as_ref())));
        let waited = begun.elapsed();
        let Ok(given) = &answer else {
            return Settled {
                answer,
                note: None,
                waited,
            };
        };
        let mut note = grants::note(given);
        if given.approved || self.remember_denials {
            let recorded = self.grants.record_part(question, call, items, given);
            if let Err(why) = recorded {
                let said = note.map_or_else(String::new, |note| format!("{note} "));
                note = Some(format!("{said}(not remembered: {why})"));
            }
        }
        Settled {
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
    ApproverError::new(format!(
        "the approver panicked ({message}); look at its log"
    ))
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
struct Settled {
    answer: Result<Answer, ApproverError>,
    note: Option<String>,
    waited: Duration,
}

/// The pending result, shared by all waiting callers.
type Asking = Shared<BoxFuture<'static, Arc<Settled>>>;

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
struct Flights {
    numbers: AtomicU64,
    by_key: Mutex<HashMap<Key, Flight>>,
}

struct Flight {
    pending: Pending,
    /// Weak, because only the waiting callers keep the question alive.
    shared: WeakShared<BoxFuture<'static, Arc<Settled>>>,
}

impl Flights {
    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Flight>> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl fmt::Debug for Flights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flights").field(&self.lock().len()).finish()
    }
}

/// Removes a question from the map when it ends, in any way.
struct Landing {
    flights: Arc<Flights>,
    key: Key,
    id: u64,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let mut flights = self.flights.lock();
        // A new question may have started under this key after the last caller stopped
        // waiting.
        if flights
            .get(&self.key)
            .is_some_and(|flight| flight.pending.id == self.id)
        {
            flights.remove(&self.key);
        }
    }
}
