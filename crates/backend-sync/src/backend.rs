//! [`SyncBackend`]: every operation of a backend as a blocking call.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendInfo, Edit, Operation, Result, VPath};

use crate::calls::Calls;
use crate::cancel::Cancel;
use crate::engine::Engine;

/// A backend with blocking operations. Clones share the same backend.
///
/// The methods are those of [`Backend`] and, for calls without options, of
/// [`BackendExt`](backend_core::BackendExt). Their behaviour and errors are documented
/// there. In addition, each can fail like [`Engine::run`] and, if it is
/// [cancelled](Self::cancelled_by), with `Cancelled`.
///
/// If the backend panics, the panic is propagated to the caller. Nothing is left
/// locked.
///
/// ```
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use backend_sync::SyncBackend;
///
/// let files = SyncBackend::new(Arc::new(StateBackend::new()));
/// files.write_file("notes/plan.md", "# Plan\n")?;
/// assert_eq!(files.find_files("*.md")?.files.len(), 1);
/// assert_eq!(files.read_to_string("notes/plan.md")?, "# Plan\n");
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SyncBackend {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) calls: Calls,
}

// A panic cannot leave this type in a broken state: it holds nothing but two handles.
// Whether the backend survives a panic is up to the backend, as with every other way to
// share it.
impl UnwindSafe for SyncBackend {}
impl RefUnwindSafe for SyncBackend {}

impl SyncBackend {
    /// Calls `backend` on the [shared engine](Engine::shared).
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            calls: Calls::default(),
        }
    }

    /// Returns a handle that runs its calls on another engine.
    #[must_use]
    pub fn on(mut self, engine: &Engine) -> Self {
        self.calls.engine = engine.clone();
        self
    }

    /// Returns a handle whose calls end when `cancel` is cancelled. The running call is
    /// dropped, and a change has then happened completely or not at all.
    #[must_use]
    pub fn cancelled_by(mut self, cancel: &Cancel) -> Self {
        self.calls.cancel = Some(cancel.clone());
        self
    }

    /// Returns the wrapped backend.
    pub fn inner(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Returns the engine that runs the calls.
    pub fn engine(&self) -> &Engine {
        &self.calls.engine
    }

    /// Runs async code with the backend.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use backend_state::StateBackend;
    /// # use backend_sync::SyncBackend;
    /// use backend_core::BackendExt as _;
    ///
    /// # let files = SyncBackend::new(Arc::new(StateBackend::new()));
    /// let there = files.with(|backend| async move {
    ///     backend.write_file("a", "x").await?;
    ///     backend.exists("a").await
    /// })?;
    /// assert!(there);
    /// # Ok::<(), backend_core::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The errors of `work`.
    pub fn with<T, F, W>(&self, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
        W: FnOnce(Arc<dyn Backend>) -> F,
    {
        self.calls.run(work(Arc::clone(&self.backend)))
    }

    pub(crate) fn call<T, F, W>(&self, operation: Operation, work: W) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
        W: FnOnce(Arc<dyn Backend>) -> F,
    {
        self.calls.call(operation, work(Arc::clone(&self.backend)))
    }

    /// Describes the backend and its capabilities. No I/O.
    pub fn info(&self) -> BackendInfo {
        self.backend.info()
    }

    /// Returns the directory that relative paths start in. No I/O.
    pub fn working_dir(&self) -> VPath {
        self.backend.working_dir()
    }

    /// Follows every symbolic link in `path`.
    ///
    /// # Errors
    ///
    /// See [`Backend::resolve`].
    pub fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        let path = path.clone();
        self.call(Operation::Resolve, |backend| async move {
            backend.resolve(&path, options).await
        })
    }

    /// Describes the entry at `path`.
    ///
    /// # Errors
    ///
    /// See [`Backend::stat`].
    pub fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let path = path.clone();
        self.call(Operation::Stat, |backend| async move {
            backend.stat(&path, options).await
        })
    }

    /// Lists a directory.
    ///
    /// # Errors
    ///
    /// See [`Backend::ls`].
    pub fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        let path = path.clone();
        self.call(Operation::Ls, |backend| async move {
            backend.ls(&path, options).await
        })
    }

    /// Reads bytes.
    ///
    /// # Errors
    ///
    /// See [`Backend::read`].
    pub fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        let path = path.clone();
        self.call(Operation::Read, |backend| async move {
            backend.read(&path, options).await
        })
    }

    /// Reads a window of lines.
    ///
    /// # Errors
    ///
    /// See [`Backend::read_text`].
    pub fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        let path = path.clone();
        self.call(Operation::ReadText, |backend| async move {
            backend.read_text(&path, options).await
        })
    }

    /// Writes a whole file.
    ///
    /// # Errors
    ///
    /// See [`Backend::write`].
    pub fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let path = path.clone();
        self.call(Operation::Write, |backend| async move {
            backend.write(&path, content, options).await
        })
    }

    /// Replaces exact pieces of text. Either all edits are applied or none.
    ///
    /// # Errors
    ///
    /// See [`Backend::edit`].
    pub fn edit(&self, path: &VPath, edits: &[Edit], options: EditOptions) -> Result<EditOutcome> {
        let (path, edits) = (path.clone(), edits.to_vec());
        self.call(Operation::Edit, |backend| async move {
            backend.edit(&path, &edits, options).await
        })
    }

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    ///
    /// See [`Backend::create_dir`].
    pub fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        let path = path.clone();
        self.call(Operation::CreateDir, |backend| async move {
            backend.create_dir(&path, options).await
        })
    }

    /// Deletes a file, a link, or with `recursive` a directory and its contents.
    ///
    /// # Errors
    ///
    /// See [`Backend::delete`].
    pub fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let path = path.clone();
        self.call(Operation::Delete, |backend| async move {
            backend.delete(&path, options).await
        })
    }

    /// Moves a file or a directory.
    ///
    /// # Errors
    ///
    /// See [`Backend::rename`].
    pub fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        self.call(Operation::Rename, |backend| async move {
            backend.rename(&from, &to, options).await
        })
    }

    /// Copies a file, or with `recursive` a directory and its contents.
    ///
    /// # Errors
    ///
    /// See [`Backend::copy`].
    pub fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        let (from, to) = (from.clone(), to.clone());
        self.call(Operation::Copy, |backend| async move {
            backend.copy(&from, &to, options).await
        })
    }

    /// Finds files by name.
    ///
    /// # Errors
    ///
    /// See [`Backend::glob`].
    pub fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.call(Operation::Glob, |backend| async move {
            backend.glob(query).await
        })
    }

    /// Finds lines by content.
    ///
    /// # Errors
    ///
    /// See [`Backend::grep`].
    pub fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.call(Operation::Grep, |backend| async move {
            backend.grep(query).await
        })
    }
}
