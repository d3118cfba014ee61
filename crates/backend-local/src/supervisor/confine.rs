//! What commands may reach: the host's choice, and the files that enforce it.
//!
//! The host turns its choice into a policy, which is data. The supervisor
//! enters the policy on the one thread that starts commands, tries to get out
//! of it, and starts nothing if that succeeds.

mod policy;
mod probe;
mod restrict;
mod seccomp;
mod system;
#[cfg(test)]
mod tests;

use std::path::PathBuf;

pub(crate) use policy::Policy;
pub(crate) use restrict::restrict_current_thread;

/// What commands may reach.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Confinement {
    /// Everything that the user who runs them may. Commands are then not bound
    /// to the backend's directories as its file operations are.
    #[default]
    Off,
    /// The backend's directories, a directory for temporary files and a stated
    /// set of the system's files, which is read-only. Enforced by the kernel
    /// (Landlock and seccomp), for root as well. A host that cannot enforce all
    /// of it refuses to open the backend.
    Landlock(Landlock),
}

/// Options of [`Confinement::Landlock`].
///
/// ```
/// use backend_local::{Confinement, Landlock};
///
/// // A toolchain that is installed outside of the system's directories.
/// let confinement = Confinement::Landlock(Landlock::new().read("/opt/toolchain"));
/// # let _ = confinement;
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Landlock {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    system: bool,
    network: bool,
}

impl Default for Landlock {
    fn default() -> Self {
        Self {
            read: Vec::new(),
            write: Vec::new(),
            system: true,
            network: false,
        }
    }
}

impl Landlock {
    /// Nothing beyond the backend's directories, the directory for temporary
    /// files and the system set; no network.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets commands also read, and run programs from, this file or directory.
    /// It must exist when the backend is opened.
    pub fn read(mut self, path: impl Into<PathBuf>) -> Self {
        self.read.push(path.into());
        self
    }

    /// Lets commands do everything in this directory, also if the backend is
    /// read-only. It must exist when the backend is opened.
    pub fn write(mut self, path: impl Into<PathBuf>) -> Self {
        self.write.push(path.into());
        self
    }

    /// Leaves the system set out. No program that is linked dynamically starts
    /// then, the usual shell included, unless its files are given by
    /// [`read`](Self::read).
    pub fn without_system(mut self) -> Self {
        self.system = false;
        self
    }

    /// Lets commands use TCP, UDP and name resolution. Off by default: then
    /// they can make no socket at all, except connected pairs of their own.
    /// Unix sockets are refused in both cases.
    pub fn network(mut self, network: bool) -> Self {
        self.network = network;
        self
    }
}
