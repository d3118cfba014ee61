//! [`Paths`]: the files of a sandbox as its processes see them.
//!
//! The kernel resolves every path beneath the sandbox's root, so that no link leads out
//! of it. All functions block.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use rustix::io::Errno;

/// The number of times that a path is resolved anew while another process moves it.
const MAX_TRIES: usize = 100;

/// Opens files of a sandbox.
#[derive(Debug)]
pub(crate) struct Paths {
    root: OwnedFd,
    working_dir: String,
}

/// A file or directory that was found.
#[derive(Debug)]
pub(crate) struct Place {
    _handle: OwnedFd,
    path: PathBuf,
}

impl Place {
    /// Returns a path to it for this process.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl Paths {
    pub(crate) fn new(root: OwnedFd, working_dir: String) -> Self {
        Self { root, working_dir }
    }

    /// Finds a file or directory, and follows links.
    pub(crate) fn find(&self, path: &str) -> io::Result<Place> {
        let handle = self.open(&self.absolute(path))?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd()));
        Ok(Place {
            _handle: handle,
            path,
        })
    }

    /// Finds the place of an entry that need not exist. It can be a link.
    pub(crate) fn entry(&self, path: &str) -> io::Result<Place> {
        let absolute = self.absolute(path);
        let path = Path::new(&absolute);
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let handle = self.open(&parent.to_string_lossy())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", handle.as_raw_fd())).join(name);
        Ok(Place {
            _handle: handle,
            path,
        })
    }

    /// Opens a file for writing, empty, and creates it if there is none.
    pub(crate) fn create(&self, path: &str) -> io::Result<File> {
        match self.find(path) {
            Ok(place) => File::options()
                .write(true)
                .truncate(true)
                .open(place.path()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let place = self.entry(path)?;
                File::options()
                    .write(true)
                    .create_new(true)
                    .open(place.path())
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a directory and those above it that are missing.
    pub(crate) fn create_directories(&self, path: &str, mode: u32) -> io::Result<()> {
        let absolute = self.absolute(path);
        let mut prefix = String::new();
        for name in absolute.split('/').filter(|name| !name.is_empty()) {
            prefix.push('/');
            prefix.push_str(name);
            match self.find(&prefix) {
                Ok(place) if place.path().metadata()?.is_dir() => {}
                Ok(_) => return Err(io::ErrorKind::NotADirectory.into()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    DirBuilder::new()
                        .mode(mode)
                        .create(self.entry(&prefix)?.path())?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns the absolute form of a path. Relative ones begin at the working directory.
    pub(crate) fn absolute(&self, path: &str) -> String {
        if path.starts_with('/') {
            path.to_owned()
        } else {
            format!("{}/{path}", self.working_dir)
        }
    }

    fn open(&self, absolute: &str) -> io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::CLOEXEC;
        for _ in 0..MAX_TRIES {
            let opened = openat2(
                &self.root,
                absolute,
                flags,
                Mode::empty(),
                ResolveFlags::IN_ROOT,
            );
            match opened {
                Err(Errno::AGAIN) => {}
                opened => return Ok(opened?),
            }
        }
        Err(Errno::AGAIN.into())
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn links_stay_within_the_root() {
        let directory = tempfile::tempdir().unwrap();
        let root = File::open(directory.path()).unwrap();
        let paths = Paths::new(root.into(), "/work".to_owned());
        paths.create_directories("sub", 0o755).unwrap();
        fs::write(directory.path().join("work/a"), "here").unwrap();
        symlink("/work/a", directory.path().join("link")).unwrap();
        symlink("/etc/passwd", directory.path().join("out")).unwrap();
        assert_eq!(
            fs::read(paths.find("/link").unwrap().path()).unwrap(),
            b"here"
        );
        assert_eq!(
            fs::read(paths.find("../../work/a").unwrap().path()).unwrap(),
            b"here"
        );
        let out = paths.find("/out").unwrap_err();
        assert_eq!(out.kind(), io::ErrorKind::NotFound);
        assert!(paths.create("/out").is_err());
        assert!(paths.create("sub/new").is_ok());
        assert!(directory.path().join("work/sub/new").exists());
    }
}
