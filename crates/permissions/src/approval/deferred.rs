//! [`Deferred`]: answers given before the question is asked again.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::sync::lock;

use super::{Answer, Approver, ApproverError, Fingerprint, Question};

/// Answers with earlier decisions, for hosts that cannot wait. A question without a
/// decision gets no answer, and the call is refused.
///
/// Each decision answers one question, once. They are matched by [`Fingerprint`], which
/// is the same in every process and changes as soon as the call would do something other
/// than what was shown.
///
/// Clones share the decisions.
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
    /// Creates an approver without any decisions.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stores the decision about a question. Returns the unused one that it replaces.
    pub fn decide(&self, question: Fingerprint, answer: Answer) -> Option<Answer> {
        lock(&self.0).insert(question, answer)
    }

    /// Removes and returns a decision that has not been used yet.
    pub fn revoke(&self, question: Fingerprint) -> Option<Answer> {
        lock(&self.0).remove(&question)
    }
}

#[async_trait]
impl Approver for Deferred {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.revoke(question.fingerprint())
            .ok_or_else(|| ApproverError::new("it is not decided yet; wait for approval"))
    }
}
