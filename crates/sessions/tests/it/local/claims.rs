//! Who gets a session: one of several that claim it, and all others by attaching.

use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, ErrorKind};
use futures_util::future::join_all;
use sandbox_runtime::Runtime;
use sessions::{Claim, Engine as _, RecordState};

use super::{attach, create, engine, id, request};

#[tokio::test(flavor = "multi_thread")]
async fn one_of_many_claims_creates_the_session() {
    let root = tempfile::tempdir().unwrap();
    // As in two processes: they share nothing but the directory.
    let engines = [engine(root.path()), engine(root.path())];
    for round in 0..20 {
        let name = format!("user{round}");
        let claims = (0..16).map(|number: usize| {
            let (engine, request) = (engines[number % 2].clone(), request(&name));
            tokio::spawn(async move { engine.claim(&request).await.unwrap() })
        });
        // Each is held, so that none is free again.
        let claims: Vec<_> = join_all(claims).await;
        let created = |claim: &&Result<Claim, _>| matches!(claim, Ok(Claim::Created(_)));
        assert_eq!(claims.iter().filter(created).count(), 1, "{name}");
    }
}

#[tokio::test]
async fn the_loser_attaches_and_shares_the_files() {
    let root = tempfile::tempdir().unwrap();
    let (one, other) = (engine(root.path()), engine(root.path()));
    let mine = create(&one, "alice").await;
    let claim = other.claim(&request("alice")).await.unwrap();
    assert!(matches!(claim, Claim::Taken));
    let theirs = attach(&other, "alice").await.unwrap();
    assert_eq!(theirs.record.state, RecordState::Running);
    assert_eq!(theirs.sandbox.id(), mine.id());
    mine.write_file("from-one", "1").await.unwrap();
    assert_eq!(
        theirs.sandbox.read_to_string("from-one").await.unwrap(),
        "1"
    );
    // The same value for those who ask again.
    let again = attach(&one, "alice").await.unwrap();
    assert!(std::ptr::addr_eq(
        std::sync::Arc::as_ptr(&again.sandbox),
        std::sync::Arc::as_ptr(&mine)
    ));
}

#[tokio::test]
async fn a_session_that_only_has_files_is_claimed_again() {
    let root = tempfile::tempdir().unwrap();
    let first = engine(root.path());
    let sandbox = create(&first, "alice").await;
    sandbox.write_file("kept", "yes").await.unwrap();
    sandbox.start().await.unwrap();
    assert!(first.stop(&id("alice")).await.unwrap());
    assert!(!first.stop(&id("alice")).await.unwrap(), "it does not run");
    drop((sandbox, first));

    let second = engine(root.path());
    let record = second.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Stored);
    assert!(attach(&second, "alice").await.is_none(), "no sandbox");
    let sandbox = create(&second, "alice").await;
    assert_eq!(sandbox.read_to_string("kept").await.unwrap(), "yes");
}

#[tokio::test]
async fn a_stopped_sandbox_wakes_with_its_next_call() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let sandbox = create(&engine, "alice").await;
    sandbox.start().await.unwrap();
    assert!(sandbox.is_alive().await.unwrap());
    assert!(engine.stop(&id("alice")).await.unwrap());
    assert!(!sandbox.is_alive().await.unwrap());
    let attached = attach(&engine, "alice").await.unwrap();
    assert_eq!(attached.record.state, RecordState::Stopped);
    attached.sandbox.write_file("awake", "").await.unwrap();
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Running);
}

#[tokio::test]
async fn a_dropped_sandbox_is_not_in_use() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    drop(create(&engine, "alice").await);
    drop(create(&engine, "alice").await);
}

#[tokio::test]
async fn the_record_says_what_was_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let idle = Duration::from_secs(60);
    let asked = request("alice").tenant("acme").idle_timeout(idle);
    let claim = engine.claim(&asked).await.unwrap();
    let records = engine.list().await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].id, id("alice"));
    assert_eq!(records[0].tenant.as_deref(), Some("acme"));
    assert_eq!(records[0].idle_timeout, Some(idle));
    assert_eq!(records[0].state, RecordState::Running);
    drop(claim);
}

#[tokio::test]
async fn stored_files_are_their_tenants() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let asked = request("alice").tenant("acme");
    drop(engine.claim(&asked).await.unwrap());
    let error = engine.claim(&request("alice").tenant("umbrella")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
    assert!(matches!(
        engine.claim(&asked).await.unwrap(),
        Claim::Created(_)
    ));
}

#[tokio::test]
async fn a_session_that_does_not_run_can_be_given_to_another_tenant() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let alice = id("alice");
    assert!(!engine.set_tenant(&alice, "acme").await.unwrap());
    let sandbox = create(&engine, "alice").await;
    sandbox.write_file("kept", "yes").await.unwrap();
    let error = engine.set_tenant(&alice, "acme").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    drop(sandbox);
    let used = SystemTime::now() - Duration::from_secs(60);
    let record = root.path().join("alice/session.json");
    let record = std::fs::File::options().write(true).open(record).unwrap();
    record.set_modified(used).unwrap();
    for tenant in ["umbrella", "acme"] {
        assert!(engine.set_tenant(&alice, tenant).await.unwrap());
    }
    let record = engine.record(&alice).await.unwrap().unwrap();
    assert_eq!(record.tenant.as_deref(), Some("acme"));
    assert_eq!(record.last_activity, used, "this is no use");
    let error = engine.claim(&request("alice").tenant("umbrella")).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Conflict);
    let claim = engine.claim(&request("alice").tenant("acme")).await;
    let Claim::Created(sandbox) = claim.unwrap() else {
        panic!("it is not free");
    };
    assert_eq!(sandbox.read_to_string("kept").await.unwrap(), "yes");
}

#[tokio::test]
async fn a_runtime_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let runtime = Runtime::from_image("py", "python:3.12-slim");
    let error = engine.claim(&request("alice").runtime(runtime)).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::Unsupported);
    assert!(engine.list().await.unwrap().is_empty());
}

#[tokio::test]
async fn the_last_use_never_goes_back() {
    let root = tempfile::tempdir().unwrap();
    let engine = engine(root.path());
    let _sandbox = create(&engine, "alice").await;
    let later = SystemTime::now() + Duration::from_secs(100);
    engine.touch(&id("alice"), later).await.unwrap();
    let earlier = later - Duration::from_secs(50);
    engine.touch(&id("alice"), earlier).await.unwrap();
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.last_activity, later);
    engine.touch(&id("nobody"), later).await.unwrap();
    assert_eq!(engine.record(&id("nobody")).await.unwrap(), None);
}
