//! A namespace for each test, and what tests do in it without the library's knowledge.
//!
//! Tests share the cluster, unless one hurts all of it: that one has it for itself.

use std::fmt::Debug;
use std::pin::pin;
use std::time::Duration;

use backend_k8s::{AgentBinary, Attach, Cluster, K8sBuilder, K8sSandbox, Mode, PullPolicy};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{Event, Namespace, Node, NodeCondition, Pod, ServiceAccount};
use kube::api::{AttachParams, DeleteParams, ListParams, LogParams, PostParams, WatchParams};
use kube::core::NamespaceResourceScope;
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::sync::RwLock;

use super::wait::{LOOK, PATIENCE, at_last, until, within};

/// The container of a sandbox's pod.
pub(crate) const CONTAINER: &str = "sandbox";

/// The label of the namespaces of tests.
const LABEL: &str = "agentbox.dev/test";

/// The label of what must be gone in the end, which the stage `k8s` looks for.
const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The server ends a watch after this time, and the state is looked at again.
const WATCH_SECONDS: u32 = 10;

static CLUSTER: RwLock<()> = RwLock::const_new(());

/// The namespace of one test.
pub(crate) struct Place {
    pub(crate) client: Client,
    pub(crate) cluster: Cluster,
    pub(crate) namespace: String,
    has_ended: bool,
    /// Keeps tests that hurt the cluster apart from all others.
    _turn: Box<dyn Send>,
}

/// Returns the value of a variable, which must be set.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

pub(crate) fn busybox() -> String {
    variable("TEST_IMAGE_BUSYBOX")
}

pub(crate) fn python() -> String {
    variable("TEST_IMAGE_PYTHON")
}

pub(crate) fn agent() -> AgentBinary {
    AgentBinary::new(variable("SANDBOX_AGENT")).unwrap()
}

impl Place {
    /// Makes a namespace beside those of other tests.
    pub(crate) async fn new() -> Self {
        Self::make(Box::new(CLUSTER.read().await)).await
    }

    /// Makes a namespace while no other test runs.
    pub(crate) async fn alone() -> Self {
        Self::make(Box::new(CLUSTER.write().await)).await
    }

    async fn make(turn: Box<dyn Send>) -> Self {
        let namespace = format!("agentbox-test-{:016x}", fastrand::u64(..));
        let place = Self::at(namespace, turn).await;
        place.healthy().await;
        let labels = json!({ LABEL: "true", MANAGED_BY: "agentbox" });
        let made = json!({"metadata": {"name": place.namespace, "labels": labels}});
        let made: Namespace = serde_json::from_value(made).unwrap();
        let namespaces: Api<Namespace> = Api::all(place.client.clone());
        let made = namespaces.create(&PostParams::default(), &made).await;
        made.unwrap();
        // The server refuses pods until it exists.
        let account = place.awaits::<ServiceAccount>("default", |found| found.is_some());
        account.await;
        place
    }

    async fn at(namespace: String, turn: Box<dyn Send>) -> Self {
        let cluster = Cluster::from_env().await.unwrap();
        Self {
            client: Client::try_default().await.unwrap(),
            cluster: cluster.with_namespace(&*namespace),
            namespace,
            has_ended: false,
            _turn: turn,
        }
    }

    /// Uses the namespace of the process that started this one.
    pub(crate) async fn of_another(namespace: String) -> Self {
        let turn = Box::new(CLUSTER.read().await);
        let mut place = Self::at(namespace, turn).await;
        place.has_ended = true;
        place
    }

    /// Waits until the API server answers and a node takes pods.
    pub(crate) async fn healthy(&self) {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let all = ListParams::default();
        until("a cluster that takes pods", async || {
            let listed = tokio::time::timeout(Duration::from_secs(5), nodes.list(&all));
            let Ok(Ok(listed)) = listed.await else {
                return false;
            };
            listed.items.iter().any(takes_pods)
        })
        .await;
    }

    /// A builder for a sandbox on the small image, served by the agent, of which many
    /// fit on a small node.
    pub(crate) fn builder(&self) -> K8sBuilder {
        K8sSandbox::builder()
            .cluster(self.cluster.clone())
            .image(busybox())
            .pull_policy(PullPolicy::Never)
            .memory(512 << 20)
            .request_memory(16 << 20)
            .request_cpus(0.01)
            .agent(agent())
            .mode(Mode::Agent)
            // Pods that a test leaves for a while must not be reaped.
            .reap_leftovers(false)
    }

    pub(crate) fn attach(&self, pod: &str) -> Attach {
        let attach = K8sSandbox::attach(pod).cluster(self.cluster.clone());
        attach.agent(agent()).mode(Mode::Agent)
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub(crate) fn pods(&self) -> Api<Pod> {
        self.api()
    }

    /// Creates an object of the namespace.
    pub(crate) async fn create<K>(&self, value: Value) -> K
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned
            + Serialize,
    {
        let object: K = serde_json::from_value(value).unwrap();
        let created = self.api().create(&PostParams::default(), &object).await;
        created.unwrap()
    }

    /// Creates a pod that the library knows nothing about, and waits until it runs.
    pub(crate) async fn foreign_pod(&self, name: &str, container: &str) {
        let container = json!({
            "name": container,
            "image": busybox(),
            "imagePullPolicy": "Never",
            "command": ["sleep", "1000000"],
        });
        let spec = json!({
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": false,
            "containers": [container],
        });
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        self.create::<Pod>(pod).await;
        self.awaits::<Pod>(name, |pod| phase(pod) == "Running")
            .await;
    }

    /// Returns the pod, which must exist.
    pub(crate) async fn pod(&self, name: &str) -> Pod {
        self.pods().get(name).await.unwrap()
    }

    pub(crate) async fn uid(&self, name: &str) -> String {
        self.pod(name).await.uid().unwrap()
    }

    /// Whether a pod of that name exists and is not being removed.
    pub(crate) async fn exists(&self, name: &str) -> bool {
        let found = self.pods().get_opt(name).await.unwrap();
        found.is_some_and(|pod| pod.metadata.deletion_timestamp.is_none())
    }

    /// Removes a pod at once, and waits until it is gone.
    pub(crate) async fn delete(&self, name: &str) {
        let at_once = DeleteParams::default().grace_period(0);
        self.pods().delete(name, &at_once).await.unwrap();
        self.gone(name).await;
    }

    pub(crate) async fn gone(&self, name: &str) {
        self.awaits::<Pod>(name, |pod| pod.is_none()).await;
    }

    /// Waits until an object is in a state; `None` is one that does not exist.
    pub(crate) async fn awaits<K>(
        &self,
        name: &str,
        holds: impl Fn(Option<&K>) -> bool,
    ) -> Option<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + Debug
            + DeserializeOwned,
    {
        let api: Api<K> = self.api();
        let only = format!("metadata.name={name}");
        let only = WatchParams::default().fields(&only).timeout(WATCH_SECONDS);
        let waiting = async {
            loop {
                let Ok(found) = api.get_opt(name).await else {
                    tokio::time::sleep(LOOK).await;
                    continue;
                };
                if holds(found.as_ref()) {
                    return found;
                }
                let version = found.and_then(|found| found.resource_version());
                let version = version.unwrap_or_else(|| "0".to_owned());
                // An event is a reason to look again, and so is the end of the watch.
                if let Ok(events) = api.watch(&only, &version).await {
                    pin!(events).next().await;
                }
            }
        };
        match tokio::time::timeout(PATIENCE, waiting).await {
            Ok(found) => found,
            Err(_) => panic!("{} {name}: {}", K::kind(&()), self.all_known(name).await),
        }
    }

    /// Returns all that the cluster knows of a pod that is not as it should be.
    async fn all_known(&self, name: &str) -> String {
        let (pods, events) = (self.pods(), self.api::<Event>());
        let (list, log) = (ListParams::default(), LogParams::default());
        let known = async {
            let (pod, events) = (pods.get_opt(name).await, events.list(&list).await);
            let status = pod.map(|pod| pod.map(|pod| pod.status));
            let events = events.map(|events| {
                let told = |event: Event| (event.involved_object.name, event.reason, event.message);
                events.items.into_iter().map(told).collect::<Vec<_>>()
            });
            let log = pods.logs(name, &log).await;
            format!("the awaited state did not come about: {log:?}\n{events:?}\n{status:?}")
        };
        within("the state of the cluster", known).await
    }

    /// Runs a script in a pod, which must succeed, and returns its output.
    pub(crate) async fn exec(&self, pod: &str, script: &str) -> String {
        let pods = self.pods();
        let parameters = AttachParams::default().container(CONTAINER);
        let work = async {
            let program = ["sh", "-c", script];
            let mut process = pods.exec(pod, program, &parameters).await.unwrap();
            let (mut out, mut err) = (String::new(), String::new());
            let mut stdout = process.stdout().unwrap();
            let mut stderr = process.stderr().unwrap();
            let status = process.take_status().unwrap();
            let (read, read_too, status) = futures::join!(
                stdout.read_to_string(&mut out),
                stderr.read_to_string(&mut err),
                status
            );
            read.unwrap();
            read_too.unwrap();
            let status = status.and_then(|status| status.status);
            assert_eq!(status.as_deref(), Some("Success"), "{script}: {out}{err}");
            out.trim().to_owned()
        };
        within("the end of a script", work).await
    }

    /// Returns the pids, in a pod, of the processes whose command line contains a text.
    pub(crate) async fn pids(&self, pod: &str, text: &str) -> Vec<String> {
        // As a pattern, the text does not match the script that contains it.
        let (first, rest) = text.split_at(1);
        let rest = rest.replace(' ', "\\ ");
        let script = format!(
            r#"for p in /proc/[0-9]*; do
                   case "$(tr '\0' ' ' 2>/dev/null < $p/cmdline)" in
                       *[{first}]{rest}*) echo "${{p#/proc/}}";;
                   esac
               done | sort -n"#
        );
        let found = self.exec(pod, &script).await;
        found.lines().map(str::to_owned).collect()
    }

    /// Checks that every pod is gone or being removed, and begins to remove the namespace.
    ///
    /// The rest takes the cluster seconds in which the next test runs. The stage `k8s` checks
    /// in the end that no pod and no namespace is left.
    pub(crate) async fn end(mut self) {
        let pods = self.pods();
        let staying = async || -> Vec<String> {
            let listed = pods.list(&ListParams::default()).await.unwrap();
            let all = listed.items.iter();
            let staying = all.filter(|pod| pod.metadata.deletion_timestamp.is_none());
            staying.map(|pod| pod.name_any()).collect()
        };
        let emptied = async {
            while !staying().await.is_empty() {
                tokio::time::sleep(LOOK).await;
            }
        };
        let _ = tokio::time::timeout(Duration::from_secs(60), emptied).await;
        assert_eq!(staying().await, [""; 0], "pods are left");
        remove(&self.client, &self.namespace).await.unwrap();
        self.has_ended = true;
    }
}

impl Drop for Place {
    /// A failed test leaves nothing either.
    fn drop(&mut self) {
        if self.has_ended {
            return;
        }
        let namespace = std::mem::take(&mut self.namespace);
        at_last(async move {
            let client = Client::try_default().await.unwrap();
            while remove(&client, &namespace).await.is_err() {
                tokio::time::sleep(LOOK).await;
            }
        });
    }
}

/// Begins to remove a namespace, if there is one.
async fn remove(client: &Client, namespace: &str) -> Result<(), kube::Error> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    match namespaces.delete(namespace, &DeleteParams::default()).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        removed => removed.map(drop),
    }
}

fn takes_pods(node: &Node) -> bool {
    let taints = node.spec.as_ref().and_then(|spec| spec.taints.as_ref());
    let status = node.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let is_ready = |one: &NodeCondition| one.type_ == "Ready" && one.status == "True";
    conditions.is_some_and(|all| all.iter().any(is_ready)) && taints.is_none_or(Vec::is_empty)
}

/// Returns the phase of a pod, if there is one.
pub(crate) fn phase(pod: Option<&Pod>) -> &str {
    let status = pod.and_then(|pod| pod.status.as_ref());
    status
        .and_then(|status| status.phase.as_deref())
        .unwrap_or_default()
}

/// Returns how often the containers of a pod were started again.
pub(crate) fn restarts(pod: &Pod) -> i32 {
    let status = pod.status.as_ref();
    let statuses = status.and_then(|status| status.container_statuses.as_ref());
    let counts = statuses.into_iter().flatten().map(|one| one.restart_count);
    counts.sum()
}
