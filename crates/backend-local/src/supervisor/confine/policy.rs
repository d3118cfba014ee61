//! [`Policy`]: a confinement as data, created and checked by the host.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use backend_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{Confinement, Landlock, restrict, seccomp};

/// The rules that the supervisor enforces.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Policy {
    pub(super) read: Vec<AllowedPath>,
    pub(super) write: Vec<AllowedPath>,
    /// Also in `write`.
    pub(super) temporary: AllowedPath,
    pub(super) system: bool,
    pub(super) network: bool,
}

/// A file or directory as the host saw it. The supervisor opens it again, maybe
/// much later, and must find the same one: a command that may write above it
/// could have put a link there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AllowedPath {
    /// Absolute and without links. Not a `PathBuf`, which cannot be serialised
    /// unless it is UTF-8.
    pub(super) path: OsString,
    pub(super) device: u64,
    pub(super) inode: u64,
    pub(super) directory: bool,
}

impl AllowedPath {
    fn at(path: &Path) -> Result<Self> {
        let missing = |source: std::io::Error| {
            Error::new(
                ErrorKind::Config,
                format!(
                    "commands cannot be given {}; create it or leave it out",
                    path.display()
                ),
            )
            .with_source(source)
        };
        let path = path.canonicalize().map_err(missing)?;
        let found = path.symlink_metadata().map_err(missing)?;
        Ok(Self {
            path: path.into_os_string(),
            device: found.dev(),
            inode: found.ino(),
            directory: found.is_dir(),
        })
    }

    pub(super) fn path(&self) -> &Path {
        Path::new(&self.path)
    }
}

impl Confinement {
    /// Returns the policy that the supervisor must enforce, if any.
    /// `directories` are the backend's own, and `temporary` is a private one
    /// for temporary files.
    ///
    /// # Errors
    ///
    /// `Unsupported` if this host cannot enforce it; `Config` for a missing
    /// path, or for permission to write everywhere.
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

impl Landlock {
    fn policy(&self, directories: &[&Path], read_only: bool, temporary: &Path) -> Result<Policy> {
        let temporary = AllowedPath::at(temporary)?;
        let mut read = allowed_paths(self.read.iter().map(PathBuf::as_path))?;
        let mut write = allowed_paths(self.write.iter().map(PathBuf::as_path))?;
        write.push(temporary.clone());
        let own = allowed_paths(directories.iter().copied())?;
        match read_only {
            true => read.extend(own),
            false => write.extend(own),
        }
        if write.iter().any(|place| place.path() == Path::new("/")) {
            return Err(Error::new(
                ErrorKind::Config,
                "commands that may write below / are not confined; choose a smaller directory or \
                 no confinement",
            ));
        }
        Ok(Policy {
            read,
            write,
            temporary,
            system: self.system,
            network: self.network,
        })
    }
}

fn allowed_paths<'a>(paths: impl Iterator<Item = &'a Path>) -> Result<Vec<AllowedPath>> {
    paths.map(AllowedPath::at).collect()
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
