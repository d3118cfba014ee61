//! The directories that hold agents, and who may write there.

use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};

use sandbox_wire::agent::PROGRAM;

use crate::files;
use crate::system::{self, file_owner};

/// The advice if there is no directory for agents.
pub(crate) const NO_DIRECTORY: &str = if system::REPORTS_FILE_OWNERS {
    "this user has no home; set HOME or XDG_DATA_HOME, or give --dir"
} else {
    "this system does not tell who else could replace an agent; give --dir, and name the agent there \
     with SANDBOX_AGENT"
};

/// The version of this program and of its agents; the handshake refuses others.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns where agents of this version are installed; `None` for a user without a home.
pub(crate) fn directory() -> Option<PathBuf> {
    let own = own_directory("XDG_DATA_HOME", ".local/share")?;
    Some(own.join("agents").join(VERSION))
}

/// Returns the directory through which agents in containers are reached; `None` for a user
/// without a home.
pub(crate) fn sockets() -> Option<PathBuf> {
    Some(own_directory("XDG_DATA_HOME", ".local/share")?.join("sockets"))
}

/// Returns the file name of an installed agent. There can be one for each processor.
pub(crate) fn file_name(arch: &str) -> String {
    format!("{PROGRAM}-{arch}")
}

/// Returns `true` if the file belongs to this user and others cannot write to it.
pub(super) fn is_own(found: &Metadata) -> bool {
    let owner = file_owner(found);
    owner.is_own && owner.mode & 0o022 == 0
}

/// Fails if another user could replace the directory. All directories above it must
/// belong to this user or root, and those that others can write to must have the sticky
/// bit.
pub(super) fn check_parents(directory: &Path) -> io::Result<()> {
    const STICKY: u32 = 0o1000;
    for above in directory.canonicalize()?.ancestors().skip(1) {
        let owner = file_owner(&std::fs::metadata(above)?);
        let is_theirs = !owner.is_own && !owner.is_root;
        let is_open = owner.mode & 0o022 != 0 && owner.mode & STICKY == 0;
        if is_theirs || is_open {
            let text = format!("others can write to {}", above.display());
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    Ok(())
}

/// Returns the user's directory for programs. Those that others could have put there
/// must not run, so there is no such directory on systems where owners are not known.
pub(super) fn own_directory(name: &str, usual: &str) -> Option<PathBuf> {
    files::user_directory(name, usual).filter(|_| system::REPORTS_FILE_OWNERS)
}

/// Writes a program atomically. All users may execute it, as those of containers do.
pub(crate) fn write_program(
    directory: &Path,
    name: &str,
    content: &mut dyn io::Read,
) -> io::Result<PathBuf> {
    let path = directory.join(name);
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::copy(content, &mut file)?;
    system::make_executable(file.as_file())?;
    file.as_file().sync_all()?;
    file.persist(&path)?;
    Ok(path)
}
