//! Files and directories of the host, opened as what they are: no link is followed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use backend_core::Result;
use rustix::fs::OFlags;

use super::blocking::from_io;

/// The mode of directories: only the owner may enter.
const PRIVATE: u32 = 0o700;

/// Writes a file that only its owner may read, and replaces what a killed process left.
pub(super) fn write_private(path: &Path, content: &[u8]) -> io::Result<File> {
    remove_file(path)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(content)?;
    Ok(file)
}

/// Removes a file; a missing one is a success.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

/// Returns a path that leads to an open file, whatever its name is now.
pub(super) fn through(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Creates a directory that only its owner may enter; an existing one is a success.
pub(super) fn create_directory(path: &Path) -> io::Result<()> {
    match fs::DirBuilder::new().mode(PRIVATE).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        done => done,
    }
}

/// Opens a directory that is not a link.
pub(super) fn open_directory(path: &Path) -> io::Result<File> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags.bits() as i32);
    options.open(path)
}

/// Whether a path leads to an open directory.
pub(super) fn is_at(directory: &File, path: &Path) -> io::Result<bool> {
    let held = directory.metadata()?;
    match fs::symlink_metadata(path) {
        Ok(found) => Ok((found.dev(), found.ino()) == (held.dev(), held.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns when a file was last changed.
pub(super) fn changed(found: &fs::Metadata) -> Result<SystemTime> {
    found.modified().map_err(from_io)
}
