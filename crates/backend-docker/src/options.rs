//! Small option types of the builder.

use std::path::PathBuf;

use serde::Deserialize;

/// The network access of a sandbox.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Network {
    /// Nothing but its own loopback.
    #[default]
    None,
    /// The daemon's default bridge: the whole network that the host sees.
    Bridge,
    /// A network of the daemon by its name. It must exist.
    Named(String),
}

/// A part of the hardening that is given up. Each must be requested by name. There is
/// none for a privileged container or for the daemon's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Relaxation {
    /// Uses the host's own network, including its loopback, instead of a separate one.
    HostNetwork,
    /// Makes the host's processes visible.
    HostProcesses,
    /// Lets programs such as `sudo` gain privileges.
    NewPrivileges,
    /// Disables the system call filter.
    UnconfinedSeccomp,
    /// Removes the limit on the number of processes.
    UnlimitedProcesses,
    /// Removes the memory limit.
    UnlimitedMemory,
}

/// The way the agent gets into a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Delivery {
    /// A bind mount if the daemon sees this host's files, else an upload.
    #[default]
    Auto,
    /// A read-only bind mount. Nothing is copied.
    Bind,
    /// A copy in the container.
    Upload,
}

/// A path of the host, or a volume of the daemon, mounted in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) read_only: bool,
    /// Whether a directory of the host is given to the sandbox's user.
    pub(crate) owned: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A directory or file on the daemon's host.
    Host(PathBuf),
    /// A volume managed by the daemon.
    Named(String),
}

impl Volume {
    /// Mounts a directory or file of the host, which must exist, at `target`.
    ///
    /// Its owner is not changed, unless [`owned`](Self::owned) says so. Without [`user`](crate::DockerBuilder::user), the
    /// sandbox runs as the owner of the first such directory that it may write to,
    /// unless that is root.
    pub fn host(source: impl Into<PathBuf>, target: impl Into<String>) -> Self {
        Self::new(Source::Host(source.into()), target.into())
    }

    /// Mounts a volume of the daemon at `target`. A missing volume is created and
    /// belongs to the sandbox's user; an existing one is not changed. It outlives the
    /// sandbox.
    pub fn named(name: impl Into<String>, target: impl Into<String>) -> Self {
        Self::new(Source::Named(name.into()), target.into())
    }

    fn new(source: Source, target: String) -> Self {
        Self {
            source,
            target,
            read_only: false,
            owned: false,
        }
    }

    backend_core::setters! {
        /// Sets whether the mount is read-only.
        read_only: bool,

        /// Sets whether a directory of the host is given to the sandbox's user when the
        /// container is created: the directory itself, with mode 755, not what is in it. The
        /// daemon does it, so this process needs no privileges. With a read-only root
        /// nothing is changed.
        ///
        /// ```
        /// use backend_docker::Volume;
        /// let files = Volume::host("/srv/files/alice", "/workspace").owned(true);
        /// # let _ = files;
        /// ```
        owned: bool,
    }
}
