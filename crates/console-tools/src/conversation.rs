//! [`Conversation`]: state that is kept between calls.

pub(crate) mod conversation_shells;
mod shell_terminals;

use std::sync::Arc;

use backend_core::{Backend, Result};

use self::conversation_shells::ConversationShells;
use self::shell_terminals::ShellTerminals;
use crate::kept_outputs::{OutputOverlay, OutputStore};
use crate::tracker::Tracker;

/// State that is kept between calls, separate for each conversation. Dropping it ends
/// the background shells that it started.
#[derive(Debug, Default)]
pub struct Conversation {
    /// The files that were read, and their contents at that time.
    pub(crate) tracker: Tracker,
    /// Outputs that were too long for a reply.
    pub(crate) outputs: Arc<OutputStore>,
    /// The terminal state of each background shell.
    pub(crate) terminals: Arc<ShellTerminals>,
    /// The background shells that this conversation started.
    pub(crate) shells: Arc<ConversationShells>,
}

impl Conversation {
    /// Ends the background shells that this conversation started and drops its kept
    /// outputs. Returns how many of the shells were still running.
    ///
    /// # Errors
    ///
    /// Returns the error of a sandbox. The other shells are ended. The next call, or
    /// dropping the conversation, retries those that are not.
    pub async fn close(&self) -> Result<usize> {
        self.outputs.clear();
        self.shells.kill_all().await
    }

    /// Returns `backend` with the kept outputs of this conversation on top of it.
    pub fn with_outputs(&self, backend: Arc<dyn Backend>) -> OutputOverlay {
        OutputOverlay::new(backend, Arc::clone(&self.outputs))
    }

    /// Returns a copy for a call that is only previewed. It sees the state of this
    /// conversation, changes none of it, and waits for no other call.
    pub(crate) fn for_preview(&self) -> Self {
        Self {
            tracker: self.tracker.for_preview(),
            outputs: Arc::clone(&self.outputs),
            terminals: Arc::clone(&self.terminals),
            shells: Arc::clone(&self.shells),
        }
    }
}
