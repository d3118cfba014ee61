//! [`Policy`]: a confinement as data, created and checked by the host.

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use backend_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::Landlock;

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

impl Landlock {
    pub(super) fn policy(
        &self,
        directories: &[&Path],
        read_only: bool,
        temporary: &Path,
    ) -> Result<Policy> {
        let temporary = AllowedPath::at(temporary)?;
        let mut read = allowed_paths(&self.read)?;
        let mut write = allowed_paths(&self.write)?;
        write.push(temporary.clone());
        let own = allowed_paths(directories)?;
        if read_only {
            read.extend(own);
        } else {
            write.extend(own);
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
            system: !self.without_system,
            network: self.network,
        })
    }
}

fn allowed_paths(paths: &[impl AsRef<Path>]) -> Result<Vec<AllowedPath>> {
    paths
        .iter()
        .map(|path| AllowedPath::at(path.as_ref()))
        .collect()
}
