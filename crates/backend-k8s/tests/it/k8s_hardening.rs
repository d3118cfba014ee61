//! The rights of a sandbox, seen from inside and from the API, and what each relaxation
//! gives up.

use std::collections::HashMap;

use backend_core::{BackendExt as _, ErrorKind};
use backend_k8s::{K8sSandbox, Network, Relaxation};
use backend_testkit::fails;
use k8s_openapi::api::core::v1::{Namespace, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::support::place::Place;
use crate::support::sandbox::{outcome, purge, run, says};

/// Returns the fields of `/proc/self/status` of a command.
async fn status(sandbox: &K8sSandbox) -> HashMap<String, String> {
    let text = run(sandbox, "cat /proc/self/status").await;
    let field = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    text.lines().filter_map(field).collect()
}

/// Returns the pod as the API server has it.
async fn manifest(place: &Place, sandbox: &K8sSandbox) -> Value {
    let pod = place.pod(sandbox.pod_name()).await;
    serde_json::to_value(pod).unwrap()
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn hardened_by_default() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    let status = status(&sandbox).await;
    for name in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        assert_eq!(status[name], "0000000000000000", "{name}");
    }
    assert_eq!(status["NoNewPrivs"], "1");
    assert_eq!(status["Seccomp"], "2");
    assert_eq!(status["Uid"], "1000\t1000\t1000\t1000");
    assert_eq!(status["Gid"], "1000\t1000\t1000\t1000");
    for line in ["echo x > /etc/passwd", "echo x > /x", "echo x > /bin/x"] {
        let refused = outcome(&sandbox, line).await.unwrap();
        assert!(!refused.status.success(), "{line}");
    }
    fails(
        ErrorKind::PermissionDenied,
        sandbox.write_file("/x", "x").await,
    );
    // The working directory and the place for temporary files can be written to, and
    // programs run from there.
    let places = "echo a > a; cat a; echo b > /tmp/b; cat /tmp/b; cp /bin/busybox echo; ./echo ran";
    assert_eq!(run(&sandbox, places).await, "a\nb\nran");
    assert_eq!(
        run(&sandbox, "ls /var/run/secrets 2>/dev/null | wc -l").await,
        "0"
    );
    let home = "cd && echo c > c && cat c";
    assert_eq!(run(&sandbox, home).await, "c");
    let pod = manifest(&place, &sandbox).await;
    assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    assert_eq!(pod["spec"]["enableServiceLinks"], false);
    for shared in ["hostNetwork", "hostPID", "hostIPC"] {
        assert_ne!(pod["spec"][shared], true, "{shared}");
    }
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_strictest_namespace_admits_it() {
    let place = Place::new().await;
    let label = json!({"metadata": {"labels": {
        "pod-security.kubernetes.io/enforce": "restricted",
        "pod-security.kubernetes.io/enforce-version": "latest",
    }}});
    let namespaces: Api<Namespace> = Api::all(place.client.clone());
    let (options, label) = (PatchParams::default(), Patch::Merge(label));
    let labelled = namespaces.patch(&place.namespace, &options, &label);
    labelled.await.unwrap();
    let sandbox = place.builder().build().unwrap();
    assert_eq!(run(&sandbox, "echo in").await, "in");
    purge(&sandbox).await;
    let relaxed = place.builder().relax(Relaxation::PrivilegeEscalation);
    let refused = outcome(&relaxed.build().unwrap(), "true").await;
    says(&refused.unwrap_err(), &["PodSecurity"]);
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn limits_hold() {
    let place = Place::new().await;
    let builder = place.builder().memory(64 << 20).cpus(0.5);
    let sandbox = builder.build().unwrap();
    let memory = "cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.max";
    assert_eq!(run(&sandbox, memory).await, (64 << 20).to_string());
    let pod = manifest(&place, &sandbox).await;
    let resources = &pod["spec"]["containers"][0]["resources"];
    assert_eq!(resources["limits"]["cpu"], "500m");
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn relaxations_are_what_they_say() {
    let place = Place::new().await;
    let sandbox = place
        .builder()
        .user(0, 0)
        .add_capability("NET_BIND_SERVICE")
        .relax(Relaxation::Root)
        .relax(Relaxation::WritableRoot)
        .relax(Relaxation::PrivilegeEscalation)
        .relax(Relaxation::UnconfinedSeccomp)
        .build()
        .unwrap();
    assert_eq!(sandbox.relaxations().len(), 4);
    let status = status(&sandbox).await;
    assert_eq!(status["CapEff"], "0000000000000400", "one capability");
    assert_eq!(status["NoNewPrivs"], "0");
    assert_eq!(status["Seccomp"], "0");
    assert_eq!(status["Uid"], "0\t0\t0\t0");
    assert_eq!(run(&sandbox, "echo x > /x; cat /x").await, "x");
    purge(&sandbox).await;
    fails(ErrorKind::Config, place.builder().user(0, 0).build());
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn another_user_has_its_own_files() {
    let place = Place::new().await;
    let sandbox = place.builder().user(4711, 4712).build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let owners = run(&sandbox, "id -u; id -g; echo b > b; stat -c %u a.txt b").await;
    assert_eq!(owners, "4711\n4712\n4711\n4711");
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_token_only_when_asked() {
    let place = Place::new().await;
    let account = json!({"metadata": {"name": "worker"}});
    place.create::<ServiceAccount>(account).await;
    let token = "ls /var/run/secrets/kubernetes.io/serviceaccount/token 2>/dev/null | wc -l";
    for (mounted, files) in [(false, "0"), (true, "1")] {
        let builder = place.builder().service_account("worker");
        let sandbox = builder.mount_token(mounted).build().unwrap();
        assert_eq!(run(&sandbox, token).await, files, "{mounted}");
        let pod = manifest(&place, &sandbox).await;
        assert_eq!(pod["spec"]["serviceAccountName"], "worker");
        purge(&sandbox).await;
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn one_policy_denies_the_network_to_all_that_did_not_ask_for_it() {
    let place = Place::new().await;
    let closed = [(); 2].map(|()| place.builder().build().unwrap());
    let starts = closed.iter().map(|sandbox| run(sandbox, "true"));
    futures::future::join_all(starts).await;
    let open = place.builder().network(Network::Open).build().unwrap();
    run(&open, "true").await;
    let policies = place.api::<NetworkPolicy>();
    let policies = policies.list(&ListParams::default()).await.unwrap();
    assert_eq!(policies.items.len(), 1, "one for the namespace");
    let policy = serde_json::to_value(&policies.items[0]).unwrap();
    let spec = &policy["spec"];
    let types = spec["policyTypes"].as_array().unwrap();
    assert!(types.contains(&json!("Egress")), "{spec}");
    let rules = spec["egress"].as_array().map_or(0, Vec::len);
    assert_eq!(rules, 0, "nothing is allowed: {spec}");
    let selected = spec["podSelector"]["matchLabels"].as_object().unwrap();
    assert!(!selected.is_empty(), "pods of others are not selected");
    for (sandbox, is_denied) in [(&closed[0], true), (&closed[1], true), (&open, false)] {
        let pod = manifest(&place, sandbox).await;
        let labels = &pod["metadata"]["labels"];
        let matches = selected.iter().all(|(key, value)| &labels[key] == value);
        assert_eq!(matches, is_denied, "{labels}");
    }
    for sandbox in [&closed[0], &closed[1], &open] {
        purge(sandbox).await;
    }
    place.end().await;
}
