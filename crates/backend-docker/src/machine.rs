//! [`DockerMachine`]: a container, as the transports see it.

mod create;
mod deliver;
#[cfg(target_os = "linux")]
mod direct;
mod exec;
mod lifecycle;
mod state;

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, Result, VPath};
use futures::future::BoxFuture;
use sandbox_shell::{Agents, HostedMachine, OnDemand, Presence, StartReason};
use sandbox_wire::{Machine, Process, Spawn};

use crate::daemon::{self, Daemon};
use crate::inspect::{ContainerInfo, ContainerState};
use crate::options::Delivery;
use crate::settings::Settings;

use state::State;

/// Attempts, and the pause between them, to see that a container has ended.
const NOTICE_TIMES: u32 = 4;
const NOTICE: Duration = Duration::from_millis(50);

/// A container, created or not created yet. Clones refer to the same container.
#[derive(Debug, Clone)]
pub(crate) struct DockerMachine(OnDemand<Core>);

#[derive(Debug)]
pub(crate) struct Core {
    config: MachineConfig,
    state: Mutex<State>,
}

/// The container of a machine, and how it is used.
#[derive(Debug, Clone)]
pub(crate) struct MachineConfig {
    pub(crate) daemon: Daemon,
    /// The container's name, used in all requests. It is chosen before the container is
    /// created, so that one whose creation was cancelled is found again.
    pub(crate) name: String,
    pub(crate) working_dir: VPath,
    /// The options it is created from; `None` if it was attached to.
    pub(crate) settings: Option<Settings>,
    /// Whether a container that this crate did not create may be used.
    pub(crate) foreign: bool,
    pub(crate) agents: Agents,
    pub(crate) delivery: Delivery,
    /// The directory of this host for sockets.
    pub(crate) socket_dir: Option<PathBuf>,
}

impl MachineConfig {
    /// A container without settings was attached to, so it exists.
    fn initial_presence(&self) -> Presence {
        match self.settings {
            Some(_) => Presence::Unseen,
            None => Presence::Seen,
        }
    }
}

impl DockerMachine {
    pub(crate) fn new(config: MachineConfig) -> Self {
        let state = Mutex::new(State::new(config.initial_presence()));
        Self(OnDemand::new(Core { config, state }))
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        &self.0.config.daemon
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Creates and starts a new container, never an existing one of this name. Returns
    /// its id.
    pub(crate) async fn create_new(&self) -> Result<String> {
        let create = |core: OnDemand<Core>| async move { core.create_new().await };
        self.0.exclusively(create).await?;
        let found = self.find().await?;
        found.map(|found| found.id).ok_or_else(|| self.0.removed())
    }

    pub(crate) async fn pause(&self, pause: bool) -> Result<()> {
        let pause = move |core: OnDemand<Core>| async move { core.pause(pause).await };
        self.0.exclusively(pause).await
    }

    pub(crate) async fn find(&self) -> Result<Option<ContainerInfo>> {
        self.0.find().await
    }
}

impl Core {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Explains the error of a call on the container.
    async fn explained<T>(&self, answer: Result<T, bollard::errors::Error>) -> Result<T> {
        match answer {
            Ok(answer) => Ok(answer),
            Err(error) => Err(self.explain(error).await),
        }
    }

    /// Explains a failed call on the container: the container's state if that is the
    /// reason, else the daemon's message.
    async fn explain(&self, error: bollard::errors::Error) -> Error {
        let status = daemon::status(&error);
        let theirs = self.config.daemon.error(error);
        let reason = match status {
            // The path is missing, but the container may be there.
            Some(404) => self.diagnosis().await,
            _ => self.diagnosis_soon().await,
        };
        match (reason, status) {
            (Some(reason), _) => reason,
            // The container is in the wrong state, whatever the daemon's message says.
            (None, Some(409)) => Error::unavailable(theirs.message().to_owned()),
            (None, _) => theirs,
        }
    }

    /// Returns why the container does not answer, or `None` if it should. The daemon
    /// notices the end of a container a little later than we do.
    async fn diagnosis_soon(&self) -> Option<Error> {
        for _ in 0..NOTICE_TIMES {
            if let Some(reason) = self.diagnosis().await {
                return Some(reason);
            }
            tokio::time::sleep(NOTICE).await;
        }
        self.diagnosis().await
    }
}

#[async_trait]
impl Machine for DockerMachine {
    fn name(&self) -> Cow<'static, str> {
        "docker".into()
    }

    fn id(&self) -> String {
        self.0.config.name.clone()
    }

    fn working_dir(&self) -> VPath {
        self.0.config.working_dir.clone()
    }

    async fn start(&self) -> Result<()> {
        self.0.start(StartReason::OnDemand).await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        self.0.stop(mode).await
    }

    async fn is_alive(&self) -> Result<bool> {
        let found = self.0.find().await?;
        Ok(found.is_some_and(|found| found.state == ContainerState::Running))
    }

    async fn agent(&self) -> Result<Vec<String>> {
        self.0.place_agent().await
    }

    async fn spawn(&self, program: Spawn) -> Result<Process> {
        // The agent begins with a handshake, so its start can overlap with unpacking
        // the pending archive. Other programs need that archive first.
        if self.0.is_agent(&program) {
            #[cfg(target_os = "linux")]
            if let Some(listener) = self.listen().await {
                return self.exec_direct(program, listener).await;
            }
            let process = self.exec(program).await?;
            self.0.provision().await?;
            return Ok(process);
        }
        self.0.provision().await?;
        self.exec(program).await
    }

    async fn diagnose(&self) -> Option<Error> {
        self.0.diagnosis_soon().await
    }
}

#[async_trait]
impl HostedMachine for DockerMachine {
    /// How often this object has started the container.
    type Run = u64;

    fn current_run(&self) -> u64 {
        self.0.state().starts
    }

    fn is_running(&self) -> bool {
        self.0.is_running()
    }

    async fn start_explicit(&self) -> Result<()> {
        self.0.start(StartReason::Explicit).await
    }

    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        // If the container cannot be created, that error is reported instead.
        self.start().await?;
        if self.0.config.agents.is_empty() {
            return Ok(Some(
                "there is no sandbox-agent; `agentbox agent install` makes one",
            ));
        }
        let architecture = self.0.state().architecture.clone();
        let missing = self.0.config.agents.fitting(&architecture).is_none();
        Ok(missing.then_some(
            "there is no sandbox-agent for the image's processor; `agentbox agent install` makes one",
        ))
    }

    fn ended_meanwhile(&self) -> Error {
        let name = &self.0.config.name;
        Error::unavailable(format!(
            "the container {name} ended while the command ran; run it again"
        ))
    }

    fn close(&self) -> Option<BoxFuture<'static, Result<()>>> {
        let settings = self.0.config.settings.as_ref()?;
        self.0.close(settings.disposal().stop_mode()?)
    }
}

/// Whether the daemon says that the source of a mount is missing.
fn is_source_missing(error: &bollard::errors::Error, source: &str) -> bool {
    let text = error.to_string();
    daemon::status(error).is_some()
        && text.contains("bind source path does not exist")
        && text.contains(source)
}
