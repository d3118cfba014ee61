//! Compares pods with our agent, and sessions in them, with other ways into a pod.
//!
//! - `read` is of 1 KiB, in the working directory. On the side of kube it is `cat FILE` by one
//!   exec, and `k8s_read_kubectl` is `kubectl exec POD -- cat FILE` from the start of the
//!   program to its end.
//! - `k8s_read_p99` makes a hundred reads in each turn.
//! - `k8s_grep_local`: the tree holds sources of crates from cargo's registry, at least 10,000
//!   of them Rust, mounted read-only in the pod; all hits.
//! - `k8s_start_kube` begins with nothing and ends when the first command has ended. The peer
//!   creates a pod, follows a watch until it runs, and makes one exec. The end of the pod is
//!   not timed. Both sides have the same limits. The peer's pod has no volume. One with a volume
//!   takes about 300 ms longer: the kubelet looks for its mounts before they are made, and again
//!   after `podAttachAndMountRetryInterval`, which is 300 ms (volume_manager.go in Kubernetes
//!   1.36.3). Ours needs volumes, because its root is read-only. In `k8s_start_volume_kube` and
//!   `k8s_session_cold_kube`, the peer's pod has one volume.
//! - `k8s_session_cold_kube`, `k8s_session_pooled` and `k8s_session_moved_kube` open a session
//!   and run `true` in it: a new one without a pod, a new one on a pod whose agent this process
//!   keeps connected, and one that another engine has opened, which stands for another
//!   process. In the last case, only the stream to the agent is new.
//! - `k8s_session_claimed_kube` is a new session on a pod that agent-sandbox keeps ready and
//!   into which its template brings our agent, as docs/sessions.md shows. Its controller names
//!   the pod in the claim and makes the claim ready; our agent is started as soon as the pod is
//!   named. In `k8s_session_claimed_sent_kube` the agent is not in the pod and goes there then.
//!
//! The cluster is the one of `cargo xtask cluster`: one node, on which all of this runs. Each
//! side has a pod of its own of the same image.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop, and this one is told of the cluster"
)]

mod support {
    pub(crate) mod bare_pod;
    pub(crate) mod place;
    pub(crate) mod warm_pool;
}

use std::process::{Command as Program, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::ops::{Command, GrepQuery, StopMode};
use backend_core::{Backend as _, BackendExt as _, Sandbox, VPath};
use backend_k8s::pods;
use backend_k8s::{AgentBinary, Cluster, K8sBuilder, K8sSandbox, PullPolicy, Runtime as Image};
use backend_local::LocalBackend;
use backend_testkit::measure::{Bench, Sample};
use serde_json::json;
use sessions::{Engine, K8sEngine, SessionManager};
use tokio::runtime::Runtime;

use crate::support::bare_pod::Bare;
use crate::support::place::{Place, until};
use crate::support::warm_pool::WarmPool;

/// The content that is read.
const KIB: [u8; 1_024] = [b'x'; 1_024];
/// The content that is moved as a whole.
const BIG: usize = 64 << 20;
/// Directory of the tree in the pod.
const TREE: &str = "/tree";
/// Number of reads in one turn; the median of the later half counts, as on Docker.
const CALLS: usize = 40;
/// Number of reads of which the 99th counts.
const HUNDRED: usize = 100;
/// Pods that are kept ready.
const POOL: usize = 2;

fn main() {
    let bench = Bench::from_args();
    let runtime = Runtime::new().unwrap();
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let place = runtime.block_on(Place::new());
    let mut ours = runtime.block_on(Ours::start(&bench, &place));
    let peers = Peers::start(&bench, &place, &runtime);
    for id in &rows {
        let our_call = |_| runtime.block_on(ours.turn(id));
        bench.row(id, our_call, peers.caller(id));
    }
    runtime.block_on(ours.end());
    runtime.block_on(place.end());
}

/// Our side of every row.
struct Ours {
    cluster: Cluster,
    builder: K8sBuilder,
    sandbox: K8sSandbox,
    cold: SessionManager,
    other: SessionManager,
    pooled: SessionManager,
    pool: K8sEngine,
    /// A pool whose pods have the agent.
    claimed: WarmPool,
    /// A pool whose pods get the agent when they are claimed.
    claimed_sent: WarmPool,
    sessions: usize,
}

impl Ours {
    async fn start(bench: &Bench, place: &Place) -> Self {
        let image = bench.get("image").unwrap();
        let cluster = Cluster::from_env().await.unwrap();
        let cluster = cluster.with_namespace(&*place.namespace);
        let template = K8sSandbox::builder()
            .agent(AgentBinary::new(bench.get("agent").unwrap()).unwrap())
            .pull_policy(PullPolicy::Never);
        let builder = template.clone().cluster(cluster.clone()).image(image);
        let sandbox = match bench.path("tree") {
            Some(tree) => builder.clone().overlay(json!({"spec": {
                "volumes": [{"name": "tree", "hostPath": {"path": tree}}],
                "containers": [{
                    "name": "sandbox",
                    "volumeMounts": [{"name": "tree", "mountPath": TREE, "readOnly": true}],
                }],
            }})),
            None => builder.clone(),
        };
        let sandbox = sandbox.build().unwrap();
        sandbox.write_file("read.txt", KIB.to_vec()).await.unwrap();
        sandbox
            .write_file("big.bin", vec![b'x'; BIG])
            .await
            .unwrap();
        let warm_pool =
            |name, agent| WarmPool::new(&cluster, name, image, agent, POOL, template.clone());
        let agent_image = bench.get("agent-image").unwrap();
        let claimed = warm_pool("with-agent", Some(agent_image)).await;
        let claimed_sent = warm_pool("without-agent", None).await;
        let image = Image::from_image("bench", image);
        let engine = |space: &str| {
            K8sEngine::builder(cluster.clone())
                .space(space)
                .runtime(image.clone())
                .template(template.clone())
        };
        let pool = engine("pooled").pool(image.clone(), POOL).build().unwrap();
        Self {
            cluster: cluster.clone(),
            builder,
            sandbox,
            cold: manager(engine("cold").build().unwrap()),
            other: manager(engine("cold").build().unwrap()),
            pooled: manager(pool.clone()),
            pool,
            claimed,
            claimed_sent,
            sessions: 0,
        }
    }

    async fn turn(&mut self, id: &str) -> Sample {
        self.sessions += 1;
        let user = format!("user-{}", self.sessions);
        match id {
            "k8s_read_p99" => self.reads(HUNDRED).await[HUNDRED * 99 / 100 - 1],
            id if id == "k8s_read" || id.starts_with("k8s_read_k") => {
                self.reads(CALLS / 2).await;
                self.reads(CALLS / 2).await[CALLS / 4]
            }
            "k8s_start_kube" | "k8s_start_volume_kube" => self.first_command().await,
            "k8s_session_cold_kube" => self.open_new(&self.cold, &user).await,
            "k8s_session_pooled" => {
                // A claim is measured, not the refill after the last one.
                self.pool.warm().await.unwrap();
                self.open_new(&self.pooled, &user).await
            }
            "k8s_session_claimed_kube" => self.open_claimed(&self.claimed, &user).await,
            "k8s_session_claimed_sent_kube" => self.open_claimed(&self.claimed_sent, &user).await,
            "k8s_session_moved_kube" => {
                let session = self.other.get_or_create(&user).await.unwrap();
                run_true(&session).await;
                self.open_new(&self.cold, &user).await
            }
            _ => self.call(id).await,
        }
    }

    /// Reads 1 KiB a number of times, and returns the durations in their order.
    async fn reads(&self, calls: usize) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(calls);
        for _ in 0..calls {
            let start = Instant::now();
            let read = self.sandbox.read_bytes("read.txt").await.unwrap();
            samples.push(Sample::since(start).with_size(read.len()));
        }
        samples.sort_by_key(|sample| sample.nanos);
        samples
    }

    async fn call(&self, id: &str) -> Sample {
        let sandbox = &self.sandbox;
        // Made before the time begins.
        let content = if id == "k8s_write_64mib" {
            vec![b'x'; BIG]
        } else {
            Vec::new()
        };
        let start = Instant::now();
        let size = match id {
            "k8s_read_64mib" => sandbox.read_bytes("big.bin").await.unwrap().len(),
            "k8s_write_64mib" => {
                sandbox.write_file("big.bin", content).await.unwrap();
                BIG
            }
            "k8s_grep_local" => {
                let query = grep(VPath::parse(TREE).unwrap());
                sandbox.grep(query).await.unwrap().matches
            }
            _ => panic!("there is no row {id}"),
        };
        Sample::since(start).with_size(size)
    }

    /// Creates a sandbox, runs a command in it, and deletes it. The end of the pod is not
    /// timed.
    async fn first_command(&self) -> Sample {
        let start = Instant::now();
        let sandbox = self.builder.clone().build().unwrap();
        run_true(&sandbox).await;
        let sample = Sample::since(start).with_size(1);
        sandbox.stop(StopMode::Purge).await.unwrap();
        let pod = sandbox.pod_name();
        until(async || pods::find(&self.cluster, pod).await.unwrap().is_none()).await;
        sample
    }

    async fn open_claimed(&self, pool: &WarmPool, user: &str) -> Sample {
        pool.warm().await;
        self.open_new(&pool.sessions, user).await
    }

    /// Opens a session, runs a command, and purges it, which is not timed and waits for the
    /// end of the pod.
    async fn open_new(&self, manager: &SessionManager, user: &str) -> Sample {
        let start = Instant::now();
        let session = manager.get_or_create(user).await.unwrap();
        run_true(&session).await;
        let sample = Sample::since(start).with_size(1);
        manager.purge(user).await.unwrap();
        sample
    }

    async fn end(self) {
        for manager in [
            &self.cold,
            &self.other,
            &self.pooled,
            &self.claimed.sessions,
            &self.claimed_sent.sessions,
        ] {
            manager.shutdown(Duration::from_secs(60)).await;
        }
        self.sandbox.stop(StopMode::Purge).await.unwrap();
    }
}

fn manager(engine: impl Engine) -> SessionManager {
    let engine = Arc::new(engine);
    SessionManager::builder().engine(engine).build().unwrap()
}

async fn run_true(sandbox: &dyn Sandbox) {
    let outcome = sandbox.execute(Command::new("true")).await.unwrap();
    assert!(outcome.status.success());
}

/// A query for every line with `fn main` below a directory.
fn grep(path: VPath) -> GrepQuery {
    GrepQuery::new("fn main", path)
        .max_matches(usize::MAX)
        .max_bytes(usize::MAX)
}

/// The other implementations of the same work.
struct Peers<'r> {
    place: &'r Place,
    bare: Option<Bare>,
    local: Option<LocalBackend>,
    runtime: &'r Runtime,
}

impl<'r> Peers<'r> {
    fn start(bench: &Bench, place: &'r Place, runtime: &'r Runtime) -> Self {
        let image = bench.get("peers").and_then(|_| bench.get("image"));
        let tree = image.and_then(|_| bench.path("tree"));
        Self {
            place,
            bare: image.map(|image| runtime.block_on(Bare::start(place, image))),
            local: tree.map(|tree| LocalBackend::builder(tree).open().unwrap()),
            runtime,
        }
    }

    /// Returns a closure that does a row's work with the peer, if there is one.
    fn caller(&self, id: &str) -> Option<Box<dyn FnMut(usize) -> Sample + '_>> {
        let (runtime, place) = (self.runtime, self.place);
        let bare = self.bare.as_ref()?;
        let exec = |argv: &'static [&'static str]| -> Box<dyn FnMut(usize) -> Sample + '_> {
            Box::new(move |_| {
                let start = Instant::now();
                let printed = runtime.block_on(bare.exec(&bare.pod, argv));
                Sample::since(start).with_size(printed.len().max(1))
            })
        };
        Some(match id {
            "k8s_read_kube" => exec(&["cat", "/tmp/read.txt"]),
            "k8s_read_kubectl" => Box::new(move |_| kubectl(place, &bare.pod)),
            "k8s_session_moved_kube"
            | "k8s_session_claimed_kube"
            | "k8s_session_claimed_sent_kube" => exec(&["sh", "-c", "true"]),
            "k8s_start_kube" => Box::new(move |_| runtime.block_on(bare.first_command(None))),
            "k8s_start_volume_kube" | "k8s_session_cold_kube" => {
                Box::new(move |_| runtime.block_on(bare.first_command(Some("work"))))
            }
            "k8s_grep_local" => {
                let local = self.local.as_ref()?;
                Box::new(move |_| {
                    let start = Instant::now();
                    let found = runtime.block_on(local.grep(grep(VPath::root())));
                    Sample::since(start).with_size(found.unwrap().matches)
                })
            }
            _ => return None,
        })
    }
}

/// Runs `kubectl exec POD -- cat FILE`, timed from the start of the program to its end.
fn kubectl(place: &Place, pod: &str) -> Sample {
    let directory = std::env::var("TEST_CLUSTER_DIR").unwrap();
    let mut command = Program::new(format!("{directory}/kubectl"));
    command.args(["exec", "--namespace", &place.namespace, pod]);
    command
        .args(["--", "cat", "/tmp/read.txt"])
        .stdin(Stdio::null());
    let start = Instant::now();
    let output = command.output().unwrap();
    let sample = Sample::since(start);
    assert!(output.status.success());
    sample.with_size(output.stdout.len())
}
