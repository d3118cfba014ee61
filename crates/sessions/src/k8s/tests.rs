//! Sessions in a cluster that is played by a function, in which others have written.

mod agent_sandbox;
mod pooled;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use backend_core::{Error, ErrorKind};
use backend_k8s::{Cluster, K8sSandbox, Mode, Network, Runtime};
use kube::client::{Body, Client};
use serde_json::{Value, json};
use tokio::sync::Barrier;

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
    /// The event right before the next request of a method for a kind is answered.
    before: Option<(&'static str, &'static str, Event)>,
    /// The kind of which no object can be created.
    refused: Option<&'static str>,
    /// Where the requests that claim a pod wait for each other.
    together: Option<Arc<Barrier>>,
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
            return (200, answer_of_all(path, body));
        };
        let (kind, name) = path.split_once('/').unwrap_or((path, ""));
        let key = (kind.to_owned(), name.to_owned());
        let made = body["metadata"]["name"].as_str().unwrap_or_default();
        let is_awaited = |(by, of, _): &mut (&str, &str, Event)| (*by, *of) == (method, kind);
        if let Some((.., event)) = self.before.take_if(is_awaited) {
            event(self);
        }
        match (method, name) {
            ("GET", "") => self.lists.push(kind.to_owned()),
            ("POST", "") => self.requests.push(format!("POST {kind}/{made}")),
            _ => self.requests.push(format!("{method} {path}")),
        }
        match (method, name) {
            ("GET", "") => (200, self.listed(kind, query)),
            ("POST", "") if self.refused == Some(kind) => (403, "Forbidden".into()),
            ("POST", "") if self.has(kind, made) => (409, "AlreadyExists".into()),
            ("POST", "") => (201, self.create(kind, made, body)),
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
                Some(object) if is_changed(object, &body["metadata"]) => (409, "Conflict".into()),
                Some(object) => {
                    merge(object, body);
                    let version = object["metadata"]["resourceVersion"].as_str().unwrap();
                    let next = version.parse::<u64>().unwrap() + 1;
                    object["metadata"]["resourceVersion"] = next.to_string().into();
                    (200, object.clone())
                }
                None => (404, json!(null)),
            },
            ("DELETE", _) => match self.objects.get(&key) {
                Some(object) if is_changed(object, &body["preconditions"]) => {
                    (409, "Conflict".into())
                }
                Some(_) => (200, self.objects.remove(&key).unwrap()),
                None => (404, json!(null)),
            },
            _ => (400, json!(null)),
        }
    }

    fn listed(&self, kind: &str, query: &str) -> Value {
        let of_kind = |((other, _), _): &(&(String, String), &Value)| other == kind;
        let all = self.objects.iter().filter(of_kind);
        let all = all.map(|(_, object)| object).filter(|object| {
            // The label of a session is that part of a selector which matters here.
            let asked = query.split("session%3D").nth(1);
            let asked = asked.and_then(|asked| asked.split('&').next());
            asked.is_none_or(|asked| object["metadata"]["labels"][SESSION] == asked)
        });
        let items: Vec<_> = all.cloned().collect();
        json!({"metadata": {"resourceVersion": "1"}, "items": items})
    }

    fn create(&mut self, kind: &str, name: &str, body: &Value) -> Value {
        let object = self.put(kind, name, body["metadata"].clone());
        if kind != "pods" {
            object["spec"] = body["spec"].clone();
        }
        object.clone()
    }
}

/// Answers requests that are about no namespace: for the kinds that the cluster has beside its
/// own, and for rights, of which there are none but those on pods.
fn answer_of_all(path: &str, body: &Value) -> Value {
    if path.ends_with("/selfsubjectaccessreviews") {
        let mut review = body.clone();
        let asked = &body["spec"]["resourceAttributes"];
        assert_eq!(asked["namespace"], "work");
        review["status"] = json!({"allowed": asked["resource"] == "pods"});
        return review;
    }
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

/// Whether a request creates the lease of a session, or marks its pod.
fn is_part_of_a_claim(method: &str, target: &str, body: &Value) -> bool {
    let is_lease = method == "POST" && target.contains("/leases");
    let marks = body["metadata"]["annotations"].get(annotations::RECORD);
    let is_mark = method == "PATCH" && marks.is_some_and(|mark| !mark.is_null());
    is_lease || is_mark
}

/// Whether an object is not the one, or not as it was, that a change is for.
fn is_changed(object: &Value, wanted: &Value) -> bool {
    let differs = |field: &&str| {
        let wanted = wanted.get(field);
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
            let together = world.lock().unwrap().together.clone();
            let is_claim = is_part_of_a_claim(method, &target, &asked);
            if let Some(together) = together.filter(|_| is_claim) {
                together.wait().await;
            }
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

#[tokio::test]
async fn only_the_rights_of_its_options_are_needed() {
    let world = Shared::default();
    let engine = builder(&world).build().unwrap();
    let missing = engine.missing_rights().await.unwrap();
    let wanted = [
        "create leases",
        "delete leases",
        "get leases",
        "list leases",
        "create secrets",
        "delete secrets",
        "get secrets",
        "patch secrets",
    ];
    assert_eq!(missing, wanted);
    let engine = builder(&world).volumes(1024).pool(runtime(), 1);
    let missing = engine.build().unwrap().missing_rights().await.unwrap();
    for right in wanted.iter().chain(&["patch leases"]) {
        assert!(missing.iter().any(|one| one == right), "{missing:?}");
    }
    let claims = missing.iter().filter(|right| right.ends_with("claims"));
    assert_eq!(claims.count(), 5, "{missing:?}");
}
