//! The passes of the reaper.

use super::*;

/// Waits until the pods of an engine are watched.
async fn watched(engine: &K8sEngine) {
    while engine.0.view.all().is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_pass_of_the_reaper_reads_no_pods_that_are_watched() {
    let world = Shared::default();
    let alice = names().session(&id("alice"));
    let metadata = metadata("alice", "");
    world.lock().unwrap().put("pods", &alice, metadata);
    let engine = builder(&world).build().unwrap();
    let pass = async || {
        let listed = engine.list_recent().await.unwrap();
        engine.maintain(SystemTime::now()).await.unwrap();
        assert_eq!(listed.len(), 1);
        let mut lists = std::mem::take(&mut world.lock().unwrap().lists);
        lists.sort();
        lists
    };
    assert_eq!(pass().await, ["leases", "pods"], "the watch begins");
    assert_eq!(pass().await, ["leases"]);
    engine.attach(&id("alice")).await.unwrap().unwrap();
    assert_eq!(pass().await, ["leases"]);
    engine.list().await.unwrap();
    assert_eq!(
        world.lock().unwrap().lists,
        ["pods"],
        "for callers they are"
    );
}

#[tokio::test]
async fn only_a_pod_as_it_was_reported_is_swept() {
    for is_used in [true, false] {
        let world = Shared::default();
        let left = json!({"labels": {SPACE: "default", SPARE: "x"}});
        world.lock().unwrap().put("pods", "left", left);
        let engine = builder(&world).build().unwrap();
        assert!(engine.attach(&id("alice")).await.unwrap().is_none());
        watched(&engine).await;
        if is_used {
            // Nothing reports it.
            world.lock().unwrap().get("pods", "left")["metadata"]["resourceVersion"] = "2".into();
        }
        engine.maintain(a_day_later()).await.unwrap();
        assert_eq!(world.lock().unwrap().has("pods", "left"), is_used);
    }
}

/// A day after the pods were created.
fn a_day_later() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_409_445)
}

/// Puts a pod of a pool that has the marks of a session.
pub(super) fn put_marked(world: &mut World, name: &str, session: &str) {
    let mut metadata = metadata(session, "");
    metadata["labels"][SPARE] = "x".into();
    metadata["labels"]["agentbox.dev/sandbox"] = name.into();
    world.put("pods", name, metadata);
}

/// Puts the lease of a session, on a pod.
pub(super) fn put_lease(world: &mut World, session: &str, pod: &str) {
    let owner =
        json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": format!("uid-{pod}")});
    let lease = world.put(
        "leases",
        &names().session(&id(session)),
        json!({"ownerReferences": [owner], "labels": {SPACE: "default"}}),
    );
    lease["spec"]["holderIdentity"] = pod.into();
}

#[tokio::test]
async fn a_marked_pod_stays_as_long_as_it_can_be_that_of_its_session() {
    // The process of the pods is gone.
    for (lease_on, is_left) in [(Some("marked"), false), (Some("other"), true), (None, true)] {
        let world = Shared::default();
        put_marked(&mut world.lock().unwrap(), "marked", "alice");
        if let Some(pod) = lease_on {
            put_lease(&mut world.lock().unwrap(), "alice", pod);
        }
        let engine = builder(&world).build().unwrap();
        engine.maintain(a_day_later()).await.unwrap();
        let stays = world.lock().unwrap().has("pods", "marked");
        assert_eq!(stays, !is_left, "{lease_on:?}");
    }
}

#[tokio::test]
async fn a_marked_pod_of_a_living_process_is_that_of_a_claim() {
    for has_another in [false, true] {
        let world = Shared::default();
        put_marked(&mut world.lock().unwrap(), "marked", "alice");
        if has_another {
            let other = names().session(&id("alice"));
            world
                .lock()
                .unwrap()
                .put("pods", &other, metadata("alice", ""));
        }
        let engine = builder(&world).build().unwrap();
        let labels = json!({SPACE: "default", names::PROCESS: "x"});
        let active = annotations::millis(a_day_later());
        let seen = json!({"labels": labels, "annotations": {annotations::ACTIVE: active}});
        world.lock().unwrap().put("leases", "process", seen);
        engine.maintain(a_day_later()).await.unwrap();
        assert!(world.lock().unwrap().has("pods", "marked"), "{has_another}");
    }
}

#[tokio::test]
async fn a_pod_that_lost_its_session_is_swept_and_one_without_a_lease_is_not() {
    let alice = names().session(&id("alice"));
    for (lease_on, is_left) in [
        (Some("marked"), true),
        (Some(&*alice), false),
        (None, false),
    ] {
        let world = Shared::default();
        put_marked(&mut world.lock().unwrap(), "marked", "alice");
        let own = metadata("alice", "");
        world.lock().unwrap().put("pods", &alice, own);
        if let Some(pod) = lease_on {
            put_lease(&mut world.lock().unwrap(), "alice", pod);
        }
        let engine = builder(&world).build().unwrap();
        engine.maintain(a_day_later()).await.unwrap();
        let stays = world.lock().unwrap().has("pods", &alice);
        assert_eq!(stays, !is_left, "{lease_on:?}");
    }
}
