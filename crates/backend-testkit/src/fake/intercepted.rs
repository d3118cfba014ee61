//! A wrapper that passes every call to a closure first.

use std::fmt;
use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use backend_core::{Backend, Error, Operation, Result, VPath};

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
        std::mem::take(&mut *lock(&self.0))
    }

    fn push(&self, call: &Call) {
        lock(&self.0).push(call.clone());
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
            let mut left = lock(&left);
            let now = *left == Some(0);
            *left = left.and_then(|left| left.checked_sub(1));
            if now { Err(error()) } else { Ok(()) }
        })
    }

    /// Returns the wrapped backend.
    pub fn inner(&self) -> &B {
        &self.inner
    }

    /// Passes a call to the hook, and returns the backend that makes it.
    fn intercept(&self, operation: Operation, path: &VPath) -> Result<&B> {
        let call = Call {
            operation,
            path: path.clone(),
        };
        let passed = (self.hook)(&call).map(|()| &self.inner);
        passed.map_err(|error| error.at(operation, path).on(self.inner.info().name))
    }
}

impl<B: fmt::Debug> fmt::Debug for Intercepted<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercepted").field(&self.inner).finish()
    }
}

#[deny(clippy::missing_trait_methods)]
impl<B: Backend> Backend for Intercepted<B> {
    backend_core::delegate!(|self| self.inner => info, working_dir, as_sandbox);

    backend_core::delegate! {
        |self, path, operation| self.intercept(operation, path)? => resolve, stat, ls, read,
        read_text, write, edit, create_dir, delete, rename, copy, glob, grep, watch
    }
}
