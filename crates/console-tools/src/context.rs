//! [`Context`]: what a tool works with during one call.

use std::sync::Arc;

use backend_core::{Backend, Sandbox, VPath};
use permissions::mounts::Scope;

use crate::host_names::HostNames;
use crate::tracker::PathLock;
use crate::{Conversation, Observer, Options, ToolError};

/// What a tool works with during one call. The backend is guarded already: what
/// a policy denies fails, what it asks about is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Context {
    /// The files, and where commands run.
    pub backend: Arc<dyn Backend>,
    /// How the tools behave.
    pub options: Arc<Options>,
    /// What the conversation remembers.
    pub conversation: Arc<Conversation>,
    /// The mounts, if there are any: how paths are spelled and where they begin.
    /// What may be done there is up to the backend's guard.
    pub scope: Option<Scope>,
    /// Who follows the call while it runs.
    pub observer: Option<Arc<dyn Observer>>,
    /// The backend behind the same rules, but nobody is asked: what would have to
    /// be is refused, unless it was approved for this call. For looks that only
    /// make a message better, and for what belongs to something approved.
    pub(crate) quiet: Arc<dyn Backend>,
    /// The file whose lock this call holds already.
    pub(crate) held: Option<VPath>,
    /// What paths mean that commands print.
    pub(crate) host_names: HostNames,
}

impl Context {
    /// A context for one call.
    pub fn new(
        backend: Arc<dyn Backend>,
        options: Arc<Options>,
        conversation: Arc<Conversation>,
    ) -> Self {
        Self {
            quiet: Arc::clone(&backend),
            backend,
            options,
            conversation,
            scope: None,
            observer: None,
            held: None,
            host_names: HostNames::default(),
        }
    }

    /// The same with another backend for looks that nobody is asked about.
    #[must_use]
    pub(crate) fn quiet(mut self, quiet: Arc<dyn Backend>) -> Self {
        self.quiet = quiet;
        self
    }

    /// The same for a call that somebody follows.
    #[must_use]
    pub fn observer(mut self, observer: Option<Arc<dyn Observer>>) -> Self {
        self.observer = observer;
        self
    }

    /// The same where the backend's files stand in mounts.
    #[must_use]
    pub fn scope(mut self, scope: Option<Scope>) -> Self {
        self.scope = scope;
        self
    }

    /// Waits until no other call of this conversation changes the file, unless
    /// this one has waited already.
    pub(crate) async fn turn(&self, path: &VPath) -> Option<PathLock<'_>> {
        match self.held.as_ref() == Some(path) {
            true => None,
            false => Some(self.conversation.tracker.lock(path).await),
        }
    }

    /// The path that a model typed. An absolute one may also be as commands print it:
    /// where they see a directory of the host, `/srv/project/a` is `/a`.
    ///
    /// # Errors
    ///
    /// A fixable one if it is none.
    pub fn path(&self, text: &str) -> Result<VPath, ToolError> {
        let path = self.backend.working_dir().join(text)?;
        let meant = text.starts_with('/').then(|| self.host_names.meant(&path));
        Ok(meant.flatten().unwrap_or(path))
    }

    /// Where commands run.
    ///
    /// # Errors
    ///
    /// If the backend runs none.
    pub fn sandbox(&self) -> Result<&dyn Sandbox, ToolError> {
        self.backend
            .as_sandbox()
            .ok_or_else(|| ToolError::environment("this backend does not run commands"))
    }
}
