//! A backend on a directory of its own, and a hand behind it.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Backend, VPath};
use backend_testkit::{CaseResult, Failure, Fixture, Need};
use rustix::fs::{CWD, Mode};

/// A backend on a temporary directory, and a directory outside it.
pub(crate) struct DiskFixture {
    backend: Arc<dyn Backend>,
    read_only: Arc<dyn Backend>,
    /// Whether paths are those of the host.
    host_names: bool,
    /// The directory without links in its path.
    root: PathBuf,
    /// The directory outside, and what it was like.
    outside: PathBuf,
    before: Mutex<BTreeMap<PathBuf, String>>,
    _directory: tempfile::TempDir,
}

impl DiskFixture {
    /// A fixture for what `open` makes of the directory: a backend, and one that
    /// may change nothing.
    pub(crate) fn new(
        host_names: bool,
        open: impl FnOnce(&Path) -> (Arc<dyn Backend>, Arc<dyn Backend>),
    ) -> Self {
        let directory = tempfile::Builder::new().prefix("disk").tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let (root, outside) = (place.join("root"), place.join("outside"));
        std::fs::create_dir(&root).unwrap();
        let (backend, read_only) = open(&root);
        Self {
            backend,
            read_only,
            host_names,
            root,
            outside,
            before: Mutex::default(),
            _directory: directory,
        }
    }

    /// The host's path for a path of the backend.
    fn host(&self, path: &VPath) -> PathBuf {
        match self.host_names {
            true => PathBuf::from(path.as_str()),
            false => self.root.join(path.as_str().trim_start_matches('/')),
        }
    }
}

fn done<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure::new(format!("the fixture failed: {error}")))
}

/// Everything in a directory with all that a change would show in.
fn snapshot(directory: &Path) -> io::Result<BTreeMap<PathBuf, String>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        let metadata = path.symlink_metadata()?;
        let (mode, seconds, rest) = (metadata.mode(), metadata.mtime(), metadata.mtime_nsec());
        let content = std::fs::read_to_string(&path).unwrap_or_default();
        all.insert(path, format!("{mode:o} {seconds}.{rest} {content}"));
    }
    Ok(all)
}

#[async_trait]
impl Fixture for DiskFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    fn provides(&self, _: Need) -> bool {
        true
    }

    fn read_only(&self) -> Option<Arc<dyn Backend>> {
        Some(Arc::clone(&self.read_only))
    }

    fn link_text(&self, path: &VPath) -> String {
        self.host(path).to_str().unwrap().to_owned()
    }

    async fn make_link(&self, path: &VPath, text: &str) -> CaseResult {
        done(std::os::unix::fs::symlink(text, self.host(path)))
    }

    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        let made = rustix::fs::mkfifoat(CWD, self.host(path), Mode::from_raw_mode(0o600));
        done(made.map_err(Into::into))
    }

    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        let path = self.host(directory).join(OsStr::from_bytes(name));
        done(std::fs::write(path, ""))
    }

    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        let permissions = Permissions::from_mode(mode);
        done(std::fs::set_permissions(self.host(path), permissions))
    }

    async fn make_outside(&self) -> Result<String, Failure> {
        done(std::fs::create_dir(&self.outside))?;
        done(std::fs::write(self.outside.join("secret"), "secret"))?;
        *self.before.lock().unwrap() = done(snapshot(&self.outside))?;
        Ok(self.outside.to_str().unwrap().to_owned())
    }

    async fn check_outside(&self) -> CaseResult {
        let now = done(snapshot(&self.outside))?;
        if now != *self.before.lock().unwrap() {
            return Err(Failure::new(format!("the outside was changed: {now:?}")));
        }
        Ok(())
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        let file = std::fs::File::options().write(true).open(self.host(path));
        done(file.and_then(|file| file.set_modified(time)))
    }
}
