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

#[tokio::test]
async fn a_ready_pod_becomes_that_of_a_new_session_by_three_requests() {
    let (engine, world, spare) = pooled().await;
    let alice = names().session(&id("alice"));
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert!(matches!(claim, Claim::Started(_)), "{claim:?}");
    let mut world = world.lock().unwrap();
    // The other pod is looked for when there is the lease: one that comes later gives way.
    let expected = [
        format!("POST leases/{alice}"),
        format!("GET pods/{alice}"),
        format!("PATCH pods/{spare}"),
    ];
    assert_eq!(about(&world, [&alice, &spare]), expected);
    let lease = world.get("leases", &alice).clone();
    assert_eq!(lease["spec"]["holderIdentity"], spare.as_str());
    let owner = &lease["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(*owner, format!("uid-{spare}"));
    let annotations = world.get("pods", &spare)["metadata"]["annotations"].clone();
    let annotations: annotations::Annotations = serde_json::from_value(annotations).unwrap();
    assert!(annotations::is_of(&annotations, &id("alice")));
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
        let change: Event = Box::new(move |world: &mut World| {
            let status = &mut world.get("pods", &spare)["status"];
            status["conditions"] = json!([]);
            *status.pointer_mut(path).unwrap() = value;
        });
        world.lock().unwrap().after_lease = Some(change);
        let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
        assert!(matches!(claim, Claim::Created(_)), "{path} {claim:?}");
    }
}

#[tokio::test]
async fn a_session_that_has_a_lease_gets_no_other_pod() {
    let (engine, world, spare) = pooled().await;
    let alice = names().session(&id("alice"));
    world.lock().unwrap().put("leases", &alice, json!({}));
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert!(matches!(claim, Claim::Taken), "{claim:?}");
    let world = world.lock().unwrap();
    let requests = about(&world, [&alice, &spare]);
    assert_eq!(requests[0], format!("POST leases/{alice}"));
    assert!(!requests.contains(&format!("PATCH pods/{spare}")));
    assert!(world.has("leases", &alice), "it is that of others");
}

#[tokio::test]
async fn a_lease_gives_way_to_a_pod_that_came_first() {
    let (engine, world, spare) = pooled().await;
    let alice = names().session(&id("alice"));
    let name = alice.clone();
    let other: Event = Box::new(move |world: &mut World| {
        world.put("pods", &name, json!({}));
    });
    world.lock().unwrap().after_lease = Some(other);
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    assert!(matches!(claim, Claim::Taken), "{claim:?}");
    let world = world.lock().unwrap();
    let requests = about(&world, [&alice, &spare]);
    assert!(!requests.contains(&format!("PATCH pods/{spare}")));
    assert!(!world.has("leases", &alice));
}

#[tokio::test]
async fn a_ready_pod_that_is_being_deleted_is_not_handed_out() {
    let (engine, world, spare) = pooled().await;
    let name = spare.clone();
    let deleted: Event = Box::new(move |world: &mut World| {
        world.get("pods", &name)["metadata"]["deletionTimestamp"] = "2026-01-02T03:04:05Z".into();
    });
    world.lock().unwrap().after_lease = Some(deleted);
    let claim = engine.claim(&OpenRequest::new(id("alice"))).await.unwrap();
    let (Claim::Created(sandbox) | Claim::Started(sandbox)) = claim else {
        panic!("no other process has it");
    };
    assert_ne!(sandbox.id(), spare);
    assert!(!world.lock().unwrap().has("pods", &spare));
}
