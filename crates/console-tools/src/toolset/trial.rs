//! [`Trial`]: the state of a trial run.

use std::future::pending;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use backend_core::sync::lock;
use permissions::approval::{Answer, Approver, ApproverError, Question};

#[derive(Debug, Default)]
pub(super) struct Trial {
    is_over: AtomicBool,
    asked: Mutex<Vec<Question>>,
}

impl Trial {
    /// Ends the trial run before an operation that would have an effect. Never returns.
    pub(super) async fn stop<T>(&self) -> T {
        self.is_over.store(true, Ordering::Release);
        pending().await
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    pub(super) fn take_questions(&self) -> Vec<Question> {
        std::mem::take(&mut *lock(&self.asked))
    }
}

/// Records the question and approves it, so the trial run continues.
#[async_trait]
impl Approver for Trial {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        lock(&self.asked).push(question.clone());
        Ok(Answer::yes())
    }
}
