//! A pod without our library, used through kube.

use std::pin::pin;
use std::time::Instant;

use backend_testkit::measure::Sample;
use futures_util::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{AttachParams, DeleteParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt as _};
use serde_json::json;
use tokio::io::AsyncReadExt as _;

use super::place::{Place, until};

/// The plainest use of kube: a pod that sleeps, and one exec per call.
pub(crate) struct Bare {
    pods: Api<Pod>,
    image: String,
    pub(crate) pod: String,
}

impl Bare {
    pub(crate) async fn start(place: &Place, image: &str) -> Self {
        let mut bare = Self {
            pods: Api::namespaced(place.client.clone(), &place.namespace),
            image: image.to_owned(),
            pod: String::new(),
        };
        bare.pod = bare.create(None).await;
        bare.exec(
            &bare.pod,
            &["sh", "-c", "printf '%01024d' 0 > /tmp/read.txt"],
        )
        .await;
        bare
    }

    /// Runs one exec to its end, and returns its output.
    pub(crate) async fn exec(&self, pod: &str, argv: &[&str]) -> Vec<u8> {
        let parameters = AttachParams::default();
        let mut process = self
            .pods
            .exec(pod, argv.to_vec(), &parameters)
            .await
            .unwrap();
        let (mut stdout, status) = (process.stdout().unwrap(), process.take_status().unwrap());
        let mut printed = Vec::new();
        stdout.read_to_end(&mut printed).await.unwrap();
        let status = status.await.and_then(|status| status.status);
        assert_eq!(status.as_deref(), Some("Success"), "{argv:?}");
        printed
    }

    /// Creates a pod, waits for it, runs a command in it, and deletes it. The end of the pod
    /// is not timed. `volume` is the name of an empty directory that the pod has, if any.
    pub(crate) async fn first_command(&self, volume: Option<&str>) -> Sample {
        let start = Instant::now();
        let pod = self.create(volume).await;
        self.exec(&pod, &["sh", "-c", "true"]).await;
        let sample = Sample::since(start).with_size(1);
        let at_once = DeleteParams::default().grace_period(0);
        self.pods.delete(&pod, &at_once).await.unwrap();
        self.gone(&pod).await;
        sample
    }

    /// Waits until a pod is gone, so that its end is no part of what is measured next.
    pub(crate) async fn gone(&self, pod: &str) {
        until(async || self.pods.get_opt(pod).await.unwrap().is_none()).await;
    }

    /// Creates a pod with the limits of ours, and waits until it runs.
    async fn create(&self, volume: Option<&str>) -> String {
        let mounts = volume.map(|name| [json!({"name": name, "mountPath": "/workspace"})]);
        let volumes = volume.map(|name| [json!({"name": name, "emptyDir": {}})]);
        let container = json!({
            "volumeMounts": mounts,
            "name": "sandbox",
            "image": self.image,
            "imagePullPolicy": "Never",
            "command": ["sleep", "infinity"],
            "resources": {
                "limits": {"memory": "2Gi"},
                "requests": {"memory": "256Mi", "cpu": "100m"},
            },
        });
        let spec = json!({
            "automountServiceAccountToken": false,
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
            "volumes": volumes,
        });
        let name = format!("bare-{:016x}", fastrand::u64(..));
        let pod = json!({"metadata": {"name": name}, "spec": spec});
        let pod = serde_json::from_value(pod).unwrap();
        let pod: Pod = self
            .pods
            .create(&PostParams::default(), &pod)
            .await
            .unwrap();
        let only = WatchParams::default().fields(&format!("metadata.name={name}"));
        let version = pod.resource_version().unwrap();
        let mut events = pin!(self.pods.watch(&only, &version).await.unwrap());
        while let Some(event) = events.next().await {
            if let WatchEvent::Modified(pod) = event.unwrap()
                && runs(&pod)
            {
                return name;
            }
        }
        panic!("{name} does not run");
    }
}

fn runs(pod: &Pod) -> bool {
    let phase = pod
        .status
        .as_ref()
        .and_then(|status| status.phase.as_deref());
    phase == Some("Running")
}
