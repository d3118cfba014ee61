//! Guarded backends for the conformance suite.

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
use backend_core::ops::{ReadOptions, WriteOptions};
use backend_core::{Backend, VPath};
use backend_local::{Commands, LocalBackend, Supervisor};
use backend_state::StateBackend;
use backend_testkit::fake::PausedClock;
use backend_testkit::{CaseResult, Failure, Fixture, Need};

/// Puts a guard in front of a backend.
pub(crate) type Wrap<B> = fn(B) -> Arc<dyn Backend>;

/// A guarded store whose clock the suite can set.
pub(crate) struct GuardedState {
    backend: StateBackend,
    clock: PausedClock,
    wrap: Wrap<StateBackend>,
}

impl GuardedState {
    pub(crate) fn new(wrap: Wrap<StateBackend>) -> Self {
        let clock = PausedClock::new();
        let ticking = clock.clone();
        let tick = move || {
            ticking.advance(Duration::from_millis(1));
            ticking.now()
        };
        Self {
            backend: StateBackend::builder().clock(tick).build(),
            clock,
            wrap,
        }
    }
}

#[async_trait]
impl Fixture for GuardedState {
    fn backend(&self) -> Arc<dyn Backend> {
        (self.wrap)(self.backend.clone())
    }

    fn provides(&self, need: Need) -> bool {
        matches!(need, Need::Write | Need::Times | Need::SetTime)
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        let content = self.backend.read(path, ReadOptions::default()).await?.data;
        let now = self.clock.now();
        // The write reads the clock once, which advances it by a millisecond.
        self.clock.set(time - Duration::from_millis(1));
        let options = WriteOptions::default();
        let written = self.backend.write(path, content.into(), options).await;
        self.clock.set(now);
        written?;
        Ok(())
    }
}

/// A guarded directory with all features of a real file system.
pub(crate) struct GuardedLocal {
    backend: LocalBackend,
    read_only: LocalBackend,
    wrap: Wrap<LocalBackend>,
    root: PathBuf,
    outside: PathBuf,
    before: Mutex<BTreeMap<PathBuf, String>>,
    _directory: tempfile::TempDir,
}

impl GuardedLocal {
    pub(crate) fn new(wrap: Wrap<LocalBackend>) -> Self {
        let directory = tempfile::Builder::new()
            .prefix("guarded")
            .tempdir()
            .unwrap();
        let place = directory.path().canonicalize().unwrap();
        let (root, outside) = (place.join("root"), place.join("outside"));
        std::fs::create_dir(&root).unwrap();
        let builder = LocalBackend::builder(&root);
        let commands = Commands::default().supervisor(Supervisor::None);
        let read_only = builder.clone().read_only(true).open().unwrap();
        let backend = builder.enable_execute(true).commands(commands);
        Self {
            backend: backend.open().unwrap(),
            read_only,
            wrap,
            root,
            outside,
            before: Mutex::default(),
            _directory: directory,
        }
    }

    fn host(&self, path: &VPath) -> PathBuf {
        self.root.join(path.as_str().trim_start_matches('/'))
    }
}

fn done<T>(result: io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure::new(format!("the fixture failed: {error}")))
}

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
impl Fixture for GuardedLocal {
    fn backend(&self) -> Arc<dyn Backend> {
        (self.wrap)(self.backend.clone())
    }

    fn provides(&self, _: Need) -> bool {
        true
    }

    fn read_only(&self) -> Option<Arc<dyn Backend>> {
        Some((self.wrap)(self.read_only.clone()))
    }

    fn link_text(&self, path: &VPath) -> String {
        self.host(path).to_str().unwrap().to_owned()
    }

    async fn make_link(&self, path: &VPath, text: &str) -> CaseResult {
        done(std::os::unix::fs::symlink(text, self.host(path)))
    }

    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let made = rustix::fs::mkfifoat(rustix::fs::CWD, self.host(path), mode);
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
