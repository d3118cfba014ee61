//! Nodes of kwok, on which pods are said to run that do not exist.

use std::process::{Child, Command, Stdio};

use backend_testkit::measure::Bench;
use k8s_openapi::api::core::v1::Node;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::place::until;

/// The label of the nodes.
pub(crate) const LABEL: &str = "bench.agentbox.dev/fake";
/// Nodes of the usual size.
const NODES: usize = 20;
const PODS: &str = "110";

/// The rules of kwok: nodes and pods are ready at once, and deleted pods are gone at once.
const STAGES: &str = r#"
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: node-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Node}
  selector:
    matchExpressions:
    - {key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: NotIn, values: ["True"]}
  next:
    statusTemplate: |
      conditions:
      - type: Ready
        status: "True"
        reason: Fake
        message: it is not real
        lastHeartbeatTime: {{ Now | Quote }}
        lastTransitionTime: {{ Now | Quote }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-ready}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Pending]}
  next:
    statusTemplate: |
      phase: Running
      startTime: {{ Now | Quote }}
      conditions:
      {{ range $condition := list "Initialized" "Ready" "ContainersReady" }}
      - {type: {{ $condition }}, status: "True", lastTransitionTime: {{ Now | Quote }}}
      {{ end }}
      containerStatuses:
      {{ range .spec.containers }}
      - name: {{ .name | Quote }}
        image: {{ .image | Quote }}
        imageID: ""
        ready: true
        started: true
        restartCount: 0
        state: {running: {startedAt: {{ Now | Quote }}}}
      {{ end }}
---
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata: {name: pod-gone}
spec:
  resourceRef: {apiGroup: v1, kind: Pod}
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: Exists}
  next:
    delete: true
"#;

/// The nodes, which end with this value.
pub(crate) struct FakeNodes {
    kwok: Child,
    nodes: Api<Node>,
}

impl FakeNodes {
    pub(crate) async fn start(bench: &Bench, client: &Client) -> Self {
        let stages = bench.path("scratch").unwrap().join("stages.yaml");
        std::fs::write(&stages, STAGES).unwrap();
        let mut kwok = Command::new(bench.get("kwok").unwrap());
        kwok.args(["--kubeconfig", &std::env::var("KUBECONFIG").unwrap()])
            .arg("--config")
            .arg(stages)
            .arg(format!("--manage-nodes-with-label-selector={LABEL}=true"))
            // Signs of life every five seconds: the cluster waits for twelve.
            .arg("--node-lease-duration-seconds=20")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let fake = Self {
            kwok: kwok.spawn().unwrap(),
            nodes: Api::all(client.clone()),
        };
        for number in 0..NODES {
            let size = json!({"cpu": "32", "memory": "256Gi", "pods": PODS});
            let node = json!({
                "metadata": {"name": format!("fake-{number}"), "labels": {LABEL: "true"}},
                "status": {"allocatable": size, "capacity": size},
            });
            let node = serde_json::from_value(node).unwrap();
            fake.nodes
                .create(&PostParams::default(), &node)
                .await
                .unwrap();
        }
        let ours = ListParams::default().labels(LABEL);
        until(async || {
            let all = fake.nodes.list(&ours).await.unwrap();
            all.items.len() == NODES && all.items.iter().all(takes_pods)
        })
        .await;
        fake
    }

    pub(crate) async fn end(mut self) {
        let ours = ListParams::default().labels(LABEL);
        let parameters = DeleteParams::default();
        let deleted = self.nodes.delete_collection(&parameters, &ours);
        deleted.await.unwrap();
        self.kwok.kill().unwrap();
        self.kwok.wait().unwrap();
    }
}

impl Drop for FakeNodes {
    /// A benchmark that stopped leaves no program either.
    fn drop(&mut self) {
        let _ = self.kwok.kill();
        let _ = self.kwok.wait();
    }
}

fn takes_pods(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    let is_ready = conditions.any(|one| one.type_ == "Ready" && one.status == "True");
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    is_ready && taints.is_none_or(Vec::is_empty)
}
