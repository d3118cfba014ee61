//! Sessions in containers: claimed once, found again, with files that last.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, ErrorKind};
use futures_util::future::join_all;
use sessions::{
    Claim, Engine as _, OpenRequest, QuotaError, RecordState, SessionId, SessionManager,
};

use crate::support::docker::{
    Cleanup, bare_engine, container_of, containers, docker, engine, manager, new_space, run,
    runtime, until,
};

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn another_process_finds_the_session_with_its_files() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let first = manager(&engine(&space, root.path()).build().unwrap());
    let second = manager(&engine(&space, root.path()).build().unwrap());
    let request = OpenRequest::new(id("Alice_1")).tenant("acme");
    let alice = first.open(request.clone()).await.unwrap();
    alice.write_file("notes.md", "milk\n").await.unwrap();
    let again = second.open(request).await.unwrap();
    assert_eq!(again.read_to_string("notes.md").await.unwrap(), "milk\n");
    assert_eq!(container_of(&alice).await, container_of(&again).await);
    let records = second.list().await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].id, id("Alice_1"));
    assert_eq!(records[0].tenant.as_deref(), Some("acme"));
    assert_eq!(records[0].state, RecordState::Running);
    assert!(second.purge("Alice_1").await.unwrap());
    assert!(containers(&space, &[]).is_empty());
    assert!(!root.path().join("Alice_1").exists());
    assert!(second.list().await.unwrap().is_empty());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn several_that_open_one_id_at_once_end_with_one_container() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engines = (0..4).map(|number| {
        let engine = engine(&space, root.path());
        // Half of them claim a container that is ready, the others create one.
        let engine = if number % 2 == 0 {
            engine.pool(runtime(), 1)
        } else {
            engine
        };
        engine.build().unwrap()
    });
    let engines: Vec<_> = engines.collect();
    for engine in &engines {
        engine.warm().await.unwrap();
    }
    let managers: Vec<_> = engines.iter().map(manager).collect();
    let opened = join_all(managers.iter().map(|one| one.get_or_create("alice"))).await;
    let mut used = Vec::new();
    for session in opened {
        used.push(container_of(&session.unwrap()).await);
    }
    used.dedup();
    assert_eq!(used.len(), 1, "{used:?}");
    for engine in &engines {
        engine.close().await.unwrap();
    }
    let name = format!("agentbox-s-{space}-alice");
    until("the end of the spare containers", async || {
        containers(&space, &[]) == [name.clone()]
    })
    .await;
    managers[0].purge("alice").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn one_claim_of_an_id_succeeds() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path()).build().unwrap();
    let request = OpenRequest::new(id("alice"));
    let claims = join_all((0..3).map(|_| engine.claim(&request))).await;
    let created = claims
        .iter()
        .filter(|claim| matches!(claim, Ok(Claim::Created(_))));
    assert_eq!(created.count(), 1, "{claims:?}");
    assert!(claims.iter().all(Result::is_ok), "{claims:?}");
    assert_eq!(containers(&space, &[]).len(), 1);
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(!engine.purge(&id("alice")).await.unwrap());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn files_outlive_the_container() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path()).build().unwrap();
    let manager = manager(&engine);
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    let before = container_of(&alice).await;
    assert!(manager.release("alice").await.unwrap());
    assert!(containers(&space, &["running"]).is_empty());
    let file = root.path().join("alice/workspace/notes.md");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "milk\n");
    let woken = manager.get_or_create("alice").await.unwrap();
    assert_eq!(container_of(&woken).await, before, "the same, woken");
    let name = format!("agentbox-s-{space}-alice");
    docker(&["rm", "-f", &name]);
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Stored);
    let recreated = manager.get_or_create("alice").await.unwrap();
    assert_eq!(
        recreated.read_to_string("notes.md").await.unwrap(),
        "milk\n"
    );
    assert_ne!(container_of(&recreated).await, before);
    run(&recreated, "echo more >> notes.md").await;
    manager.purge("alice").await.unwrap();
    assert!(!file.exists());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn files_that_outlive_the_container_stay_their_tenants() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let first = manager(&engine(&space, root.path()).build().unwrap());
    let second = manager(&engine(&space, root.path()).build().unwrap());
    let request = |tenant: &str| OpenRequest::new(id("alice")).tenant(tenant);
    let alice = first.open(request("acme")).await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    docker(&["rm", "-f", &format!("agentbox-s-{space}-alice")]);
    let records = second.list().await.unwrap();
    assert_eq!(records[0].tenant.as_deref(), Some("acme"));
    let error = second.open(request("rival")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let again = second.open(request("acme")).await.unwrap();
    assert_eq!(again.read_to_string("notes.md").await.unwrap(), "milk\n");
    // Unless they are given to another, while the container does not run and without it.
    let third = engine(&space, root.path()).build().unwrap();
    let error = third.set_tenant(&id("alice"), "rival").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    second.release("alice").await.unwrap();
    assert!(third.set_tenant(&id("alice"), "rival").await.unwrap());
    docker(&["rm", &format!("agentbox-s-{space}-alice")]);
    let error = second.open(request("acme")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(third.set_tenant(&id("alice"), "acme").await.unwrap());
    second.open(request("acme")).await.unwrap();
    assert!(!third.set_tenant(&id("nobody"), "acme").await.unwrap());
    second.purge("alice").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_ready_container_becomes_that_of_a_session() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path())
        .pool(runtime(), 1)
        .build()
        .unwrap();
    let manager = manager(&engine);
    engine.warm().await.unwrap();
    let spare = containers(&space, &["running"]);
    assert_eq!(spare.len(), 1);
    let spare = docker(&["inspect", "-f", "{{.Config.Hostname}}", &spare[0]]);
    let alice = manager.get_or_create("alice").await.unwrap();
    assert_eq!(container_of(&alice).await, spare);
    run(&alice, "echo milk > notes.md").await;
    let file = root.path().join("alice/workspace/notes.md");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "milk\n");
    until("another ready container", async || {
        containers(&space, &["running"]).len() == 2
    })
    .await;
    // It is started again by the path it was created with.
    manager.release("alice").await.unwrap();
    let woken = manager.get_or_create("alice").await.unwrap();
    assert_eq!(container_of(&woken).await, spare);
    assert_eq!(run(&woken, "cat notes.md").await, "milk");
    manager.purge("alice").await.unwrap();
    assert!(!file.exists());
    let shutdown = manager.shutdown(Duration::from_secs(60)).await;
    assert!(shutdown.failed.is_empty(), "{shutdown:?}");
    assert!(containers(&space, &[]).is_empty(), "the pool is drained");
    let left: Vec<_> = std::fs::read_dir(root.path().join(".pool"))
        .unwrap()
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_ready_container_is_given_the_variables_of_its_session() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let pooled = engine(&space, root.path()).pool(runtime(), 1);
    let pooled = pooled.build().unwrap();
    pooled.warm().await.unwrap();
    let spare = docker(&[
        "inspect",
        "-f",
        "{{.Config.Hostname}}",
        &containers(&space, &[])[0],
    ]);
    let first = manager(&pooled);
    let with = |value: &str| OpenRequest::new(id("alice")).env("TOKEN", value);
    let alice = first.open(with("secret")).await.unwrap();
    assert_eq!(container_of(&alice).await, spare);
    assert_eq!(run(&alice, "echo $TOKEN").await, "secret");
    let name = format!("agentbox-s-{space}-alice");
    assert!(!docker(&["inspect", &name]).contains("secret"));
    let second = manager(&engine(&space, root.path()).build().unwrap());
    let again = second.get_or_create("alice").await.unwrap();
    assert_eq!(run(&again, "echo $TOKEN").await, "secret");
    // They are kept while it sleeps, and replaced by those of a later request.
    second.release("alice").await.unwrap();
    let woken = second.get_or_create("alice").await.unwrap();
    assert_eq!(run(&woken, "echo $TOKEN").await, "secret");
    second.open(with("newer")).await.unwrap();
    assert_eq!(run(&woken, "echo $TOKEN").await, "newer");
    let third = manager(&engine(&space, root.path()).build().unwrap());
    let last = third.get_or_create("alice").await.unwrap();
    assert_eq!(run(&last, "echo $TOKEN").await, "newer");
    third.purge("alice").await.unwrap();
    pooled.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_killed_container_is_woken_by_the_next_call() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path()).build().unwrap();
    let manager = manager(&engine);
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    docker(&["kill", &format!("agentbox-s-{space}-alice")]);
    let again = manager.get_or_create("alice").await.unwrap();
    assert_eq!(run(&again, "cat notes.md").await, "milk");
    manager.purge("alice").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn without_a_root_files_end_with_the_container() {
    let space = new_space();
    let _cleanup = Cleanup(space.clone());
    let engine = bare_engine(&space).build().unwrap();
    let manager = manager(&engine);
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    docker(&["rm", "-f", &format!("agentbox-s-{space}-alice")]);
    let error = manager.get_or_create("alice").await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::Unavailable,
        "never a blank restart"
    );
    manager.release("alice").await.unwrap();
    let blank = manager.get_or_create("alice").await.unwrap();
    assert!(!blank.exists("notes.md").await.unwrap());
    assert!(manager.release("alice").await.unwrap());
    assert!(containers(&space, &[]).is_empty());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_latest_use_counts_and_commands_cannot_change_it() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let (one, other) = (
        engine(&space, root.path()).build().unwrap(),
        engine(&space, root.path()).build().unwrap(),
    );
    let manager = manager(&one);
    let alice = manager.get_or_create("alice").await.unwrap();
    let last = async |engine: &sessions::DockerEngine| {
        let record = engine.record(&id("alice")).await.unwrap();
        record.unwrap().last_activity
    };
    // Whole seconds, because times are written in milliseconds.
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.as_secs() + 60);
    assert!(one.touch(&id("alice"), later).await.unwrap());
    assert_eq!(last(&other).await, later);
    let earlier = later - Duration::from_secs(30);
    one.touch(&id("alice"), earlier).await.unwrap();
    assert_eq!(last(&other).await, later);
    assert!(!one.touch(&id("nobody"), later).await.unwrap());
    let looked = run(
        &alice,
        "cat /.agentbox-session/* 2>/dev/null || echo refused",
    )
    .await;
    assert_eq!(looked, "refused");
    let usage = one.usage(&id("alice")).await.unwrap().unwrap();
    assert!(
        usage.memory_bytes.is_some_and(|bytes| bytes > 0),
        "{usage:?}"
    );
    assert_eq!(one.usage(&id("nobody")).await.unwrap(), None);
    manager.purge("alice").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_quota_keeps_new_sessions_out_and_old_ones_in() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path()).quota(1000).build().unwrap();
    let manager = manager(&engine);
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "head -c 1000 /dev/zero > big").await;
    let error = manager.get_or_create("bob").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    manager.release("alice").await.unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "rm big").await;
    manager.get_or_create("bob").await.unwrap();
    // The engine itself says how much is used.
    run(&alice, "head -c 2000 /dev/zero > big").await;
    let error = engine.claim(&OpenRequest::new(id("carol"))).await;
    let error = error.unwrap_err();
    assert_eq!(QuotaError::of(&error).map(|quota| quota.used), Some(2000));
    for name in ["alice", "bob"] {
        manager.purge(name).await.unwrap();
    }
    let nothing = engine.list().await.unwrap();
    assert!(nothing.is_empty(), "{nothing:?}");
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn the_reaper_of_leftovers_has_no_part_in_sessions() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path())
        .pool(runtime(), 1)
        .build()
        .unwrap();
    engine.warm().await.unwrap();
    let shared = Arc::new(engine.clone());
    let manager = SessionManager::builder().engine(shared).build().unwrap();
    manager.get_or_create("alice").await.unwrap();
    for name in containers(&space, &[]) {
        let format = "{{index .Config.Labels \"agentbox.disposal\"}}";
        assert_eq!(docker(&["inspect", "-f", format, &name]), "keep");
    }
    manager.purge("alice").await.unwrap();
    engine.close().await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_session_is_only_ended_if_it_was_not_used() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let engine = engine(&space, root.path()).build().unwrap();
    let manager = manager(&engine);
    manager.get_or_create("alice").await.unwrap();
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    let name = format!("agentbox-s-{space}-alice");
    let before = record.last_activity - Duration::from_secs(1);
    let ended = engine.stop_if_unused_since(&id("alice"), before).await;
    assert!(!ended.unwrap());
    assert_eq!(containers(&space, &["running"]), [&*name]);
    let since = SystemTime::now() + Duration::from_secs(60);
    let ended = engine.stop_if_unused_since(&id("alice"), since).await;
    assert!(ended.unwrap());
    assert_eq!(containers(&space, &["exited"]), [name], "it has its name");
    let again = engine.stop_if_unused_since(&id("alice"), since).await;
    assert!(!again.unwrap(), "nothing runs");
    manager.purge("alice").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_session_that_a_killed_process_was_ending_is_found() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let first = manager(&engine(&space, root.path()).build().unwrap());
    let alice = first.get_or_create("alice").await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    let container = container_of(&alice).await;
    let (name, ending) = (
        format!("agentbox-s-{space}-alice"),
        format!("agentbox-e-{space}-alice"),
    );
    docker(&["rename", &name, &ending]);
    let second = manager(&engine(&space, root.path()).build().unwrap());
    let again = second.get_or_create("alice").await.unwrap();
    assert_eq!(container_of(&again).await, container);
    assert_eq!(run(&again, "cat notes.md").await, "milk");
    assert_eq!(containers(&space, &[]), [name]);
    second.purge("alice").await.unwrap();
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn a_claim_that_was_interrupted_is_completed() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    // As if its process were killed, it is not closed.
    let killed = engine(&space, root.path()).pool(runtime(), 1);
    let killed = killed.build().unwrap();
    killed.warm().await.unwrap();
    let spare = containers(&space, &[]);
    let name = format!("agentbox-s-{space}-alice");
    docker(&["rename", &spare[0], &name]);
    let manager = manager(&engine(&space, root.path()).build().unwrap());
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    let file = root.path().join("alice/workspace/notes.md");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "milk\n");
    manager.purge("alice").await.unwrap();
    assert!(containers(&space, &[]).is_empty());
}

#[tokio::test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
async fn stored_files_are_deleted_after_their_time() {
    let (space, root) = (new_space(), tempfile::tempdir().unwrap());
    let _cleanup = Cleanup(space.clone());
    let day = Duration::from_secs(24 * 3600);
    let engine = engine(&space, root.path()).keep_stored_for(day);
    let engine = engine.build().unwrap();
    let manager = manager(&engine);
    for name in ["running", "stopped", "stored"] {
        let session = manager.get_or_create(name).await.unwrap();
        run(&session, "echo milk > notes.md").await;
    }
    manager.release("stopped").await.unwrap();
    manager.release("stored").await.unwrap();
    docker(&["rm", &format!("agentbox-s-{space}-stored")]);
    let now = SystemTime::now();
    engine.maintain(now + day / 2).await.unwrap();
    assert_eq!(engine.list().await.unwrap().len(), 3);
    engine.maintain(now + 2 * day).await.unwrap();
    let left = engine.list().await.unwrap();
    let left: Vec<_> = left.iter().map(|record| record.id.as_str()).collect();
    assert_eq!(left, ["running"]);
    assert!(!root.path().join("stopped").exists());
    assert!(!root.path().join("stored").exists());
    manager.purge("running").await.unwrap();
}
