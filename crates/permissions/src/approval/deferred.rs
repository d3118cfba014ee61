//! [`Deferred`]: answers that were given before the question is asked again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;

use super::{Answer, Approver, ApproverError, Fingerprint, Question};

/// Answers with what was decided earlier, for hosts that cannot wait: a
/// question without a decision gets no answer, and the call is refused.
///
/// Each decision answers one question, once. The [`Fingerprint`] is what ties
/// them together: it is the same in every process, and another one as soon as the
/// call would do something else than was shown.
///
/// Clones are one.
///
/// ```
/// use permissions::approval::{Answer, Approver as _, Deferred};
/// use permissions::Question;
///
/// let deferred = Deferred::new();
/// let question = Question::for_tool("session-1", "send_mail", serde_json::json!({"to": "all"}));
/// let ask = || futures::executor::block_on(deferred.ask(&question));
/// assert!(ask().is_err());
///
/// deferred.decide(question.fingerprint(), Answer::yes());
/// assert!(ask()?.approved);
/// assert!(ask().is_err(), "it was for that one call");
/// # Ok::<(), permissions::approval::ApproverError>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Deferred(Arc<Mutex<HashMap<Fingerprint, Answer>>>);

impl Deferred {
    /// Nothing is decided yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decides about a question. A decision about it that was not used yet is
    /// replaced and returned.
    pub fn decide(&self, question: Fingerprint, answer: Answer) -> Option<Answer> {
        self.lock().insert(question, answer)
    }

    /// Takes back a decision that was not used yet.
    pub fn revoke(&self, question: Fingerprint) -> Option<Answer> {
        self.lock().remove(&question)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Fingerprint, Answer>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Approver for Deferred {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.revoke(question.fingerprint())
            .ok_or_else(|| ApproverError::new("it is not decided yet; wait for a yes"))
    }
}
