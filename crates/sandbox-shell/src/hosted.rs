//! [`HostedSandbox`]: a machine that is created on demand, as a backend.

mod backend;
mod idle;

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_core::{Error, Operation, Result, Sandbox};
use futures::future::BoxFuture;
use sandbox_wire::{AgentOptions, AgentSandbox, Machine, engine};

use crate::agents::Mode;
use crate::sandbox::PortableSandbox;
use idle::Busy;

/// The exit code after KILL, which is also that of programs whose machine ended.
const KILLED: i32 = 137;

/// A [`Machine`] that its backend creates on demand, such as a container or a pod. Clones
/// refer to the same one.
///
/// # Signatures
///
/// The async methods, as they are written under `#[async_trait]`:
///
/// ```text
/// async fn start_explicit(&self) -> Result<()>;
/// async fn missing_agent(&self) -> Result<Option<&'static str>>;
/// async fn judge_exit(&self, ended: Result<i32>, run: Self::Run) -> Result<i32>;
/// ```
#[async_trait]
pub trait HostedMachine: Machine + Clone {
    /// Identifies one run of the machine, such as by the number of its starts.
    type Run: fmt::Debug + Clone + PartialEq + Send + Sync;

    /// Returns the run that is used. If it changes while a command runs, the command has
    /// ended with its machine. No I/O.
    fn current_run(&self) -> Self::Run;

    /// Whether it was running when it was last looked at. No I/O.
    fn is_running(&self) -> bool;

    /// Starts it as [`start`](Machine::start) does, on the caller's explicit request: one
    /// that was deleted, with its files, may be created again.
    ///
    /// # Errors
    ///
    /// As `start`.
    async fn start_explicit(&self) -> Result<()>;

    /// Returns why no agent can serve it; `None` if one can. Starts it if it must be
    /// looked at for that. Called in [`Mode::Auto`], once.
    ///
    /// # Errors
    ///
    /// As `start`.
    async fn missing_agent(&self) -> Result<Option<&'static str>>;

    /// Returns the error for a command whose machine ended and was started again.
    fn ended_meanwhile(&self) -> Error;

    /// Distinguishes a killed program from a machine that has ended, and may have been
    /// started again since. `run` is that in which the program was started.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the machine has ended; the error that is passed in.
    async fn judge_exit(&self, ended: Result<i32>, run: Self::Run) -> Result<i32> {
        if matches!(ended, Ok(code) if code != KILLED) {
            return ended;
        }
        if let Some(reason) = self.diagnose().await {
            return Err(reason);
        }
        if self.current_run() != run {
            return Err(self.ended_meanwhile());
        }
        ended
    }

    /// Closes the machine, because the last clone of its sandbox is dropped. Returns the
    /// remaining work, which is done in the background. By default there is none.
    fn close(&self) -> Option<BoxFuture<'static, Result<()>>> {
        None
    }
}

/// A machine as a backend, served by its agent or in portable mode, stopped when it is
/// idle, and [closed](HostedMachine::close) in the end. Clones share it.
///
/// A command that was killed is an outcome if its machine still runs, and an error if it
/// ended with the machine.
#[derive(Debug, Clone)]
pub struct HostedSandbox<M: HostedMachine>(Arc<Inner<M>>);

#[derive(Debug)]
struct Inner<M: HostedMachine> {
    machine: M,
    mode: Mode,
    /// The agent or the portable sandbox, once the choice is made.
    chosen: OnceLock<Arc<dyn Sandbox>>,
    /// The number of operations in progress, and when the last one ended.
    activity: Mutex<(usize, SystemTime)>,
    idle_timeout: Option<Duration>,
    watched: AtomicBool,
}

impl<M: HostedMachine> HostedSandbox<M> {
    /// Creates a backend for this machine, which is stopped after a time without activity.
    /// No I/O.
    pub fn new(machine: M, mode: Mode, idle_timeout: Option<Duration>) -> Self {
        Self(Arc::new(Inner {
            machine,
            mode,
            chosen: OnceLock::new(),
            activity: Mutex::new((0, SystemTime::now())),
            idle_timeout,
            watched: AtomicBool::new(false),
        }))
    }

    /// Returns the machine.
    pub fn machine(&self) -> &M {
        &self.0.machine
    }

    /// Runs work with the machine on the engine. Its errors name the backend.
    async fn run<T, F>(&self, work: impl FnOnce(M) -> F) -> Result<T>
    where
        T: Send + 'static,
        F: Future<Output = Result<T>> + Send + 'static,
    {
        let done = engine::run(work(self.0.machine.clone())).await;
        done.map_err(|error| error.on(self.0.machine.name()))
    }

    /// Returns the sandbox that serves the operations. The first operation makes the
    /// choice.
    async fn active_sandbox(&self, _: &Busy<'_, M>) -> Result<&Arc<dyn Sandbox>> {
        let inner = &*self.0;
        self.watch();
        if let Some(chosen) = inner.chosen.get() {
            return Ok(chosen);
        }
        let (is_portable, why) = match inner.mode {
            Mode::Agent => (false, None),
            Mode::Portable => (true, None),
            Mode::Auto => {
                let missing = self.run(|machine| async move { machine.missing_agent().await });
                let why = missing.await.map_err(during(Operation::Start))?;
                (why.is_some(), why)
            }
        };
        Ok(inner.chosen.get_or_init(|| {
            if let Some(why) = why {
                tracing::warn!(
                    sandbox = inner.machine.id(),
                    "the image's own tools are used, which is slower: {why}"
                );
            }
            let machine = Arc::new(inner.machine.clone());
            if is_portable {
                Arc::new(PortableSandbox::new(machine).without_warning())
            } else {
                Arc::new(AgentSandbox::new(machine, AgentOptions::default()))
            }
        }))
    }
}

impl<M: HostedMachine> Drop for Inner<M> {
    fn drop(&mut self) {
        let Some(closing) = self.machine.close() else {
            return;
        };
        let sandbox = self.machine.id();
        if let Ok(handle) = engine::handle() {
            backend_run::spawn(handle, async move {
                if let Err(error) = closing.await {
                    tracing::warn!(sandbox, "a sandbox was left behind: {}", error.chain());
                }
            });
        }
    }
}

fn during(operation: Operation) -> impl FnOnce(Error) -> Error {
    move |error| error.during(operation)
}
