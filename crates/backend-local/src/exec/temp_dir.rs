//! [`TempDir`]: a private directory for the temporary files of confined commands.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use backend_core::{Error, Result};
use rustix::fs::OFlags;

use crate::engine;
use crate::random::random;

const PREFIX: &str = "agentbox-tmp-";

/// A directory that is removed with this value. Directories left behind by a
/// killed process are removed when the next one is created.
#[derive(Debug)]
pub(super) struct TempDir {
    pub(super) path: PathBuf,
    /// Held while the directory is in use. On a file system without locks,
    /// leftovers are never removed.
    _lock: Option<File>,
}

impl TempDir {
    pub(super) fn new() -> Result<Self> {
        let place = std::env::temp_dir();
        let made = make(&place).map_err(|error| {
            Error::unavailable(format!(
                "no directory for temporary files can be created in {}; set TMPDIR to a writable directory",
                place.display()
            ))
            .with_source(error)
        })?;
        if let Ok(engine) = engine::handle() {
            backend_run::spawn_blocking(engine, move || sweep(&place));
        }
        Ok(made)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let path = std::mem::take(&mut self.path);
        if let Ok(engine) = engine::handle() {
            backend_run::spawn_blocking(engine, move || drop(std::fs::remove_dir_all(path)));
        }
    }
}

fn make(place: &Path) -> io::Result<TempDir> {
    loop {
        let path = place.join(format!("{PREFIX}{:016x}", random()));
        DirBuilder::new().mode(0o700).create(&path)?;
        let lock = lock(&path);
        // Another process may have found it before it was locked, and be
        // removing it.
        if !matches!(lock, Ok(None)) && path.exists() {
            let lock = lock.ok().flatten();
            return Ok(TempDir { path, _lock: lock });
        }
    }
}

/// Opens and locks the directory. Returns `None` if it is in use.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let flags = (OFlags::DIRECTORY | OFlags::NOFOLLOW).bits().cast_signed();
    let directory = OpenOptions::new()
        .read(true)
        .custom_flags(flags)
        .open(path)?;
    match directory.try_lock() {
        Ok(()) => Ok(Some(directory)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Removes the directories whose processes are gone.
fn sweep(place: &Path) {
    for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
        let is_one = number.is_some_and(|number| u64::from_str_radix(number, 16).is_ok());
        let ours = |about: Metadata| about.uid() == rustix::process::geteuid().as_raw();
        if is_one
            && let Ok(Some(locked)) = lock(&entry.path())
            && locked.metadata().is_ok_and(ours)
        {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let used = make(place.path()).unwrap();
        let left = make(place.path()).unwrap();
        std::fs::write(left.path.join("x"), "x").unwrap();
        let left = left.abandoned();
        let others = ["agentbox-tmp-x", "agentbox-tmp-", "other"];
        let others = others.map(|name| place.path().join(name));
        for other in &others {
            std::fs::create_dir(other).unwrap();
        }
        let link = place.path().join(format!("{PREFIX}0"));
        std::os::unix::fs::symlink("other", &link).unwrap();
        sweep(place.path());
        assert!(!left.exists());
        assert!(used.path.exists() && others.iter().all(|other| other.exists()));
        assert!(link.is_symlink());
    }

    impl TempDir {
        /// Leaves the directory as a killed process would.
        fn abandoned(mut self) -> PathBuf {
            // A process started by another test holds a copy of the handle for
            // a moment.
            self._lock.take().unwrap().unlock().unwrap();
            std::mem::take(&mut self.path)
        }
    }
}
