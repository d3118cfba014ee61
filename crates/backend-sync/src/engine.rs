//! [`Engine`]: runs the futures behind blocking calls.

mod borrowed;

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, OnceLock};

use backend_core::{Error, ErrorKind, Result};
use futures_util::FutureExt as _;
use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};

use borrowed::{Borrowed, is_polling};

/// Minimum number of threads of the shared engine, so that one blocked thread leaves
/// another.
const FEWEST_THREADS: usize = 2;

/// Runs the futures behind blocking calls: on the caller's thread if that may block,
/// else on a thread of the engine. Cheap to clone.
///
/// | called from | the future runs |
/// |---|---|
/// | a plain thread | right there |
/// | any tokio runtime, `LocalSet`, `spawn_blocking`, `block_in_place` | on the engine's threads, and the caller waits |
/// | a task of the runtime that the engine borrows | nowhere: the call is an error |
///
/// A call blocks the thread that it is made on, and with it the other tasks there.
///
/// ```
/// use backend_sync::Engine;
///
/// let engine = Engine::shared();
/// assert_eq!(engine.run(async { 1 + 1 })?, 2);
///
/// let runtime = tokio::runtime::Runtime::new()?;
/// let inside = engine.clone();
/// let answer = runtime.block_on(async move { inside.run(async { 1 + 1 }) })?;
/// assert_eq!(answer, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Engine(Kind);

#[derive(Clone)]
enum Kind {
    Shared,
    Own(Arc<OwnRuntime>),
    Borrowed(Arc<Borrowed>),
}

impl Engine {
    /// Returns the engine that the whole process shares. Its threads are started by the
    /// first call and stay.
    pub fn shared() -> Self {
        Self(Kind::Shared)
    }

    /// Creates a separate engine. When the last clone is dropped, its threads end and
    /// the futures still running on them are cancelled. It can be dropped in any
    /// context.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for zero threads; `Unavailable` if they cannot be started.
    pub fn own(threads: usize) -> Result<Self> {
        if threads == 0 {
            return Err(Error::invalid_input(
                "an engine without threads runs nothing; ask for at least one",
            ));
        }
        Ok(Self(Kind::Own(Arc::new(OwnRuntime::start(threads)?))))
    }

    /// Uses a runtime that is owned elsewhere. Calls made by its own tasks are
    /// `Unsupported`, because they would wait for the thread that they block. Calls
    /// made after it has ended, or while it ends, are `Unavailable`.
    ///
    /// # Errors
    ///
    /// `Config` for a current-thread runtime: it runs only while its owner blocks on
    /// it, and this type cannot know whether the owner does.
    pub fn borrowed(runtime: &Handle) -> Result<Self> {
        if runtime.runtime_flavor() != RuntimeFlavor::MultiThread {
            return Err(Error::new(
                ErrorKind::Config,
                "a current-thread runtime runs only while a thread blocks on it; \
                 use a multi-thread runtime or an engine of its own",
            ));
        }
        Ok(Self(Kind::Borrowed(Arc::new(Borrowed::new(runtime)))))
    }

    /// Runs a future to completion. If it panics, the panic is propagated to the
    /// caller.
    ///
    /// # Errors
    ///
    /// `Unsupported` if the caller is a task of the borrowed runtime,
    /// `Unavailable` if that runtime has ended or no thread can be started.
    pub fn run<T, F>(&self, future: F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let handle = self.handle()?;
        let is_inside = match Handle::try_current() {
            Err(error) if error.is_missing_context() => return self.run_here(handle, future),
            // This thread is ending and cannot poll any more, but it can wait.
            Err(_) => false,
            Ok(current) => current.id() == handle.id(),
        };
        if is_inside && matches!(self.0, Kind::Borrowed(_)) && is_polling() {
            return Err(Error::unsupported(
                "a task cannot wait for the runtime that it runs on; await the async backend \
                 instead, call this in spawn_blocking, or give it an engine of its own",
            ));
        }
        let answer = spawn_on(handle, future);
        let received = if is_inside {
            // Other tasks of this thread move to another one.
            tokio::task::block_in_place(|| answer.recv())
        } else {
            answer.recv()
        };
        match received {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => Err(ended()),
        }
    }

    fn run_here<T>(&self, handle: &Handle, future: impl Future<Output = T>) -> Result<T> {
        match &self.0 {
            Kind::Shared | Kind::Own(_) => Ok(handle.block_on(future)),
            Kind::Borrowed(borrowed) => handle.block_on(borrowed.while_it_runs(future)),
        }
    }

    /// Runs code that does not block within the runtime's context.
    pub(crate) fn enter<T>(&self, work: impl FnOnce() -> T) -> T {
        let _context = self.handle().ok().map(Handle::enter);
        work()
    }

    fn handle(&self) -> Result<&Handle> {
        match &self.0 {
            Kind::Shared => shared(),
            Kind::Own(own) => Ok(&own.handle),
            Kind::Borrowed(borrowed) => borrowed.handle(),
        }
    }
}

impl Default for Engine {
    fn default() -> Self {
        Self::shared()
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Shared => "Engine::Shared",
            Kind::Own(_) => "Engine::Own",
            Kind::Borrowed(_) => "Engine::Borrowed",
        })
    }
}

/// A runtime that can be dropped in any context.
struct OwnRuntime {
    handle: Handle,
    runtime: Option<Runtime>,
}

impl OwnRuntime {
    fn start(threads: usize) -> Result<Self> {
        let build = || {
            Builder::new_multi_thread()
                .worker_threads(threads)
                .thread_name("backend-sync")
                .enable_all()
                .build()
        };
        let none = || {
            Error::unavailable(
                "no thread could be started for blocking calls; raise the process limit",
            )
        };
        // Tokio panics if the system has no more threads.
        let built = std::panic::catch_unwind(build).map_err(|_| none())?;
        let runtime = built.map_err(|source| none().with_source(source))?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        })
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        // Waiting for its threads would panic inside a runtime.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn shared() -> Result<&'static Handle> {
    static SHARED: OnceLock<OwnRuntime> = OnceLock::new();
    if let Some(own) = SHARED.get() {
        return Ok(&own.handle);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let own = OwnRuntime::start(cores.max(FEWEST_THREADS))?;
    Ok(&SHARED.get_or_init(|| own).handle)
}

type Answer<T> = Receiver<Result<T, Box<dyn Any + Send>>>;

/// Runs a future on the engine's threads. The channel closes without a result if the
/// runtime ends first.
fn spawn_on<T, F>(handle: &Handle, future: F) -> Answer<T>
where
    T: Send + 'static,
    F: Future<Output = T> + Send + 'static,
{
    let (told, answer) = sync_channel(1);
    handle.spawn(async move {
        let result = AssertUnwindSafe(future).catch_unwind().await;
        let _ = told.send(result);
    });
    answer
}

fn ended() -> Error {
    Error::unavailable("the borrowed runtime has ended; borrow one that is running")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_what_it_is() {
        assert_eq!(format!("{:?}", Engine::default()), "Engine::Shared");
        let own = Engine::own(1).unwrap();
        assert_eq!(format!("{own:?}"), "Engine::Own");
        let runtime = Runtime::new().unwrap();
        let borrowed = Engine::borrowed(runtime.handle()).unwrap();
        assert_eq!(format!("{borrowed:?}"), "Engine::Borrowed");
    }

    #[test]
    fn what_can_run_nothing_is_refused() {
        let error = Engine::own(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
        let runtime = Builder::new_current_thread().build().unwrap();
        let error = Engine::borrowed(runtime.handle()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config);
    }
}
