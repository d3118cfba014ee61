//! Directories shared with the host, and their owner afterwards.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_docker::{Mode, Volume};
use backend_testkit::fails;

use crate::support::docker;
use crate::support::docker::{builder, purge, run};

/// A user that is neither root nor the default user.
const SOMEBODY: (u32, u32) = (4711, 4712);

fn directory(owner: (u32, u32)) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(directory.path(), Some(owner.0), Some(owner.1)).unwrap();
    directory
}

fn owner(path: &Path) -> (u32, u32) {
    let metadata = path.metadata().unwrap();
    (metadata.uid(), metadata.gid())
}

async fn files_belong_to_the_owner(mode: Mode) {
    let shared = directory(SOMEBODY);
    let volume = Volume::host(shared.path(), "/workspace");
    let sandbox = builder().volume(volume).mode(mode).build().unwrap();
    sandbox.write_file("d/a.txt", "one\n").await.unwrap();
    run(&sandbox, "echo two > b.txt").await;
    purge(&sandbox).await;
    for (name, text) in [("d/a.txt", "one\n"), ("b.txt", "two\n")] {
        let path = shared.path().join(name);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert_eq!(owner(&path), SOMEBODY, "{name}");
    }
    assert_eq!(owner(&shared.path().join("d")), SOMEBODY);
    assert_eq!(owner(shared.path()), SOMEBODY, "the directory is as it was");
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn files_of_the_agent_belong_to_the_directorys_owner() {
    files_belong_to_the_owner(Mode::Agent).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn files_of_the_portable_mode_belong_to_the_directorys_owner() {
    files_belong_to_the_owner(Mode::Portable).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_read_only_volume_is() {
    let shared = directory(SOMEBODY);
    std::fs::write(shared.path().join("a.txt"), "one\n").unwrap();
    let volume = Volume::host(shared.path(), "/data").read_only(true);
    let sandbox = builder().volume(volume).build().unwrap();
    assert_eq!(
        sandbox.read_to_string("/data/a.txt").await.unwrap(),
        "one\n"
    );
    fails(
        ErrorKind::PermissionDenied,
        sandbox.write_file("/data/a.txt", "two\n").await,
    );
    purge(&sandbox).await;
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_directory_of_roots_that_could_not_be_written_is_refused() {
    let shared = directory((0, 0));
    let shown = || Volume::host(shared.path(), "/workspace");
    let sandbox = builder().volume(shown()).build().unwrap();
    let error = fails(ErrorKind::Config, sandbox.start().await);
    assert!(error.to_string().contains("root"), "{error}");
    let asked = builder().volume(shown()).user("0").build().unwrap();
    asked.write_file("a.txt", "one\n").await.unwrap();
    purge(&asked).await;
    assert_eq!(owner(&shared.path().join("a.txt")), (0, 0));
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_named_volume_outlives_the_sandbox_and_belongs_to_its_user() {
    let name = format!("agentbox-test-{:x}", std::process::id());
    for text in ["", "one\n"] {
        let volume = Volume::named(&name, "/workspace");
        let sandbox = builder().volume(volume).build().unwrap();
        let before = run(&sandbox, "cat a.txt 2>/dev/null || true").await;
        assert_eq!(before, text.trim_end());
        sandbox.write_file("a.txt", "one\n").await.unwrap();
        purge(&sandbox).await;
    }
    docker::docker(&["volume", "rm", &name]);
}
