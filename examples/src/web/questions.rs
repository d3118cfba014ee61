//! [`Questions`]: approvals that are asked in the browser.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use permissions::approval::ApproverError;
use permissions::{Answer, Approver, Question};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

/// The questions of one session that wait for an answer.
#[derive(Debug, Default)]
pub(super) struct Questions {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The stream of the turn under way.
    events: Option<mpsc::UnboundedSender<Value>>,
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    asked: u64,
}

impl Questions {
    /// Sends the questions of a turn to its stream.
    pub(super) fn show_in(&self, events: mpsc::UnboundedSender<Value>) {
        self.state().events = Some(events);
    }

    /// Ends the stream of a turn, as far as questions go.
    pub(super) fn show_nowhere(&self) {
        self.state().events = None;
    }

    /// Answers a question. Returns `false` if it is not waiting.
    pub(super) fn answer(&self, number: u64, answer: Answer) -> bool {
        let waiting = self.state().waiting.remove(&number);
        waiting.is_some_and(|waiting| waiting.send(answer).is_ok())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows a question. Returns its number and its answer to come.
    fn show(&self, question: &Question) -> Option<(u64, oneshot::Receiver<Answer>)> {
        let mut state = self.state();
        let (sender, receiver) = oneshot::channel();
        let number = state.asked;
        state.asked += 1;
        let event = json!({
            "type": "question",
            "number": number,
            "text": question.description,
            "effect": question.effect.to_string(),
            "reasons": question.reasons,
        });
        state.events.as_ref()?.send(event).ok()?;
        state.waiting.insert(number, sender);
        Some((number, receiver))
    }
}

#[async_trait]
impl Approver for Questions {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let gone = || ApproverError::new("the page that could answer is gone; ask again");
        let (number, answer) = self.show(question).ok_or_else(gone)?;
        let _waiting = Waiting(self, number);
        answer.await.map_err(|_| gone())
    }
}

/// Withdraws a question when it is dropped.
struct Waiting<'q>(&'q Questions, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.state().waiting.remove(&self.1);
    }
}
