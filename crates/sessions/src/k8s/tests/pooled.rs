//! Sessions that get a pod which was ready.

use super::*;

/// Returns an engine with a pool, its cluster, and the name of the pod that is ready.
async fn pooled() -> (K8sEngine, Shared, String) {
    let world = Shared::default();
    let engine = builder(&world).pool(runtime(), 1).build().unwrap();
    engine.warm().await.unwrap();
    let mut known = world.lock().unwrap();
    known.requests.clear();
    let mut pods = known.objects.keys().filter(|(kind, _)| kind == "pods");
    let spare = pods.next().unwrap().1.clone();
    drop(known);
    (engine, world, spare)
}

/// The requests about the session and the pod that was ready. The pool is being refilled.
fn about(world: &World, names: [&str; 2]) -> Vec<String> {
    let is_about = |request: &&String| names.iter().any(|name| request.ends_with(name));
    world.requests.iter().filter(is_about).cloned().collect()
}

/// Gives the session to others, and keeps the pool from being refilled meanwhile.
fn give_to_others(world: &Shared, session: &str) {
    let mut world = world.lock().unwrap();
    world.put("leases", &names().session(&id(session)), json!({}));
    world.refused = Some("pods");
}

/// The session that the annotations of a pod name.
fn marked_for(world: &mut World, pod: &str) -> Option<SessionId> {
    let annotations = world.get("pods", pod)["metadata"]["annotations"].clone();
    let annotations: annotations::Annotations = serde_json::from_value(annotations).unwrap();
    annotations::session(&annotations)
}

#[tokio::test]
async fn a_ready_pod_becomes_that_of_a_new_session_by_two_requests_at_once() {
    let (engine, world, spare) = pooled().await;
    let alice = names().session(&id("alice"));
    // Neither is answered before the other one is made.
    world.lock().unwrap().together = Some(Arc::new(Barrier::new(2)));
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert!(matches!(claim, Claim::Started(_)), "{claim:?}");
    let mut world = world.lock().unwrap();
    let mut requests = about(&world, [&alice, &spare]);
    requests.sort();
    let expected = [
        format!("PATCH pods/{spare}"),
        format!("POST leases/{alice}"),
    ];
    assert_eq!(requests, expected);
    let lease = world.get("leases", &alice).clone();
    assert_eq!(lease["spec"]["holderIdentity"], spare.as_str());
    let owner = &lease["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(*owner, format!("uid-{spare}"));
    assert_eq!(marked_for(&mut world, &spare), Some(id("alice")));
}

#[tokio::test]
async fn a_marked_pod_has_the_variables_of_its_session() {
    let (engine, world, spare) = pooled().await;
    let request = OpenRequest::new(id("alice")).env("TOKEN", "hush");
    let claim = engine.claim(&request).await.unwrap();
    assert!(matches!(claim, Claim::Started(_)), "{claim:?}");
    let world = world.lock().unwrap();
    let changes = world.changes();
    let place = |change: String| changes.iter().position(|one| *one == change).unwrap();
    let kept = place(format!("POST secrets/{spare}"));
    assert!(kept < place(format!("PATCH pods/{spare}")), "{changes:?}");
}

#[tokio::test]
async fn a_pod_that_is_no_longer_ready_is_started_again() {
    for (path, value) in [
        ("/containerStatuses/0/ready", json!(false)),
        ("/containerStatuses/0/restartCount", json!(1)),
        ("/phase", json!("Pending")),
        ("/conditions", json!([{"type": "Ready", "status": "False"}])),
    ] {
        let (engine, world, spare) = pooled().await;
        // Nothing reports it.
        {
            let mut world = world.lock().unwrap();
            let status = &mut world.get("pods", &spare)["status"];
            status["conditions"] = json!([]);
            *status.pointer_mut(path).unwrap() = value;
        }
        let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
        assert!(matches!(claim, Claim::Created(_)), "{path} {claim:?}");
    }
}

#[tokio::test]
async fn a_session_that_has_a_lease_gets_no_other_pod() {
    let (engine, world, spare) = pooled().await;
    let alice = names().session(&id("alice"));
    give_to_others(&world, "alice");
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert!(matches!(claim, Claim::Taken), "{claim:?}");
    let bob = engine.claim(&OpenRequest::new(id("bob"))).await.unwrap();
    let Claim::Started(sandbox) = bob else {
        panic!("the pod is ready as before: {bob:?}");
    };
    assert_eq!(sandbox.id(), spare);
    let mut world = world.lock().unwrap();
    assert_eq!(marked_for(&mut world, &spare), Some(id("bob")));
    assert!(world.has("leases", &alice), "it is that of others");
}

#[tokio::test]
async fn a_pod_that_lost_its_session_has_no_marks() {
    let (engine, world, spare) = pooled().await;
    give_to_others(&world, "alice");
    engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert_eq!(marked_for(&mut world.lock().unwrap(), &spare), None);
}

#[tokio::test]
async fn a_pod_with_the_variables_of_another_session_is_not_used_again() {
    let (engine, world, spare) = pooled().await;
    give_to_others(&world, "alice");
    let request = OpenRequest::new(id("alice")).env("TOKEN", "hush");
    let claim = engine.claim(&request).await.unwrap();
    assert!(matches!(claim, Claim::Taken), "{claim:?}");
    assert!(!world.lock().unwrap().has("pods", &spare));
}

#[tokio::test]
async fn a_new_pod_gives_way_to_a_lease_that_came_first() {
    let world = Shared::default();
    let engine = builder(&world).build().unwrap();
    let alice = names().session(&id("alice"));
    let other: Event = Box::new(|world: &mut World| {
        upkeep::put_marked(world, "ready", "alice");
        upkeep::put_lease(world, "alice", "ready");
    });
    world.lock().unwrap().before = Some(("POST", "leases", other));
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert!(matches!(claim, Claim::Taken), "{claim:?}");
    let attached = engine.attach(&id("alice")).await.unwrap().unwrap();
    assert_eq!(attached.sandbox.id(), "ready");
    let world = world.lock().unwrap();
    assert!(world.requests.contains(&format!("POST pods/{alice}")));
    assert!(!world.has("pods", &alice));
}

#[tokio::test]
async fn a_pod_that_a_killed_process_made_gets_its_lease_from_the_next_one() {
    let world = Shared::default();
    let alice = names().session(&id("alice"));
    let own = metadata("alice", "");
    world.lock().unwrap().put("pods", &alice, own);
    for _ in 0..2 {
        let engine = builder(&world).build().unwrap();
        let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
        assert!(matches!(claim, Claim::Taken), "{claim:?}");
        let attached = engine.attach(&id("alice")).await.unwrap().unwrap();
        assert_eq!(attached.sandbox.id(), alice);
    }
    let world = world.lock().unwrap();
    assert_eq!(world.changes(), [format!("POST leases/{alice}")]);
}

#[tokio::test]
async fn a_session_whose_process_was_killed_before_its_lease_begins_anew() {
    let (engine, world, spare) = pooled().await;
    upkeep::put_marked(&mut world.lock().unwrap(), "left", "alice");
    assert!(engine.attach(&id("alice")).await.unwrap().is_none());
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    let Claim::Started(sandbox) = claim else {
        panic!("no process has it: {claim:?}");
    };
    assert_eq!(sandbox.id(), spare);
}

#[tokio::test]
async fn a_ready_pod_that_is_being_deleted_is_not_handed_out() {
    let (engine, world, spare) = pooled().await;
    // Nothing reports it.
    world.lock().unwrap().get("pods", &spare)["metadata"]["deletionTimestamp"] =
        "2026-01-02T03:04:05Z".into();
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    let (Claim::Created(sandbox) | Claim::Started(sandbox)) = claim else {
        panic!("no other process has it");
    };
    assert_ne!(sandbox.id(), spare);
    assert!(!world.lock().unwrap().has("pods", &spare));
}
