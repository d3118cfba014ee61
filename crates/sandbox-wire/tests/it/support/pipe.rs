//! A machine that is a task of this process: a backend, served over a pipe.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::{Backend, Error, Result, VPath};
use futures::future::BoxFuture;
use sandbox_wire::{AgentOptions, AgentSandbox, Machine, Process, ServeOptions, Spawn, serve};
use tokio::io::DuplexStream;
use tokio::task::AbortHandle;

/// Bytes that fit into the pipe in each direction.
pub(crate) const PIPE: usize = 64 * 1024;

/// The machine's end of the pipe.
pub(crate) type Agent = Box<dyn Fn(DuplexStream) -> BoxFuture<'static, ()> + Send + Sync>;

/// The host's end of the pipe.
pub(crate) type Dial =
    Box<dyn Fn(DuplexStream) -> BoxFuture<'static, Result<Process>> + Send + Sync>;

/// A machine whose agent is a task of this process.
pub(crate) struct PipeMachine {
    agent: Agent,
    dial: Dial,
    backend: Arc<dyn Backend>,
    runs: AtomicBool,
    agents: Mutex<Vec<AbortHandle>>,
    /// The result of [`Machine::diagnose`].
    pub(crate) diagnosis: Mutex<Option<String>>,
}

impl fmt::Debug for PipeMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PipeMachine")
    }
}

impl PipeMachine {
    /// Creates a machine whose agent serves `backend`.
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        let served = Arc::clone(&backend);
        let agent = move |pipe| -> BoxFuture<'static, ()> {
            let (reader, writer) = tokio::io::split(pipe);
            let served = serve(reader, writer, Arc::clone(&served), ServeOptions::default());
            Box::pin(async move { drop(served.await) })
        };
        Self::with(backend, Box::new(agent))
    }

    /// Creates a machine with another agent.
    pub(crate) fn with(backend: Arc<dyn Backend>, agent: Agent) -> Self {
        let dial = |pipe| -> BoxFuture<'static, Result<Process>> {
            let (reader, writer) = tokio::io::split(pipe);
            Box::pin(async { Ok(Process::over(reader, writer)) })
        };
        Self {
            agent,
            dial: Box::new(dial),
            backend,
            runs: AtomicBool::new(false),
            agents: Mutex::default(),
            diagnosis: Mutex::default(),
        }
    }

    /// Connects in another way.
    #[cfg(feature = "websocket")]
    pub(crate) fn dialling(mut self, dial: Dial) -> Self {
        self.dial = dial;
        self
    }

    /// Returns the number of agents started.
    pub(crate) fn spawned(&self) -> usize {
        self.agents.lock().unwrap().len()
    }

    /// Aborts all agents.
    pub(crate) fn kill_agents(&self) {
        self.agents
            .lock()
            .unwrap()
            .iter()
            .for_each(AbortHandle::abort);
    }
}

#[async_trait]
impl Machine for PipeMachine {
    fn name(&self) -> Cow<'static, str> {
        "pipe".into()
    }

    fn id(&self) -> String {
        "pipe-1".into()
    }

    fn working_dir(&self) -> VPath {
        self.backend.working_dir()
    }

    async fn start(&self) -> Result<()> {
        self.runs.store(true, Ordering::SeqCst);
        Ok(())
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.runs.store(false, Ordering::SeqCst);
        match self.backend.as_sandbox() {
            Some(sandbox) => sandbox.stop(mode).await,
            None => Ok(()),
        }
    }

    async fn is_alive(&self) -> Result<bool> {
        Ok(self.runs.load(Ordering::SeqCst))
    }

    async fn agent(&self) -> Result<Vec<String>> {
        Ok(vec!["agent".into()])
    }

    async fn spawn(&self, _: Spawn) -> Result<Process> {
        let (host, agent) = tokio::io::duplex(PIPE);
        let agent = tokio::spawn((self.agent)(agent)).abort_handle();
        self.agents.lock().unwrap().push(agent);
        (self.dial)(host).await
    }

    async fn diagnose(&self) -> Option<Error> {
        let diagnosis = self.diagnosis.lock().unwrap().clone();
        diagnosis.map(Error::unavailable)
    }
}

/// Returns a backend that is served over a pipe.
pub(crate) fn piped(backend: impl Backend) -> AgentSandbox<PipeMachine> {
    let options = AgentOptions::default().capabilities(backend.info().capabilities);
    AgentSandbox::new(Arc::new(PipeMachine::new(Arc::new(backend))), options)
}
