//! Confinement of commands: the host's choice, and the files that enforce it.
//!
//! The host turns its choice into a policy, which is plain data. The supervisor
//! applies the policy to the one thread that starts commands, then tries to
//! escape from it, and starts nothing if it can.

mod policy;
mod probe;
mod restrict;
mod seccomp;
mod system;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use backend_core::{Error, Result};

pub(crate) use policy::Policy;
pub(crate) use restrict::Prepared;

/// The files and network that commands may access.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub enum Confinement {
    /// Everything that their user may access. Commands are then not confined to
    /// the backend's directories, unlike its file operations.
    #[default]
    Off,
    /// The backend's directories, a directory for temporary files and a fixed
    /// set of system files, which is read-only. Enforced by the kernel
    /// (Landlock and seccomp), for root as well. Opening the backend fails on a
    /// host that cannot enforce all of it.
    Landlock(Landlock),
}

impl Confinement {
    /// Whether commands can open sockets.
    pub(crate) fn has_network(&self) -> bool {
        match self {
            Self::Off => true,
            Self::Landlock(options) => options.network,
        }
    }

    /// Whether the paths of views are to be kept from commands.
    pub(crate) fn has_views(&self) -> bool {
        matches!(self, Self::Landlock(options) if options.views)
    }

    /// Returns the policy that the supervisor must enforce, if any.
    /// `directories` are the backend's own, and `temporary` is a private one
    /// for temporary files. Fails if this host cannot enforce it, for a missing
    /// path, and for permission to write everywhere.
    pub(crate) fn policy(
        &self,
        directories: &[&Path],
        read_only: bool,
        temporary: &Path,
    ) -> Result<Option<Policy>> {
        match self {
            Self::Off => Ok(None),
            Self::Landlock(options) => {
                supported()?;
                options.policy(directories, read_only, temporary).map(Some)
            }
        }
    }
}

/// Checks that this host can enforce a policy. This happens before anything is
/// started, so that the caller gets a typed error.
fn supported() -> Result<()> {
    if let Err(missing) = restrict::ruleset(false) {
        return Err(Error::unsupported(format!(
            "this kernel cannot confine commands ({missing}); use Linux 6.12 or newer with \
             Landlock enabled (`lsm=` has `landlock`; ABI 6), let a container's seccomp profile \
             pass the landlock calls, or choose no confinement"
        )));
    }
    if seccomp::architecture().is_none() {
        return Err(Error::unsupported(format!(
            "there is no system call filter for {}; use x86_64 or aarch64, or choose no \
             confinement",
            std::env::consts::ARCH
        )));
    }
    Ok(())
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
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Landlock {
    read: Vec<PathBuf>,
    write: Vec<PathBuf>,
    without_system: bool,
    network: bool,
    pub(crate) views: bool,
}

impl Landlock {
    /// Allows only the backend's directories, the directory for temporary files
    /// and the system set, without network.
    pub fn new() -> Self {
        Self::default()
    }

    backend_core::setters! {
        /// Also lets commands read, and run programs from, this file or directory.
        /// It must exist when the backend is opened.
        fn read(self, path: impl Into<PathBuf>) { self.read.push(path.into()) }

        /// Gives commands full access to this directory, even if the backend is
        /// read-only. It must exist when the backend is opened.
        fn write(self, path: impl Into<PathBuf>) { self.write.push(path.into()) }
    }

    /// Leaves the system set out. Dynamically linked programs do not start
    /// then, including the usual shell, unless their files are added with
    /// [`read`](Self::read).
    pub fn without_system(mut self) -> Self {
        self.without_system = true;
        self
    }

    /// Lets commands use TCP, UDP and name resolution. Off by default: commands
    /// can then create no socket except connected pairs. Unix sockets are
    /// refused in both cases.
    pub fn network(mut self, network: bool) -> Self {
        self.network = network;
        self
    }

    /// Keeps the paths of a command's [`View`](backend_core::ops::View) from it, as a
    /// part of the confinement. Off by default.
    ///
    /// The supervisor then enters a mount namespace of its own and, if it is not
    /// root, a user namespace. Where the system refuses that, the backend opens all
    /// the same, and [`BackendInfo`](backend_core::BackendInfo) has the level that it
    /// reaches and the reason.
    pub fn views(mut self, views: bool) -> Self {
        self.views = views;
        self
    }
}
