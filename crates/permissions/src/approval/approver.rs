//! [`Approver`]: who answers, and those who need nobody to do so.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_timer::Delay;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};

use super::{Answer, Question};

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ApproverError(String);

impl ApproverError {
    /// `why` is a fragment that follows "and".
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }
}

/// Whoever answers questions: a person, a policy, a service.
///
/// A panic in `ask` counts as no answer. It harms no other question.
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
    /// [`ApproverError`] if there is nobody to answer; nothing is allowed then.
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError>;
}

#[async_trait]
impl<A: Approver + ?Sized> Approver for Arc<A> {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.as_ref().ask(question).await
    }
}

/// Says yes to everything, each time anew: nothing is remembered.
#[derive(Debug, Clone, Copy, Default)]
pub struct ApproveAll;

#[async_trait]
impl Approver for ApproveAll {
    async fn ask(&self, _question: &Question) -> Result<Answer, ApproverError> {
        Ok(Answer::yes())
    }
}

/// Says no to everything that would have to be asked, and says so.
#[derive(Debug, Clone, Copy, Default)]
pub struct Strict;

#[async_trait]
impl Approver for Strict {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let tool = question.tool_or_op();
        Ok(Answer::no().note(format!("Strict mode: {tool} requires approval")))
    }
}

/// Nobody is there to be asked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Unavailable {
    /// That is a no: [`Refusal::Declined`](crate::Refusal::Declined).
    Deny,
    /// That is for the caller to deal with:
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
        self.answer("nobody is there to ask; set an approver, or allow it in the rules")
    }
}

/// Waits for an answer, but not for ever.
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
    /// Withdraws the question from `inner` after this time.
    pub fn new(inner: A, after: Duration) -> Self {
        Self {
            inner,
            after,
            fallback: Unavailable::Error,
        }
    }

    /// What it means when nobody has answered by then; an error unless this is
    /// called.
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
                    .answer(&format!("nobody answered within {after:?}; ask again"))
            }
        }
    }
}

/// Who answers, as a word in a configuration.
///
/// The mode outranks whoever could be asked: only `interactive` asks them.
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
    /// Ask whoever can be asked; an error if that is nobody.
    #[default]
    Interactive,
    /// Always yes: [`ApproveAll`].
    ApproveAll,
    /// Always no: [`Strict`].
    Strict,
    /// As if nobody were there, which is a no: [`Unavailable::Deny`].
    Deny,
    /// As if nobody were there, which is an error: [`Unavailable::Error`].
    Error,
}

impl ApproverMode {
    /// Who answers in this mode. `interactive` is whoever can be asked, if
    /// somebody can.
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
