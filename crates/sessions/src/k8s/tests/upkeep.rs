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
    assert_eq!(pass().await, ["leases", "pods", "pods"], "none is watched");
    engine.attach(&id("alice")).await.unwrap().unwrap();
    watched(&engine).await;
    world.lock().unwrap().lists.clear();
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
    // A day after the pod was created.
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_409_445);
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
        engine.maintain(now).await.unwrap();
        assert_eq!(world.lock().unwrap().has("pods", "left"), is_used);
    }
}
