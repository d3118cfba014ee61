//! [`SyncBackend`]: every operation of a backend as a blocking call.

use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchEvent, WatchQuery, WriteOptions,
    WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendExt as _, BackendInfo, Edit, Operation, Result, VPath};
use bytes::Bytes;

use crate::calls::{Calls, blocking_calls, call_settings};
use crate::cancel::Cancel;
use crate::engine::Engine;
use crate::stream::SyncStream;

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

    call_settings!();

    /// Returns the wrapped backend.
    pub fn inner(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Runs async code with the backend, and returns its result.
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

    /// Tells the changes of a tree, as an iterator that waits for them. Dropping it ends
    /// the watch.
    pub fn watch(&self, query: WatchQuery) -> Result<SyncStream<WatchEvent>> {
        let stream = self.call(Operation::Watch, |backend| async move {
            backend.watch(query).await
        })?;
        Ok(SyncStream::new(self.calls.clone(), stream))
    }

    blocking_calls! {
        Backend, |backend| backend;

        /// Follows every symbolic link in `path`.
        Resolve: resolve(path: &VPath; options: ResolveOptions) -> VPath;

        /// Describes the entry at `path`.
        Stat: stat(path: &VPath; options: StatOptions) -> Entry;

        /// Lists a directory.
        Ls: ls(path: &VPath; options: LsOptions) -> Listing;

        /// Reads bytes.
        Read: read(path: &VPath; options: ReadOptions) -> FileBytes;

        /// Reads a window of lines.
        ReadText: read_text(path: &VPath; options: TextOptions) -> TextWindow;

        /// Writes a whole file.
        Write: write(path: &VPath; content: Content, options: WriteOptions) -> WriteOutcome;

        /// Replaces exact pieces of text. Either all edits are applied or none.
        Edit: edit(path: &VPath, edits: &[Edit]; options: EditOptions) -> EditOutcome;

        /// Creates a directory and its missing parents.
        CreateDir: create_dir(path: &VPath; options: CreateDirOptions) -> ();

        /// Deletes a file, a link, or with `recursive` a directory and its contents.
        Delete: delete(path: &VPath; options: DeleteOptions) -> ();

        /// Moves a file or a directory.
        Rename: rename(from: &VPath, to: &VPath; options: RenameOptions) -> ();

        /// Copies a file, or with `recursive` a directory and its contents.
        Copy: copy(from: &VPath, to: &VPath; options: CopyOptions) -> ();

        /// Finds files by name.
        Glob: glob(; query: GlobQuery) -> GlobResult;

        /// Finds lines by content.
        Grep: grep(; query: GrepQuery) -> GrepResult;
    }
}

/// Writes, in an impl block, blocking calls of the methods of `BackendExt`. `;` stands
/// between paths and other arguments.
macro_rules! convenience_calls {
    ($(
        $(#[$doc:meta])+
        $method:ident($($path:ident),*; $($value:ident: $type:ty),*) -> $output:ty;
    )+) => {$(
        $(#[$doc])+
        ///
        #[doc = concat!(
            "See [`BackendExt::", stringify!($method), "`](backend_core::BackendExt::",
            stringify!($method), ")."
        )]
        pub fn $method(
            &self,
            $($path: impl AsRef<str>,)*
            $($value: impl Into<$type>),*
        ) -> Result<$output> {
            $(let $path = $path.as_ref().to_owned();)*
            $(let $value: $type = $value.into();)*
            self.with(|backend| async move { backend.$method($(&$path,)* $($value),*).await })
        }
    )+};
}

impl SyncBackend {
    /// Normalizes a path relative to the working directory; see
    /// [`BackendExt::path`](backend_core::BackendExt::path). No I/O.
    pub fn path(&self, path: impl AsRef<str>) -> Result<VPath> {
        self.backend.path(path)
    }

    convenience_calls! {
        /// Whether anything exists at `path`.
        exists(path;) -> bool;

        /// Whether there is a regular file at `path`.
        is_file(path;) -> bool;

        /// Whether there is a directory at `path`.
        is_dir(path;) -> bool;

        /// Describes the entry at `path`.
        metadata(path;) -> Entry;

        /// Reads a whole file.
        read_bytes(path;) -> Bytes;

        /// Reads a whole file that must be UTF-8.
        read_to_string(path;) -> String;

        /// Writes a file, replacing an existing one.
        write_file(path; content: Content) -> WriteOutcome;

        /// Writes a file that must not exist yet.
        write_new_file(path; content: Content) -> WriteOutcome;

        /// Replaces the only occurrence of `old`.
        replace_text(path; old: String, new: String) -> EditOutcome;

        /// Lists a directory.
        list_dir(path;) -> Listing;

        /// Creates a directory and its missing parents.
        create_dir_all(path;) -> ();

        /// Finds files below the working directory.
        find_files(; pattern: String) -> GlobResult;

        /// Finds lines in the files below the working directory.
        search_text(; pattern: String) -> GrepResult;

        /// Deletes a file.
        delete_file(path;) -> ();

        /// Deletes a directory and its contents.
        delete_tree(path;) -> ();

        /// Moves a file or directory to a path that must not exist.
        move_to(from, to;) -> ();

        /// Copies a file to a path that must not exist.
        copy_to(from, to;) -> ();
    }
}
