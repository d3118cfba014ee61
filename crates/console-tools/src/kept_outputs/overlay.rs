//! [`OutputOverlay`]: a backend with the kept outputs on top of it, which are a read-only
//! backend.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, Listing, LsOptions, ReadOptions, RenameOptions, Skipped, StatOptions, WriteOptions,
    WriteOutcome,
};
use backend_core::{
    Backend, BackendInfo, Capabilities, Edit, Error, ErrorKind, Operation, Result, VPath, delegate,
    derived_backend,
};

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
        delete, glob, grep, watch
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

const NAME: &str = "outputs";

#[derive(Debug, Clone)]
pub(super) struct OutputBackend(pub(super) Arc<OutputStore>);

impl OutputBackend {
    fn entry(&self, path: &VPath) -> Result<Entry> {
        Ok(match self.0.find(path)? {
            None => Entry::directory(path.clone()),
            Some(text) => Entry::file(path.clone(), text.len() as u64),
        })
    }

    fn listing(&self, path: &VPath, options: &LsOptions) -> Result<Listing> {
        let entry = self.entry(path)?;
        let entries = if entry.is_dir() {
            self.0.list()
        } else {
            vec![entry]
        };
        options.listing(entries, Skipped::default())
    }

    fn bytes(&self, path: &VPath, options: &ReadOptions) -> Result<FileBytes> {
        let text = self.0.find(path)?.ok_or_else(Error::is_a_directory)?;
        options.slice(&text)
    }
}

/// Returns the error for any operation that would change a kept output.
pub(super) fn refuse<T>(operation: Operation, path: &VPath) -> Result<T> {
    let error = Error::new(
        ErrorKind::PermissionDenied,
        "kept outputs can only be read; write to a path elsewhere",
    );
    Err(error.at(operation, path).on(NAME))
}

derived_backend! {
    impl Backend for OutputBackend {
        fn info(&self) -> BackendInfo {
            BackendInfo::new(NAME, Capabilities::default())
        }

        async fn stat(&self, path: &VPath, _: StatOptions) -> Result<Entry> {
            self.entry(path).map_err(Error::context(NAME, Operation::Stat, path))
        }

        async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
            let listed = self.listing(path, &options);
            listed.map_err(Error::context(NAME, Operation::Ls, path))
        }

        async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
            let read = self.bytes(path, &options);
            read.map_err(Error::context(NAME, Operation::Read, path))
        }

        async fn write(&self, path: &VPath, _: Content, _: WriteOptions) -> Result<WriteOutcome> {
            refuse(Operation::Write, path)
        }

        async fn create_dir(&self, path: &VPath, _: CreateDirOptions) -> Result<()> {
            refuse(Operation::CreateDir, path)
        }

        async fn delete(&self, path: &VPath, _: DeleteOptions) -> Result<()> {
            refuse(Operation::Delete, path)
        }
    }
}
