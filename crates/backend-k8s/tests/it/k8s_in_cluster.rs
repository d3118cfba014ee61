//! A program in a pod of the cluster, with the account that docs/kubernetes-rbac.yaml gives it.

use std::path::{Path, PathBuf};

use backend_core::BackendExt as _;
use backend_k8s::Cluster;
use k8s_openapi::api::core::v1::Pod;
use kube::api::LogParams;
use serde_json::json;

use crate::support::daemons::is_ours;
use crate::support::place::{Place, busybox, phase, variable};
use crate::support::process::{arguments, given, say, variables};
use crate::support::rights::granted;
use crate::support::sandbox::{purge, run};
use crate::support::wait::until;

/// Where programs find their libraries. The test program is linked to those of the node,
/// which is this host.
const LIBRARIES: [&str; 3] = ["/lib", "/lib64", "/usr/lib"];

#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_uses_the_account_of_its_pod() {
    let Some((place, _)) = given().await else {
        return;
    };
    let cluster = Cluster::from_env().await.unwrap();
    assert_eq!(cluster.namespace(), place.namespace, "that of the pod");
    assert!(!cluster.info().await.unwrap().version.is_empty());
    // The server takes a moment to know them.
    until("the rights", async || {
        cluster.missing_rights().await.unwrap().is_empty()
    })
    .await;
    let builder = place.builder().cluster(cluster);
    // It shares the node with this program, whose request is large.
    let sandbox = builder.request_cpus(0.2).build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let read = run(&sandbox, "cat a.txt").await;
    purge(&sandbox).await;
    say(&[&*read]).await;
}

/// Creates a pod that runs a test of this program, which it finds on its node.
async fn start(place: &Place, name: &str, account: &str, test: &str) {
    let program = std::env::current_exe().unwrap();
    let agent = PathBuf::from(variable("SANDBOX_AGENT"));
    let directories = [&program, &agent].map(|file| file.parent().unwrap());
    let libraries = LIBRARIES.map(Path::new);
    let libraries = libraries.into_iter().filter(|path| path.exists());
    let mut shared: Vec<_> = directories.into_iter().chain(libraries).collect();
    shared.sort();
    shared.dedup();
    let named = |number: usize| format!("shared-{number}");
    let volumes = shared.iter().enumerate();
    let volumes = volumes
        .map(|(number, path)| json!({"name": named(number), "hostPath": {"path": path}}))
        .collect::<Vec<_>>();
    let mounts = shared.iter().enumerate();
    let mounts = mounts
        .map(|(number, path)| json!({"name": named(number), "mountPath": path, "readOnly": true}))
        .collect::<Vec<_>>();
    let image = busybox();
    let given = [
        ("SANDBOX_AGENT", agent.to_str().unwrap()),
        ("TEST_IMAGE_BUSYBOX", &*image),
    ];
    let environment = given.into_iter().chain(variables(place, name));
    let environment = environment
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect::<Vec<_>>();
    let mut command = vec![program.to_str().unwrap()];
    command.extend(arguments(test));
    let container = json!({
        "name": "program",
        "image": image,
        "imagePullPolicy": "Never",
        "command": command,
        "env": environment,
        // Without a request it would get next to nothing of a busy node, and time out.
        "resources": {"requests": {"cpu": "500m"}},
        "volumeMounts": mounts,
    });
    let spec = json!({
        "serviceAccountName": account,
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [container],
        "volumes": volumes,
    });
    let pod = json!({"metadata": {"name": name}, "spec": spec});
    place.create::<Pod>(pod).await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_program_in_a_pod_uses_its_account() {
    if !is_ours() {
        return;
    }
    let place = Place::new().await;
    let (account, _) = granted(&place).await;
    let test = "k8s_in_cluster::part_uses_the_account_of_its_pod";
    start(&place, "program", &account, test).await;
    let has_ended = |pod: Option<&Pod>| ["Succeeded", "Failed"].contains(&phase(pod));
    let ended = place.awaits::<Pod>("program", has_ended).await;
    let printed = place.pods().logs("program", &LogParams::default()).await;
    let printed = printed.unwrap();
    assert_eq!(phase(ended.as_ref()), "Succeeded", "{printed}");
    assert!(printed.contains("says: one"), "{printed}");
    place.delete("program").await;
    place.end().await;
}
