//! [`DockerBuilder`]: the options of a [`DockerSandbox`].

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use backend_core::{Result, VPath};
use sandbox_wire::agent::AgentBinary;

use crate::check;
use crate::daemon::{DEFAULT_ADDRESS, Daemon};
use crate::image::BuildOptions;
use crate::options::{Delivery, Mode, Network, Relaxation, Source, Volume};
use crate::runtime::Runtime;
use crate::sandbox::DockerSandbox;

/// Default memory limit of a sandbox, in bytes.
pub const DEFAULT_MEMORY: u64 = 2 * 1024 * 1024 * 1024;

/// Default limit on the number of processes in a sandbox.
pub const DEFAULT_PIDS: u32 = 512;

/// Default working directory.
pub const DEFAULT_WORKING_DIR: &str = "/workspace";

/// Options of a [`DockerSandbox`], from [`DockerSandbox::builder`].
///
/// The defaults are hardened: no capabilities, no new privileges, the daemon's seccomp
/// profile, no network, [`DEFAULT_MEMORY`] without swap on top, [`DEFAULT_PIDS`]
/// processes, an init that reaps, and an unprivileged user.
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
#[derive(Debug, Clone)]
#[must_use = "a builder does nothing until `build`"]
pub struct DockerBuilder {
    pub(crate) settings: Settings,
}

/// The option values collected by a builder.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) daemon: Option<Daemon>,
    pub(crate) image: Option<String>,
    pub(crate) runtime: Option<Runtime>,
    pub(crate) build: BuildOptions,
    pub(crate) working_dir: Option<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) volumes: Vec<Volume>,
    pub(crate) network: Network,
    pub(crate) memory: u64,
    pub(crate) swap: u64,
    pub(crate) cpus: Option<f64>,
    pub(crate) cpu_shares: Option<u32>,
    pub(crate) pids: u32,
    pub(crate) tmpfs: BTreeMap<String, String>,
    pub(crate) user: Option<String>,
    pub(crate) read_only_root: bool,
    pub(crate) capabilities: BTreeSet<String>,
    pub(crate) seccomp: Option<String>,
    pub(crate) oci_runtime: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) auto_remove: bool,
    pub(crate) init: bool,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) reap: bool,
    pub(crate) ca_bundle: Option<PathBuf>,
    pub(crate) relaxed: BTreeSet<Relaxation>,
    pub(crate) service: Service,
}

/// The agent binaries, how they are delivered, and which mode serves the operations.
#[derive(Debug, Clone, Default)]
pub(crate) struct Service {
    /// One for each architecture.
    pub(crate) agents: Vec<AgentBinary>,
    pub(crate) delivery: Delivery,
    pub(crate) mode: Mode,
}

impl Service {
    /// Adds an agent, replacing the one for the same architecture.
    pub(crate) fn add_agent(&mut self, agent: AgentBinary) {
        self.agents.retain(|other| other.arch() != agent.arch());
        self.agents.push(agent);
    }

    /// Returns the agents to choose from: the ones given, else the one next to this
    /// program. Empty in portable mode.
    pub(crate) fn binaries(&self) -> Result<Vec<AgentBinary>> {
        if self.mode == Mode::Portable {
            return Ok(Vec::new());
        }
        let mut found = self.agents.clone();
        if found.is_empty() {
            found.extend(AgentBinary::locate());
        }
        if found.is_empty() && self.mode == Mode::Agent {
            return Err(check::wrong(
                "there is no sandbox-agent beside this program; give one with `agent` (`agentbox agent install` makes one), or use Mode::Portable",
            ));
        }
        Ok(found)
    }
}

impl DockerBuilder {
    pub(crate) fn new() -> Self {
        Self {
            settings: Settings {
                daemon: None,
                image: None,
                runtime: None,
                build: BuildOptions::default(),
                working_dir: None,
                env: BTreeMap::new(),
                labels: BTreeMap::new(),
                volumes: Vec::new(),
                network: Network::default(),
                memory: DEFAULT_MEMORY,
                swap: 0,
                cpus: None,
                cpu_shares: None,
                pids: DEFAULT_PIDS,
                tmpfs: BTreeMap::new(),
                user: None,
                read_only_root: false,
                capabilities: BTreeSet::new(),
                seccomp: None,
                oci_runtime: None,
                name: None,
                auto_remove: true,
                init: true,
                idle_timeout: None,
                reap: true,
                ca_bundle: None,
                relaxed: BTreeSet::new(),
                service: Service::default(),
            },
        }
    }

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
    /// runtime's directory, else [`DEFAULT_WORKING_DIR`]. It is created if it is
    /// missing, and belongs to the sandbox's user.
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
        self.settings.service.add_agent(agent);
        self
    }

    /// Sets how the agent gets into the container.
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.settings.service.delivery = delivery;
        self
    }

    /// Sets whether the agent or the image's own tools serve the operations.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.settings.service.mode = mode;
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
        let checked = self.settings.check()?;
        DockerSandbox::new(checked)
    }
}

/// Options that passed the checks.
#[derive(Debug)]
pub(crate) struct Checked {
    pub(crate) settings: Settings,
    pub(crate) daemon: Daemon,
    pub(crate) working_dir: VPath,
}

impl Settings {
    fn check(self) -> Result<Checked> {
        let given = self.working_dir.as_deref();
        let runtime = self.runtime.as_ref().map(|runtime| &*runtime.work_dir);
        let working_dir = given
            .or(runtime.filter(|directory| !directory.is_empty()))
            .unwrap_or(DEFAULT_WORKING_DIR);
        let working_dir = check::absolute_path("work", working_dir)?;
        match (&self.image, &self.runtime) {
            (Some(image), None) => check::image(image)?,
            (None, Some(_)) => {}
            (Some(_), Some(_)) => {
                return Err(check::wrong("an image and a runtime are given; choose one"));
            }
            (None, None) => {
                return Err(check::wrong(
                    "no image is given; name an image or a runtime",
                ));
            }
        }
        self.check_names()?;
        self.check_limits()?;
        let daemon = match &self.daemon {
            Some(daemon) => daemon.clone(),
            None => Daemon::at(DEFAULT_ADDRESS).map_err(|error| error.on("docker"))?,
        };
        self.check_mounts(&daemon)?;
        Ok(Checked {
            settings: self,
            daemon,
            working_dir,
        })
    }

    fn check_names(&self) -> Result<()> {
        for (name, value) in &self.env {
            check::variable(name, value)?;
        }
        for (key, value) in &self.labels {
            check::label(key, value)?;
        }
        for capability in &self.capabilities {
            check::capability(capability)?;
        }
        self.user.as_deref().map_or(Ok(()), check::user)?;
        if let Some(name) = &self.name {
            check::container(name)?;
        }
        if let Some(name) = &self.oci_runtime {
            check::name("an OCI runtime", name)?;
        }
        if let Network::Named(name) = &self.network {
            check::network(name)?;
        }
        match (&self.seccomp, self.relaxed(Relaxation::UnconfinedSeccomp)) {
            (Some(_), true) => Err(check::wrong(
                "a seccomp profile and Relaxation::UnconfinedSeccomp are given; choose one",
            )),
            (Some(profile), false) => check::seccomp(profile),
            (None, _) => Ok(()),
        }
    }

    fn check_limits(&self) -> Result<()> {
        let whole = i64::MAX as u64 / 2;
        if self.memory < check::LEAST_MEMORY || self.memory > whole || self.swap > whole {
            return Err(check::wrong(format!(
                "a sandbox cannot have {} bytes of memory; give at least {}",
                self.memory,
                check::LEAST_MEMORY
            )));
        }
        if self.pids == 0 {
            return Err(check::wrong(
                "a sandbox needs processes; give a limit of at least 1",
            ));
        }
        if let Some(cpus) = self.cpus
            && !(0.01..=4096.0).contains(&cpus)
        {
            return Err(check::wrong(format!(
                "a sandbox cannot use {cpus} processors; give a number from 0.01"
            )));
        }
        if let Some(shares) = self.cpu_shares
            && !(2..=262_144).contains(&shares)
        {
            return Err(check::wrong(format!(
                "{shares} is not a valid processor weight; give 2 to 262144"
            )));
        }
        if self.idle_timeout.is_some_and(|idle| idle.is_zero()) {
            return Err(check::wrong(
                "an idle timeout of zero stops every sandbox at once; leave it out for none",
            ));
        }
        Ok(())
    }

    fn check_mounts(&self, daemon: &Daemon) -> Result<()> {
        let mut taken = BTreeSet::new();
        for (target, options) in &self.tmpfs {
            check::tmpfs(options)?;
            taken.insert(check::mount_point(target)?);
        }
        for volume in &self.volumes {
            let target = check::mount_point(&volume.target)?;
            if !taken.insert(target.clone()) {
                return Err(check::wrong(format!(
                    "two mounts are on '{target}'; leave one out"
                )));
            }
            match &volume.source {
                Source::Host(path) => check::host_source(path, daemon.socket())?,
                Source::Named(name) => check::name("a volume", name)?,
            }
        }
        if let Some(path) = &self.ca_bundle
            && !path.is_absolute()
        {
            return Err(check::wrong("the path of the certificates is not absolute"));
        }
        Ok(())
    }

    pub(crate) fn relaxed(&self, relaxation: Relaxation) -> bool {
        self.relaxed.contains(&relaxation)
    }
}

#[cfg(test)]
#[path = "builder_tests.rs"]
mod tests;
