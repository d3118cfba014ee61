//! [`Approver`]: answers questions. Includes approvers that need no user.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::sync::lock;
use futures_timer::Delay;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};

use super::{Answer, Fingerprint, Question};

/// The reason why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ApproverError(String);

impl ApproverError {
    /// Creates an error. `why` is a fragment that follows "and".
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Answers questions: a person, a policy, a service.
///
/// A panic in `ask` counts as no answer. It does not affect other questions.
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn ask(&self, question: &Question) -> Result<Answer, ApproverError>;
/// ```
#[async_trait]
pub trait Approver: std::fmt::Debug + Send + Sync + 'static {
    /// Answers a question. Dropping the future withdraws it.
    ///
    /// # Errors
    ///
    /// [`ApproverError`] if no answer can be given. Nothing is allowed then.
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError>;
}

#[async_trait]
impl<A: Approver + ?Sized> Approver for Arc<A> {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.as_ref().ask(question).await
    }
}

/// Approves everything, each time anew. Nothing is remembered.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApproveAll;

#[async_trait]
impl Approver for ApproveAll {
    async fn ask(&self, _question: &Question) -> Result<Answer, ApproverError> {
        Ok(Answer::yes())
    }
}

/// Declines every question, with a note that says so.
#[derive(Debug, Clone, Copy, Default)]
pub struct Strict;

#[async_trait]
impl Approver for Strict {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let tool = question.tool_or_op();
        Ok(Answer::no().note(format!("Strict mode: {tool} requires approval")))
    }
}

/// An approver for when there is no user to ask.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unavailable {
    /// Declines: [`Refusal::Declined`](crate::Refusal::Declined).
    Deny,
    /// Leaves it to the caller:
    /// [`Refusal::ApprovalRequired`](crate::Refusal::ApprovalRequired).
    #[default]
    Error,
}

impl Unavailable {
    fn answer(self, why: &str) -> Result<Answer, ApproverError> {
        match self {
            Self::Deny => Ok(Answer::no().note(format!("approval required, and {why}"))),
            Self::Error => Err(ApproverError::new(why)),
        }
    }
}

#[async_trait]
impl Approver for Unavailable {
    async fn ask(&self, _question: &Question) -> Result<Answer, ApproverError> {
        self.answer("no approver is available; set one, or allow it in the rules")
    }
}

/// Waits for an answer for a limited time.
///
/// ```
/// use std::time::Duration;
/// use permissions::approval::{ApproveAll, Unavailable, WithTimeout};
///
/// let approver = WithTimeout::new(ApproveAll, Duration::from_secs(60))
///     .fallback(Unavailable::Deny);
/// ```
#[derive(Debug, Clone)]
pub struct WithTimeout<A> {
    inner: A,
    after: Duration,
    fallback: Unavailable,
}

impl<A: Approver> WithTimeout<A> {
    /// Creates an approver that withdraws the question from `inner` after this time.
    pub fn new(inner: A, after: Duration) -> Self {
        Self {
            inner,
            after,
            fallback: Unavailable::Error,
        }
    }

    /// Sets the response if there is no answer in time. The default is an error.
    #[must_use]
    pub fn fallback(mut self, fallback: Unavailable) -> Self {
        self.fallback = fallback;
        self
    }
}

#[async_trait]
impl<A: Approver> Approver for WithTimeout<A> {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        match select(self.inner.ask(question), Delay::new(self.after)).await {
            Either::Left((answer, _)) => answer,
            Either::Right(((), withdrawn)) => {
                drop(withdrawn);
                let after = self.after;
                self.fallback
                    .answer(&format!("there was no answer within {after:?}; ask again"))
            }
        }
    }
}

/// The choice of an approver, as a word in a configuration.
///
/// The mode takes precedence over an available approver: only `interactive` uses it.
///
/// ```
/// use std::sync::Arc;
/// use permissions::approval::{ApproveAll, ApproverMode};
///
/// let mode: ApproverMode = serde_json::from_str("\"strict\"")?;
/// let approver = mode.approver(Some(Arc::new(ApproveAll)));
/// assert_eq!(format!("{approver:?}"), "Strict");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ApproverMode {
    /// Asks the available approver; an error if there is none.
    #[default]
    Interactive,
    /// Always approves: [`ApproveAll`].
    ApproveAll,
    /// Always declines: [`Strict`].
    Strict,
    /// Declines, as if no user could be asked: [`Unavailable::Deny`].
    Deny,
    /// Fails, as if no user could be asked: [`Unavailable::Error`].
    Error,
}

impl ApproverMode {
    /// Returns the approver for this mode. `interactive` is the available one, if any.
    pub fn approver(self, interactive: Option<Arc<dyn Approver>>) -> Arc<dyn Approver> {
        match self {
            Self::Interactive => interactive.unwrap_or_else(|| Arc::new(Unavailable::Error)),
            Self::ApproveAll => Arc::new(ApproveAll),
            Self::Strict => Arc::new(Strict),
            Self::Deny => Arc::new(Unavailable::Deny),
            Self::Error => Arc::new(Unavailable::Error),
        }
    }
}

/// Answers with earlier decisions, for hosts that cannot wait. A question without a
/// decision gets no answer, and the call is refused.
///
/// Each decision answers one question, once. They are matched by [`Fingerprint`], which
/// is the same in every process and changes with the file that an edit is for. A yes to a
/// write counts whatever the file contains by then.
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
