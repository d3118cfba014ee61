//! The load of 2,000 sessions on the API server and on etcd.
//!
//! The nodes and the pods are fake ones of kwok: the cluster's control plane is real and treats
//! them like others, but nothing runs in them. So the sessions are used as far as they need no
//! agent, which makes no requests anyway: they are opened, their times of use are written, another
//! process finds them, the reaper looks at them, and they are ended. This calls the engine as the
//! manager does.
//!
//! - `requests`, `kb` and `watch` are counted in this process: requests, and the bytes of bodies
//!   and answers, without headers. `watch` is what one watch reports, and each process has one.
//! - `served` counts the requests of the whole cluster: also the scheduler, the controllers and
//!   kwok in place of the kubelets are at work when a pod starts or ends. `etcd` and `cpu` include
//!   them as well. What the idle cluster does in that time is subtracted from these three.
//! - `pass` is one pass of the reaper: the list of sessions, and the upkeep.
//! - `memory_process` is that of this process, which has 2,000 sessions open, without agents.
//!
//! The cluster is the one of `cargo xtask cluster`, on the machine that also runs this program.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop, and this one is told of the cluster"
)]

mod support {
    pub(crate) mod counting;
    pub(crate) mod fake_nodes;
    pub(crate) mod place;
}

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use backend_k8s::{AgentBinary, Cluster, K8sSandbox, Runtime as Image};
use backend_testkit::measure::{self, Bench};
use futures_util::{StreamExt as _, stream};
use sessions::{Claim, Engine as _, K8sEngine, OpenRequest, SessionId};

use crate::support::counting::{Counts, Watched, counted, served};
use crate::support::fake_nodes::{self, FakeNodes};
use crate::support::place::Place;

/// The number of sessions.
const SESSIONS: u32 = 2_000;
/// Sessions that another process opens.
const MOVED: u32 = 200;
/// Sessions that are opened at once, and those that a manager writes or ends at once.
const OPENED_AT_ONCE: usize = 32;
const AT_ONCE: usize = 16;
/// The time in which the idle cluster is measured.
const IDLE: Duration = Duration::from_secs(20);
/// The time for what follows the last call: events, deletions.
const SETTLE: Duration = Duration::from_secs(3);

#[tokio::main]
async fn main() {
    let bench = Bench::from_args();
    let rows = bench.rows().await;
    if rows.is_empty() {
        return;
    }
    let place = Place::new().await;
    let nodes = FakeNodes::start(&bench, &place.client).await;
    let figures = figures(&bench, &place).await;
    nodes.end().await;
    place.end().await;
    for id in &rows {
        let name = id.strip_prefix("k8s_scale_").unwrap();
        measure::figure(id, figures[name]);
    }
}

/// Returns the figures of all rows.
async fn figures(bench: &Bench, place: &Place) -> BTreeMap<String, f64> {
    let (other, other_counts) = engine(bench, place);
    let (engine, counts) = engine(bench, place);
    let mut meter = Meter::new(place, counts).await;
    let daemons = ["apiserver", "etcd"].map(|name| (name, Watched::daemon(name)));
    let processes = daemons.into_iter().chain([("process", Watched::this())]);
    let before: Vec<_> = processes
        .map(|(name, it)| (name, it.memory(), it))
        .collect();

    let open = async |number| {
        let claim = engine.claim(&OpenRequest::new(id(number))).await.unwrap();
        assert!(matches!(claim, Claim::Created(_)));
    };
    meter
        .phase("open", "opened", SESSIONS, OPENED_AT_ONCE, open)
        .await;
    for (name, before, process) in before {
        let grown = process.memory() - before;
        meter.figures.insert(format!("memory_{name}"), grown);
    }
    let touch = async |number| {
        let written = engine.touch(&id(number), SystemTime::now()).await;
        assert!(written.unwrap());
    };
    meter.phase("use", "used", SESSIONS, AT_ONCE, touch).await;

    // Its watch begins with a list, which is no part of the phases.
    other.attach(&id(0)).await.unwrap().unwrap();
    let ours = meter.begin(other_counts).await;
    let attach = async |number| drop(other.attach(&id(number + 1)).await.unwrap().unwrap());
    meter
        .phase("attach", "attached", MOVED, AT_ONCE, attach)
        .await;
    let pass = async |_| {
        let seen = other.list_recent().await.unwrap();
        assert_eq!(seen.len(), SESSIONS as usize);
        other.maintain(SystemTime::now()).await.unwrap();
    };
    meter.phase("pass", "passed", 1, 1, pass).await;
    meter.begin(ours).await;
    let end = async |number| {
        let (id, now) = (id(number), SystemTime::now());
        assert!(engine.stop_if_unused_since(&id, now).await.unwrap());
    };
    meter.phase("end", "ended", SESSIONS, AT_ONCE, end).await;
    meter.figures
}

fn id(number: u32) -> SessionId {
    SessionId::new(format!("user-{number}")).unwrap()
}

/// Returns an engine whose pods are on fake nodes, and what it asks for.
fn engine(bench: &Bench, place: &Place) -> (K8sEngine, Arc<Counts>) {
    let (client, counts) = counted(&place.client, &place.namespace);
    let template = K8sSandbox::builder()
        .agent(AgentBinary::new(bench.get("agent").unwrap()).unwrap())
        .node_selector(fake_nodes::LABEL, "true");
    let cluster = Cluster::from_client(client, &*place.namespace);
    let engine = K8sEngine::builder(cluster)
        .runtime(Image::from_image("bench", bench.get("image").unwrap()))
        .template(template);
    (engine.build().unwrap(), counts)
}

/// Measures phases of work.
struct Meter<'p> {
    place: &'p Place,
    counts: Arc<Counts>,
    daemons: [Watched; 2],
    /// The load of the idle cluster in a second.
    idle: [f64; 3],
    figures: BTreeMap<String, f64>,
}

impl<'p> Meter<'p> {
    async fn new(place: &'p Place, counts: Arc<Counts>) -> Self {
        let mut meter = Self {
            place,
            counts,
            daemons: ["apiserver", "etcd"].map(Watched::daemon),
            idle: [0.0; 3],
            figures: BTreeMap::new(),
        };
        let begun = meter.cluster().await;
        tokio::time::sleep(IDLE).await;
        let ended = meter.cluster().await;
        let seconds = IDLE.as_secs_f64();
        meter.idle = std::array::from_fn(|n| (ended[n] - begun[n]) / seconds);
        meter
    }

    /// Counts the requests of another engine from now on. Returns the former counts.
    async fn begin(&mut self, counts: Arc<Counts>) -> Arc<Counts> {
        tokio::time::sleep(SETTLE).await;
        std::mem::replace(&mut self.counts, counts)
    }

    /// Returns what the cluster has done: requests that were served, requests to etcd, and
    /// milliseconds of CPU time.
    async fn cluster(&self) -> [f64; 3] {
        let cpu = self.daemons.iter().map(Watched::cpu).sum();
        let [served, etcd] = served(&self.place.client).await;
        [served, etcd, cpu]
    }

    /// Calls `work` a number of times, and notes what one call costs, and how long all take.
    async fn phase(
        &mut self,
        name: &str,
        done: &str,
        calls: u32,
        at_once: usize,
        work: impl AsyncFn(u32),
    ) {
        tokio::time::sleep(SETTLE).await;
        self.counts.take();
        let before = self.cluster().await;
        let start = Instant::now();
        let all = stream::iter(0..calls);
        all.for_each_concurrent(at_once, |number| work(number))
            .await;
        let elapsed = start.elapsed().as_secs_f64();
        tokio::time::sleep(SETTLE).await;
        let seconds = start.elapsed().as_secs_f64();
        let after = self.cluster().await;
        let calls = f64::from(calls);
        let [requests, bytes, watched] = self.counts.take().map(|count| count / calls);
        let load: [f64; 3] = std::array::from_fn(|n| {
            let caused = after[n] - before[n] - self.idle[n] * seconds;
            caused.max(0.0) / calls
        });
        let [served, etcd, cpu] = load;
        let figures = [
            ("requests", requests),
            ("kb", bytes / 1e3),
            ("watch", watched / 1e3),
            ("served", served),
            ("etcd", etcd),
            ("cpu", cpu),
        ];
        for (what, figure) in figures {
            self.figures.insert(format!("{name}_{what}"), figure);
        }
        self.figures.insert(done.to_owned(), elapsed * 1e9);
    }
}
