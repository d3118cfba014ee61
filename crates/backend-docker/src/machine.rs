//! [`DockerMachine`]: a container, as the transports see it.

mod create;
mod deliver;
mod exec;
mod lifecycle;
mod state;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, Result, VPath};
use sandbox_shell::HostedMachine;
use sandbox_wire::agent::AgentBinary;
use sandbox_wire::{Machine, Process, Spawn};
use tokio::sync::Semaphore;

use crate::daemon::{self, Daemon};
use crate::inspect::{ContainerInfo, ContainerState};
use crate::options::Delivery;
use crate::settings::Settings;

use state::{Demand, Presence, State};

use lifecycle::StartReason;

/// Attempts, and the pause between them, to see that a container has ended.
const NOTICE_TIMES: u32 = 4;
const NOTICE: Duration = Duration::from_millis(50);

/// A container, created or not created yet. Clones refer to the same container.
#[derive(Debug, Clone)]
pub(crate) struct DockerMachine(Arc<Core>);

#[derive(Debug)]
pub(crate) struct Core {
    config: MachineConfig,
    state: Mutex<State>,
    /// Held by every operation that changes the container's state.
    lock: Arc<Semaphore>,
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
    /// One for each architecture.
    pub(crate) agents: Vec<AgentBinary>,
    pub(crate) delivery: Delivery,
}

impl DockerMachine {
    pub(crate) fn new(config: MachineConfig) -> Self {
        let state = State {
            presence: Presence::initial(config.settings.as_ref()),
            ..State::default()
        };
        Self(Arc::new(Core {
            config,
            state: Mutex::new(state),
            lock: Arc::new(Semaphore::new(1)),
        }))
    }

    pub(crate) fn daemon(&self) -> &Daemon {
        &self.0.config.daemon
    }

    pub(crate) fn name(&self) -> &str {
        &self.0.config.name
    }

    /// Closes the machine: a creation in progress is finished and then disposed of, and
    /// nothing is created any more. Returns the remaining work, if there is any.
    pub(crate) fn close(&self, mode: StopMode) -> Option<impl Future<Output = Result<()>> + use<>> {
        let demand = std::mem::replace(&mut self.0.state().demand, Demand::Closed);
        let core = Arc::clone(&self.0);
        (demand == Demand::Requested).then_some(async move {
            let stop = move |core: Arc<Core>| async move {
                if core.state().attempted {
                    return core.stop(mode).await;
                }
                Ok(())
            };
            core.exclusively(stop).await
        })
    }

    /// Makes the container ready. Work that has begun is finished even if the caller is
    /// dropped: otherwise a container could stay forever that no object knows of.
    async fn ready(&self, reason: StartReason) -> Result<()> {
        self.0.request();
        let ready = move |core: Arc<Core>| async move { core.ready(reason).await };
        self.0.exclusively(ready).await
    }

    /// Creates and starts a new container, never an existing one of this name. Returns
    /// its id.
    pub(crate) async fn create_new(&self) -> Result<String> {
        self.0.request();
        let create = |core: Arc<Core>| async move { core.create_new().await };
        self.0.exclusively(create).await?;
        let found = self.find().await?;
        found.map(|found| found.id).ok_or_else(|| self.0.removed())
    }

    pub(crate) async fn pause(&self, pause: bool) -> Result<()> {
        let pause = move |core: Arc<Core>| async move { core.pause(pause).await };
        self.0.exclusively(pause).await
    }

    pub(crate) async fn find(&self) -> Result<Option<ContainerInfo>> {
        self.0.find().await
    }
}

impl Core {
    /// Returns the agent for an image of this architecture, or any agent if it is
    /// unknown.
    fn agent_for(&self, architecture: &str) -> Option<&AgentBinary> {
        let fits = |agent: &&AgentBinary| architecture.is_empty() || agent.arch() == architecture;
        self.config.agents.iter().find(fits)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Records that a caller needs the container.
    fn request(&self) {
        let mut state = self.state();
        if state.demand == Demand::None {
            state.demand = Demand::Requested;
        }
    }

    /// Runs operations that change the container's state, one at a time and to
    /// completion.
    async fn exclusively<F>(self: &Arc<Self>, work: impl FnOnce(Arc<Self>) -> F) -> Result<()>
    where
        F: Future<Output = Result<()>> + Send + 'static,
    {
        let lock = Arc::clone(&self.lock);
        let work = work(Arc::clone(self));
        let task = tokio::spawn(async move {
            let _guard = lock.acquire_owned().await;
            work.await
        });
        let ended = task.await;
        ended.unwrap_or_else(|_| Err(Error::unavailable("the process is ending")))
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
        self.ready(StartReason::OnDemand).await
    }

    async fn stop(&self, mode: StopMode) -> Result<()> {
        let stop = move |core: Arc<Core>| async move { core.stop(mode).await };
        self.0.exclusively(stop).await
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
        self.0.state().presence == Presence::Running
    }

    async fn start_explicit(&self) -> Result<()> {
        self.ready(StartReason::Explicit).await
    }

    async fn missing_agent(&self) -> Result<Option<&'static str>> {
        // If the container cannot be created, that error is reported instead.
        self.start().await?;
        if self.0.config.agents.is_empty() {
            return Ok(Some("there is no sandbox-agent"));
        }
        let architecture = self.0.state().architecture.clone();
        let missing = self.0.agent_for(&architecture).is_none();
        Ok(missing.then_some("there is no sandbox-agent for the image's processor"))
    }

    fn ended_meanwhile(&self) -> Error {
        self.0.ended_meanwhile()
    }
}

/// Whether the daemon says that the source of a mount is missing.
fn is_source_missing(error: &bollard::errors::Error, source: &str) -> bool {
    let text = error.to_string();
    daemon::status(error).is_some()
        && text.contains("bind source path does not exist")
        && text.contains(source)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::settings::AgentSettings;

    /// The smallest file that passes for a static program of an architecture.
    fn agent(directory: &std::path::Path, name: &str, processor: u8) -> AgentBinary {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, value) in [(16, 2), (18, processor), (32, 64), (54, 56), (56, 1)] {
            bytes[at] = value;
        }
        let path = directory.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        AgentBinary::new(path).unwrap()
    }

    #[test]
    fn the_agent_is_that_of_the_images_processor() {
        let place = tempfile::tempdir().unwrap();
        let mut settings = AgentSettings::default();
        for (name, processor) in [("old", 62), ("arm", 183), ("new", 62)] {
            settings.add(agent(place.path(), name, processor));
        }
        let machine = DockerMachine::new(MachineConfig {
            daemon: Daemon::at("tcp://127.0.0.1:1").unwrap(),
            name: "box".to_owned(),
            working_dir: VPath::parse("/").unwrap(),
            settings: None,
            foreign: false,
            agents: settings.binaries().unwrap(),
            delivery: Delivery::Auto,
        });
        let chosen = |architecture| {
            let agent = machine.0.agent_for(architecture)?;
            Some(agent.path().file_name().unwrap().to_owned())
        };
        assert_eq!(chosen("amd64").unwrap(), "new");
        assert_eq!(chosen("arm64").unwrap(), "arm");
        assert_eq!(chosen("riscv64"), None);
        assert!(chosen("").is_some());
        let error = machine.0.no_agent("riscv64");
        assert!(error.message().contains("for arm64 and amd64"), "{error}");
    }
}
