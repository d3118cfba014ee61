//! Sessions with exactly the rights of docs/kubernetes-rbac.yaml.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use backend_k8s::pods;
use backend_k8s::pods::objects::{self, Kind};
use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::Role;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client, Config};
use serde_json::json;
use sessions::{Engine as _, OpenRequest, SessionId};

use crate::k8s_agent_sandbox;
use crate::support::k8s::{
    Place, has_volumes, is_ours, leave_out, manager, manager_of, pod_of, run, runtime, until,
    variable,
};
use crate::support::requests::Requests;

/// The account and the role of sessions in the manifest.
const ACCOUNT: &str = "agentbox";
const ROLE: &str = "agentbox-sessions";

fn open(id: &str, token: &str) -> OpenRequest {
    OpenRequest::new(SessionId::new(id).unwrap()).env("TOKEN", token)
}

/// Applies the manifest as it says, to the namespace of a test and with this level of pod
/// security.
fn apply(place: &Place, security: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/kubernetes-rbac.yaml");
    let manifest = std::fs::read_to_string(file).unwrap();
    let manifest = manifest
        .replace(": agents\n", &format!(": {}\n", place.namespace))
        .replace("enforce: restricted", &format!("enforce: {security}"));
    let kubectl = Path::new(&variable("TEST_CLUSTER_DIR")).join("kubectl");
    let mut apply = Command::new(kubectl)
        .args(["apply", "--filename", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = apply.stdin.take().unwrap();
    input.write_all(manifest.as_bytes()).unwrap();
    drop(input);
    assert!(apply.wait().unwrap().success());
}

/// A client with the rights of the manifest's account, and no others.
async fn client(place: &Place) -> Client {
    let request = json!({"spec": {"audiences": [], "expirationSeconds": 3600}});
    let request: TokenRequest = serde_json::from_value(request).unwrap();
    let accounts: Api<ServiceAccount> = place.api();
    let options = PostParams::default();
    let made = accounts.create_token_request(ACCOUNT, &options, &request);
    let token = made.await.unwrap().status.unwrap().token.unwrap();
    let mut config = Config::infer().await.unwrap();
    config.auth_info = serde_json::from_value(json!({"token": token})).unwrap();
    Client::try_from(config).unwrap()
}

/// Makes engines use that client, and returns its requests.
async fn limit(place: &mut Place) -> Requests {
    let client = client(place).await;
    let requests = Requests::of(place, client);
    // The server takes a moment to know the rights.
    until("the rights", async || {
        let pods = pods::list(&place.cluster, "").await;
        let leases = objects::list(&place.cluster, &Kind::lease(), "").await;
        pods.is_ok() && leases.is_ok()
    })
    .await;
    requests.take();
    requests
}

/// Returns the rights of the role, as `VERB RESOURCE`.
async fn granted(place: &Place) -> BTreeSet<String> {
    let roles: Api<Role> = place.api();
    let role = roles.get(ROLE).await.unwrap();
    let rights = role.rules.into_iter().flatten().flat_map(|rule| {
        let resources = rule.resources.unwrap_or_default().into_iter();
        resources.flat_map(move |resource| {
            let verbs = rule.verbs.clone().into_iter();
            verbs.map(move |verb| format!("{verb} {resource}"))
        })
    });
    rights.collect()
}

/// Returns the right that a request about an object of a namespace needs. Streams into pods
/// are no business of the role.
fn needed(request: &str) -> Option<String> {
    let (method, uri) = request.split_once(' ')?;
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let (_, path) = path.split_once("/namespaces/")?;
    let verb = match (method, path.split('/').count()) {
        ("GET", 2) if query.contains("watch=true") => "watch",
        ("GET", 2) => "list",
        ("GET", 3) => "get",
        ("POST", 2) => "create",
        ("PATCH", 3) => "patch",
        ("DELETE", 3) => "delete",
        _ => return None,
    };
    let resource = path.split('/').nth(1)?;
    Some(format!("{verb} {resource}"))
}

#[test]
fn a_request_needs_a_right() {
    let leases = "/apis/coordination.k8s.io/v1/namespaces/n/leases";
    for (request, right) in [
        ("POST {}?", Some("create leases")),
        ("GET {}?labelSelector=a", Some("list leases")),
        ("GET {}?&watch=true", Some("watch leases")),
        ("GET {}/l", Some("get leases")),
        ("PATCH {}/l?", Some("patch leases")),
        ("DELETE {}/l?", Some("delete leases")),
        ("GET {}/l/exec?command=a/b", None),
        ("GET /version", None),
    ] {
        let request = request.replace("{}", leases);
        assert_eq!(needed(&request).as_deref(), right, "{request}");
    }
}

/// Returns the rights that were granted and never used.
async fn unused(place: &Place, requests: &Requests) -> Vec<String> {
    let used: BTreeSet<_> = requests.take().iter().filter_map(|it| needed(it)).collect();
    let granted = granted(place).await;
    assert!(!granted.is_empty());
    granted.difference(&used).cloned().collect()
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_manifest_grants_what_sessions_need_and_no_more() {
    if !has_volumes() {
        return;
    }
    let mut place = Place::new().await;
    place.make_volumes(6).await;
    apply(&place, "restricted");
    let requests = limit(&mut place).await;
    let pooled = place.engine().pool(runtime(), 1).build().unwrap();
    pooled.warm().await.unwrap();
    let (first, second) = (manager(&pooled), manager(&place.engine().build().unwrap()));
    // In a pod that was ready, found by another process, which changes the variables.
    let alice = first.open(open("alice", "hush")).await.unwrap();
    assert_eq!(
        run(&alice, "echo milk > notes.md; echo $TOKEN").await,
        "hush"
    );
    let again = second.open(open("alice", "newer")).await.unwrap();
    assert_eq!(run(&again, "cat notes.md").await, "milk");
    // In a pod that is created, whose variables take the place of a secret of others.
    let bob = second.get_or_create("bob").await.unwrap();
    let taken = json!({"metadata": {"name": pod_of(&bob).await}});
    let taken: Secret = serde_json::from_value(taken).unwrap();
    let secrets: Api<Secret> = place.api();
    secrets
        .create(&PostParams::default(), &taken)
        .await
        .unwrap();
    second.open(open("bob", "cold")).await.unwrap();
    assert_eq!(second.list().await.unwrap().len(), 2);
    assert!(second.release("alice").await.unwrap());
    pooled.maintain(SystemTime::now()).await.unwrap();
    let woken = second.get_or_create("alice").await.unwrap();
    assert_eq!(run(&woken, "cat notes.md").await, "milk");
    for name in ["alice", "bob"] {
        assert!(second.purge(name).await.unwrap());
    }
    pooled.close().await.unwrap();
    place.is_empty().await;
    assert_eq!(place.claims().await, 0);
    let mut unused = unused(&place, &requests).await;
    // The first is for the other engine, and no test waits for the second sign of life.
    unused.retain(|right| !right.ends_with(" sandboxclaims") && right != "patch leases");
    assert_eq!(unused, [""; 0], "granted, and never used");
    let secrets: Api<Secret> = Api::namespaced(client(&place).await, &place.namespace);
    let listed = secrets.list(&ListParams::default()).await;
    assert!(matches!(listed, Err(kube::Error::Api(status)) if status.code == 403));
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_manifest_grants_what_sessions_of_agent_sandbox_need() {
    if !is_ours() {
        leave_out("the manifest is applied by the cluster's own kubectl");
        return;
    }
    let mut place = Place::new().await;
    // The pods of its template are not hardened.
    apply(&place, "privileged");
    assert!(k8s_agent_sandbox::fill_pool(&place).await);
    let requests = limit(&mut place).await;
    let engine = k8s_agent_sandbox::engine(&place).build().unwrap();
    let manager = manager_of(engine.clone());
    let alice = manager.open(open("alice", "hush")).await.unwrap();
    assert_eq!(run(&alice, "echo $TOKEN").await, "hush");
    let id = SessionId::new("alice").unwrap();
    let later = SystemTime::now() + Duration::from_secs(60);
    engine.touch(&id, later).await.unwrap();
    assert_eq!(manager.list().await.unwrap().len(), 1);
    assert!(manager.purge("alice").await.unwrap());
    let mut unused = unused(&place, &requests).await;
    unused.retain(|right| right.ends_with(" sandboxclaims"));
    assert_eq!(unused, [""; 0], "granted, and never used");
}
