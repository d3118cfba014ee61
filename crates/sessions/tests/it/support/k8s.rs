//! A namespace of the cluster for each test, and engines in it.

use std::io::Write as _;
use std::os::unix::fs::chown;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Sandbox;
use backend_core::ops::Command;
use backend_k8s::{AgentBinary, Cluster, K8sSandbox, Mode, PullPolicy, Runtime};
use k8s_openapi::api::core::v1::{
    Namespace, PersistentVolume, PersistentVolumeClaim, Pod, ServiceAccount,
};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde_json::json;
use sessions::{Engine, K8sEngine, K8sEngineBuilder, SessionManager};

/// The space of all sessions: each test has its own namespace.
const SPACE: &str = "test";
/// The label of what belongs to tests.
const LABEL: &str = "agentbox.dev/test";
/// The label of what must be gone in the end, which the stage `k8s` looks for.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// The longest wait for anything. Only what never comes about takes this long.
const PATIENCE: Duration = Duration::from_secs(120);
/// The pause between two looks at a state that nothing announces.
const LOOK: Duration = Duration::from_millis(100);

/// Returns the value of a variable, which must be set.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

/// The small image, used as it is.
pub(crate) fn runtime() -> Runtime {
    Runtime::from_image("busybox", variable("TEST_IMAGE_BUSYBOX"))
}

/// Whether the cluster is that of `cargo xtask cluster`: its only node is this host, and it
/// has everything that tests need.
pub(crate) fn is_ours() -> bool {
    std::env::var_os("TEST_CLUSTER_DIR").is_some()
}

/// Says why a test does nothing on a cluster of others. The stage `k8s` reads this line, so
/// that the test does not just count as passed.
pub(crate) fn leave_out(reason: &str) {
    assert!(!is_ours(), "{reason}");
    // Output of a macro would be shown only if the test failed. A line may have been begun.
    let line = format!("\nleft out: {reason}\n");
    std::io::stdout().write_all(line.as_bytes()).unwrap();
}

/// Whether directories of this host can be volumes. If not, the test is left out.
pub(crate) fn has_volumes() -> bool {
    if !is_ours() {
        leave_out("its volumes are directories of the node");
    }
    is_ours()
}

/// The namespace of one test.
pub(crate) struct Place {
    client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    /// The directories of its volumes; `None` if it belongs to another process.
    directory: Option<tempfile::TempDir>,
}

impl Place {
    pub(crate) async fn new() -> Self {
        assert_eq!(variable("AGENTBOX_TEST_K8S"), "1");
        let namespace = format!("agentbox-test-{:016x}", fastrand::u64(..));
        let mut place = Self::of_another(namespace).await;
        place.directory = Some(tempfile::tempdir().unwrap());
        let labels = json!({ LABEL: "true", MANAGED_BY: "agentbox" });
        let made = json!({"metadata": {"name": place.namespace, "labels": labels}});
        let made: Namespace = serde_json::from_value(made).unwrap();
        let namespaces: Api<Namespace> = Api::all(place.client.clone());
        let created = namespaces.create(&PostParams::default(), &made).await;
        created.unwrap();
        // The server refuses pods until it exists.
        until("the account of the namespace", async || {
            let accounts: Api<ServiceAccount> = place.api();
            accounts.get_opt("default").await.unwrap().is_some()
        })
        .await;
        place
    }

    /// Uses the namespace of the process that started this one.
    pub(crate) async fn of_another(namespace: String) -> Self {
        let cluster = Cluster::from_env().await.unwrap();
        Self {
            client: Client::try_default().await.unwrap(),
            cluster: cluster.with_namespace(&*namespace),
            namespace,
            directory: None,
        }
    }

    /// Makes volumes that are directories of this host, which only claims of this namespace
    /// get.
    pub(crate) async fn make_volumes(&self, count: usize) {
        let volumes: Api<PersistentVolume> = Api::all(self.client.clone());
        let directory = self.directory.as_ref().unwrap().path();
        for number in 0..count {
            let path = directory.join(number.to_string());
            std::fs::create_dir(&path).unwrap();
            // The kubelet changes no owner of such a directory.
            chown(&path, Some(1000), Some(1000)).unwrap();
            let name = format!("{}-{number}", self.namespace);
            let volume = json!({
                "metadata": {"name": name, "labels": {LABEL: "true"}},
                "spec": {
                    "capacity": {"storage": "16Mi"},
                    "accessModes": ["ReadWriteOnce"],
                    "storageClassName": self.namespace,
                    "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": path},
                },
            });
            let volume = serde_json::from_value(volume).unwrap();
            let made = volumes.create(&PostParams::default(), &volume).await;
            made.unwrap();
        }
    }

    /// An engine on the small image, without files that last.
    pub(crate) fn bare_engine(&self) -> K8sEngineBuilder {
        let template = K8sSandbox::builder()
            .agent(AgentBinary::new(variable("SANDBOX_AGENT")).unwrap())
            .mode(Mode::Agent)
            .pull_policy(PullPolicy::Never)
            .memory(128 << 20)
            .request_memory(16 << 20)
            .request_cpus(0.01)
            // Pods that other tests leave for a while must not be reaped.
            .reap_leftovers(false);
        K8sEngine::builder(self.cluster.clone())
            .grace(Duration::from_secs(1))
            .space(SPACE)
            .runtime(runtime())
            .template(template)
    }

    /// The same with files in [volumes](Self::make_volumes).
    pub(crate) fn engine(&self) -> K8sEngineBuilder {
        let engine = self.bare_engine().volumes(8 << 20);
        engine.storage_class(&*self.namespace)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The names of the pods that are not being deleted.
    pub(crate) async fn pods(&self) -> Vec<String> {
        let pods: Api<Pod> = self.api();
        let all = pods.list(&ListParams::default()).await.unwrap();
        let stay = all.items.iter();
        let stay = stay.filter(|pod| pod.metadata.deletion_timestamp.is_none());
        stay.map(|pod| pod.name_any()).collect()
    }

    /// The id of a pod, which no other pod of that name has.
    pub(crate) async fn uid(&self, pod: &str) -> String {
        let pods: Api<Pod> = self.api();
        pods.get(pod).await.unwrap().uid().unwrap()
    }

    /// Deletes a pod like a person would, and waits until it is gone.
    pub(crate) async fn delete(&self, pod: &str) {
        let pods: Api<Pod> = self.api();
        let at_once = DeleteParams::default().grace_period(0);
        pods.delete(pod, &at_once).await.unwrap();
        until("the end of a pod", async || {
            pods.get_opt(pod).await.unwrap().is_none()
        })
        .await;
    }

    /// The number of claims of volumes that are not being deleted.
    pub(crate) async fn claims(&self) -> usize {
        let claims: Api<PersistentVolumeClaim> = self.api();
        let all = claims.list(&ListParams::default()).await.unwrap();
        let stay = all.items.iter();
        stay.filter(|claim| claim.metadata.deletion_timestamp.is_none())
            .count()
    }

    /// Checks that no pod is left.
    pub(crate) async fn is_empty(&self) {
        until("the end of all pods", async || self.pods().await.is_empty()).await;
    }
}

impl Drop for Place {
    /// A failed test leaves nothing either.
    fn drop(&mut self) {
        if self.directory.is_none() {
            return;
        }
        let namespace = self.namespace.clone();
        // On a thread of its own, because the test's runtime cannot be waited for.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let removed = async { tokio::time::timeout(PATIENCE, remove(&namespace)).await };
            let _ = runtime.block_on(removed);
        });
        let _ = thread.join();
    }
}

/// Begins to delete a namespace and its volumes, which go when their claims are gone. That
/// takes the cluster seconds in which the next test runs; the stage `k8s` checks in the end
/// that nothing is left.
async fn remove(namespace: &str) {
    let client = Client::try_default().await.unwrap();
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let volumes: Api<PersistentVolume> = Api::all(client);
    let _ = namespaces.delete(namespace, &DeleteParams::default()).await;
    let all = volumes.list(&ListParams::default()).await;
    for volume in all.iter().flatten() {
        let name = volume.name_any();
        if name.starts_with(&format!("{namespace}-")) {
            let _ = volumes.delete(&name, &DeleteParams::default()).await;
        }
    }
}

/// A manager on an engine, as another process would have it.
pub(crate) fn manager(engine: &K8sEngine) -> SessionManager {
    manager_of(engine.clone())
}

pub(crate) fn manager_of(engine: impl Engine) -> SessionManager {
    let engine = Arc::new(engine);
    SessionManager::builder().engine(engine).build().unwrap()
}

/// Runs a command that must succeed, and returns its output.
pub(crate) async fn run(sandbox: &dyn Sandbox, line: &str) -> String {
    let outcome = sandbox.execute(Command::new(line)).await.unwrap();
    let (out, err) = (outcome.stdout.text(), outcome.stderr.text());
    assert!(outcome.status.success(), "{line}: {out}{err}");
    out.trim_end().to_owned()
}

/// The pod that a session runs in.
pub(crate) async fn pod_of(sandbox: &dyn Sandbox) -> String {
    run(sandbox, "cat /etc/hostname").await
}

/// Polls until a condition holds that the cluster or another process brings about without
/// notification.
pub(crate) async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let holding = async {
        while !holds().await {
            tokio::time::sleep(LOOK).await;
        }
    };
    let held = tokio::time::timeout(PATIENCE, holding).await;
    held.unwrap_or_else(|_| panic!("{what} did not come about"));
}
