//! [`DockerBuilder`]: the options of a [`DockerSandbox`].

use std::path::PathBuf;
use std::time::Duration;

use backend_core::Result;
use sandbox_runtime::Runtime;
use sandbox_shell::Mode;
use sandbox_wire::agent::AgentBinary;

use crate::attach::Attach;
use crate::daemon::Daemon;
use crate::image::BuildOptions;
use crate::options::{Delivery, Network, Relaxation, Volume};
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
    backend_core::setters! {
        /// Sets the daemon. The default is the one at `/var/run/docker.sock`, or on Windows at
        /// `//./pipe/docker_engine`.
        fn daemon(self, daemon: Daemon) { self.settings.daemon = Some(daemon) }

        /// Sets the image. Either this or a [`runtime`](Self::runtime) is required.
        fn image(self, image: impl Into<String>) { self.settings.image = Some(image.into()) }

        /// Sets the runtime that the image must provide. Its image is built by the first
        /// start.
        fn runtime(self, runtime: Runtime) { self.settings.runtime = Some(runtime) }

        /// Sets how a runtime's image is built.
        fn build_options(self, build: BuildOptions) { self.settings.build = build }

        /// Sets the directory that relative paths and commands start in. Defaults to the
        /// runtime's directory, else [`DEFAULT_WORKING_DIR`](crate::DEFAULT_WORKING_DIR). It
        /// is created if it is missing, and belongs to the sandbox's user.
        fn working_dir(self, working_dir: impl Into<String>) {
            self.settings.working_dir = Some(working_dir.into());
        }

        /// Sets an environment variable for every command.
        fn env(self, name: impl Into<String>, value: impl Into<String>) {
            self.settings.env.insert(name.into(), value.into());
        }

        /// Adds a label.
        fn label(self, key: impl Into<String>, value: impl Into<String>) {
            self.settings.labels.insert(key.into(), value.into());
        }

        /// Mounts a directory of the host, or a volume of the daemon.
        fn volume(self, volume: Volume) { self.settings.volumes.push(volume) }

        /// Sets the network access. There is none by default.
        fn network(self, network: Network) { self.settings.network = network }

        /// Sets the memory limit in bytes. A command that needs more is killed.
        fn memory(self, bytes: u64) { self.settings.memory = Some(bytes) }

        /// Sets how many bytes it may swap beyond its memory limit. Zero by default.
        fn swap(self, bytes: u64) { self.settings.swap = bytes }

        /// Sets the maximum number of CPUs, such as `1.5`. Unlimited by default.
        fn cpus(self, cpus: f64) { self.settings.cpus = Some(cpus) }

        /// Sets the CPU weight under contention. The default of other containers is 1,024.
        fn cpu_shares(self, cpu_shares: u32) { self.settings.cpu_shares = Some(cpu_shares) }

        /// Sets how many processes and threads may exist at once.
        fn pids_limit(self, pids_limit: u32) { self.settings.pids = Some(pids_limit) }

        /// Mounts a tmpfs, with options such as `size=64m`. Programs can be run from it
        /// unless the options hold `noexec`, and it belongs to the sandbox's user unless
        /// they hold `mode`, `uid` or `gid`.
        fn tmpfs(self, target: impl Into<String>, options: impl Into<String>) {
            self.settings.tmpfs.insert(target.into(), options.into());
        }

        /// Sets the user: `1000:1000`, `node`. Defaults to the image's user, else the owner
        /// of the first writable [host volume](Volume::host), else 1000:1000. It is never
        /// root unless set here.
        fn user(self, user: impl Into<String>) { self.settings.user = Some(user.into()) }

        /// Makes the root file system read-only. The working directory and `/tmp` are then
        /// in memory, and empty after a stop, unless a volume is mounted there.
        fn read_only_root(self, read_only_root: bool) {
            self.settings.read_only_root = read_only_root;
        }

        /// Adds a kernel capability, such as `NET_BIND_SERVICE`. None by default.
        fn add_capability(self, capability: impl Into<String>) {
            self.settings.capabilities.insert(capability.into());
        }

        /// Replaces the daemon's seccomp profile with this one, as JSON text.
        fn seccomp_profile(self, json: impl Into<String>) {
            self.settings.seccomp = Some(json.into());
        }

        /// Sets the OCI runtime: `runsc` for gVisor.
        fn oci_runtime(self, oci_runtime: impl Into<String>) {
            self.settings.oci_runtime = Some(oci_runtime.into());
        }

        /// Names the container. An existing container of that name that was created with
        /// the same options is reused, in any state. A named container is not removed when
        /// the sandbox is dropped, and other programs can use it by its name.
        fn name(self, name: impl Into<String>) { self.settings.name = Some(name.into()) }

        /// Whether an unnamed container is removed when the sandbox is dropped, or after
        /// its process has crashed. Otherwise it is stopped. On by default.
        fn auto_remove(self, auto_remove: bool) { self.settings.keep = !auto_remove }

        /// Whether a small init reaps orphaned processes. On by default.
        fn init(self, init: bool) { self.settings.without_init = !init }

        /// Stops the container after this time without activity. The next call starts it
        /// again. Off by default.
        fn idle_timeout(self, idle_timeout: impl Into<Option<Duration>>) {
            self.settings.idle_timeout = idle_timeout.into();
        }

        /// Whether the first start in this process removes containers left by crashed
        /// processes of this host, in the background. On by default.
        fn reap_leftovers(self, reap: bool) { self.settings.without_reaping = !reap }

        /// Mounts a file of additional certificates, as corporate proxies need, and points
        /// pip, npm, curl, git, cargo and others to it. It is never part of an image.
        fn ca_bundle(self, path: impl Into<PathBuf>) { self.settings.ca_bundle = Some(path.into()) }

        /// Gives up one part of the hardening.
        fn relax(self, relaxation: Relaxation) { self.settings.relaxed.insert(relaxation); }

        /// Adds an agent binary, one per architecture; the one that fits the image is used.
        /// The default is the binary next to this program.
        fn agent(self, agent: AgentBinary) { self.settings.agents.add(agent) }

        /// Sets a directory of this host through which the agent is reached directly, past
        /// the daemon. Off by default.
        ///
        /// It is a directory of its own, not a file's, and created if it is missing. It is
        /// mounted read-only in the container at `/dev/.agentbox/sockets`, and holds a socket
        /// while an agent starts. Containers can share it. The agent is reached through the
        /// daemon as before if the directory belongs to another user, others may write to
        /// it, or the agent cannot connect. Without effect if the daemon has no socket on
        /// this host, with [`Delivery::Upload`], and on other systems than Linux.
        fn socket_dir(self, path: impl Into<PathBuf>) {
            self.settings.socket_dir = Some(path.into());
        }

        /// Sets how the agent gets into the container.
        fn delivery(self, delivery: Delivery) { self.settings.delivery = delivery }

        /// Sets whether the agent or the image's own tools serve the operations.
        fn mode(self, mode: Mode) { self.settings.mode = mode }
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

    /// Returns options for attaching to a container, with the daemon, the agents, the
    /// directory for sockets and the mode of this builder.
    pub fn attach(&self, container: impl Into<String>) -> Attach {
        let settings = Settings {
            daemon: self.settings.daemon.clone(),
            agents: self.settings.agents.clone(),
            delivery: self.settings.delivery,
            socket_dir: self.settings.socket_dir.clone(),
            mode: self.settings.mode,
            ..Settings::default()
        };
        Attach::new(container.into(), settings)
    }
}

#[cfg(test)]
mod tests;
