//! A backend on its own directory, and direct access to that directory.

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
    /// Whether paths are host paths.
    host_names: bool,
    /// The canonical path of the directory.
    root: PathBuf,
    /// The directory outside, and its snapshot.
    outside: PathBuf,
    before: Mutex<BTreeMap<PathBuf, String>>,
    _directory: tempfile::TempDir,
}

impl DiskFixture {
    /// Creates a fixture from the two backends that `open` returns: a normal
    /// and a read-only one.
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

    /// Returns the host path of a backend path.
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

/// Returns everything in a directory, with all properties in which a change
/// would show.
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
