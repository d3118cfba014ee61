//! How files last and how they end: purges, times to live, and directories of other
//! programs.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, ErrorKind};
use sessions::{Engine as _, LocalEngine, RecordState};

use super::{attach, create, engine, id, request};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Whether a root has nothing but the mark of its engine.
fn is_empty(root: &Path) -> bool {
    let names = fs::read_dir(root).unwrap();
    let names: Vec<_> = names.map(|entry| entry.unwrap().file_name()).collect();
    names == [".engine"]
}

#[tokio::test]
async fn a_purge_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("deep/er/file", "x").await.unwrap();
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(!engine.purge(&id("alice")).await.unwrap());
    assert!(is_empty(root.path()));
    let error = sandbox.read_to_string("deep/er/file").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    // Nor does the old sandbox reach the files of a new session with its id.
    let new = create(&engine, "alice").await;
    new.write_file("secret", "new").await.unwrap();
    let error = sandbox.read_to_string("secret").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn only_sessions_are_purged() {
    let root = tempfile::tempdir().unwrap();
    let path = |name: &str| root.path().join(name);
    fs::create_dir(path("src")).unwrap();
    fs::write(path("src/main.rs"), "kept").unwrap();
    // The record of another program.
    fs::create_dir(path("app")).unwrap();
    fs::write(path("app/session.json"), "{}").unwrap();
    // Both with the directory that a session has.
    for name in ["app", "project"] {
        fs::create_dir_all(path(name).join("workspace")).unwrap();
        fs::write(path(name).join("workspace/file"), "kept").unwrap();
        fs::write(path(name).join("other"), "kept").unwrap();
    }
    // The directory of another server, one of whose sessions runs.
    let server = engine(&path("files"));
    let sandbox = create(&server, "alice").await;
    sandbox.write_file("file", "kept").await.unwrap();
    // With this id, the root looks like a session.
    for name in ["bob", "workspace"] {
        drop(create(&server, name).await);
    }
    fs::create_dir(path("empty")).unwrap();
    fs::write(path("file"), "kept").unwrap();
    symlink(path("files/bob"), path("link")).unwrap();

    let builder = LocalEngine::builder(root.path()).time_to_live(DAY);
    let parent = builder.open().unwrap();
    assert!(parent.list().await.unwrap().is_empty());
    assert!(parent.stored().list().await.unwrap().is_empty());
    for name in [
        "src", "app", "project", "files", "empty", "file", "link", "missing",
    ] {
        assert!(!parent.purge(&id(name)).await.unwrap(), "{name}");
    }
    // Nor do they become sessions, whose purge would delete them.
    for name in ["src", "app", "project", "files"] {
        let error = parent.claim(&request(name)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{name}");
    }
    // A claim that is refused does not mark the root.
    assert!(!path(".engine").exists());
    parent.maintain(SystemTime::now() + 2 * DAY).await.unwrap();
    for name in [
        "src/main.rs",
        "app/workspace/file",
        "project/workspace/file",
        "files/alice/workspace/file",
        "file",
    ] {
        assert_eq!(fs::read(path(name)).unwrap(), b"kept", "{name}");
    }
    assert!(path("app/session.json").exists());
    assert!(path("empty").exists());
    assert!(path("link").exists());
    assert_eq!(server.list().await.unwrap().len(), 3);
}

#[tokio::test]
async fn a_session_whose_workspace_is_gone_is_purged() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    drop(create(&engine, "alice").await);
    fs::remove_dir(root.path().join("alice/workspace")).unwrap();
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(!root.path().join("alice").exists());
}

#[tokio::test]
async fn what_another_process_uses_is_not_purged() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (engine(root.path()), engine(root.path()));
    let mine = create(&one, "alice").await;
    mine.write_file("file", "kept").await.unwrap();
    let theirs = attach(&other, "alice").await.unwrap();
    let error = one.purge(&id("alice")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert_eq!(theirs.sandbox.read_to_string("file").await.unwrap(), "kept");
    assert!(other.stop(&id("alice")).await.unwrap());
    assert!(one.purge(&id("alice")).await.unwrap());
    let error = theirs.sandbox.read_to_string("file").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn closed_directories_are_purged_too() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("closed/inner/file", "x").await.unwrap();
    let closed = root.path().join("alice/workspace/closed");
    fs::set_permissions(closed.join("inner"), Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&closed, Permissions::from_mode(0o000)).unwrap();
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(is_empty(root.path()));
}

#[tokio::test]
async fn files_past_their_time_are_deleted_unless_they_are_used() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).time_to_live(DAY);
    let engine = builder.open().unwrap();
    drop(create(&engine, "old").await);
    drop(create(&engine, "young").await);
    let _used = create(&engine, "used").await;
    let now = SystemTime::now();
    let later = now + 2 * DAY;
    engine.touch(&id("young"), later - DAY / 2).await.unwrap();
    engine.maintain(now).await.unwrap();
    assert_eq!(engine.list().await.unwrap().len(), 3);
    engine.maintain(later).await.unwrap();
    let left = engine.list().await.unwrap();
    let left: Vec<_> = left.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(left, ["used", "young"]);
}

#[tokio::test]
async fn sessions_of_any_depth_are_deleted() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).time_to_live(DAY);
    let engine = builder.open().unwrap();
    for name in ["alice", "bob"] {
        let sandbox = create(&engine, name).await;
        sandbox.write_file("file", "x").await.unwrap();
    }
    // More levels than there are file descriptors.
    let files = root.path().join("alice/workspace");
    let (inner, outer) = (files.join("inner"), files.join("outer"));
    fs::create_dir(&inner).unwrap();
    for _ in 0..2_000 {
        fs::create_dir(&outer).unwrap();
        fs::rename(&inner, outer.join("d")).unwrap();
        fs::rename(&outer, &inner).unwrap();
    }
    engine.maintain(SystemTime::now() + 2 * DAY).await.unwrap();
    assert!(is_empty(root.path()));
}

#[tokio::test]
async fn an_interrupted_deletion_is_finished() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let left = root.path().join(".removed-1-0-alice/workspace");
    fs::create_dir_all(&left).unwrap();
    fs::write(left.join("file"), "x").unwrap();
    // Names that no deletion gives.
    for name in [".removed-mine", ".removed-1-alice", ".removed-1-0-"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    assert!(engine.list().await.unwrap().is_empty());
    engine.maintain(SystemTime::now()).await.unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
}

#[tokio::test]
async fn files_that_were_put_there_are_adopted_and_never_expire() {
    let root = tempfile::tempdir().unwrap();
    let files = root.path().join("alice/workspace");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("notes"), "old").unwrap();
    // None of these is a session.
    fs::create_dir(root.path().join("empty")).unwrap();
    fs::create_dir(root.path().join("not an id")).unwrap();
    fs::write(root.path().join("file"), "").unwrap();
    symlink(&files, root.path().join("link")).unwrap();
    let builder = LocalEngine::builder(root.path()).time_to_live(DAY);
    let engine = builder.open().unwrap();
    engine.maintain(SystemTime::now() + 10 * DAY).await.unwrap();
    // It becomes a session when it is opened.
    assert!(engine.list().await.unwrap().is_empty());
    assert!(!engine.purge(&id("alice")).await.unwrap());
    let records = engine.stored().list().await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].state, RecordState::Stored);
    let sandbox = create(&engine, "alice").await;
    assert_eq!(sandbox.read_to_string("notes").await.unwrap(), "old");
    assert_eq!(engine.list().await.unwrap().len(), 1);
}

#[tokio::test]
async fn a_broken_record_does_not_lose_the_files() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("file", "kept").await.unwrap();
    drop(sandbox);
    fs::write(root.path().join("alice/session.json"), "not JSON").unwrap();
    assert_eq!(engine.list().await.unwrap().len(), 1);
    let sandbox = create(&engine, "alice").await;
    assert_eq!(sandbox.read_to_string("file").await.unwrap(), "kept");
}

#[tokio::test]
async fn links_in_place_of_a_session_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::create_dir(outside.path().join("workspace")).unwrap();
    let engine = engine(root.path());
    symlink(outside.path(), root.path().join("alice")).unwrap();
    assert!(engine.claim(&request("alice")).await.is_err());
    assert!(engine.stored().files(&id("alice")).await.is_err());
    fs::create_dir(root.path().join("bob")).unwrap();
    symlink(outside.path(), root.path().join("bob/workspace")).unwrap();
    assert!(engine.claim(&request("bob")).await.is_err());
    assert!(engine.stored().files(&id("bob")).await.is_err());
}
