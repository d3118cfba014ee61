//! Sessions of agent-sandbox, whose controller is played too.

use super::*;

const CLAIMS: &str = "sandboxclaims";

fn engine_in(world: &Shared) -> AgentSandboxEngine {
    let template = K8sSandbox::builder().mode(Mode::Portable);
    let engine = AgentSandboxEngine::builder(cluster_of(world), "small", "small-pool");
    engine.template(template).build().unwrap()
}

/// Returns an engine, and its cluster, in which a pod is ready.
fn engine(watched: Watched) -> (AgentSandboxEngine, Shared) {
    let world = Shared::default();
    world.lock().unwrap().watched = Some(watched);
    world.lock().unwrap().put("pods", "warm", json!({}));
    (engine_in(&world), world)
}

/// Gives a claim its pod.
fn assign(world: &mut World, name: &str) -> Value {
    let claim = world.get(CLAIMS, name);
    let ready = json!([{"type": "Ready", "status": "True"}]);
    claim["status"] = json!({"conditions": ready, "sandbox": {"name": "warm"}});
    claim.clone()
}

/// Gives a claim its pod, and says so.
fn tell(world: &mut World, name: &str) -> (u16, Value) {
    let claim = assign(world, name);
    (200, json!({"type": "MODIFIED", "object": claim}))
}

/// Gives a claim its pod, and says nothing.
fn refuse(world: &mut World, name: &str) -> (u16, Value) {
    assign(world, name);
    (403, "Forbidden".into())
}

/// Names the pod that a claim is to have, and says so.
fn name_in(notes: &str, world: &mut World, name: &str) -> (u16, Value) {
    let claim = world.get(CLAIMS, name);
    claim["metadata"][notes]["agents.x-k8s.io/sandbox-name"] = "warm".into();
    let claim = claim.clone();
    (200, json!({"type": "MODIFIED", "object": claim}))
}

/// Does so as agent-sandbox 0.4.
fn label(world: &mut World, name: &str) -> (u16, Value) {
    name_in("labels", world, name)
}

/// Does so as later versions.
fn annotate(world: &mut World, name: &str) -> (u16, Value) {
    name_in("annotations", world, name)
}

/// Deletes a claim, and says so.
fn end(world: &mut World, name: &str) -> (u16, Value) {
    let key = (CLAIMS.to_owned(), name.to_owned());
    let claim = world.objects.remove(&key).unwrap();
    (200, json!({"type": "DELETED", "object": claim}))
}

/// The requests so far. A pod that was looked at more than a second before its sandbox is
/// started, on a busy machine, is looked at again: that is one look here.
fn requests(world: &Shared) -> Vec<String> {
    let mut requests = world.lock().unwrap().requests.clone();
    requests.dedup_by(|one, two| one == two && one.starts_with("GET pods/"));
    requests
}

async fn open(engine: &AgentSandboxEngine) -> Result<Claim> {
    engine.claim(&OpenRequest::new(id("alice"))).await
}

#[tokio::test]
async fn a_claim_is_followed_until_it_has_its_pod() {
    let (engine, world) = engine(tell);
    let Claim::Started(sandbox) = open(&engine).await.unwrap() else {
        panic!("no other process has it");
    };
    assert_eq!(sandbox.id(), "warm");
    let alice = names().session(&id("alice"));
    let expected = [
        format!("POST {CLAIMS}/{alice}"),
        format!("WATCH {CLAIMS}/{alice}"),
        "GET pods/warm".to_owned(),
    ];
    assert_eq!(requests(&world), expected);
}

#[tokio::test]
async fn a_claim_that_has_its_pod_is_not_followed() {
    let (first, world) = engine(tell);
    open(&first).await.unwrap();
    world.lock().unwrap().requests.clear();
    let second = engine_in(&world);
    assert!(second.attach(&id("alice")).await.unwrap().is_some());
    let alice = names().session(&id("alice"));
    let expected = [format!("GET {CLAIMS}/{alice}"), "GET pods/warm".to_owned()];
    assert_eq!(world.lock().unwrap().requests, expected);
}

#[tokio::test]
async fn a_claim_that_cannot_be_followed_is_asked_for() {
    let (engine, world) = engine(refuse);
    assert!(matches!(open(&engine).await, Ok(Claim::Started(_))));
    let alice = names().session(&id("alice"));
    let world = world.lock().unwrap();
    assert!(world.requests.contains(&format!("GET {CLAIMS}/{alice}")));
}

#[tokio::test]
async fn a_claim_that_ends_meanwhile_is_no_session() {
    let (engine, world) = engine(end);
    assert_eq!(kind(open(&engine).await), Some(ErrorKind::Unavailable));
    let alice = names().session(&id("alice"));
    assert!(!world.lock().unwrap().has(CLAIMS, &alice));
}

#[tokio::test]
async fn the_pod_that_a_claim_names_is_started_before_the_claim_is_ready() {
    let controllers: [(Watched, bool); 3] = [(label, true), (annotate, true), (label, false)];
    for (named, gets_it) in controllers {
        let (engine, world) = engine(named);
        let alice = names().session(&id("alice"));
        // The claim is not ready before the pod was looked at.
        let looked: Event = Box::new(move |world: &mut World| {
            assign(world, &alice);
            if !gets_it {
                world.put("pods", "other", json!({}));
                world.get(CLAIMS, &alice)["status"]["sandbox"]["name"] = "other".into();
            }
        });
        world.lock().unwrap().before = Some(("GET", "pods", looked));
        let Claim::Started(sandbox) = open(&engine).await.unwrap() else {
            panic!("no other process has it");
        };
        assert_eq!(sandbox.id(), if gets_it { "warm" } else { "other" });
        let mut looks = requests(&world);
        looks.retain(|request| request.starts_with("GET pods/"));
        looks.dedup();
        let expected = if gets_it {
            vec!["GET pods/warm"]
        } else {
            vec!["GET pods/warm", "GET pods/other"]
        };
        assert_eq!(looks, expected);
    }
}

#[tokio::test]
async fn a_claim_that_ends_with_its_pod_named_is_no_session() {
    let (engine, world) = engine(label);
    let alice = names().session(&id("alice"));
    let ended: Event = Box::new(move |world: &mut World| {
        end(world, &alice);
    });
    world.lock().unwrap().before = Some(("GET", "pods", ended));
    assert_eq!(kind(open(&engine).await), Some(ErrorKind::Unavailable));
}
