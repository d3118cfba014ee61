//! Sessions in pods: claimed once, found again, with files that last.

use std::time::{Duration, SystemTime};

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::pods::objects::{self, Draft, Kind};
use backend_k8s::{leftovers, pods};
use futures_util::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::Api;
use kube::api::ListParams;
use serde_json::json;
use sessions::{Claim, Engine as _, K8sEngine, OpenRequest, RecordState, SessionId};

use crate::support::k8s::{Place, has_volumes, manager, pod_of, run, runtime, until};

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn another_process_finds_the_session_with_its_files() {
    let place = Place::new().await;
    let first = manager(&place.bare_engine().build().unwrap());
    let second = manager(&place.bare_engine().build().unwrap());
    let request = OpenRequest::new(id("Alice_1")).tenant("acme");
    let alice = first.open(request.clone()).await.unwrap();
    alice.write_file("notes.md", "milk\n").await.unwrap();
    let again = second.open(request).await.unwrap();
    assert_eq!(again.read_to_string("notes.md").await.unwrap(), "milk\n");
    assert_eq!(place.pods().await, [pod_of(&alice).await]);
    let records = second.list().await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].id, id("Alice_1"));
    assert_eq!(records[0].tenant.as_deref(), Some("acme"));
    assert_eq!(records[0].state, RecordState::Running);
    let rival = OpenRequest::new(id("Alice_1")).tenant("rival");
    let third = manager(&place.bare_engine().build().unwrap());
    let error = third.open(rival).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(second.purge("Alice_1").await.unwrap());
    assert!(second.list().await.unwrap().is_empty());
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn several_that_open_one_id_at_once_end_with_one_pod() {
    let place = Place::new().await;
    let engines = (0..4).map(|number| {
        let engine = place.bare_engine();
        // Half of them claim a pod that is ready, the others create one.
        let engine = if number % 2 == 0 {
            engine.pool(runtime(), 1)
        } else {
            engine
        };
        engine.build().unwrap()
    });
    let engines: Vec<_> = engines.collect();
    for warmed in join_all(engines.iter().map(K8sEngine::warm)).await {
        warmed.unwrap();
    }
    let managers: Vec<_> = engines.iter().map(manager).collect();
    for round in 0..5 {
        let name = format!("alice-{round}");
        let opened = join_all(managers.iter().map(|one| one.get_or_create(&name))).await;
        let mut used = Vec::new();
        for session in opened {
            used.push(pod_of(&session.unwrap()).await);
        }
        used.dedup();
        assert_eq!(used.len(), 1, "{used:?}");
        assert!(managers[round % 4].purge(&name).await.unwrap());
    }
    for engine in &engines {
        engine.close().await.unwrap();
    }
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn one_claim_of_an_id_succeeds() {
    let place = Place::new().await;
    let engine = place.bare_engine().build().unwrap();
    let request = OpenRequest::new(id("alice"));
    let claims = join_all((0..3).map(|_| engine.claim(&request))).await;
    let created = claims
        .iter()
        .filter(|claim| matches!(claim, Ok(Claim::Created(_))));
    assert_eq!(created.count(), 1, "{claims:?}");
    assert!(claims.iter().all(Result::is_ok), "{claims:?}");
    assert_eq!(place.pods().await.len(), 1);
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(!engine.purge(&id("alice")).await.unwrap());
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn files_outlive_the_pod_and_stay_their_tenants() {
    if !has_volumes() {
        return;
    }
    let place = Place::new().await;
    place.make_volumes(2).await;
    let engine = place.engine().build().unwrap();
    let one = manager(&engine);
    let request = |tenant: &str| OpenRequest::new(id("alice")).tenant(tenant);
    let alice = one.open(request("acme")).await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    assert!(one.release("alice").await.unwrap());
    place.is_empty().await;
    let record = engine.record(&id("alice")).await.unwrap().unwrap();
    assert_eq!(record.state, RecordState::Stored);
    assert_eq!(record.tenant.as_deref(), Some("acme"));
    let two = manager(&place.engine().build().unwrap());
    let error = two.open(request("rival")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    let woken = two.get_or_create("alice").await.unwrap();
    assert_eq!(run(&woken, "cat notes.md").await, "milk");
    // It is replaced on its files by the next opening.
    let pod = pod_of(&woken).await;
    let before = place.uid(&pod).await;
    place.delete(&pod).await;
    let again = two.get_or_create("alice").await.unwrap();
    assert_eq!(run(&again, "cat notes.md").await, "milk");
    assert_ne!(place.uid(&pod_of(&again).await).await, before);
    assert_eq!(two.list().await.unwrap().len(), 1);
    assert_eq!(place.claims().await, 1);
    assert!(two.purge("alice").await.unwrap());
    assert!(two.list().await.unwrap().is_empty());
    assert_eq!(place.claims().await, 0);
    let blank = two.get_or_create("alice").await.unwrap();
    assert!(!blank.exists("notes.md").await.unwrap());
    two.purge("alice").await.unwrap();
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_ready_pod_becomes_that_of_a_session() {
    let place = Place::new().await;
    let engine = place.bare_engine().pool(runtime(), 1).build().unwrap();
    let one = manager(&engine);
    engine.warm().await.unwrap();
    let spare = place.pods().await;
    assert_eq!(spare.len(), 1);
    assert!(engine.list().await.unwrap().is_empty(), "it is no session");
    let alice = one.get_or_create("alice").await.unwrap();
    assert_eq!(pod_of(&alice).await, spare[0]);
    run(&alice, "echo milk > notes.md").await;
    let two = manager(&place.bare_engine().build().unwrap());
    let again = two.get_or_create("alice").await.unwrap();
    assert_eq!(run(&again, "cat notes.md").await, "milk");
    until("another ready pod", async || place.pods().await.len() == 2).await;
    assert!(two.release("alice").await.unwrap());
    let leases: Api<Lease> = place.api();
    // That of the process is left.
    let left = leases.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 1, "{left:?}");
    let shutdown = one.shutdown(Duration::from_secs(60)).await;
    assert!(shutdown.failed.is_empty(), "{shutdown:?}");
    place.is_empty().await;
    let left = leases.list(&ListParams::default()).await.unwrap();
    assert_eq!(left.items.len(), 0, "{left:?}");
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_files_of_a_ready_pod_become_those_of_its_session() {
    if !has_volumes() {
        return;
    }
    let place = Place::new().await;
    place.make_volumes(3).await;
    let engine = place.engine().pool(runtime(), 1).build().unwrap();
    engine.warm().await.unwrap();
    let one = manager(&engine);
    let spare = place.pods().await;
    let alice = one.get_or_create("alice").await.unwrap();
    assert_eq!(pod_of(&alice).await, spare[0]);
    run(&alice, "echo milk > notes.md").await;
    engine.close().await.unwrap();
    one.release("alice").await.unwrap();
    place.is_empty().await;
    assert_eq!(place.claims().await, 1, "that of the session");
    let woken = one.get_or_create("alice").await.unwrap();
    assert_eq!(run(&woken, "cat notes.md").await, "milk");
    one.purge("alice").await.unwrap();
    assert_eq!(place.claims().await, 0);
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn variables_are_in_a_secret_that_ends_with_the_pod() {
    let place = Place::new().await;
    let pooled = place.bare_engine().pool(runtime(), 1).build().unwrap();
    pooled.warm().await.unwrap();
    let spare = place.pods().await;
    let first = manager(&pooled);
    let with = |value: &str| OpenRequest::new(id("alice")).env("TOKEN", value);
    let alice = first.open(with("hush")).await.unwrap();
    assert_eq!(pod_of(&alice).await, spare[0]);
    assert_eq!(run(&alice, "echo $TOKEN").await, "hush");
    let pods: Api<Pod> = place.api();
    let shown = format!("{:?}", pods.get(&spare[0]).await.unwrap());
    assert!(!shown.contains("hush"));
    let second = manager(&place.bare_engine().build().unwrap());
    let again = second.get_or_create("alice").await.unwrap();
    assert_eq!(run(&again, "echo $TOKEN").await, "hush");
    second.open(with("newer")).await.unwrap();
    let third = manager(&place.bare_engine().build().unwrap());
    let last = third.get_or_create("alice").await.unwrap();
    assert_eq!(run(&last, "echo $TOKEN").await, "newer");
    third.purge("alice").await.unwrap();
    pooled.close().await.unwrap();
    place.is_empty().await;
    let secrets: Api<Secret> = place.api();
    until("the end of the secret", async || {
        let left = secrets.list(&ListParams::default()).await.unwrap();
        left.items.is_empty()
    })
    .await;
    // Those of a pod that is created for the session.
    let bob = OpenRequest::new(id("bob")).env("TOKEN", "cold");
    let bob = second.open(bob).await.unwrap();
    assert_eq!(run(&bob, "echo $TOKEN").await, "cold");
    second.purge("bob").await.unwrap();
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn what_belongs_to_a_pod_ends_with_it() {
    let place = Place::new().await;
    let engine = place.bare_engine().pool(runtime(), 1).build().unwrap();
    engine.warm().await.unwrap();
    let manager = manager(&engine);
    let request = OpenRequest::new(id("alice")).env("TOKEN", "hush");
    let alice = manager.open(request).await.unwrap();
    let pod = pod_of(&alice).await;
    // The pods that are ready, and the sign of life of their process.
    engine.close().await.unwrap();
    let (leases, secrets): (Api<Lease>, Api<Secret>) = (place.api(), place.api());
    let left = async || {
        let all = ListParams::default();
        let (leases, secrets) = tokio::join!(leases.list(&all), secrets.list(&all));
        (leases.unwrap().items.len(), secrets.unwrap().items.len())
    };
    assert_eq!(left().await, (1, 1), "the lock and the variables");
    place.delete(&pod).await;
    until("their end", async || left().await == (0, 0)).await;
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn without_volumes_files_end_with_the_pod() {
    let place = Place::new().await;
    let engine = place.bare_engine().build().unwrap();
    let manager = manager(&engine);
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "echo milk > notes.md").await;
    place.delete(&pod_of(&alice).await).await;
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
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_latest_use_counts() {
    let place = Place::new().await;
    let (one, other) = (
        place.bare_engine().build().unwrap(),
        place.bare_engine().build().unwrap(),
    );
    let manager = manager(&one);
    manager.get_or_create("alice").await.unwrap();
    let last = async |engine: &K8sEngine| {
        let record = engine.record(&id("alice")).await.unwrap();
        record.unwrap().last_activity
    };
    // Whole seconds, because times are written in milliseconds.
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap();
    let later = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.as_secs() + 60);
    let earlier = later - Duration::from_secs(30);
    let alice = id("alice");
    let (touched, touched_too) =
        tokio::join!(one.touch(&alice, later), other.touch(&alice, earlier));
    touched.unwrap();
    touched_too.unwrap();
    assert_eq!(last(&other).await, later);
    one.touch(&alice, earlier).await.unwrap();
    assert_eq!(last(&other).await, later);
    one.touch(&id("nobody"), later).await.unwrap();
    let usage = one.usage(&alice).await.unwrap().unwrap();
    assert!(
        usage.memory_bytes.is_some_and(|bytes| bytes > 0),
        "{usage:?}"
    );
    assert_eq!(one.usage(&id("nobody")).await.unwrap(), None);
    manager.purge("alice").await.unwrap();
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_session_is_only_ended_if_it_was_not_used() {
    let place = Place::new().await;
    let engine = place.bare_engine().build().unwrap();
    let other = place.bare_engine().build().unwrap();
    let manager = manager(&engine);
    let session = manager.get_or_create("alice").await.unwrap();
    let alice = id("alice");
    let record = engine.record(&alice).await.unwrap().unwrap();
    let before = record.last_activity - Duration::from_secs(1);
    assert!(!engine.stop_if_unused_since(&alice, before).await.unwrap());
    assert_eq!(place.pods().await.len(), 1);
    // Whichever comes first, a use that was written is not ended, and the end of the other is
    // complete.
    for step in 1..10 {
        let since = engine.record(&alice).await.unwrap().unwrap().last_activity;
        let at = since + Duration::from_secs(step);
        let (touched, ended) = tokio::join!(
            engine.touch(&alice, at),
            other.stop_if_unused_since(&alice, since)
        );
        touched.unwrap();
        if ended.unwrap() {
            assert!(!session.is_alive().await.unwrap());
            assert_eq!(engine.record(&alice).await.unwrap(), None);
            manager.release("alice").await.unwrap();
            manager.get_or_create("alice").await.unwrap();
            break;
        }
        let record = engine.record(&alice).await.unwrap().unwrap();
        assert_eq!(record.state, RecordState::Running);
    }
    let since = SystemTime::now() + Duration::from_secs(3600);
    assert!(engine.stop_if_unused_since(&alice, since).await.unwrap());
    let again = engine.stop_if_unused_since(&alice, since).await;
    assert!(!again.unwrap(), "nothing runs");
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_reaper_of_leftovers_has_no_part_in_sessions() {
    let place = Place::new().await;
    let engine = place.bare_engine().pool(runtime(), 1).build().unwrap();
    engine.warm().await.unwrap();
    let manager = manager(&engine);
    manager.get_or_create("alice").await.unwrap();
    let left = leftovers(&place.cluster).await.unwrap();
    assert!(left.is_empty(), "{left:?}");
    manager.purge("alice").await.unwrap();
    engine.close().await.unwrap();
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_claim_that_was_interrupted_holds_up_no_other() {
    let place = Place::new().await;
    // The name of the session's objects.
    let engine = place.bare_engine().build().unwrap();
    let manager = manager(&engine);
    manager.get_or_create("alice").await.unwrap();
    let name = place.pods().await.remove(0);
    manager.purge("alice").await.unwrap();
    // As if its process were killed when it had the lease and no more.
    let killed = place.bare_engine().pool(runtime(), 1).build().unwrap();
    killed.warm().await.unwrap();
    let spare = place.pods().await.remove(0);
    let pod = pods::find(&place.cluster, &spare).await.unwrap().unwrap();
    let draft = Draft::new(&*name, json!({"spec": {"holderIdentity": spare}})).owned_by_pod(&pod);
    let lease = objects::create(&place.cluster, &Kind::lease(), draft).await;
    lease.unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    assert_ne!(pod_of(&alice).await, spare);
    assert!(!place.pods().await.contains(&spare));
    // A lease whose pod is gone is none.
    manager.purge("alice").await.unwrap();
    let draft = Draft::new(&*name, json!({"spec": {"holderIdentity": spare}})).owned_by_pod(&pod);
    let lease = objects::create(&place.cluster, &Kind::lease(), draft).await;
    lease.unwrap();
    let alice = manager.get_or_create("alice").await.unwrap();
    run(&alice, "true").await;
    manager.purge("alice").await.unwrap();
    killed.close().await.unwrap();
    place.is_empty().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn stored_files_are_deleted_after_their_time() {
    if !has_volumes() {
        return;
    }
    let place = Place::new().await;
    place.make_volumes(3).await;
    let day = Duration::from_secs(24 * 3600);
    let engine = place.engine().keep_stored_for(day).build().unwrap();
    let manager = manager(&engine);
    for name in ["running", "stopped", "lost"] {
        let session = manager.get_or_create(name).await.unwrap();
        run(&session, "echo milk > notes.md").await;
        if name == "lost" {
            place.delete(&pod_of(&session).await).await;
        }
    }
    manager.release("stopped").await.unwrap();
    let now = SystemTime::now();
    let left = async || {
        let left = engine.list().await.unwrap();
        let left = left.iter().map(|record| record.id.to_string());
        left.collect::<Vec<_>>()
    };
    engine.maintain(now + day / 2).await.unwrap();
    assert_eq!(left().await, ["lost", "running", "stopped"]);
    engine.maintain(now + 2 * day).await.unwrap();
    assert_eq!(
        left().await,
        ["lost", "running"],
        "its last use is not known"
    );
    engine.maintain(now + 4 * day).await.unwrap();
    assert_eq!(left().await, ["running"]);
    manager.purge("running").await.unwrap();
    assert_eq!(place.claims().await, 0);
    place.is_empty().await;
}
