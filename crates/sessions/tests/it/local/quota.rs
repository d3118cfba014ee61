//! Quotas on stored bytes: refused where they are exceeded, with what is used.

use backend_core::ops::{Command, Content};
use backend_core::{Backend as _, BackendExt as _, Error, ErrorKind};
use bytes::Bytes;
use futures_util::StreamExt as _;
use sessions::{Claim, Engine as _, LocalEngine, QuotaError};

use super::{create, id, request};

fn exceeded(error: &Error) -> (u64, u64) {
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let quota = QuotaError::of(error).expect("a typed source");
    (quota.used, quota.limit)
}

#[tokio::test]
async fn a_session_at_its_quota_reads_and_deletes() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).session_quota(1_000);
    let engine = builder.open().unwrap();
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("a", vec![b'a'; 600]).await.unwrap();
    let error = sandbox.write_file("b", vec![b'b'; 600]).await.unwrap_err();
    assert_eq!(exceeded(&error), (600, 1_000));
    assert_eq!(error.path().unwrap().as_str(), "/b");
    // What is replaced does not count.
    sandbox.write_file("a", vec![b'c'; 1_000]).await.unwrap();
    let error = sandbox.execute(Command::new("true")).await.unwrap_err();
    assert_eq!(exceeded(&error), (1_000, 1_000));
    assert_eq!(sandbox.read_bytes("a").await.unwrap().len(), 1_000);
    sandbox.delete_file("a").await.unwrap();
    sandbox.write_file("b", vec![b'b'; 600]).await.unwrap();
    let usage = engine.usage(&id("alice")).await.unwrap().unwrap();
    assert_eq!(usage.stored_bytes, Some(600));
}

#[tokio::test]
async fn what_commands_write_counts() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).session_quota(1_000);
    let sandbox = create(&builder.open().unwrap(), "alice").await;
    let line = "head -c 5000 /dev/zero > zeros";
    sandbox.execute(Command::new(line)).await.unwrap();
    let error = sandbox.write_file("b", "b").await.unwrap_err();
    assert_eq!(exceeded(&error), (5_000, 1_000));
}

#[tokio::test]
async fn a_stream_ends_at_the_quota_and_leaves_nothing() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).session_quota(1_000);
    let sandbox = create(&builder.open().unwrap(), "alice").await;
    let pieces = (0..100).map(|_| Ok(Bytes::from_static(&[0; 100])));
    let content = Content::Stream(futures_util::stream::iter(pieces).boxed());
    let path = sandbox.path("large").unwrap();
    let written = sandbox.write(&path, content, Default::default()).await;
    assert_eq!(exceeded(&written.unwrap_err()), (0, 1_000));
    assert!(!sandbox.is_file("large").await.unwrap_or(false));
}

#[tokio::test]
async fn new_sessions_need_room_and_old_ones_open() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).total_quota(1_000);
    let engine = builder.open().unwrap();
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("a", vec![b'a'; 1_000]).await.unwrap();
    drop(sandbox);
    // Measured anew: another process may have written as well.
    let builder = LocalEngine::builder(root.path()).total_quota(1_000);
    let engine = builder.open().unwrap();
    let error = engine.claim(&request("bob")).await.unwrap_err();
    assert_eq!(exceeded(&error), (1_000, 1_000));
    let claim = engine.claim(&request("alice")).await.unwrap();
    assert!(matches!(claim, Claim::Created(_)));
    drop(claim);
    assert!(engine.purge(&id("alice")).await.unwrap());
    drop(create(&engine, "bob").await);
}

#[tokio::test]
async fn what_one_session_hides_keeps_no_other_from_opening() {
    let root = tempfile::tempdir().unwrap();
    let builder = LocalEngine::builder(root.path()).total_quota(1_000);
    let engine = builder.open().unwrap();
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("a", vec![b'a'; 400]).await.unwrap();
    let deep = root.path().join("alice/workspace").join("d/".repeat(300));
    std::fs::create_dir_all(deep).unwrap();
    let stored = engine.stored();
    assert!(stored.bytes(&id("alice")).await.is_err());
    assert_eq!(stored.total_bytes().await.unwrap(), 400);
    create(&engine, "bob").await;
}
