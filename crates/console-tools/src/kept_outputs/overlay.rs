//! [`OutputOverlay`]: a backend with the kept outputs on top of it.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::{CopyOptions, EditOptions, EditOutcome, RenameOptions};
use backend_core::{Backend, Edit, Operation, Result, VPath, delegate};

use super::output_backend::{OutputBackend, refuse};
use super::store::{OutputStore, path_in_outputs};

/// A backend that also serves a conversation's kept outputs.
///
/// [`OUTPUTS`](crate::OUTPUTS) and everything beneath it come from the conversation and
/// are read-only. All other paths go to the backend unchanged. Its listings and
/// searches do not show the directory, and commands do not see it.
///
/// ```
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use console_tools::{Conversation, OUTPUTS};
/// use backend_core::BackendExt as _;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// let conversation = Conversation::default();
/// let backend = conversation.with_outputs(Arc::new(StateBackend::new()));
/// backend.write_file("notes.md", "text").await?;
/// assert!(backend.list_dir(OUTPUTS).await?.entries.is_empty());
/// assert!(backend.write_file("/.agentbox/outputs/1.txt", "text").await.is_err());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct OutputOverlay {
    inner: Arc<dyn Backend>,
    kept: OutputBackend,
}

impl OutputOverlay {
    pub(crate) fn new(inner: Arc<dyn Backend>, outputs: Arc<OutputStore>) -> Self {
        let kept = OutputBackend(outputs);
        Self { inner, kept }
    }

    /// Returns the backend that serves `path`.
    fn at(&self, path: &VPath) -> &dyn Backend {
        match path_in_outputs(path) {
            Some(_) => &self.kept,
            None => &*self.inner,
        }
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl Backend for OutputOverlay {
    delegate!(|self| self.inner => info, working_dir, as_sandbox);

    delegate! {
        |self, path| self.at(path) => resolve, stat, ls, read, read_text, write, create_dir,
        delete, glob, grep
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        match path_in_outputs(path) {
            Some(_) => refuse(Operation::Edit, path),
            None => self.inner.edit(path, edits, options).await,
        }
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        match path_in_outputs(from).or(path_in_outputs(to)) {
            Some(_) => refuse(Operation::Rename, from),
            None => self.inner.rename(from, to, options).await,
        }
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        match path_in_outputs(from).or(path_in_outputs(to)) {
            Some(_) => refuse(Operation::Copy, from),
            None => self.inner.copy(from, to, options).await,
        }
    }
}
