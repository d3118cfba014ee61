//! The pods that are sent to the cluster.

use std::time::Duration;

use sandbox_runtime::{PackageManager, Runtime};

use super::*;
use crate::builder::K8sBuilder;
use crate::options::PullPolicy;
use crate::sandbox::K8sSandbox;

fn new() -> K8sBuilder {
    K8sSandbox::builder().image("image:1")
}

/// Calls `check` with the plan that follows from the options.
fn planned<T>(builder: K8sBuilder, check: impl FnOnce(&Plan<'_>) -> T) -> T {
    let settings = builder.settings;
    let working_dir = settings.working_dir.as_deref().unwrap_or("/workspace");
    let working_dir = VPath::parse(working_dir).unwrap();
    check(&Plan {
        name: "box",
        settings: &settings,
        image: "image:1",
        working_dir: &working_dir,
        agent_image: None,
        creation: "7",
    })
}

fn pod(builder: K8sBuilder) -> Value {
    planned(builder, |plan| plan.pod())
}

fn sandbox(builder: K8sBuilder) -> Value {
    pod(builder)["spec"]["containers"][0].clone()
}

/// Returns the element of a list with this name.
fn named<'a>(list: &'a Value, name: &str) -> &'a Value {
    let found = list.as_array().unwrap().iter();
    let mut found = found.filter(|one| one["name"] == name);
    found.next().unwrap_or(&Value::Null)
}

#[test]
fn hardened_unless_asked() {
    let pod = pod(new());
    let spec = &pod["spec"];
    assert_eq!(
        spec["securityContext"],
        json!({
            "runAsNonRoot": true,
            "runAsUser": 1000,
            "runAsGroup": 1000,
            "fsGroup": 1000,
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        })
    );
    assert_eq!(spec["automountServiceAccountToken"], false);
    assert_eq!(spec["enableServiceLinks"], false);
    assert_eq!(spec["restartPolicy"], "Always");
    assert_eq!(pod["metadata"]["labels"]["agentbox.dev/network"], "none");
    for absent in [
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "serviceAccountName",
        "runtimeClassName",
        "affinity",
        "tolerations",
        "nodeSelector",
        "imagePullSecrets",
        "activeDeadlineSeconds",
        "initContainers",
    ] {
        assert_eq!(spec[absent], Value::Null, "{absent}");
    }
    let sandbox = &spec["containers"][0];
    assert_eq!(sandbox["name"], "sandbox");
    assert_eq!(
        sandbox["securityContext"],
        json!({
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": {"drop": ["ALL"]},
        })
    );
    assert_eq!(
        sandbox["resources"],
        json!({
            "limits": {"memory": (2u64 << 30).to_string()},
            "requests": {"memory": (256u64 << 20).to_string(), "cpu": "100m"},
        })
    );
    assert_eq!(sandbox["imagePullPolicy"], "IfNotPresent");
    assert_eq!(sandbox["command"], json!(["sh", "-c", KEEP_ALIVE]));
}

#[test]
fn each_relaxation_gives_up_one_thing() {
    let strict = pod(new());
    let changed = |relaxation, change: fn(&mut Value)| {
        let mut expected = strict.clone();
        change(&mut expected["spec"]);
        let relaxed = pod(new().relax(relaxation));
        assert_eq!(relaxed["spec"], expected["spec"], "{relaxation:?}");
    };
    changed(Relaxation::UnconfinedSeccomp, |spec| {
        spec["securityContext"]["seccompProfile"]["type"] = "Unconfined".into();
    });
    changed(Relaxation::PrivilegeEscalation, |spec| {
        spec["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = true.into();
    });
    changed(Relaxation::WritableRoot, |spec| {
        spec["containers"][0]["securityContext"]["readOnlyRootFilesystem"] = false.into();
        // The image's own is writable.
        let mounts = &mut spec["containers"][0]["volumeMounts"];
        let mounts = mounts.as_array_mut().unwrap();
        mounts.retain(|one| one["name"] != "tmp");
        let volumes = spec["volumes"].as_array_mut().unwrap();
        volumes.retain(|one| one["name"] != "tmp");
    });
    let root = pod(new().relax(Relaxation::Root));
    let security = &root["spec"]["securityContext"];
    assert_eq!(security["runAsNonRoot"], Value::Null);
    assert_eq!(security["runAsUser"], Value::Null, "the image decides");
    let env = &root["spec"]["containers"][0]["env"];
    assert_eq!(named(env, "HOME"), &Value::Null);
    let root = pod(new().relax(Relaxation::Root).user(0, 0));
    assert_eq!(root["spec"]["securityContext"]["runAsUser"], 0);
    let env = &root["spec"]["containers"][0]["env"];
    assert_eq!(named(env, "UV_SYSTEM_PYTHON")["value"], "1");
}

#[test]
fn options_arrive() {
    let toleration = json!({"key": "gpu", "operator": "Exists"});
    let affinity = json!({"nodeAffinity": {}});
    let pod = pod(new()
        .network(Network::Open)
        .memory(64 << 20)
        .cpus(1.5)
        .request_memory(1 << 20)
        .request_cpus(0.0251)
        .add_capability("CHOWN")
        .service_account("worker")
        .mount_token(true)
        .node_selector("kubernetes.io/arch", "amd64")
        .toleration(toleration.clone())
        .affinity(affinity.clone())
        .runtime_class("gvisor")
        .image_pull_secret("login")
        .pull_policy(PullPolicy::Never)
        .active_deadline(Duration::from_secs(90))
        .grace(Duration::from_secs(7))
        .user(5, 6)
        .label("a", "b")
        .annotation("c", "d")
        .env("X", "y"));
    let spec = &pod["spec"];
    assert_eq!(pod["metadata"]["labels"]["a"], "b");
    assert_eq!(pod["metadata"]["labels"]["agentbox.dev/network"], "open");
    assert_eq!(pod["metadata"]["annotations"]["c"], "d");
    assert_eq!(spec["dnsPolicy"], Value::Null);
    assert_eq!(spec["serviceAccountName"], "worker");
    assert_eq!(spec["automountServiceAccountToken"], true);
    assert_eq!(spec["nodeSelector"], json!({"kubernetes.io/arch": "amd64"}));
    assert_eq!(spec["tolerations"], json!([toleration]));
    assert_eq!(spec["affinity"], affinity);
    assert_eq!(spec["runtimeClassName"], "gvisor");
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "login"}]));
    assert_eq!(spec["activeDeadlineSeconds"], 90);
    assert_eq!(spec["terminationGracePeriodSeconds"], 7);
    assert_eq!(spec["securityContext"]["runAsGroup"], 6);
    let sandbox = &spec["containers"][0];
    assert_eq!(
        sandbox["resources"],
        json!({
            "limits": {"memory": "67108864", "cpu": "1500m"},
            "requests": {"memory": "1048576", "cpu": "26m"},
        })
    );
    assert_eq!(sandbox["imagePullPolicy"], "Never");
    let capabilities = &sandbox["securityContext"]["capabilities"];
    assert_eq!(capabilities["add"], json!(["CHOWN"]));
    assert_eq!(named(&sandbox["env"], "X")["value"], "y");
}

#[test]
fn a_request_is_never_above_its_limit() {
    let resources = sandbox(new().memory(64 << 20).cpus(0.05))["resources"].clone();
    assert_eq!(resources["requests"], resources["limits"]);
}

#[test]
fn what_must_be_writable_is_a_volume() {
    let mounts = |builder| -> Vec<(String, String)> {
        let mounts = sandbox(builder)["volumeMounts"].clone();
        let mounts = mounts.as_array().unwrap().iter();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        mounts
            .map(|one| (text(&one["name"]), text(&one["mountPath"])))
            .collect()
    };
    let pair = |name: &str, path: &str| (name.to_owned(), path.to_owned());
    assert_eq!(
        mounts(new()),
        [
            pair("work", "/workspace"),
            pair("home", "/home/agent"),
            pair("tmp", "/tmp"),
            pair("agent", "/.agentbox"),
        ]
    );
    let given = new()
        .working_dir("/srv/app")
        .volume(Volume::claim("files", "/srv/"))
        .volume(Volume::empty_dir("/tmp", Some(7)))
        .volume(Volume::memory("/fast", 9).read_only(true));
    assert_eq!(
        mounts(given.clone()),
        [
            pair("volume-0", "/srv"),
            pair("volume-1", "/tmp"),
            pair("volume-2", "/fast"),
            pair("home", "/home/agent"),
            pair("agent", "/.agentbox"),
        ]
    );
    let pod = pod(given);
    let volumes = &pod["spec"]["volumes"];
    let source = |name, kind: &str| named(volumes, name)[kind].clone();
    assert_eq!(
        source("volume-0", "persistentVolumeClaim"),
        json!({"claimName": "files"})
    );
    assert_eq!(source("volume-1", "emptyDir"), json!({"sizeLimit": "7"}));
    assert_eq!(
        source("volume-2", "emptyDir"),
        json!({"sizeLimit": "9", "medium": "Memory"})
    );
    let mounts = &pod["spec"]["containers"][0]["volumeMounts"];
    assert_eq!(named(mounts, "volume-2")["readOnly"], true);
    assert_eq!(named(mounts, "volume-0")["readOnly"], Value::Null);
}

#[test]
fn kubernetes_replaces_nothing_in_values() {
    let env = sandbox(new().env("A", "$(B) $x $$"))["env"].clone();
    assert_eq!(named(&env, "A")["value"], "$$(B) $$x $$$$");
}

#[test]
fn the_environment_of_a_runtime() {
    let runtime = Runtime::on_base("web", "node:24")
        .with_package(PackageManager::Npm, "vite")
        .with_env("PAGER", "less")
        .with_work_dir("/workspace")
        .with_run_as_uid(4711);
    let builder = K8sSandbox::builder().runtime(runtime).env("LANG", "C");
    let pod = pod(builder);
    let spec = &pod["spec"];
    assert_eq!(spec["securityContext"]["runAsUser"], 4711);
    let env = &spec["containers"][0]["env"];
    assert_eq!(named(env, "PAGER")["value"], "less");
    assert_eq!(named(env, "LANG")["value"], "C");
    assert_eq!(named(env, "GIT_PAGER")["value"], "cat");
    assert_eq!(named(env, "UV_SYSTEM_PYTHON"), &Value::Null);
    // Its packages are in the directory that the volume hides.
    let files = &spec["initContainers"][0];
    assert_eq!(files["image"], "image:1");
    assert_eq!(
        files["volumeMounts"],
        json!([{"name": "work", "mountPath": "/.agentbox-seed"}])
    );
    assert_eq!(
        files["command"].as_array().unwrap()[3..],
        ["sh", "/workspace", "/.agentbox-seed"]
    );
    assert_eq!(
        files["securityContext"],
        spec["containers"][0]["securityContext"]
    );
}

#[test]
fn an_agent_that_is_brought_cannot_be_changed() {
    let pod = planned(new(), |plan| {
        let plan = Plan {
            agent_image: Some("agent:1"),
            ..*plan
        };
        assert_eq!(
            plan.fingerprint(),
            planned(new(), |plan| plan.fingerprint())
        );
        plan.pod()
    });
    let spec = &pod["spec"];
    let agent = &spec["initContainers"][0];
    assert_eq!(agent["image"], "agent:1");
    assert_eq!(
        agent["args"],
        json!(["--install", "/.agentbox/sandbox-agent"])
    );
    let sandbox = &spec["containers"][0];
    assert_eq!(
        sandbox["command"],
        json!(["/.agentbox/sandbox-agent", "--hold"])
    );
    assert_eq!(named(&sandbox["volumeMounts"], "agent")["readOnly"], true);
}

#[test]
fn labels_say_whose_it_is() {
    let metadata = |builder| pod(builder)["metadata"].clone();
    let found = metadata(new().idle_timeout(Duration::from_secs(60)));
    assert_eq!(found["name"], "box");
    assert_eq!(found["labels"][labels::SANDBOX], "box");
    assert_eq!(found["labels"][labels::MANAGED_BY], "agentbox");
    let annotations = &found["annotations"];
    assert_eq!(annotations[labels::DISPOSAL], "remove");
    assert_eq!(annotations[labels::IDLE], "60");
    let owner = Owner::parse(annotations[labels::OWNER].as_str().unwrap()).unwrap();
    assert_eq!(owner.pid, std::process::id());
    for kept in [new().keep(true), new().name("mine")] {
        assert_eq!(metadata(kept)["annotations"][labels::DISPOSAL], "keep");
    }
}

#[test]
fn the_pod_of_a_program_takes_its_sandboxes_along() {
    let references = |builder: K8sBuilder| {
        let builder = builder.owner_pod("program", "1-2");
        pod(builder)["metadata"]["ownerReferences"].clone()
    };
    let expected = json!([{"apiVersion": "v1", "kind": "Pod", "name": "program", "uid": "1-2"}]);
    assert_eq!(references(new()), expected);
    assert_eq!(references(new().name("mine")), Value::Null);
}

#[test]
fn an_overlay_is_merged_last_and_leaves_the_labels() {
    let overlay = json!({
        "metadata": {"labels": null, "annotations": {"a": "b"}},
        "spec": {"containers": [{"name": "sandbox", "tty": true, "env": [
            {"name": "LANG", "value": "C"},
        ]}]},
    });
    let pod = pod(new().label("x", "y").overlay(overlay));
    let metadata = &pod["metadata"];
    assert_eq!(metadata["labels"]["x"], Value::Null);
    assert_eq!(metadata["labels"][labels::SANDBOX], "box");
    assert_eq!(metadata["annotations"]["a"], "b");
    let sandbox = &pod["spec"]["containers"][0];
    assert_eq!(sandbox["tty"], true);
    assert_eq!(sandbox["image"], "image:1");
    assert_eq!(named(&sandbox["env"], "LANG")["value"], "C");
}

#[test]
fn equal_options_have_equal_fingerprints() {
    let print = |builder| planned(builder, |plan| plan.fingerprint());
    let one = print(new().env("A", "1").label("a", "1"));
    assert_eq!(one, print(new().label("a", "1").env("A", "1")));
    for other in [
        new(),
        new().env("A", "2").label("a", "1"),
        new().env("A", "1").label("a", "2"),
        new().env("A", "1").label("a", "1").memory(1 << 30),
        new()
            .env("A", "1")
            .label("a", "1")
            .overlay(json!({"spec": {"hostname": "x"}})),
    ] {
        assert_ne!(one, print(other));
    }
    let kept = |builder: K8sBuilder| builder.keep(true).idle_timeout(Duration::from_secs(1));
    assert_eq!(print(kept(new())), print(new()), "not part of the pod");
}
