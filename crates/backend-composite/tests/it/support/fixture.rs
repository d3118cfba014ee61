//! Composites for the conformance suite, with direct access to the storage behind them.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use backend_composite::{Composite, Route};
use backend_core::ops::{ReadOptions, WriteOptions};
use backend_core::{Backend, VPath};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::fake::PausedClock;
use backend_testkit::{CaseResult, Failure, Fixture, Need};

use super::unseen::Unseen;

pub(crate) fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

/// Creates a route to a new store.
pub(crate) fn state_at(prefix: &str) -> Route {
    Route::new(path(prefix), Arc::new(StateBackend::new()))
}

/// A composite whose working directory is in a store with a clock that the suite
/// can set.
pub(crate) struct StateFixture {
    backend: Arc<dyn Backend>,
    clock: PausedClock,
}

impl StateFixture {
    /// Creates a fixture from a composite that `compose` builds around a store.
    pub(crate) fn new(compose: impl FnOnce(Arc<StateBackend>) -> Arc<dyn Backend>) -> Self {
        let clock = PausedClock::new();
        let ticking = clock.clone();
        let tick = move || {
            ticking.advance(Duration::from_millis(1));
            ticking.now()
        };
        let store = StateBackend::builder().clock(tick).build();
        Self {
            backend: compose(Arc::new(store)),
            clock,
        }
    }
}

#[async_trait]
impl Fixture for StateFixture {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    fn provides(&self, need: Need) -> bool {
        matches!(need, Need::Write | Need::Times | Need::SetTime)
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        let content = self.backend.read(path, ReadOptions::default()).await?.data;
        let now = self.clock.now();
        // The write reads the clock once, a millisecond later.
        self.clock.set(time - Duration::from_millis(1));
        let options = WriteOptions::default();
        let written = self.backend.write(path, content.into(), options).await;
        self.clock.set(now);
        written?;
        Ok(())
    }
}

/// A composite whose working directory is that of a local backend.
pub(crate) struct LocalFixture {
    backend: Arc<dyn Backend>,
    read_only: Arc<dyn Backend>,
    /// The working directory, as a path of the composite.
    prefix: VPath,
    /// The local backend's directory without links in its path.
    root: PathBuf,
    /// A directory outside, and its state before the test.
    outside: PathBuf,
    before: Mutex<BTreeMap<PathBuf, String>>,
    _directory: tempfile::TempDir,
}

impl LocalFixture {
    /// Creates a composite with a store everywhere except for a local backend at
    /// `/desk/here`, where the working directory is.
    pub(crate) fn in_a_route() -> Self {
        let prefix = path("/desk/here");
        Self::new(&prefix, |local| {
            let composite = Composite::builder()
                .default_backend(Arc::new(StateBackend::new()))
                .route(state_at("/desk"))
                .route(Route::new(path("/desk/here"), local))
                .working_dir(path("/desk/here"))
                .build();
            Arc::new(composite.unwrap())
        })
    }

    /// Creates a composite with a local backend everywhere except for routes
    /// beneath the working directory, which the cases do not see.
    pub(crate) fn above_routes() -> Self {
        Self::new(&VPath::root(), |local| {
            let composite = Composite::builder()
                .default_backend(local)
                .route(state_at("/unseen"))
                .route(state_at("/unseen-too/deep/down"))
                .build();
            let unseen = ["/unseen", "/unseen-too"];
            Arc::new(Unseen::new(composite.unwrap(), &unseen))
        })
    }

    fn new(prefix: &VPath, compose: impl FnOnce(Arc<LocalBackend>) -> Arc<dyn Backend>) -> Self {
        let directory = tempfile::Builder::new().prefix("comp").tempdir().unwrap();
        let place = directory.path().canonicalize().unwrap();
        let (root, outside) = (place.join("root"), place.join("outside"));
        std::fs::create_dir(&root).unwrap();
        let builder = LocalBackend::builder(&root);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let read_only = Composite::builder()
            .route(Route::new(prefix.clone(), Arc::new(read_only)))
            .working_dir(prefix.clone())
            .build();
        let commands = Commands::default().supervisor(Supervisor::None);
        let local = builder.enable_execute(true).commands(commands).open();
        Self {
            backend: compose(Arc::new(local.unwrap())),
            read_only: Arc::new(read_only.unwrap()),
            prefix: prefix.clone(),
            root,
            outside,
            before: Mutex::default(),
            _directory: directory,
        }
    }

    /// Returns the host path for a path of the composite.
    fn host(&self, path: &VPath) -> PathBuf {
        self.root.join(path.strip_prefix(&self.prefix).unwrap())
    }
}

fn done<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure::new(format!("the fixture failed: {error}")))
}

/// Records everything in a directory that a change would affect.
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
impl Fixture for LocalFixture {
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
        let made = std::process::Command::new("mkfifo")
            .arg(self.host(path))
            .status();
        match done(made)?.success() {
            true => Ok(()),
            false => Err(Failure::new("the fixture failed: mkfifo")),
        }
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
