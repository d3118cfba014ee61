//! Sessions in pods that agent-sandbox keeps ready. A cluster of others may not have it.

use backend_core::ErrorKind;
use backend_k8s::pods::objects::{self, Draft, Kind};
use backend_k8s::{AgentBinary, K8sSandbox, Mode};
use serde_json::{Value, json};
use sessions::{
    AgentSandboxEngine, AgentSandboxEngineBuilder, Engine as _, OpenRequest, SessionId,
};

use crate::support::k8s::{Place, leave_out, manager_of, pod_of, run, runtime, until, variable};

const GROUP: &str = "extensions.agents.x-k8s.io";
const POOL: &str = "pool";
/// The agent in pods that have it.
const AGENT: &str = "/.agentbox/sandbox-agent";

/// Returns the name of a template that no other test has. agent-sandbox keeps the pods that
/// are ready by the name of their template, for all namespaces: while it looks at those of
/// others for one claim, another claim finds none.
fn template_name(place: &Place) -> &str {
    &place.namespace
}

/// The pod of a template.
fn pod() -> Value {
    let container = json!({
        "name": "sandbox",
        "image": variable("TEST_IMAGE_BUSYBOX"),
        "imagePullPolicy": "Never",
        "command": ["sleep", "1000000"],
        "workingDir": "/tmp",
    });
    json!({
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": false,
        "containers": [container],
    })
}

/// A pod into which an init container brings the agent, as in docs/sessions.md.
fn pod_with_agent() -> Value {
    let mut pod = pod();
    let mount = json!({"name": "agent", "mountPath": "/.agentbox"});
    pod["initContainers"] = json!([{
        "name": "agent",
        "image": variable("TEST_IMAGE_AGENT"),
        "imagePullPolicy": "Never",
        "args": ["--install", AGENT],
        "volumeMounts": [mount],
    }]);
    let container = &mut pod["containers"][0];
    container["command"] = json!([AGENT, "--hold"]);
    container["volumeMounts"] = json!([mount]);
    container["volumeMounts"][0]["readOnly"] = true.into();
    pod["volumes"] = json!([{"name": "agent", "emptyDir": {}}]);
    pod
}

/// Makes a template and a pool with one pod, and waits until it is ready. Returns `false` if a
/// cluster of others has no agent-sandbox.
pub(crate) async fn fill_pool(place: &Place) -> bool {
    fill_pool_with(place, pod()).await
}

async fn fill_pool_with(place: &Place, pod: Value) -> bool {
    let discover = async |kind: &str| Kind::discover(&place.cluster, GROUP, kind).await.unwrap();
    let Some(templates) = discover("SandboxTemplate").await else {
        leave_out("the cluster has no agent-sandbox");
        return false;
    };
    let pools = discover("SandboxWarmPool").await.unwrap();
    let template = json!({"spec": {
        "networkPolicyManagement": "Unmanaged",
        "podTemplate": {"metadata": {}, "spec": pod},
    }});
    let name = template_name(place);
    let made = Draft::new(name, template);
    objects::create(&place.cluster, &templates, made)
        .await
        .unwrap();
    let pool = json!({"spec": {"replicas": 1, "sandboxTemplateRef": {"name": name}}});
    let made = Draft::new(POOL, pool);
    objects::create(&place.cluster, &pools, made).await.unwrap();
    until("a pod that is ready", async || {
        let pool = objects::find(&place.cluster, &pools, POOL).await;
        let ready = pool.unwrap().unwrap().content;
        ready
            .pointer("/status/readyReplicas")
            .and_then(Value::as_u64)
            == Some(1)
    })
    .await;
    true
}

/// An engine on that pool.
pub(crate) fn engine(place: &Place) -> AgentSandboxEngineBuilder {
    let template = K8sSandbox::builder()
        .agent(AgentBinary::new(variable("SANDBOX_AGENT")).unwrap())
        .mode(Mode::Agent);
    let cluster = place.cluster.clone();
    AgentSandboxEngine::builder(cluster, template_name(place), POOL).template(template)
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_claim_of_a_ready_pod_is_a_session() {
    let place = Place::new().await;
    if !fill_pool(&place).await {
        return;
    }
    let ready = place.pods().await;
    let second = manager_of(engine(&place).build().unwrap());
    let engine = engine(&place).build().unwrap();
    let first = manager_of(engine.clone());
    let id = SessionId::new("Alice_1").unwrap();
    let request = OpenRequest::new(id.clone())
        .tenant("acme")
        .env("TOKEN", "hush");
    let alice = first.open(request.clone()).await.unwrap();
    assert!(ready.contains(&pod_of(&alice).await), "it was warm");
    assert_eq!(run(&alice, "echo $TOKEN > a; cat a").await, "hush");
    let again = second.get_or_create("Alice_1").await.unwrap();
    assert_eq!(run(&again, "cat a; echo $TOKEN").await, "hush\nhush");
    let records = second.list().await.unwrap();
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].tenant.as_deref(), Some("acme"));
    let since = records[0].created - std::time::Duration::from_secs(1);
    assert!(!engine.stop_if_unused_since(&id, since).await.unwrap());
    let other = OpenRequest::new(SessionId::new("bob").unwrap()).runtime(runtime());
    let error = second.open(other).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(second.purge("Alice_1").await.unwrap());
    assert_eq!(engine.record(&id).await.unwrap(), None);
    assert!(!engine.purge(&id).await.unwrap());
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_agent_in_the_template_is_not_sent_again() {
    let place = Place::new().await;
    if !fill_pool_with(&place, pod_with_agent()).await {
        return;
    }
    let manager = manager_of(engine(&place).build().unwrap());
    let session = manager.get_or_create("alice").await.unwrap();
    assert_eq!(run(&session, "ls /.agentbox").await, "sandbox-agent");
    let sent = "/tmp/sandbox-agent-*";
    assert_eq!(run(&session, &format!("echo {sent}")).await, sent);
    assert!(manager.purge("alice").await.unwrap());
}
