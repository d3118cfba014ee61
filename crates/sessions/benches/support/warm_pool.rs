//! A warm pool of agent-sandbox, as its users declare one.

use backend_k8s::pods::objects::{self, Draft, Kind};
use backend_k8s::{Cluster, K8sBuilder};
use serde_json::{Value, json};
use sessions::AgentSandboxEngine;

use super::place::until;

const GROUP: &str = "extensions.agents.x-k8s.io";
/// The name of the template and of the pool.
const NAME: &str = "bench";

/// The pool, and the engine of its sessions.
pub(crate) struct WarmPool {
    cluster: Cluster,
    pools: Kind,
    size: usize,
    pub(crate) engine: AgentSandboxEngine,
}

impl WarmPool {
    pub(crate) async fn new(
        cluster: &Cluster,
        image: &str,
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
        let pod = json!({
            "terminationGracePeriodSeconds": 1,
            "automountServiceAccountToken": false,
            "containers": [container],
        });
        let made = json!({"spec": {
            "networkPolicyManagement": "Unmanaged",
            "podTemplate": {"metadata": {}, "spec": pod},
        }});
        let templates = kind("SandboxTemplate").await;
        let made = objects::create(cluster, &templates, Draft::new(NAME, made));
        made.await.unwrap();
        let pools = kind("SandboxWarmPool").await;
        let made = json!({"spec": {"replicas": size, "sandboxTemplateRef": {"name": NAME}}});
        let made = objects::create(cluster, &pools, Draft::new(NAME, made));
        made.await.unwrap();
        let engine = AgentSandboxEngine::builder(cluster.clone(), NAME, NAME);
        Self {
            cluster: cluster.clone(),
            pools,
            size,
            engine: engine.template(template).build().unwrap(),
        }
    }

    /// Waits until the pool is full.
    pub(crate) async fn warm(&self) {
        until(async || {
            let pool = objects::find(&self.cluster, &self.pools, NAME).await;
            let content = pool.unwrap().unwrap().content;
            let ready = content.pointer("/status/readyReplicas");
            ready.and_then(Value::as_u64) == Some(self.size as u64)
        })
        .await;
    }
}
