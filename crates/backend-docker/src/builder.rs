//! [`DockerBuilder`]: the options of a [`DockerSandbox`].

use std::path::PathBuf;
use std::time::Duration;

use backend_core::Result;
use sandbox_runtime::Runtime;
use sandbox_wire::agent::AgentBinary;

use crate::attach::Attach;
use crate::daemon::Daemon;
use crate::image::BuildOptions;
use crate::options::{Delivery, Mode, Network, Relaxation, Volume};
use crate::sandbox::DockerSandbox;
use crate::settings::Settings;

/// Options of a [`DockerSandbox`], from [`DockerSandbox::builder`].
///
/// The defaults are hardened: no capabilities, no new privileges, the daemon's seccomp
/// profile, no network, [`DEFAULT_MEMORY`](crate::DEFAULT_MEMORY) without swap on top,
/// [`DEFAULT_PIDS`](crate::DEFAULT_PIDS) processes, an init that reaps, and an
/// unprivileged user.
///
/// ```no_run
/// # async fn example() -> backend_core::Result<()> {
/// use backend_core::{BackendExt as _, Sandbox as _, ops::{Command, StopMode}};
/// use backend_docker::{DockerSandbox, Network};
///
/// let sandbox = DockerSandbox::builder()
///     .image("python:3.12-slim")
///     .network(Network::Bridge)
///     .memory(512 * 1024 * 1024)
///     .env("CI", "1")
///     .build()?;
/// let outcome = sandbox.execute(Command::new("python -V")).await?;
/// assert!(outcome.status.success());
/// sandbox.stop(StopMode::Purge).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until `build`"]
pub struct DockerBuilder {
    pub(crate) settings: Settings,
}

impl DockerSandbox {
    /// Returns a builder for a new container.
    pub fn builder() -> DockerBuilder {
        DockerBuilder::default()
    }
}

impl DockerBuilder {
    /// Sets the daemon. The default is the one at `/var/run/docker.sock`, or on Windows at
    /// `//./pipe/docker_engine`.
    pub fn daemon(mut self, daemon: Daemon) -> Self {
        self.settings.daemon = Some(daemon);
        self
    }

    /// Sets the image. Either this or a [`runtime`](Self::runtime) is required.
    pub fn image(mut self, image: impl Into<String>) -> Self {
        self.settings.image = Some(image.into());
        self
    }

    /// Sets the runtime that the image must provide. Its image is built by the first
    /// start.
    pub fn runtime(mut self, runtime: Runtime) -> Self {
        self.settings.runtime = Some(runtime);
        self
    }

    /// Sets how a runtime's image is built.
    pub fn build_options(mut self, build: BuildOptions) -> Self {
        self.settings.build = build;
        self
    }

    /// Sets the directory that relative paths and commands start in. Defaults to the
    /// runtime's directory, else [`DEFAULT_WORKING_DIR`](crate::DEFAULT_WORKING_DIR). It
    /// is created if it is missing, and belongs to the sandbox's user.
    pub fn working_dir(mut self, working_dir: impl Into<String>) -> Self {
        self.settings.working_dir = Some(working_dir.into());
        self
    }

    /// Sets an environment variable for every command.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.env.insert(name.into(), value.into());
        self
    }

    /// Adds a label.
    pub fn label(mut self, key: impl Into<String>, value: impl Into<String>) -> Self {
        self.settings.labels.insert(key.into(), value.into());
        self
    }

    /// Mounts a directory of the host, or a volume of the daemon.
    pub fn volume(mut self, volume: Volume) -> Self {
        self.settings.volumes.push(volume);
        self
    }

    /// Sets the network access. There is none by default.
    pub fn network(mut self, network: Network) -> Self {
        self.settings.network = network;
        self
    }

    /// Sets the memory limit in bytes. A command that needs more is killed.
    pub fn memory(mut self, bytes: u64) -> Self {
        self.settings.memory = bytes;
        self
    }

    /// Sets how many bytes it may swap beyond its memory limit. Zero by default.
    pub fn swap(mut self, bytes: u64) -> Self {
        self.settings.swap = bytes;
        self
    }

    /// Sets the maximum number of CPUs, such as `1.5`. Unlimited by default.
    pub fn cpus(mut self, cpus: f64) -> Self {
        self.settings.cpus = Some(cpus);
        self
    }

    /// Sets the CPU weight under contention. The default of other containers is 1,024.
    pub fn cpu_shares(mut self, cpu_shares: u32) -> Self {
        self.settings.cpu_shares = Some(cpu_shares);
        self
    }

    /// Sets how many processes and threads may exist at once.
    pub fn pids_limit(mut self, pids_limit: u32) -> Self {
        self.settings.pids = pids_limit;
        self
    }

    /// Mounts a tmpfs, with options such as `size=64m`. Programs can be run from it
    /// unless the options hold `noexec`, and it belongs to the sandbox's user unless
    /// they hold `mode`, `uid` or `gid`.
    pub fn tmpfs(mut self, target: impl Into<String>, options: impl Into<String>) -> Self {
        self.settings.tmpfs.insert(target.into(), options.into());
        self
    }

    /// Sets the user: `1000:1000`, `node`. Defaults to the image's user, else the owner
    /// of the first writable [host volume](Volume::host), else 1000:1000. It is never
    /// root unless set here.
    pub fn user(mut self, user: impl Into<String>) -> Self {
        self.settings.user = Some(user.into());
        self
    }

    /// Makes the root file system read-only. The working directory and `/tmp` are then
    /// in memory, and empty after a stop, unless a volume is mounted there.
    pub fn read_only_root(mut self, read_only_root: bool) -> Self {
        self.settings.read_only_root = read_only_root;
        self
    }

    /// Adds a kernel capability, such as `NET_BIND_SERVICE`. None by default.
    pub fn add_capability(mut self, capability: impl Into<String>) -> Self {
        self.settings.capabilities.insert(capability.into());
        self
    }

    /// Replaces the daemon's seccomp profile with this one, as JSON text.
    pub fn seccomp_profile(mut self, json: impl Into<String>) -> Self {
        self.settings.seccomp = Some(json.into());
        self
    }

    /// Sets the OCI runtime: `runsc` for gVisor.
    pub fn oci_runtime(mut self, oci_runtime: impl Into<String>) -> Self {
        self.settings.oci_runtime = Some(oci_runtime.into());
        self
    }

    /// Names the container. An existing container of that name that was created with
    /// the same options is reused, in any state. A named container is not removed when
    /// the sandbox is dropped, and other programs can use it by its name.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.settings.name = Some(name.into());
        self
    }

    /// Whether an unnamed container is removed when the sandbox is dropped, or after
    /// its process has crashed. Otherwise it is stopped. On by default.
    pub fn auto_remove(mut self, auto_remove: bool) -> Self {
        self.settings.auto_remove = auto_remove;
        self
    }

    /// Whether a small init reaps orphaned processes. On by default.
    pub fn init(mut self, init: bool) -> Self {
        self.settings.init = init;
        self
    }

    /// Stops the container after this time without activity. The next call starts it
    /// again. Off by default.
    pub fn idle_timeout(mut self, idle_timeout: impl Into<Option<Duration>>) -> Self {
        self.settings.idle_timeout = idle_timeout.into();
        self
    }

    /// Whether the first start in this process removes containers left by crashed
    /// processes of this host, in the background. On by default.
    pub fn reap_leftovers(mut self, reap: bool) -> Self {
        self.settings.reap = reap;
        self
    }

    /// Mounts a file of additional certificates, as corporate proxies need, and points
    /// pip, npm, curl, git, cargo and others to it. It is never part of an image.
    pub fn ca_bundle(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.ca_bundle = Some(path.into());
        self
    }

    /// Gives up one part of the hardening.
    pub fn relax(mut self, relaxation: Relaxation) -> Self {
        self.settings.relaxed.insert(relaxation);
        self
    }

    /// Adds an agent binary, one per architecture; the one that fits the image is used.
    /// The default is the binary next to this program.
    pub fn agent(mut self, agent: AgentBinary) -> Self {
        self.settings.agent.add(agent);
        self
    }

    /// Sets how the agent gets into the container.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.settings.agent.delivery = delivery;
        self
    }

    /// Sets whether the agent or the image's own tools serve the operations.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.agent.mode = mode;
        self
    }

    /// Checks the options. The container is created by the first operation, or by
    /// [`start`](backend_core::Sandbox::start).
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option; `Unavailable` if no daemon is given and none
    /// listens.
    pub fn build(self) -> Result<DockerSandbox> {
        DockerSandbox::new(self.settings.validate()?)
    }

    /// Creates and starts a new container now, and returns a sandbox that is bound to
    /// this one container by its id.
    ///
    /// Unlike the sandbox of [`build`](Self::build), it never uses an existing container
    /// of the same name and never creates a second one: if the container is removed,
    /// operations and [`start`](backend_core::Sandbox::start) are `Unavailable`. It keeps
    /// working when the container is [renamed](crate::containers::rename). Dropping it
    /// changes nothing: a container without a name is then removed by
    /// [`reap`](crate::reap) once this process has ended, one with a name stays. The same
    /// holds for the container of a call that is dropped before it returns.
    ///
    /// ```no_run
    /// # async fn example() -> backend_core::Result<()> {
    /// use backend_docker::{Daemon, DockerSandbox, containers};
    ///
    /// let daemon = Daemon::from_env()?;
    /// let spare = DockerSandbox::builder()
    ///     .daemon(daemon.clone())
    ///     .image("python:3.12-slim")
    ///     .name("spare-1")
    ///     .create()
    ///     .await?;
    /// containers::rename(&daemon, spare.container(), "alice").await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// `Config` for an invalid option; `AlreadyExists` if there is a container of that
    /// name; `Unavailable` if the container cannot be started or the daemon does not
    /// answer.
    pub async fn create(mut self) -> Result<DockerSandbox> {
        self.settings.exclusive = true;
        DockerSandbox::create(self.settings.validate()?).await
    }

    /// Returns options for attaching to a container, with the daemon, the agents and the
    /// mode of this builder.
    pub fn attach(&self, container: impl Into<String>) -> Attach {
        let (daemon, agent) = (&self.settings.daemon, &self.settings.agent);
        Attach::like(container.into(), daemon.clone(), agent.clone())
    }
}

#[cfg(test)]
mod tests;
