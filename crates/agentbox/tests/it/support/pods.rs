//! A directory in which the program creates pods that can be told from all others.

use std::process::Command;
use std::time::Duration;

use backend_k8s::Cluster;
use backend_k8s::pods::{self, PodChange, Version};
use futures::StreamExt as _;
use tokio::runtime::Runtime;

use super::{ProgramOutput, TestDir, variable};

/// The label that marks a test's pods.
const LABEL: &str = "agentbox-test";

/// Time for the cluster to remove something.
const REMOVAL: Duration = Duration::from_secs(60);

pub(crate) struct Pods {
    pub(crate) dir: TestDir,
    mark: String,
    cluster: Cluster,
    runtime: Runtime,
}

impl Pods {
    pub(crate) fn new(test: &str) -> Self {
        let dir = TestDir::new();
        let mark = format!("{test}-{}", std::process::id());
        // Many of them fit on a small node, which has the image.
        let config = format!(
            "backend = \"k8s:{}\"\n[k8s]\nlabels = {{ {LABEL} = \"{mark}\" }}\n\
             pull_policy = \"never\"\nmemory = \"512m\"\nrequest_memory = \"16m\"\n\
             request_cpus = 0.01\n",
            variable("TEST_IMAGE_BUSYBOX")
        );
        dir.file("config.toml", &config);
        let runtime = Runtime::new().unwrap();
        let cluster = runtime.block_on(Cluster::from_env()).unwrap();
        Self {
            dir,
            mark,
            cluster,
            runtime,
        }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let all = [&["--config", "config.toml"], arguments].concat();
        let mut command = self.dir.command(&all);
        for name in ["KUBECONFIG", "SANDBOX_AGENT"] {
            command.env(name, variable(name));
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::new(self.command(arguments).output().unwrap())
    }

    fn selector(&self) -> String {
        format!("{LABEL}={}", self.mark)
    }

    /// Returns the names of its pods that are not being deleted.
    pub(crate) fn names(&self) -> Vec<String> {
        let selector = self.selector();
        let listed = self.runtime.block_on(pods::list(&self.cluster, &selector));
        let mut listed = listed.unwrap();
        listed.retain(|pod| !pod.deleting);
        listed.into_iter().map(|pod| pod.name).collect()
    }

    /// Deletes one of its pods.
    pub(crate) fn delete(&self, name: &str) {
        let delete = async {
            let pod = pods::find(&self.cluster, name).await.unwrap().unwrap();
            pods::delete(&self.cluster, &pod, Duration::ZERO, Version::Any).await
        };
        assert!(self.runtime.block_on(delete).unwrap());
        self.wait_for_end(name);
    }

    /// Waits until one of its pods is being deleted, or is gone.
    pub(crate) fn wait_for_end(&self, name: &str) {
        let ended = async {
            let mut changes = pods::watch(&self.cluster, &self.selector()).unwrap();
            while let Some(change) = changes.next().await {
                let has_ended = match change.unwrap() {
                    PodChange::Listed(all) => {
                        all.iter().all(|pod| pod.name != name || pod.deleting)
                    }
                    PodChange::Changed(pod) => pod.name == name && pod.deleting,
                    PodChange::Deleted(pod) => pod.name == name,
                    _ => false,
                };
                if has_ended {
                    return;
                }
            }
        };
        let ended = async { tokio::time::timeout(REMOVAL, ended).await };
        self.runtime.block_on(ended).unwrap();
    }
}
