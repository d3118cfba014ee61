//! [`DockerSandbox`]: a container as a backend.

mod backend;

use std::sync::{Arc, Mutex};

use backend_core::ops::StopMode;
use backend_core::sync::lock;
use backend_core::{Error, Operation, Result, Sandbox};
use sandbox_shell::{HostedSandbox, Stats};

use crate::daemon;
use crate::inspect::ContainerState;
use crate::machine::{DockerMachine, MachineConfig};
use crate::options::Relaxation;
use crate::settings::{Settings, ValidSettings};
use crate::stats::{self, Counters};

/// A container as a backend. Clones share it.
///
/// The first operation creates and starts the container. A stopped container is started
/// again by the next operation. If it was removed from outside, operations are
/// `Unavailable`, and only [`start`](Sandbox::start) creates a new one: its files are
/// gone, and that should not go unnoticed. Operations on a paused container are
/// `Unavailable` too, until `start` or [`unpause`](Self::unpause).
///
/// When the last clone is dropped, a container that it created is removed, or with
/// [`auto_remove(false)`](crate::DockerBuilder::auto_remove) stopped. This happens in the
/// background, provided the process lives long enough; call [`stop`](Sandbox::stop) to
/// be sure. Containers with a name, or that were attached to, are left as they are.
///
/// See [`DockerBuilder`](crate::DockerBuilder) for an example.
#[derive(Debug, Clone)]
pub struct DockerSandbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    hosted: HostedSandbox<DockerMachine>,
    relaxed: Vec<Relaxation>,
    counters: Mutex<Option<Counters>>,
}

impl DockerSandbox {
    pub(crate) fn new(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        Ok(Self::assemble(machine_config(valid)?, settings))
    }

    /// Creates a container now, and refers to it by its id only.
    pub(crate) async fn create(valid: ValidSettings) -> Result<Self> {
        let settings = valid.settings.clone();
        let config = machine_config(valid)?;
        let machine = DockerMachine::new(config.clone());
        let created = daemon::run(async move { machine.create_new().await });
        let name = created
            .await
            .map_err(|error| error.during(Operation::Start))?;
        let bound = MachineConfig {
            name,
            settings: None,
            ..config
        };
        Ok(Self::assemble(bound, settings))
    }

    pub(crate) fn assemble(config: MachineConfig, settings: Settings) -> Self {
        let machine = DockerMachine::new(config);
        let hosted = HostedSandbox::new(machine, settings.mode, settings.idle_timeout);
        Self(Arc::new(Inner {
            hosted,
            relaxed: settings.relaxed.into_iter().collect(),
            counters: Mutex::default(),
        }))
    }

    fn machine(&self) -> &DockerMachine {
        self.0.hosted.machine()
    }

    /// Returns the container's name, or the name or id it was attached to by.
    pub fn container(&self) -> &str {
        self.machine().name()
    }

    /// Returns the parts of the hardening that were given up.
    pub fn relaxations(&self) -> &[Relaxation] {
        &self.0.relaxed
    }

    /// Returns the container's state. Never starts it.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the daemon does not answer.
    pub async fn state(&self) -> Result<ContainerState> {
        let machine = self.machine().clone();
        let found = daemon::run(async move { machine.find().await }).await?;
        Ok(found.map_or(ContainerState::Missing, |found| found.state))
    }

    /// Freezes every process in the container. Until [`unpause`](Self::unpause) or
    /// [`start`](Sandbox::start), operations are `Unavailable`.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the container is not running or the daemon does not answer.
    pub async fn pause(&self) -> Result<()> {
        self.set_paused(true).await
    }

    /// Resumes the container's processes.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the daemon does not answer; `Conflict` if the container is
    /// stopped.
    pub async fn unpause(&self) -> Result<()> {
        self.set_paused(false).await
    }

    async fn set_paused(&self, paused: bool) -> Result<()> {
        let machine = self.machine().clone();
        daemon::run(async move { machine.pause(paused).await }).await
    }

    /// Removes the container and its files, like [`stop`](Sandbox::stop) with `Purge`.
    /// Named volumes and host directories are kept.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the daemon does not answer.
    pub async fn remove(&self) -> Result<()> {
        self.stop(StopMode::Purge).await
    }

    /// Returns the current resource usage. The CPU usage is measured since the previous
    /// call.
    ///
    /// # Errors
    ///
    /// `Unavailable` if there is no container or the daemon does not answer.
    pub async fn stats(&self) -> Result<Stats> {
        let machine = self.machine().clone();
        let before = *lock(&self.0.counters);
        let sample = async move {
            let sample = stats::sample(machine.daemon(), machine.name(), before).await;
            sample.map_err(|error| {
                if !error.is_not_found() {
                    return error;
                }
                Error::unavailable("there is no container; start the sandbox").with_source(error)
            })
        };
        let (stats, counters) = daemon::run(sample).await?;
        *lock(&self.0.counters) = Some(counters);
        Ok(stats)
    }
}

/// Returns the configuration of a machine that creates its container.
fn machine_config(valid: ValidSettings) -> Result<MachineConfig> {
    let ValidSettings {
        settings,
        daemon,
        working_dir,
    } = valid;
    let random = || format!("agentbox-{:016x}", fastrand::u64(..));
    let agents = settings.agents.located(settings.mode);
    let socket_dir = settings.usable_socket_dir(&daemon);
    Ok(MachineConfig {
        daemon,
        name: settings.name.clone().unwrap_or_else(random),
        working_dir,
        socket_dir,
        foreign: false,
        agents: agents.map_err(|error| error.on("docker"))?,
        delivery: settings.delivery,
        settings: Some(settings),
    })
}
