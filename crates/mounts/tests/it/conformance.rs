//! The whole suite on two mounted directories, with a guard in front.
#[path = "../../../permissions/tests/it/support/fixture.rs"]
#[allow(dead_code, reason = "another crate's tests use the rest")]
mod fixture;

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Backend, BackendExt as _, ErrorKind, VPath};
use backend_testkit::{CASES, CaseResult, Failure, Fixture, Need, Outcome, block_on, run_case};
use fixture::GuardedLocal;
use mounts::{Mode, Mount, MountConfig, Opener};

/// Two mounted directories, one of which contains the working directory, and a plain
/// local backend for direct access to that one.
struct Mounted {
    backend: Arc<dyn Backend>,
    read_only: Arc<dyn Backend>,
    hand: GuardedLocal,
    _other: tempfile::TempDir,
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn open(here: &str, there: &Path, mode: Mode) -> Arc<dyn Backend> {
    let mount = |host: &Path, point| {
        let mount = Mount::new(host, point).unwrap();
        mount.mode(mode).write_approval(false)
    };
    let mounts = vec![mount(Path::new(here), "/here"), mount(there, "/there")];
    let opener = Opener::new(MountConfig::new(mounts)).working_dir(path("/here/work"));
    Arc::new(opener.open().unwrap().guard().build())
}

impl Mounted {
    fn new() -> Self {
        let hand = GuardedLocal::new(|local| Arc::new(local));
        let other = tempfile::tempdir().unwrap();
        let root = hand.link_text(&VPath::root());
        std::fs::create_dir(Path::new(&root).join("work")).unwrap();
        Self {
            backend: open(&root, other.path(), Mode::Rw),
            read_only: open(&root, other.path(), Mode::Ro),
            hand,
            _other: other,
        }
    }
}

/// Converts a path in the tree to the path in the directory behind the mount.
fn below(path: &VPath) -> VPath {
    let relative = path.strip_prefix(&VPath::parse("/here").unwrap());
    VPath::root().join(relative.unwrap()).unwrap()
}

#[async_trait]
impl Fixture for Mounted {
    fn backend(&self) -> Arc<dyn Backend> {
        Arc::clone(&self.backend)
    }

    fn provides(&self, need: Need) -> bool {
        need != Need::Commands
    }

    fn read_only(&self) -> Option<Arc<dyn Backend>> {
        Some(Arc::clone(&self.read_only))
    }

    fn link_text(&self, path: &VPath) -> String {
        self.hand.link_text(&below(path))
    }

    async fn make_link(&self, path: &VPath, target: &str) -> CaseResult {
        self.hand.make_link(&below(path), target).await
    }

    async fn make_fifo(&self, path: &VPath) -> CaseResult {
        self.hand.make_fifo(&below(path)).await
    }

    async fn make_raw_name(&self, directory: &VPath, name: &[u8]) -> CaseResult {
        self.hand.make_raw_name(&below(directory), name).await
    }

    async fn set_mode(&self, path: &VPath, mode: u32) -> CaseResult {
        self.hand.set_mode(&below(path), mode).await
    }

    async fn make_outside(&self) -> Result<String, Failure> {
        self.hand.make_outside().await
    }

    async fn check_outside(&self) -> CaseResult {
        self.hand.check_outside().await
    }

    async fn set_modified(&self, path: &VPath, time: SystemTime) -> CaseResult {
        self.hand.set_modified(&below(path), time).await
    }
}

/// Number of skipped cases: only those that need commands.
const SKIPPED: usize = 79;

#[test]
fn two_directories() {
    let (mut failed, mut skipped) = (Vec::new(), 0);
    for case in CASES {
        match block_on(run_case(case, Mounted::new())) {
            Outcome::Passed => {}
            Outcome::Skipped(_) => skipped += 1,
            outcome => failed.push((case.id(), outcome)),
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
    assert_eq!(skipped, SKIPPED);
}

#[test]
fn what_holds_mounts_stays() {
    let mounted = Mounted::new();
    let backend = mounted.backend();
    block_on(async {
        backend.write_file("directory/file", "kept").await.unwrap();
        for (path, kind) in [
            (".", ErrorKind::InvalidInput),
            ("/here", ErrorKind::InvalidInput),
            ("/there", ErrorKind::PermissionDenied),
            ("/", ErrorKind::InvalidInput),
        ] {
            let error = backend.delete_file(path).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{path}: {error}");
            let error = backend.delete_tree(path).await.unwrap_err();
            assert_eq!(error.kind(), kind, "{path}: {error}");
            let error = backend.move_to(path, "/here/moved").await.unwrap_err();
            assert_eq!(error.kind(), kind, "{path}: {error}");
        }
        assert!(backend.exists("directory/file").await.unwrap());
    });
}
