//! [`Settings`]: the option values of a sandbox, and their validation.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use backend_core::{Result, VPath};
use sandbox_runtime::{Runtime, WORK_DIR, options};
use sandbox_shell::{Agents, Disposal, Mode};

use crate::check::{self, ensure};
use crate::daemon::Daemon;
use crate::image::BuildOptions;
use crate::options::{Delivery, Network, Relaxation, Source, Volume};

/// Default memory limit of a sandbox, in bytes.
pub const DEFAULT_MEMORY: u64 = 2 * 1024 * 1024 * 1024;

/// Default limit on the number of processes in a sandbox.
pub const DEFAULT_PIDS: u32 = 512;

#[derive(Debug, Clone, Default)]
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
    /// [`DEFAULT_MEMORY`] by default.
    pub(crate) memory: Option<u64>,
    pub(crate) swap: u64,
    pub(crate) cpus: Option<f64>,
    pub(crate) cpu_shares: Option<u32>,
    /// [`DEFAULT_PIDS`] by default.
    pub(crate) pids: Option<u32>,
    pub(crate) tmpfs: BTreeMap<String, String>,
    pub(crate) user: Option<String>,
    pub(crate) read_only_root: bool,
    pub(crate) capabilities: BTreeSet<String>,
    pub(crate) seccomp: Option<String>,
    pub(crate) oci_runtime: Option<String>,
    pub(crate) name: Option<String>,
    /// Whether an existing container of that name is refused.
    pub(crate) exclusive: bool,
    /// Whether an unnamed container is stopped in the end, not removed.
    pub(crate) keep: bool,
    pub(crate) without_init: bool,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) without_reaping: bool,
    pub(crate) ca_bundle: Option<PathBuf>,
    pub(crate) relaxed: BTreeSet<Relaxation>,
    pub(crate) agents: Agents,
    pub(crate) delivery: Delivery,
    pub(crate) socket_dir: Option<PathBuf>,
    pub(crate) mode: Mode,
}

/// Settings that passed the checks, and what follows from them.
#[derive(Debug)]
pub(crate) struct ValidSettings {
    pub(crate) settings: Settings,
    pub(crate) daemon: Daemon,
    pub(crate) working_dir: VPath,
}

impl Settings {
    /// Checks every option. Errors name this backend.
    pub(crate) fn validate(self) -> Result<ValidSettings> {
        self.checked().map_err(|error| error.on("docker"))
    }

    fn checked(self) -> Result<ValidSettings> {
        let given = self.working_dir.as_deref();
        let runtime = self.runtime.as_ref().map(|runtime| &*runtime.work_dir);
        let working_dir = given
            .or(runtime.filter(|directory| !directory.is_empty()))
            .unwrap_or(WORK_DIR);
        let working_dir = options::absolute_path("work", working_dir)?;
        ensure!(
            self.image.is_none() || self.runtime.is_none(),
            "an image and a runtime are given; choose one"
        );
        ensure!(
            self.image.is_some() || self.runtime.is_some(),
            "no image is given; name an image or a runtime"
        );
        self.image.as_deref().map_or(Ok(()), options::image)?;
        self.check_names()?;
        self.check_limits()?;
        let daemon = self.daemon.clone().map_or_else(Daemon::local, Ok)?;
        self.check_mounts(&daemon)?;
        Ok(ValidSettings {
            settings: self,
            daemon,
            working_dir,
        })
    }

    fn check_names(&self) -> Result<()> {
        for (name, value) in &self.env {
            options::variable(name, value)?;
        }
        for (key, value) in &self.labels {
            check::label(key, value)?;
        }
        for capability in &self.capabilities {
            check::capability(capability)?;
        }
        self.user.as_deref().map_or(Ok(()), check::user)?;
        self.name.as_deref().map_or(Ok(()), check::container)?;
        if let Some(name) = &self.oci_runtime {
            check::name("an OCI runtime", name)?;
        }
        if let Network::Named(name) = &self.network {
            check::network(name)?;
        }
        ensure!(
            self.seccomp.is_none() || !self.relaxed(Relaxation::UnconfinedSeccomp),
            "a seccomp profile and Relaxation::UnconfinedSeccomp are given; choose one"
        );
        self.seccomp.as_deref().map_or(Ok(()), check::seccomp)
    }

    fn check_limits(&self) -> Result<()> {
        options::memory(self.memory())?;
        ensure!(
            self.swap <= i64::MAX as u64 / 2,
            "a sandbox cannot have {} bytes of swap; give less",
            self.swap
        );
        ensure!(
            self.pids != Some(0),
            "a sandbox needs processes; give a limit of at least 1"
        );
        self.cpus.map_or(Ok(()), options::cpus)?;
        if let Some(shares) = self.cpu_shares {
            ensure!(
                (2..=262_144).contains(&shares),
                "{shares} is not a valid processor weight; give 2 to 262144"
            );
        }
        options::idle_timeout(self.idle_timeout)
    }

    fn check_mounts(&self, daemon: &Daemon) -> Result<()> {
        let mut taken = BTreeSet::new();
        for (target, options) in &self.tmpfs {
            check::tmpfs(options)?;
            taken.insert(options::mount_point(target)?);
        }
        for volume in &self.volumes {
            let target = options::mount_point(&volume.target)?;
            ensure!(
                taken.insert(target.clone()),
                "two mounts are on '{target}'; leave one out"
            );
            match &volume.source {
                Source::Host(path) => check::host_source(path, daemon.socket())?,
                Source::Named(name) => check::name("a volume", name)?,
            }
        }
        ensure!(
            self.ca_bundle
                .as_ref()
                .is_none_or(|path| path.is_absolute()),
            "the path of the certificates is not absolute"
        );
        self.check_socket_dir()
    }

    pub(crate) fn check_socket_dir(&self) -> Result<()> {
        ensure!(
            self.socket_dir
                .as_ref()
                .is_none_or(|path| path.is_absolute()),
            "the path of the directory for sockets is not absolute"
        );
        Ok(())
    }

    /// Returns the directory for sockets, if containers of this daemon can have it.
    pub(crate) fn usable_socket_dir(&self, daemon: &Daemon) -> Option<PathBuf> {
        let path = self.socket_dir.as_deref()?;
        let socket = daemon.socket()?;
        if !cfg!(target_os = "linux") || self.delivery == Delivery::Upload {
            return None;
        }
        if let Err(error) = check::host_source(path, Some(socket)) {
            tracing::debug!("no sockets for agents: {error}");
            return None;
        }
        Some(path.to_owned())
    }

    pub(crate) fn memory(&self) -> u64 {
        self.memory.unwrap_or(DEFAULT_MEMORY)
    }

    pub(crate) fn relaxed(&self, relaxation: Relaxation) -> bool {
        self.relaxed.contains(&relaxation)
    }

    /// Returns the action to take on the container when its owner is gone.
    pub(crate) fn disposal(&self) -> Disposal {
        if self.name.is_some() {
            Disposal::Keep
        } else if self.keep {
            Disposal::Stop
        } else {
            Disposal::Remove
        }
    }
}
