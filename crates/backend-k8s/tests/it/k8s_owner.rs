//! Sandboxes that belong to the pod of a program: the cluster deletes them with it.

use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use kube::ResourceExt as _;

use crate::support::place::Place;
use crate::support::sandbox::{first_failure, purge, run, says};

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn they_end_with_it_unless_they_are_kept() {
    let place = Place::new().await;
    place.foreign_pod("program", "main").await;
    let uid = place.uid("program").await;
    let owned = || place.builder().owner_pod("program", &*uid);
    let sandbox = owned().build().unwrap();
    let kept = owned().keep(true).build().unwrap();
    let other = place.builder().build().unwrap();
    for one in [&sandbox, &kept, &other] {
        one.write_file("kept.txt", "kept\n").await.unwrap();
    }
    let pod = place.pod(sandbox.pod_name()).await;
    assert_eq!(pod.owner_references().len(), 1);
    assert_eq!(pod.owner_references()[0].uid, uid);
    place.delete("program").await;
    place.gone(sandbox.pod_name()).await;
    let error = first_failure(&sandbox).await;
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    says(&error, &["was deleted"]);
    assert!(!sandbox.is_alive().await.unwrap());
    for stays in [&kept, &other] {
        assert_eq!(run(stays, "cat kept.txt").await, "kept");
        purge(stays).await;
    }
    place.end().await;
}
