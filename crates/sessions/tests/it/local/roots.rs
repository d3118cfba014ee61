//! A root belongs to one engine: the other one refuses it.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, ErrorKind, Result};
use sessions::{Engine as _, LocalEngine};

use super::{create, engine, id, request};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A session of containers with a file.
fn containers(root: &Path) {
    let files = root.join("alice/workspace");
    fs::create_dir_all(&files).unwrap();
    fs::write(files.join("file"), "kept").unwrap();
    fs::create_dir_all(root.join(".state").join("a".repeat(64))).unwrap();
}

#[track_caller]
fn refused<T>(done: Result<T>, hint: &str) {
    let Err(error) = done else {
        panic!("the root of another engine was used");
    };
    assert_eq!(error.kind(), ErrorKind::Config, "{error}");
    assert!(error.to_string().contains(hint), "{error}");
}

#[tokio::test]
async fn sessions_in_containers_are_left_alone() {
    for has_mark in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let builder = LocalEngine::builder(root.path()).time_to_live(DAY);
        // It may be opened before the other engine uses the root.
        let engine = builder.open().unwrap();
        containers(root.path());
        if has_mark {
            fs::write(root.path().join(".engine"), "docker\n").unwrap();
        }
        let (alice, now) = (id("alice"), SystemTime::now());
        let hint = "--backend docker";
        refused(LocalEngine::open(root.path()), hint);
        refused(engine.claim(&request("alice")).await, hint);
        refused(engine.attach(&alice).await, hint);
        refused(engine.list().await, hint);
        refused(engine.record(&alice).await, hint);
        refused(engine.touch(&alice, now).await, hint);
        refused(engine.set_env(&alice, &BTreeMap::new()).await, hint);
        refused(engine.set_tenant(&alice, "acme").await, hint);
        refused(engine.request_release(&alice).await, hint);
        refused(engine.stop(&alice).await, hint);
        refused(engine.purge(&alice).await, hint);
        refused(engine.usage(&alice).await, hint);
        refused(engine.maintain(now + 2 * DAY).await, hint);
        let stored = engine.stored();
        refused(stored.remove_expired(DAY, now + 2 * DAY).await, hint);
        // The files of either engine can be read.
        assert_eq!(stored.list().await.unwrap().len(), 1);
        let files = stored.files(&alice).await.unwrap();
        assert_eq!(files.read_to_string("file").await.unwrap(), "kept");
        assert!(!root.path().join("alice/session.json").exists());
    }
}

#[tokio::test]
async fn the_first_claim_marks_the_root_and_looking_does_not() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    assert!(engine.list().await.unwrap().is_empty());
    assert!(engine.record(&id("alice")).await.unwrap().is_none());
    assert!(!engine.purge(&id("alice")).await.unwrap());
    assert!(engine.stored().list().await.unwrap().is_empty());
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    drop(create(&engine, "alice").await);
    let mark = root.path().join(".engine");
    assert_eq!(fs::read_to_string(mark).unwrap(), "local\n");
    assert!(LocalEngine::open(root.path()).is_ok());
}

#[cfg(feature = "docker")]
#[tokio::test]
async fn sessions_in_directories_are_left_alone() {
    use backend_docker::Daemon;
    use sessions::DockerEngine;

    // No daemon is asked.
    let daemon = Daemon::at("tcp://127.0.0.1:9").unwrap();
    for has_mark in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let builder = DockerEngine::builder(daemon.clone()).workspace_root(root.path());
        let docker = builder.clone().build().unwrap();
        let local = engine(root.path());
        let sandbox = create(&local, "alice").await;
        sandbox.write_file("file", "kept").await.unwrap();
        if !has_mark {
            fs::remove_file(root.path().join(".engine")).unwrap();
        }
        let (alice, now) = (id("alice"), SystemTime::now());
        let hint = "--backend local";
        refused(builder.build(), hint);
        refused(docker.claim(&request("alice")).await, hint);
        refused(docker.attach(&alice).await, hint);
        refused(docker.list().await, hint);
        refused(docker.record(&alice).await, hint);
        refused(docker.touch(&alice, now).await, hint);
        refused(docker.set_env(&alice, &BTreeMap::new()).await, hint);
        refused(docker.set_tenant(&alice, "acme").await, hint);
        refused(docker.stop(&alice).await, hint);
        refused(docker.stop_if_unused_since(&alice, now).await, hint);
        refused(docker.purge(&alice).await, hint);
        refused(docker.usage(&alice).await, hint);
        refused(docker.maintain(now).await, hint);
        assert_eq!(sandbox.read_to_string("file").await.unwrap(), "kept");
    }
}
