//! The whole suite on two mounted directories, with a guard in front.

use std::path::Path;
use std::sync::Arc;

use backend_core::{Backend, BackendExt as _, ErrorKind};
use backend_mounts::{Mode, Mount, MountConfig, Opener};
use backend_testkit::{DirectoryFixture, Fixture as _, Need, block_on, path, run_all};

fn open(here: &Path, there: &Path, mode: Mode) -> Arc<dyn Backend> {
    let mount = |host: &Path, point| {
        let mount = Mount::new(host, point).unwrap();
        mount.mode(mode).write_approval(false)
    };
    let mounts = vec![mount(here, "/here"), mount(there, "/there")];
    let opener = Opener::new(MountConfig::new(mounts)).working_dir(path("/here/work"));
    Arc::new(opener.open().unwrap().guard().build())
}

/// Two mounted directories, one of which contains the working directory.
fn mounted() -> DirectoryFixture {
    let fixture = DirectoryFixture::new(|here| {
        let there = here.with_file_name("there");
        std::fs::create_dir(&there).unwrap();
        std::fs::create_dir(here.join("work")).unwrap();
        let backend = open(here, &there, Mode::Rw);
        (backend, Some(open(here, &there, Mode::Ro)))
    });
    fixture.at(path("/here")).without(&[Need::Commands])
}

/// Number of skipped cases: only those that need commands, ports or terminals.
const SKIPPED: usize = 128;

#[test]
fn two_directories() {
    let report = block_on(run_all(async || mounted()));
    assert!(report.failed.is_empty(), "{report}");
    assert_eq!(report.skipped.len(), SKIPPED);
}

#[test]
fn what_holds_mounts_stays() {
    let mounted = mounted();
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
