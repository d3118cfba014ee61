//! Sessions in a cluster that is played by a function, in which others have written.

mod agent_sandbox;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backend_core::{Error, ErrorKind};
use backend_k8s::{Cluster, K8sSandbox, Mode, Network, Runtime};
use kube::client::{Body, Client};
use serde_json::{Value, json};

use super::names::{Names, SESSION, SPACE, SPARE};
use super::*;
use crate::request::OpenRequest;

/// The objects by the name of their kind and their own.
type Objects = BTreeMap<(String, String), Value>;

/// A cluster, and the requests about one object each.
#[derive(Default)]
struct World {
    objects: Objects,
    requests: Vec<String>,
    /// The kinds that were listed.
    lists: Vec<String>,
    /// Whether each look at a pod finds another one of its name.
    is_replaced: bool,
    /// What happens when the next lease was created.
    after_lease: Option<Event>,
    /// Changes an object that is followed, and says so. If there is none, nothing is ever
    /// reported.
    watched: Option<Watched>,
}

/// Answers a watch of one object.
type Watched = fn(&mut World, &str) -> (u16, Value);

type Event = Box<dyn FnOnce(&mut World) + Send>;

impl World {
    fn put(&mut self, kind: &str, name: &str, metadata: Value) -> &mut Value {
        let key = (kind.to_owned(), name.to_owned());
        let mut object = json!({"metadata": metadata});
        object["metadata"]["name"] = name.into();
        object["metadata"]["uid"] = format!("uid-{name}").into();
        object["metadata"]["resourceVersion"] = "1".into();
        object["metadata"]["creationTimestamp"] = "2026-01-02T03:04:05Z".into();
        if kind == "pods" {
            object["spec"] = json!({"containers": [{"name": "sandbox"}]});
            let container = json!({
                "name": "sandbox", "image": "", "imageID": "", "ready": true,
                "restartCount": 0, "state": {"running": {}},
            });
            object["status"] = json!({"phase": "Running", "containerStatuses": [container]});
        }
        self.objects.insert(key.clone(), object);
        self.objects.get_mut(&key).unwrap()
    }

    fn has(&self, kind: &str, name: &str) -> bool {
        let key = (kind.to_owned(), name.to_owned());
        self.objects.contains_key(&key)
    }

    fn get(&mut self, kind: &str, name: &str) -> &mut Value {
        let key = (kind.to_owned(), name.to_owned());
        self.objects.get_mut(&key).unwrap()
    }

    /// The requests that change something.
    fn changes(&self) -> Vec<&str> {
        let all = self.requests.iter().map(String::as_str);
        all.filter(|request| !request.starts_with("GET ")).collect()
    }

    /// Answers a watch, if anything is reported.
    fn watch(&mut self, target: &str) -> Option<(u16, Value)> {
        let (path, query) = target.split_once('?').unwrap();
        let (_, name) = query.split_once("fieldSelector=metadata.name%3D")?;
        let name = name.split('&').next().unwrap();
        let kind = path.rsplit('/').next().unwrap();
        self.requests.push(format!("WATCH {kind}/{name}"));
        let watched = self.watched?;
        Some(watched(self, name))
    }

    /// Answers a request. A refusal has its reason as the body.
    fn answer(&mut self, method: &str, target: &str, body: &Value) -> (u16, Value) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let Some((_, path)) = path.split_once("/namespaces/work/") else {
            return (200, discovery(path));
        };
        let (kind, name) = path.split_once('/').unwrap_or((path, ""));
        let key = (kind.to_owned(), name.to_owned());
        let made = body["metadata"]["name"].as_str().unwrap_or_default();
        match (method, name) {
            ("GET", "") => self.lists.push(kind.to_owned()),
            ("POST", "") => self.requests.push(format!("POST {kind}/{made}")),
            _ => self.requests.push(format!("{method} {path}")),
        }
        match (method, name) {
            ("GET", "") => {
                let of_kind = |((other, _), _): &(&(String, String), &Value)| other == kind;
                let all = self.objects.iter().filter(of_kind);
                let all = all.map(|(_, object)| object).filter(|object| {
                    // The label of a session is that part of a selector which matters here.
                    let asked = query.split("session%3D").nth(1);
                    let asked = asked.and_then(|asked| asked.split('&').next());
                    asked.is_none_or(|asked| object["metadata"]["labels"][SESSION] == asked)
                });
                let items: Vec<_> = all.cloned().collect();
                (
                    200,
                    json!({"metadata": {"resourceVersion": "1"}, "items": items}),
                )
            }
            ("POST", "") if self.has(kind, made) => (409, "AlreadyExists".into()),
            ("POST", "") => {
                let object = self.put(kind, made, body["metadata"].clone());
                if kind != "pods" {
                    object["spec"] = body["spec"].clone();
                }
                let answer = object.clone();
                if kind == "leases"
                    && let Some(event) = self.after_lease.take()
                {
                    event(self);
                }
                (201, answer)
            }
            ("GET", _) => match self.objects.get_mut(&key) {
                Some(object) => {
                    let found = object.clone();
                    if kind == "pods" && self.is_replaced {
                        object["metadata"]["uid"] = "uid-of-another".into();
                    }
                    (200, found)
                }
                None => (404, json!(null)),
            },
            ("PATCH", _) => match self.objects.get_mut(&key) {
                Some(object) if is_changed(object, body) => (409, "Conflict".into()),
                Some(object) => {
                    merge(object, body);
                    let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                    let next = version.parse::<u64>().unwrap() + 1;
                    object["metadata"]["resourceVersion"] = next.to_string().into();
                    (200, object.clone())
                }
                None => (404, json!(null)),
            },
            ("DELETE", _) => {
                let preconditions = json!({"metadata": body["preconditions"]});
                let found = self.objects.get(&key);
                if found.is_some_and(|found| is_changed(found, &preconditions)) {
                    return (409, "Conflict".into());
                }
                match self.objects.remove(&key) {
                    Some(object) => (200, object),
                    None => (404, json!(null)),
                }
            }
            _ => (400, json!(null)),
        }
    }
}

/// Tells of the kinds that the cluster has beside its own.
fn discovery(path: &str) -> Value {
    let group = "extensions.agents.x-k8s.io";
    let version = format!("{group}/v1alpha1");
    if path == "/apis" {
        let version = json!({"groupVersion": version, "version": "v1alpha1"});
        let group = json!({"name": group, "versions": [version], "preferredVersion": version});
        return json!({"groups": [group]});
    }
    let claims = json!({
        "name": "sandboxclaims", "singularName": "", "kind": "SandboxClaim",
        "namespaced": true, "verbs": ["create", "delete", "get", "list", "patch"],
    });
    json!({"groupVersion": version, "resources": [claims]})
}

/// Whether a change is for another version of an object.
fn is_changed(object: &Value, change: &Value) -> bool {
    let differs = |field: &&str| {
        let wanted = change["metadata"].get(field);
        wanted.is_some_and(|wanted| *wanted != object["metadata"][field])
    };
    ["uid", "resourceVersion"].iter().any(differs)
}

/// Applies a JSON merge patch.
fn merge(object: &mut Value, change: &Value) {
    let Some(fields) = change.as_object() else {
        *object = change.clone();
        return;
    };
    for (key, value) in fields {
        if !value.is_null() {
            merge(&mut object[key], value);
        } else if let Some(object) = object.as_object_mut() {
            object.remove(key);
        }
    }
}

type Shared = Arc<Mutex<World>>;

fn cluster_of(world: &Shared) -> Cluster {
    let world = Arc::clone(world);
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let world = Arc::clone(&world);
        async move {
            let target = request.uri().to_string();
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
            let method = parts.method.as_str();
            let answer = if target.contains("watch=true") {
                world.lock().unwrap().watch(&target)
            } else {
                Some(world.lock().unwrap().answer(method, &target, &asked))
            };
            let Some((code, mut body)) = answer else {
                return std::future::pending().await;
            };
            if code >= 400 {
                let reason = body.as_str().unwrap_or_default();
                body =
                    json!({"kind": "Status", "status": "Failure", "code": code, "reason": reason});
            }
            let answer = http::Response::builder().status(code);
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
                answer.body(Body::from(body.to_string().into_bytes()))?,
            )
        }
    });
    Cluster::from_client(Client::new(service, "default"), "work")
}

fn runtime() -> Runtime {
    Runtime::from_image("image", "image:1")
}

fn builder(world: &Shared) -> K8sEngineBuilder {
    let template = K8sSandbox::builder()
        .mode(Mode::Portable)
        .network(Network::Open)
        .reap_leftovers(false);
    K8sEngine::builder(cluster_of(world))
        .runtime(runtime())
        .template(template)
}

/// Returns an engine with volumes, and its cluster.
fn engine() -> (K8sEngine, Shared) {
    let world = Shared::default();
    let engine = builder(&world).volumes(1024);
    (engine.build().unwrap(), world)
}

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

fn id(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

fn names() -> Names {
    Names::new("default").unwrap()
}

/// The metadata of a session's pod, which has this volume.
fn metadata(session: &str, volume: &str) -> Value {
    let request = OpenRequest::new(id(session));
    let annotations = annotations::of(&Record::new(&request, SystemTime::now())).unwrap();
    let mut metadata = json!({"annotations": annotations});
    metadata["annotations"][annotations::VOLUME] = volume.into();
    metadata["labels"] = json!({
        SPACE: "default",
        "app.kubernetes.io/managed-by": "agentbox",
        "agentbox.dev/sandbox": names().session(&id(session)),
    });
    metadata
}

fn kind<T>(result: Result<T>) -> Option<ErrorKind> {
    result.err().map(|error: Error| error.kind())
}

#[tokio::test]
async fn a_lease_does_not_make_a_pod_one_of_ours() {
    let alice = names().session(&id("alice"));
    let spare = json!({SPACE: "default", SPARE: "x"});
    let mut bob = metadata("bob", "files");
    bob["labels"] = spare.clone();
    let elsewhere = json!({"labels": {SPACE: "other", SPARE: "x"}});
    for (pod, metadata) in [("database", json!({})), ("bob", bob), ("other", elsewhere)] {
        let (engine, world) = engine();
        world.lock().unwrap().put("pods", pod, metadata);
        let owner =
            json!({"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": format!("uid-{pod}")});
        let lease = json!({"ownerReferences": [owner]});
        world.lock().unwrap().put("leases", &alice, lease)["spec"]["holderIdentity"] = pod.into();
        let found = engine.attach(&id("alice")).await;
        assert_eq!(kind(found), Some(ErrorKind::Conflict), "{pod}");
        assert_eq!(
            kind(engine.purge(&id("alice")).await),
            Some(ErrorKind::Conflict)
        );
        let world = world.lock().unwrap();
        assert!(world.has("pods", pod));
        assert_eq!(world.changes(), [""; 0]);
    }
}

#[tokio::test]
async fn an_annotation_does_not_make_a_claim_one_of_the_session() {
    let alice = names().session(&id("alice"));
    let of_bob = json!({"labels": {SPACE: "default", SESSION: names().key(&id("bob"))}});
    let elsewhere = json!({"labels": {SPACE: "other"}});
    for (is_purged, labels) in [
        (true, json!({})),
        (true, of_bob.clone()),
        (true, elsewhere),
        (false, json!({})),
        (false, of_bob),
    ] {
        let (engine, world) = engine();
        world
            .lock()
            .unwrap()
            .put("persistentvolumeclaims", "files", labels.clone());
        world
            .lock()
            .unwrap()
            .put("pods", &alice, metadata("alice", "files"));
        let ended = match is_purged {
            true => engine.purge(&id("alice")).await,
            false => engine.stop(&id("alice")).await,
        };
        assert!(ended.unwrap());
        let world = world.lock().unwrap();
        assert!(world.has("persistentvolumeclaims", "files"), "{labels}");
        assert_eq!(
            world.changes(),
            [format!("DELETE pods/{alice}")],
            "{labels}"
        );
    }
    let (engine, world) = engine();
    let own = json!({"labels": {SPACE: "default", SESSION: names().key(&id("alice"))}});
    world
        .lock()
        .unwrap()
        .put("persistentvolumeclaims", "files", own);
    world
        .lock()
        .unwrap()
        .put("pods", &alice, metadata("alice", "files"));
    assert!(engine.purge(&id("alice")).await.unwrap());
    assert!(
        world.lock().unwrap().objects.is_empty(),
        "its own is deleted"
    );
}

#[tokio::test]
async fn a_claim_of_others_is_not_used_for_a_session() {
    let alice = names().session(&id("alice"));
    let of_bob = json!({"labels": {SPACE: "default", SESSION: names().key(&id("bob"))}});
    for labels in [json!({}), json!({"labels": {SPACE: "other"}}), of_bob] {
        let (engine, world) = engine();
        world
            .lock()
            .unwrap()
            .put("persistentvolumeclaims", &alice, labels.clone());
        let claimed = engine.claim(&OpenRequest::new(id("alice"))).await;
        assert_eq!(kind(claimed), Some(ErrorKind::Conflict), "{labels}");
        let world = world.lock().unwrap();
        let tried = format!("POST persistentvolumeclaims/{alice}");
        assert_eq!(world.changes(), [tried], "{labels}");
    }
}

#[tokio::test]
async fn a_pod_that_was_replaced_meanwhile_is_not_handed_out() {
    let alice = names().session(&id("alice"));
    let (engine, world) = engine();
    world
        .lock()
        .unwrap()
        .put("pods", &alice, metadata("alice", ""));
    assert!(engine.attach(&id("alice")).await.unwrap().is_some());
    let (engine, world) = self::engine();
    world
        .lock()
        .unwrap()
        .put("pods", &alice, metadata("alice", ""));
    world.lock().unwrap().is_replaced = true;
    assert!(engine.attach(&id("alice")).await.unwrap().is_none());
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
