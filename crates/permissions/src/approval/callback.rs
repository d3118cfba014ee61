//! [`Interactive`]: callbacks as approvers.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures_channel::oneshot;
use futures_util::future::{BoxFuture, FutureExt as _};

use super::limits::BLOCKED_THREADS;
use super::{Answer, Approver, ApproverError, Question};
use crate::Op;

type Callback =
    Box<dyn Fn(Question) -> BoxFuture<'static, Result<Answer, ApproverError>> + Send + Sync>;

/// Asks through a callback.
pub struct Interactive(Callback);

impl Interactive {
    /// Creates an approver from an async callback. The future is dropped when the
    /// question is withdrawn.
    ///
    /// ```
    /// use permissions::approval::{Answer, Interactive};
    ///
    /// let approver = Interactive::new(|question| async move {
    ///     // Show `question.to_string()` to the user; its text is safe to print.
    ///     Ok(Answer::no().note(format!("{} is too much", question.description)))
    /// });
    /// ```
    pub fn new<F, T>(callback: F) -> Self
    where
        F: Fn(Question) -> T + Send + Sync + 'static,
        T: Future<Output = Result<Answer, ApproverError>> + Send + 'static,
    {
        Self(Box::new(move |question| callback(question).boxed()))
    }

    /// Creates an approver from an async callback that takes an operation, its target and
    /// the reasons, and returns whether it is approved.
    ///
    /// For a question about several accesses, it is called for each in turn, and the
    /// first no is the answer. It is not called for a question about a tool without
    /// operations, because the callback could not tell what it is about.
    pub fn from_bool<F, T>(callback: F) -> Self
    where
        F: Fn(Op, String, String) -> T + Send + Sync + 'static,
        T: Future<Output = bool> + Send + 'static,
    {
        let callback = Arc::new(callback);
        Self::new(move |question| {
            let callback = Arc::clone(&callback);
            async move {
                if question.asked.is_empty() {
                    return Err(ApproverError::new(
                        "the callback handles only operations; use one that takes the question",
                    ));
                }
                let reason = question.reasons.join("; ");
                for asked in &question.asked {
                    if !callback(asked.op, asked.target.to_string(), reason.clone()).await {
                        return Ok(Answer::no());
                    }
                }
                Ok(Answer::yes())
            }
        })
    }

    /// Creates an approver from a blocking callback, which runs on a separate thread.
    ///
    /// A withdrawn question cannot be taken back from such a callback: it keeps running,
    /// and its answer is discarded. While [`BLOCKED_THREADS`] callbacks are running,
    /// further questions get no answer.
    pub fn blocking<F>(callback: F) -> Self
    where
        F: Fn(Question) -> Result<Answer, ApproverError> + Send + Sync + 'static,
    {
        let callback = Arc::new(callback);
        let busy = Arc::new(AtomicUsize::new(0));
        Self::new(move |question| {
            let (callback, slot) = (Arc::clone(&callback), CallbackSlot::take(&busy));
            async move {
                let Some(slot) = slot else {
                    return Err(ApproverError::new(format!(
                        "{BLOCKED_THREADS} earlier questions have no answer yet; answer those first"
                    )));
                };
                let (reply, answer) = oneshot::channel();
                let asking = move || {
                    let given = callback(question);
                    // Release the slot before the caller can see the answer and ask again.
                    drop(slot);
                    // If the question was withdrawn, there is no receiver.
                    let _ = reply.send(given);
                };
                let thread = std::thread::Builder::new().name("approval".to_owned());
                thread.spawn(asking).map_err(|error| {
                    ApproverError::new(format!("no thread could be started to ask: {error}"))
                })?;
                answer.await.unwrap_or_else(|_| {
                    Err(ApproverError::new("the callback panicked; check its log"))
                })
            }
        })
    }
}

/// A slot for one running callback.
struct CallbackSlot(Arc<AtomicUsize>);

impl CallbackSlot {
    fn take(busy: &Arc<AtomicUsize>) -> Option<Self> {
        busy.fetch_update(Ordering::AcqRel, Ordering::Acquire, |busy| {
            (busy < BLOCKED_THREADS).then_some(busy + 1)
        })
        .ok()
        .map(|_| Self(Arc::clone(busy)))
    }
}

impl Drop for CallbackSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Interactive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Interactive")
    }
}

#[async_trait]
impl Approver for Interactive {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        (self.0)(question.clone()).await
    }
}
