//! [`Runner`]: starts the commands of a backend for their callers.

use std::os::fd::OwnedFd;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};

use backend_core::ops::{ExecuteOutcome, StopMode};
use backend_core::{Containment, Error, Result};
use backend_run::panicked;
use futures_util::future::BoxFuture;
use tokio::sync::oneshot;

use super::commands::Commands;
use super::state::State;
use super::task::Task;
use crate::engine;
use crate::fs::RootedFs;

/// Starts and ends the commands of one backend. Dropping it ends them too.
#[derive(Debug)]
pub(crate) struct Runner {
    pub(crate) state: Arc<State>,
    /// The working directory, opened for the first command. It stays the same
    /// directory for the backend's lifetime.
    pub(crate) working: OnceLock<Arc<OwnedFd>>,
}

impl Runner {
    /// Checks that the settings in `commands` can be enforced beside the files of `fs`.
    pub(crate) fn open(commands: &Commands, fs: &Arc<RootedFs>, read_only: bool) -> Result<Self> {
        let state = State::open(commands, fs, read_only)?;
        let runner = Self {
            state: Arc::new(state),
            working: OnceLock::new(),
        };
        if runner.state.is_demanding() {
            runner.check_demands()?;
        }
        Ok(runner)
    }

    /// Starts the supervisor now, so that a confinement or limit that cannot be
    /// enforced fails before the first command.
    fn check_demands(&self) -> Result<()> {
        let (reply, answer) = std::sync::mpsc::sync_channel(1);
        let state = Arc::clone(&self.state);
        let work = async move {
            let _ = reply.send(state.ready().await);
        };
        backend_run::spawn(engine::handle()?, work);
        answer
            .recv()
            .unwrap_or_else(|_| Err(Error::internal("the supervisor's start panicked")))
    }

    /// Returns how reliably a command's processes are ended.
    pub(crate) fn containment(&self) -> Containment {
        if self.state.is_supervised() {
            Containment::Supervised
        } else {
            Containment::BestEffort
        }
    }

    /// Whether shells can run in a terminal, which only a supervisor starts.
    pub(crate) fn has_terminals(&self) -> bool {
        self.state.is_supervised()
    }

    pub(crate) async fn start(&self) -> Result<()> {
        self.state.activity.touch();
        let state = Arc::clone(&self.state);
        on_engine(async move { state.ready().await }).await
    }

    /// Ends every command and the supervisor, and waits until they are gone.
    pub(crate) async fn stop(&self, mode: StopMode) -> Result<()> {
        self.state.activity.touch();
        let state = Arc::clone(&self.state);
        on_engine(async move { state.stop(mode).await }).await
    }

    pub(crate) async fn execute(&self, task: Task) -> Result<ExecuteOutcome> {
        let (reply, answer) = oneshot::channel();
        let engine = engine::handle()?;
        let mut running: BoxFuture<'static, ()> = Box::pin(backend_run::execute(task, reply));
        if self.state.is_supervised() && self.state.is_alive() {
            // The first step sends the command to the supervisor and never
            // blocks. Taking it here lets the supervisor work while the engine
            // wakes up.
            let _on_engine = engine.enter();
            let mut context = Context::from_waker(Waker::noop());
            if running.as_mut().poll(&mut context).is_pending() {
                engine.spawn(running);
            }
        } else {
            engine.spawn(running);
        }
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }
}

impl Drop for Runner {
    fn drop(&mut self) {
        self.state.close();
    }
}

/// Runs `work` on the engine to its end, even if the caller goes away.
async fn on_engine(work: impl Future<Output = Result<()>> + Send + 'static) -> Result<()> {
    let work: BoxFuture<'static, Result<()>> = Box::pin(work);
    let task = engine::handle()?.spawn(work);
    task.await.unwrap_or_else(|_| Err(panicked()))
}
