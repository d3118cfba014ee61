//! What can be chosen about a container: small types of the builder.

use std::fmt;
use std::path::PathBuf;

/// What of the network a sandbox sees.
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

/// What of the hardening is given up. Each is asked for by its name, and there
/// is none for a privileged container or for the daemon's socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Relaxation {
    /// The host's own network, loopback included, instead of one apart.
    HostNetwork,
    /// The host's processes are seen.
    HostProcesses,
    /// Programs such as `sudo` may gain privileges.
    NewPrivileges,
    /// No system call is filtered.
    UnconfinedSeccomp,
    /// As many processes as the host takes.
    UnlimitedProcesses,
    /// As much memory as the host has.
    UnlimitedMemory,
}

impl fmt::Display for Relaxation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HostNetwork => "host network",
            Self::HostProcesses => "host processes",
            Self::NewPrivileges => "new privileges",
            Self::UnconfinedSeccomp => "unconfined seccomp",
            Self::UnlimitedProcesses => "unlimited processes",
            Self::UnlimitedMemory => "unlimited memory",
        })
    }
}

/// How the agent gets into a container.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delivery {
    /// A bind mount where the daemon sees this host's files, else an upload.
    #[default]
    Auto,
    /// A read-only bind mount. Nothing is copied.
    Bind,
    /// A copy in the container.
    Upload,
}

/// Who serves the operations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// The agent if there is one that the image can run, else the image's own
    /// shell and tools.
    #[default]
    Auto,
    /// The agent.
    Agent,
    /// The image's own shell and tools: slower, same answers.
    Portable,
}

/// Something of the host, or a volume of the daemon, in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    pub(crate) source: Source,
    pub(crate) target: String,
    pub(crate) read_only: bool,
}

/// Where a [`Volume`] comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// A directory or file of the daemon's host.
    Host(PathBuf),
    /// A volume that the daemon keeps.
    Named(String),
}

impl Volume {
    /// A directory or file of the host, which must exist, at `target`.
    ///
    /// It is never given another owner: without [`user`](crate::DockerBuilder::user),
    /// the sandbox runs as the owner of the first such directory that it may
    /// write to, unless that is root.
    pub fn host(source: impl Into<PathBuf>, target: impl Into<String>) -> Self {
        Self::new(Source::Host(source.into()), target.into())
    }

    /// A volume that the daemon keeps, at `target`. A missing one is made and
    /// belongs to the sandbox's user; one that exists is left as it is. It
    /// outlives the sandbox.
    pub fn named(name: impl Into<String>, target: impl Into<String>) -> Self {
        Self::new(Source::Named(name.into()), target.into())
    }

    fn new(source: Source, target: String) -> Self {
        Self {
            source,
            target,
            read_only: false,
        }
    }

    /// Whether the sandbox may only read it.
    #[must_use]
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }
}
