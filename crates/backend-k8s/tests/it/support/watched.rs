//! The sandboxes of a namespace, as a watch tells them.

use std::collections::BTreeSet;

use backend_core::{ErrorKind, Result};
use backend_k8s::Cluster;
use backend_k8s::pods::{self, Pod, PodChange, PodPhase};
use futures::StreamExt as _;
use futures::stream::BoxStream;

use super::wait::within;

/// The names of those that run.
pub(crate) struct Watched {
    changes: BoxStream<'static, Result<PodChange>>,
    running: BTreeSet<String>,
}

impl Watched {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let changes = pods::watch(cluster, "agentbox.dev/sandbox").unwrap();
        let running = BTreeSet::new();
        Self { changes, running }
    }

    /// Takes a change. An error is one of a cluster that is away: the watch goes on.
    async fn next(&mut self) {
        let change = self.changes.next().await.expect("a watch never ends");
        let is_running = |pod: &Pod| pod.phase == PodPhase::Running && !pod.deleting;
        match change {
            Ok(PodChange::Listed(all)) => {
                let all = all.iter().filter(|pod| is_running(pod));
                self.running = all.map(|pod| pod.name.clone()).collect();
            }
            Ok(PodChange::Changed(pod)) if is_running(&pod) => {
                self.running.insert(pod.name.clone());
            }
            Ok(PodChange::Changed(pod) | PodChange::Deleted(pod)) => {
                self.running.remove(&pod.name);
            }
            Ok(other) => panic!("{other:?}"),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}"),
        }
    }

    /// Waits until a pod is seen to run, or not to.
    pub(crate) async fn sees(&mut self, name: &str, runs: bool) {
        let seeing = async {
            while self.running.contains(name) != runs {
                self.next().await;
            }
        };
        within("a change that the watch tells", seeing).await;
    }
}
