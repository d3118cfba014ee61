//! Inspects the disk behind a backend.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use backend_local::{LocalBackend, Resolution};

pub(crate) use backend_testkit::path as at;

pub(crate) fn directory() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::Builder::new().prefix("files").tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}

pub(crate) fn open(root: &Path) -> LocalBackend {
    LocalBackend::builder(root).open().unwrap()
}

pub(crate) const BOTH: [Resolution; 2] = [Resolution::Auto, Resolution::Components];

pub(crate) fn open_by(root: &Path, resolution: Resolution) -> LocalBackend {
    let builder = LocalBackend::builder(root).resolution(resolution);
    builder.open().unwrap()
}

/// A file system in memory, which only root can mount. Unmounted when dropped.
pub(crate) struct Mounted(pub(crate) PathBuf);

impl Mounted {
    pub(crate) fn at(path: &Path, options: &str) -> Self {
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path);
        assert!(mount.status().unwrap().success());
        Self(path.to_owned())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a thread of the backend may close its handle a moment later.
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// Returns the real names in a directory.
pub(crate) fn names(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort_unstable();
    names
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}
