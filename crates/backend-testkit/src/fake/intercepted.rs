//! A wrapper that passes every call to a closure first.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use backend_core::ops::{
    Content, CopyOptions, CreateDirOptions, DeleteOptions, EditOptions, EditOutcome, Entry,
    FileBytes, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions, ReadOptions,
    RenameOptions, ResolveOptions, StatOptions, TextOptions, WriteOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{Backend, BackendInfo, Edit, Error, Operation, Result, Sandbox, VPath};

/// A call that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Call {
    /// The operation.
    pub operation: Operation,
    /// The path; for a move or copy, the source.
    pub path: VPath,
}

type Hook = Arc<dyn Fn(&Call) -> Result<()> + Send + Sync>;

/// A backend that passes every file operation to a closure first, which may fail it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> backend_core::Result<()> {
/// use backend_core::{BackendExt as _, Error};
/// use backend_state::StateBackend;
/// use backend_testkit::fake::Intercepted;
///
/// let (backend, calls) = Intercepted::recording(StateBackend::new());
/// backend.write_file("a.txt", "x").await?;
/// assert_eq!(calls.taken()[0].path.as_str(), "/a.txt");
///
/// let flaky = Intercepted::failing_once(backend, 1, || Error::unavailable("gone"));
/// assert!(flaky.exists("a.txt").await.is_ok());
/// assert!(flaky.exists("a.txt").await.is_err());
/// assert!(flaky.exists("a.txt").await.is_ok());
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Intercepted<B> {
    inner: B,
    hook: Hook,
}

/// The calls that an [`Intercepted::recording`] backend has seen.
#[derive(Debug, Clone, Default)]
pub struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    /// Takes the calls recorded so far.
    pub fn taken(&self) -> Vec<Call> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn push(&self, call: &Call) {
        let mut calls = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        calls.push(call.clone());
    }
}

impl<B: Backend> Intercepted<B> {
    /// Passes every call to `hook`. An error from it becomes the call's result.
    pub fn new(inner: B, hook: impl Fn(&Call) -> Result<()> + Send + Sync + 'static) -> Self {
        Self {
            inner,
            hook: Arc::new(hook),
        }
    }

    /// Records every call.
    pub fn recording(inner: B) -> (Self, Calls) {
        let calls = Calls::default();
        let record = calls.clone();
        let this = Self::new(inner, move |call| {
            record.push(call);
            Ok(())
        });
        (this, calls)
    }

    /// Fails the one call that comes after `calls` others.
    pub fn failing_once(
        inner: B,
        calls: usize,
        error: impl Fn() -> Error + Send + Sync + 'static,
    ) -> Self {
        let left = Mutex::new(Some(calls));
        Self::new(inner, move |_| {
            let mut left = left.lock().unwrap_or_else(PoisonError::into_inner);
            let now = *left == Some(0);
            *left = left.and_then(|left| left.checked_sub(1));
            if now { Err(error()) } else { Ok(()) }
        })
    }

    /// Returns the wrapped backend.
    pub fn inner(&self) -> &B {
        &self.inner
    }

    fn intercept(&self, operation: Operation, path: &VPath) -> Result<()> {
        let call = Call {
            operation,
            path: path.clone(),
        };
        (self.hook)(&call).map_err(|error| error.at(operation, path).on(self.inner.info().name))
    }
}

impl<B: fmt::Debug> fmt::Debug for Intercepted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercepted").field(&self.inner).finish()
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for Intercepted<B> {
    fn info(&self) -> BackendInfo {
        self.inner.info()
    }

    fn working_dir(&self) -> VPath {
        self.inner.working_dir()
    }

    fn as_sandbox(&self) -> Option<&dyn Sandbox> {
        self.inner.as_sandbox()
    }

    async fn resolve(&self, path: &VPath, options: ResolveOptions) -> Result<VPath> {
        self.intercept(Operation::Resolve, path)?;
        self.inner.resolve(path, options).await
    }

    async fn stat(&self, path: &VPath, options: StatOptions) -> Result<Entry> {
        self.intercept(Operation::Stat, path)?;
        self.inner.stat(path, options).await
    }

    async fn ls(&self, path: &VPath, options: LsOptions) -> Result<Listing> {
        self.intercept(Operation::Ls, path)?;
        self.inner.ls(path, options).await
    }

    async fn read(&self, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
        self.intercept(Operation::Read, path)?;
        self.inner.read(path, options).await
    }

    async fn read_text(&self, path: &VPath, options: TextOptions) -> Result<TextWindow> {
        self.intercept(Operation::ReadText, path)?;
        self.inner.read_text(path, options).await
    }

    async fn write(
        &self,
        path: &VPath,
        content: Content,
        options: WriteOptions,
    ) -> Result<WriteOutcome> {
        self.intercept(Operation::Write, path)?;
        self.inner.write(path, content, options).await
    }

    async fn edit(
        &self,
        path: &VPath,
        edits: &[Edit],
        options: EditOptions,
    ) -> Result<EditOutcome> {
        self.intercept(Operation::Edit, path)?;
        self.inner.edit(path, edits, options).await
    }

    async fn create_dir(&self, path: &VPath, options: CreateDirOptions) -> Result<()> {
        self.intercept(Operation::CreateDir, path)?;
        self.inner.create_dir(path, options).await
    }

    async fn delete(&self, path: &VPath, options: DeleteOptions) -> Result<()> {
        self.intercept(Operation::Delete, path)?;
        self.inner.delete(path, options).await
    }

    async fn rename(&self, from: &VPath, to: &VPath, options: RenameOptions) -> Result<()> {
        self.intercept(Operation::Rename, from)?;
        self.inner.rename(from, to, options).await
    }

    async fn copy(&self, from: &VPath, to: &VPath, options: CopyOptions) -> Result<()> {
        self.intercept(Operation::Copy, from)?;
        self.inner.copy(from, to, options).await
    }

    async fn glob(&self, query: GlobQuery) -> Result<GlobResult> {
        self.intercept(Operation::Glob, &query.path)?;
        self.inner.glob(query).await
    }

    async fn grep(&self, query: GrepQuery) -> Result<GrepResult> {
        self.intercept(Operation::Grep, &query.path)?;
        self.inner.grep(query).await
    }
}
