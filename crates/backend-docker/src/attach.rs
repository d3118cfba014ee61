//! [`Attach`]: a sandbox on an existing container.

use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use sandbox_runtime::WORK_DIR;
use sandbox_wire::agent::AgentBinary;
use sandbox_wire::engine;

use crate::check;
use crate::daemon::Daemon;
use crate::machine::{DockerMachine, MachineConfig};
use crate::options::{Delivery, Mode};
use crate::sandbox::DockerSandbox;
use crate::settings::AgentSettings;

/// Options for attaching to a container, from [`DockerSandbox::attach`].
#[derive(Debug, Clone)]
#[must_use = "this does nothing until `open`"]
pub struct Attach {
    container: String,
    daemon: Option<Daemon>,
    working_dir: Option<String>,
    foreign: bool,
    idle_timeout: Option<Duration>,
    agent: AgentSettings,
}

impl DockerSandbox {
    /// Attaches to a container by its name or id, in any state. A container that is
    /// stopped or was never started is started by the first operation.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_docker::DockerSandbox;
    /// let sandbox = DockerSandbox::attach("my-box").working_dir("/srv").open().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn attach(container: impl Into<String>) -> Attach {
        Attach {
            container: container.into(),
            daemon: None,
            working_dir: None,
            foreign: false,
            idle_timeout: None,
            agent: AgentSettings::default(),
        }
    }
}

impl Attach {
    /// Options with the daemon and the agents of other ones.
    pub(crate) fn like(container: String, daemon: Option<Daemon>, agent: AgentSettings) -> Self {
        Self {
            daemon,
            agent,
            ..DockerSandbox::attach(container)
        }
    }

    /// Sets the daemon. The default is the one at `/var/run/docker.sock`, or on Windows at
    /// `//./pipe/docker_engine`.
    pub fn daemon(mut self, daemon: Daemon) -> Self {
        self.daemon = Some(daemon);
        self
    }

    /// Sets the directory that relative paths and commands start in. Defaults to the
    /// container's own working directory.
    pub fn working_dir(mut self, working_dir: impl Into<String>) -> Self {
        self.working_dir = Some(working_dir.into());
        self
    }

    /// Whether containers that are not sandboxes are accepted. With this, any container
    /// of the daemon can be used, stopped and removed by name.
    pub fn allow_foreign(mut self, foreign: bool) -> Self {
        self.foreign = foreign;
        self
    }

    /// Stops the container after this time without activity through this object.
    pub fn idle_timeout(mut self, idle_timeout: impl Into<Option<Duration>>) -> Self {
        self.idle_timeout = idle_timeout.into();
        self
    }

    /// Adds an agent binary, one per architecture; the one that fits the image is used.
    /// The default is the binary next to this program.
    pub fn agent(mut self, agent: AgentBinary) -> Self {
        self.agent.add(agent);
        self
    }

    /// Sets how the agent gets into the container, if it is not mounted already.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.agent.delivery = delivery;
        self
    }

    /// Sets whether the agent or the image's own tools serve the operations.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.agent.mode = mode;
        self
    }

    /// Looks up the container. Nothing is started yet.
    ///
    /// # Errors
    ///
    /// `Config` for invalid options; `NotFound` if there is no such container;
    /// `PermissionDenied` if it is not a sandbox; `Unavailable` if the daemon does not
    /// answer.
    pub async fn open(self) -> Result<DockerSandbox> {
        check::container(&self.container)?;
        let daemon = self.daemon.map_or_else(Daemon::local, Ok)?;
        check::idle_timeout(self.idle_timeout)?;
        let agents = self.agent.binaries()?;
        let config = |working_dir: &str| -> Result<MachineConfig> {
            Ok(MachineConfig {
                daemon: daemon.clone(),
                name: self.container.clone(),
                working_dir: check::absolute_path("work", working_dir)?,
                settings: None,
                foreign: self.foreign,
                agents: agents.clone(),
                delivery: self.agent.delivery,
            })
        };
        let probe = DockerMachine::new(config("/")?);
        let found = engine::run(async move { probe.find().await }).await;
        let Some(found) = found.map_err(|error| error.on("docker"))? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!(
                    "there is no container {}; `docker ps --all` lists them",
                    self.container
                ),
            )
            .on("docker"));
        };
        if !self.foreign && !found.ours {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "the container {} is not a sandbox; set `allow_foreign` to use it",
                    self.container
                ),
            )
            .on("docker"));
        }
        let theirs = match found.working_dir.as_str() {
            "" => WORK_DIR,
            "/" if !self.foreign => WORK_DIR,
            directory => directory,
        };
        let working_dir = self.working_dir.as_deref().unwrap_or(theirs);
        Ok(DockerSandbox::assemble(
            config(working_dir)?,
            self.agent.mode,
            None,
            Vec::new(),
            self.idle_timeout,
        ))
    }
}
