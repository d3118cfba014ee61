//! A warm pool of agent-sandbox, as its users declare one.

use backend_k8s::pods::objects::{self, Draft, Kind};
use backend_k8s::{Cluster, K8sBuilder};
use serde_json::{Value, json};
use sessions::{AgentSandboxEngine, SessionManager};

use super::place::until;
use crate::manager;

const GROUP: &str = "extensions.agents.x-k8s.io";
/// The agent in pods whose template brings it.
const AGENT: &str = "/.agentbox/sandbox-agent";

/// The pool, and its sessions.
pub(crate) struct WarmPool {
    cluster: Cluster,
    pools: Kind,
    /// The name of the template and of the pool.
    name: &'static str,
    size: usize,
    pub(crate) sessions: SessionManager,
}

impl WarmPool {
    /// With the image of an agent, an init container brings it.
    pub(crate) async fn new(
        cluster: &Cluster,
        name: &'static str,
        image: &str,
        agent_image: Option<&str>,
        size: usize,
        template: K8sBuilder,
    ) -> Self {
        let kind = async |kind: &str| {
            let found = Kind::discover(cluster, GROUP, kind).await.unwrap();
            found.unwrap()
        };
        let container = json!({
            "name": "sandbox",
            "image": image,
            "imagePullPolicy": "Never",
            "command": ["sleep", "infinity"],
            "workingDir": "/tmp",
            "resources": {
                "limits": {"memory": "2Gi"},
                "requests": {"memory": "256Mi", "cpu": "100m"},
            },
        });
        let mut pod = json!({
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "containers": [container],
        });
        if let Some(image) = agent_image {
            bring_agent(&mut pod, image);
        }
        let made = json!({"spec": {
            "networkPolicyManagement": "Unmanaged",
            "podTemplate": {"metadata": {}, "spec": pod},
        }});
        let templates = kind("SandboxTemplate").await;
        let made = objects::create(cluster, &templates, Draft::new(name, made));
        made.await.unwrap();
        let pools = kind("SandboxWarmPool").await;
        let made = json!({"spec": {"replicas": size, "sandboxTemplateRef": {"name": name}}});
        let made = objects::create(cluster, &pools, Draft::new(name, made));
        made.await.unwrap();
        let engine = AgentSandboxEngine::builder(cluster.clone(), name, name);
        Self {
            cluster: cluster.clone(),
            pools,
            name,
            size,
            sessions: manager(engine.template(template).build().unwrap()),
        }
    }

    /// Waits until the pool is full.
    pub(crate) async fn warm(&self) {
        until(async || {
            let pool = objects::find(&self.cluster, &self.pools, self.name).await;
            let content = pool.unwrap().unwrap().content;
            let ready = content.pointer("/status/readyReplicas");
            ready.and_then(Value::as_u64) == Some(self.size as u64)
        })
        .await;
    }
}

/// Adds an init container that brings the agent, which then keeps the pod alive.
fn bring_agent(pod: &mut Value, image: &str) {
    let mount = json!({"name": "agent", "mountPath": "/.agentbox"});
    pod["initContainers"] = json!([{
        "name": "agent",
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["--install", AGENT],
        "volumeMounts": [mount],
    }]);
    pod["containers"][0]["command"] = json!([AGENT, "--hold"]);
    pod["containers"][0]["volumeMounts"] = json!([mount]);
    pod["containers"][0]["volumeMounts"][0]["readOnly"] = true.into();
    pod["volumes"] = json!([{"name": "agent", "emptyDir": {}}]);
}
