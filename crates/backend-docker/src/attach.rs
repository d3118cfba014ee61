//! [`Attach`]: a sandbox on an existing container.

use std::path::PathBuf;
use std::time::Duration;

use backend_core::{Error, ErrorKind, Result};
use sandbox_runtime::{WORK_DIR, options};
use sandbox_shell::Mode;
use sandbox_wire::agent::AgentBinary;

use crate::check;
use crate::daemon::{self, Daemon};
use crate::inspect::ContainerInfo;
use crate::machine::MachineConfig;
use crate::options::Delivery;
use crate::sandbox::DockerSandbox;
use crate::settings::Settings;

/// Options for attaching to a container, from [`DockerSandbox::attach`].
#[derive(Debug, Clone)]
#[must_use = "this does nothing until `open`"]
pub struct Attach {
    container: String,
    foreign: bool,
    /// Of these, only the options that are set here have an effect.
    settings: Settings,
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
        Attach::new(container.into(), Settings::default())
    }
}

impl Attach {
    pub(crate) fn new(container: String, settings: Settings) -> Self {
        Self {
            container,
            foreign: false,
            settings,
        }
    }

    backend_core::setters! {
        /// Sets the daemon, as [`DockerBuilder::daemon`](crate::DockerBuilder::daemon) does.
        fn daemon(self, daemon: Daemon) { self.settings.daemon = Some(daemon) }

        /// Sets the directory that relative paths and commands start in. Defaults to the
        /// container's own working directory.
        fn working_dir(self, working_dir: impl Into<String>) {
            self.settings.working_dir = Some(working_dir.into());
        }

        /// Whether containers that are not sandboxes are accepted. With this, any container
        /// of the daemon can be used, stopped and removed by name.
        fn allow_foreign(self, foreign: bool) { self.foreign = foreign }

        /// Stops the container after this time without activity through this object.
        fn idle_timeout(self, idle_timeout: impl Into<Option<Duration>>) {
            self.settings.idle_timeout = idle_timeout.into();
        }

        /// Adds an agent binary, as [`DockerBuilder::agent`](crate::DockerBuilder::agent) does.
        fn agent(self, agent: AgentBinary) { self.settings.agents.add(agent) }

        /// Sets how the agent gets into the container, if it is not mounted already.
        fn delivery(self, delivery: Delivery) { self.settings.delivery = delivery }

        /// Sets the directory through which the agent is reached, as
        /// [`DockerBuilder::socket_dir`](crate::DockerBuilder::socket_dir) does. Used if the
        /// container was created with the same one.
        fn socket_dir(self, path: impl Into<PathBuf>) {
            self.settings.socket_dir = Some(path.into());
        }

        /// Sets whether the agent or the image's own tools serve the operations.
        fn mode(self, mode: Mode) { self.settings.mode = mode }
    }

    /// Looks up the container. Nothing is started yet.
    ///
    /// # Errors
    ///
    /// `Config` for invalid options; `NotFound` if there is no such container;
    /// `PermissionDenied` if it is not a sandbox; `Unavailable` if the daemon does not
    /// answer.
    pub async fn open(self) -> Result<DockerSandbox> {
        self.attached().await.map_err(|error| error.on("docker"))
    }

    async fn attached(self) -> Result<DockerSandbox> {
        let Self {
            container,
            foreign,
            mut settings,
        } = self;
        check::container(&container)?;
        let daemon = settings.daemon.take().map_or_else(Daemon::local, Ok)?;
        options::idle_timeout(settings.idle_timeout)?;
        settings.check_socket_dir()?;
        let socket_dir = settings.usable_socket_dir(&daemon);
        let agents = settings.agents.located(settings.mode)?;
        let (asked, named) = (daemon.clone(), container.clone());
        let found = daemon::run(async move { ContainerInfo::find(&asked, &named).await });
        let Some(found) = found.await? else {
            return Err(Error::new(
                ErrorKind::NotFound,
                format!("there is no container {container}; `docker ps --all` lists them"),
            ));
        };
        if !foreign && !found.ours {
            return Err(Error::new(
                ErrorKind::PermissionDenied,
                format!(
                    "the container {container} is not a sandbox; set `allow_foreign` to use it"
                ),
            ));
        }
        let theirs = match found.working_dir.as_str() {
            "" => WORK_DIR,
            "/" if !foreign => WORK_DIR,
            directory => directory,
        };
        let working_dir = settings.working_dir.as_deref().unwrap_or(theirs);
        let config = MachineConfig {
            daemon,
            name: container,
            working_dir: options::absolute_path("work", working_dir)?,
            settings: None,
            foreign,
            agents,
            delivery: settings.delivery,
            socket_dir,
        };
        Ok(DockerSandbox::assemble(config, settings))
    }
}
