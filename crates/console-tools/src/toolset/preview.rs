//! [`CallPreview`]: the questions that a call would ask, before it is made.
//!
//! A preview is a trial run: the same code runs, on a backend that stops it at the first
//! operation that would change anything, with an approver that records the questions.
//! So a preview cannot differ from the call.

use std::future::{Future as _, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use backend_core::Backend;
use futures_util::FutureExt as _;
use permissions::approval::{Approver, Question};

use super::chat::Chat;
use super::environment::CallEnvironment;
use super::trial::{ReadOnlyTrial, Trial};
use crate::arguments::{self, Arguments};
use crate::reply::{FailureClass, Reply, ToolResult};

/// The outcome of a call if it were made at this moment.
///
/// Another call, or a change of a file, can change the outcome.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum CallPreview {
    /// The call would start without a question. It may still fail, as any call may.
    Allowed,
    /// The call would ask this first: a single question, or several in order if a tool
    /// asks more. Without an approver it would be refused.
    Asks(Vec<Question>),
    /// The call would be refused, by the policy or a remembered denial, or not offered.
    Denied(Reply),
    /// The call would fail before it asks or does anything: the arguments are wrong,
    /// the text to replace is missing, or the tool does not exist.
    Fails(Reply),
}

impl CallPreview {
    /// Returns the questions that would be asked.
    pub fn questions(&self) -> &[Question] {
        match self {
            Self::Asks(questions) => questions,
            _ => &[],
        }
    }

    /// Returns `true` if the call would start without a question.
    pub fn is_allowed(&self) -> bool {
        matches!(self, Self::Allowed)
    }
}

impl Chat {
    /// Predicts what [`call`](Self::call) would ask if it were made now, for hosts that
    /// collect approvals before they make a call. No file is changed, nothing runs, no
    /// question is asked, and neither the conversation nor an audit log records it.
    ///
    /// Files and listings are read as the call would read them before its first change.
    /// Nothing is searched. A [`CustomTool`](crate::CustomTool) does not run: only its
    /// declared accesses are judged.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use backend_state::StateBackend;
    /// use console_tools::Toolset;
    /// use permissions::Preset;
    ///
    /// let toolset = Toolset::builder(Arc::new(StateBackend::new()))
    ///     .ruleset(Preset::Default.ruleset())
    ///     .build()?;
    /// let chat = toolset.conversation("conversation-1");
    /// let preview = chat.preview("write_file", r#"{"path": "a.md", "content": "hello"}"#).await;
    /// assert_eq!(preview.questions()[0].description, "Write 5 chars to /a.md");
    /// assert!(chat.preview("ls", "{}").await.is_allowed());
    /// # Ok(()) }
    /// ```
    pub async fn preview<'a>(
        &self,
        name: &str,
        arguments: impl Into<Arguments<'a>>,
    ) -> CallPreview {
        let trial = Arc::new(Trial::default());
        let run = AssertUnwindSafe(self.trial_run(name, arguments.into(), &trial)).catch_unwind();
        let mut run = pin!(run);
        let ended = poll_fn(|cx| match run.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Some(result)),
            // The operation that stopped the run never completes.
            Poll::Pending if trial.is_over() => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        });
        let ended = ended.await;
        let asked = trial.take_questions();
        if !asked.is_empty() {
            return CallPreview::Asks(asked);
        }
        let Some(result) = ended else {
            return CallPreview::Allowed;
        };
        let reply = self.reply(name, result);
        match reply.failure {
            None => CallPreview::Allowed,
            Some(FailureClass::Refused) => CallPreview::Denied(reply),
            Some(FailureClass::Fixable | FailureClass::Environment) => CallPreview::Fails(reply),
        }
    }

    async fn trial_run(
        &self,
        name: &str,
        arguments: Arguments<'_>,
        trial: &Arc<Trial>,
    ) -> ToolResult {
        let arguments = arguments::read(arguments, self.options().limits.argument_bytes)?;
        let real = self.environment().await?;
        let entry = self.entry(name, &real.tools)?;
        let backend = Arc::clone(real.guard.unguarded());
        let read_only: Arc<dyn Backend> = Arc::new(ReadOnlyTrial::new(backend, Arc::clone(trial)));
        let recorder: Arc<dyn Approver> = Arc::clone(trial) as _;
        let environment = CallEnvironment {
            guard: real.guard.dry_run(Arc::clone(&read_only), Some(recorder)),
            non_interactive: real.non_interactive.dry_run(read_only, None),
            tools: Arc::clone(&real.tools),
            host_names: real.host_names.clone(),
        };
        let chat = self.for_preview();
        let mut gate = chat.gate(&environment, entry);
        gate.trial = Some(Arc::clone(trial));
        entry.runner.call(entry, &gate, arguments).await
    }
}
