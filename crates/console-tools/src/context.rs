//! [`Context`]: the environment of a tool during one call.

use std::sync::Arc;

use backend_core::{Backend, VPath};
use backend_mounts::Scope;

use crate::conversation::Conversation;
use crate::host_names::HostNames;
use crate::options::Options;
use crate::reply::ToolError;
use crate::tracker::PathLock;

/// The environment of a tool during one call. The backend is guarded: an operation that
/// the policy denies fails, and one that needs approval asks.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Context {
    /// The files, and the sandbox for commands.
    pub backend: Arc<dyn Backend>,
    /// The options of the tools.
    pub options: Arc<Options>,
    /// The state of the conversation.
    pub conversation: Arc<Conversation>,
    /// The mounts, if there are any, which determine how paths are parsed and where
    /// they start. The backend's guard decides what may be done there.
    pub scope: Option<Scope>,
    /// The observer that follows the call while it runs.
    pub observer: Option<Arc<dyn Observer>>,
    /// The backend behind the same rules, but without questions: an operation that
    /// needs approval is refused, unless it was approved for this call. Used for reads
    /// that only improve a message, and for the follow-up of an approved operation.
    pub(crate) non_interactive: Arc<dyn Backend>,
    /// The file whose lock this call already holds.
    pub(crate) locked_path: Option<VPath>,
    /// Maps paths that commands print to those of the backend.
    pub(crate) host_names: HostNames,
}

impl Context {
    /// Creates a context for one call.
    pub fn new(
        backend: Arc<dyn Backend>,
        options: Arc<Options>,
        conversation: Arc<Conversation>,
    ) -> Self {
        Self {
            non_interactive: Arc::clone(&backend),
            backend,
            options,
            conversation,
            scope: None,
            observer: None,
            locked_path: None,
            host_names: HostNames::default(),
        }
    }

    /// Waits until no other call of this conversation changes the file. Returns `None`
    /// if this call already holds the lock.
    pub(crate) async fn lock_path(&self, path: &VPath) -> Option<PathLock<'_>> {
        if self.locked_path.as_ref() == Some(path) {
            return None;
        }
        Some(self.conversation.tracker.lock(path).await)
    }

    /// Parses a path of the model. An absolute path may also be in the form that
    /// commands print: where they see a host directory, `/srv/project/a` is `/a`.
    ///
    /// # Errors
    ///
    /// Returns a fixable error if the path is invalid.
    pub fn path(&self, text: &str) -> Result<VPath, ToolError> {
        let path = self.backend.working_dir().join(text)?;
        let meant = text
            .starts_with('/')
            .then(|| self.host_names.to_backend(&path));
        Ok(meant.flatten().unwrap_or(path))
    }
}

/// Receives the output of a command before the reply contains it.
pub trait Observer: std::fmt::Debug + Send + Sync + 'static {
    /// Receives raw output of a command: with escape codes, and split at any byte.
    /// Called in order. The command waits for it, so return soon.
    fn output(&self, bytes: &[u8]);
}
