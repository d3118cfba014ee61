//! Volumes: those that end with the pod, and those that outlive it.

use std::time::Duration;

use backend_core::{BackendExt as _, ErrorKind};
use backend_k8s::{Mode, Volume};
use backend_testkit::fails;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

use crate::support::daemons::is_ours;
use crate::support::place::Place;
use crate::support::sandbox::{in_both_modes, outcome, purge, run, says};

/// A volume of the cluster that is a directory of its only node, and a claim to it.
struct Claimed {
    volumes: Api<PersistentVolume>,
    name: String,
    directory: tempfile::TempDir,
}

impl Claimed {
    /// Makes the volume and the claim `files`.
    async fn new(place: &Place) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // The kubelet changes no owner of such a directory.
        std::os::unix::fs::chown(directory.path(), Some(1000), Some(1000)).unwrap();
        let volumes: Api<PersistentVolume> = Api::all(place.client.clone());
        let name = place.namespace.clone();
        let storage = json!({"storage": "16Mi"});
        let volume = json!({
            "metadata": {"name": name, "labels": {"agentbox.dev/test": "true"}},
            "spec": {
                "capacity": storage,
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "persistentVolumeReclaimPolicy": "Retain",
                "hostPath": {"path": directory.path()},
                "claimRef": {"namespace": place.namespace, "name": "files"},
            },
        });
        let volume = serde_json::from_value(volume).unwrap();
        let made = volumes.create(&PostParams::default(), &volume).await;
        made.unwrap();
        let claim = json!({
            "metadata": {"name": "files"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "",
                "volumeName": name,
                "resources": {"requests": storage},
            },
        });
        place.create::<PersistentVolumeClaim>(claim).await;
        Self {
            volumes,
            name,
            directory,
        }
    }

    /// Begins to remove the volume, which goes when the claim is gone with its namespace.
    async fn end(self) {
        let options = DeleteParams::default();
        let deleted = self.volumes.delete(&self.name, &options).await;
        deleted.unwrap();
    }
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_claim_outlives_pods_and_can_be_read_only() {
    if !is_ours() {
        return;
    }
    let place = Place::new().await;
    let claimed = Claimed::new(&place).await;
    for (mode, before) in [(Mode::Agent, ""), (Mode::Portable, "one")] {
        let files = Volume::claim("files", "/workspace");
        let builder = place.builder().volume(files).mode(mode);
        let sandbox = builder.build().unwrap();
        let found = run(&sandbox, "cat a.txt 2>/dev/null || true").await;
        assert_eq!(found, before, "{mode:?}");
        sandbox.write_file("a.txt", "one\n").await.unwrap();
        purge(&sandbox).await;
        place.gone(sandbox.pod_name()).await;
    }
    let kept = std::fs::read_to_string(claimed.directory.path().join("a.txt"));
    assert_eq!(kept.unwrap(), "one\n");
    let data = Volume::claim("files", "/data").read_only(true);
    let reader = place.builder().volume(data).build().unwrap();
    assert_eq!(reader.read_to_string("/data/a.txt").await.unwrap(), "one\n");
    fails(
        ErrorKind::PermissionDenied,
        reader.write_file("/data/a.txt", "two\n").await,
    );
    purge(&reader).await;
    place.end().await;
    claimed.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_missing_claim_is_told() {
    let place = Place::new().await;
    let sandbox = place
        .builder()
        .volume(Volume::claim("no-such-claim", "/data"))
        .start_timeout(Duration::from_secs(5))
        .build()
        .unwrap();
    let error = fails(ErrorKind::Unavailable, outcome(&sandbox, "true").await);
    says(&error, &["no-such-claim"]);
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_full_volume_in_memory_changes_nothing() {
    let place = Place::new().await;
    in_both_modes(async |mode| {
        let small = Volume::memory("/small", 256 << 10);
        let builder = place.builder().volume(small).mode(mode);
        let sandbox = builder.build().unwrap();
        sandbox.write_file("/small/a.txt", "one\n").await.unwrap();
        let full = sandbox.write_file("/small/a.txt", vec![7u8; 1 << 20]).await;
        assert!(full.is_err(), "{mode:?}");
        assert_eq!(
            sandbox.read_to_string("/small/a.txt").await.unwrap(),
            "one\n",
            "{mode:?}"
        );
        let left = run(&sandbox, "ls -A /small").await;
        assert_eq!(left, "a.txt", "{mode:?}: nothing half written stays");
        purge(&sandbox).await;
    })
    .await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_empty_directory_belongs_to_the_user() {
    let place = Place::new().await;
    let cache = Volume::empty_dir("/cache", Some(16 << 20));
    let sandbox = place.builder().volume(cache).build().unwrap();
    assert_eq!(run(&sandbox, "echo a > /cache/a; cat /cache/a").await, "a");
    purge(&sandbox).await;
    place.end().await;
}
