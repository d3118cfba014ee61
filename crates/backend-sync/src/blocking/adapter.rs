//! [`BlockingAdapter`]: a blocking implementation as an async backend.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WatchQuery, WriteOptions,
    WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{
    Backend, BackendInfo, Edit, Error, Operation, Result, Sandbox, VPath, WatchStream, derived,
};

use super::pool::{Fence, Pool, PoolSize};
use super::{BlockingBackend, BlockingContent, BlockingNative};
use crate::calls::Calls;
use crate::cancel::Cancel;
use crate::stream::SyncStream;

/// A blocking implementation as an async backend, on a bounded number of threads.
/// Clones share the implementation.
///
/// A call that is dropped before it has started never starts. A running call finishes
/// in the background. If it is a change, the next call waits until it is done. Commands
/// are told to end. A panic is `Internal`.
///
/// ```
/// # use std::sync::Arc;
/// # use backend_core::BackendExt as _;
/// # use backend_state::StateBackend;
/// use backend_sync::{BlockingAdapter, SyncBackend};
///
/// // Anything that implements `BlockingBackend`; here one that is async again
/// // underneath.
/// let blocking = SyncBackend::new(Arc::new(StateBackend::new()));
/// let backend = BlockingAdapter::new(blocking);
/// # futures::executor::block_on(async {
/// backend.write_file("a.txt", "hello\n").await?;
/// assert_eq!(backend.read_to_string("a.txt").await?, "hello\n");
/// # Ok::<(), backend_core::Error>(()) })?;
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockingAdapter<B> {
    pub(super) inner: Arc<B>,
    files: Arc<Pool>,
    pub(super) commands: Arc<Pool>,
    fence: Fence,
}

impl<B> Clone for BlockingAdapter<B> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
            files: Arc::clone(&self.files),
            commands: Arc::clone(&self.commands),
            fence: self.fence.clone(),
        }
    }
}

/// The effect of a call on the stored files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Read,
    Change,
}

impl<B: BlockingBackend> BlockingAdapter<B> {
    /// Wraps an implementation, with the thread limits of [`PoolSize::default`].
    pub fn new(inner: B) -> Self {
        Self::with_size(inner, PoolSize::default())
    }

    /// Wraps an implementation, with the given thread limits.
    pub fn with_size(inner: B, size: PoolSize) -> Self {
        Self {
            inner: Arc::new(inner),
            files: Arc::new(Pool::new(size.files)),
            commands: Arc::new(Pool::new(size.commands)),
            fence: Fence::default(),
        }
    }

    /// Returns the wrapped implementation.
    pub fn inner(&self) -> &B {
        &self.inner
    }

    pub(super) fn name(&self) -> Cow<'static, str> {
        self.inner.info().name
    }

    /// Waits for changes that are still running after their call was dropped.
    pub(super) async fn wait_for_abandoned(&self) {
        self.fence.wait().await;
    }

    /// Calls the implementation on a thread for files.
    pub(super) async fn call<T: Send + 'static>(
        &self,
        operation: Operation,
        effect: Effect,
        work: impl FnOnce(&B) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.wait_for_abandoned().await;
        let inner = Arc::clone(&self.inner);
        let fence = (effect == Effect::Change).then_some(&self.fence);
        let result = self.files.run(fence, move || work(&inner)).await;
        result.map_err(|error| error.during(operation).on(self.name()))
    }

    /// Calls a native operation of the implementation on a thread for files.
    async fn native<T: Send + 'static>(
        &self,
        operation: Operation,
        effect: Effect,
        work: impl FnOnce(&dyn BlockingNative) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        self.call(operation, effect, move |inner| match inner.native() {
            Some(native) => work(native),
            None => Err(Error::internal(
                "the backend no longer does this; please report this to its author",
            )),
        })
        .await
    }

    fn is_native(&self) -> bool {
        self.inner.native().is_some()
    }
}

/// Cancels on drop.
pub(super) struct Cancelling(pub(super) Cancel);

impl Drop for Cancelling {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

#[async_trait]
impl<B: BlockingBackend> Backend for BlockingAdapter<B> {
    fn info(&self) -> BackendInfo {
        let mut info = self.inner.info();
        // A blocking implementation has no connections.
        (info.capabilities.ports, info.capabilities.terminals) = (false, false);
        info
    }

    fn working_dir(&self) -> VPath {
        self.inner.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.inner.as_sandbox().map(|_| self as &dyn Sandbox)
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        if !self.is_native() {
            return derived::resolve_without_links(self, path).await;
        }
        let path = path.clone();
        let work = move |native: &dyn BlockingNative| native.resolve(&path, options);
        self.native(Operation::Resolve, Effect::Read, work).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        let path = path.clone();
        let work = move |inner: &B| inner.stat(&path, options);
        self.call(Operation::Stat, Effect::Read, work).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        let path = path.clone();
        let work = move |inner: &B| inner.ls(&path, options);
        self.call(Operation::Ls, Effect::Read, work).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        let path = path.clone();
        let work = move |inner: &B| inner.read(&path, options);
        self.call(Operation::Read, Effect::Read, work).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        if !self.is_native() {
            return derived::text_by_read(self, path, options).await;
        }
        let path = path.clone();
        let work = move |native: &dyn BlockingNative| native.read_text(&path, options);
        self.native(Operation::ReadText, Effect::Read, work).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        let path = path.clone();
        // Once the call is dropped no more pieces arrive, and waiting for them must not
        // block a thread.
        let cancelling = Cancelling(Cancel::new());
        let content = match content {
            Content::Bytes(bytes) => BlockingContent::Bytes(bytes),
            Content::Stream(stream) => {
                let calls = Calls {
                    cancel: Some(cancelling.0.clone()),
                    ..Calls::default()
                };
                BlockingContent::Pieces(SyncStream::new(calls, stream))
            }
        };
        let work = move |inner: &B| inner.write(&path, content, options);
        self.call(Operation::Write, Effect::Change, work).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        if !self.is_native() {
            return derived::edit_by_write(self, path, edits, options).await;
        }
        let (path, edits) = (path.clone(), edits.to_vec());
        let work = move |native: &dyn BlockingNative| native.edit(&path, &edits, options);
        self.native(Operation::Edit, Effect::Change, work).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        let path = path.clone();
        let work = move |inner: &B| inner.create_dir(&path, options);
        self.call(Operation::CreateDir, Effect::Change, work).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        let path = path.clone();
        let work = move |inner: &B| inner.delete(&path, options);
        self.call(Operation::Delete, Effect::Change, work).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        if !self.is_native() {
            return derived::rename_by_copy(self, from, to, options).await;
        }
        let (from, to) = (from.clone(), to.clone());
        let work = move |native: &dyn BlockingNative| native.rename(&from, &to, options);
        self.native(Operation::Rename, Effect::Change, work).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        if !self.is_native() {
            return derived::copy_by_read(self, from, to, options).await;
        }
        let (from, to) = (from.clone(), to.clone());
        let work = move |native: &dyn BlockingNative| native.copy(&from, &to, options);
        self.native(Operation::Copy, Effect::Change, work).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        if !self.is_native() {
            return derived::glob_by_walk(self, query).await;
        }
        let work = move |native: &dyn BlockingNative| native.glob(query);
        self.native(Operation::Glob, Effect::Read, work).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        if !self.is_native() {
            return derived::grep_by_read(self, query).await;
        }
        let work = move |native: &dyn BlockingNative| native.grep(query);
        self.native(Operation::Grep, Effect::Read, work).await
    }

    async fn watch(&self, query: WatchQuery) -> Result<WatchStream> {
        let path = query.path.clone();
        let opened = self.follow(|inner, cancel| inner.watch(query, cancel));
        opened
            .await
            .map_err(|error| error.at(Operation::Watch, &path).on(self.name()))
    }
}
