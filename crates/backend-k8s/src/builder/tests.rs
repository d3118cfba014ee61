//! Invalid options are refused before anything is created.

use backend_core::{Backend as _, ErrorKind, Sandbox as _};
use sandbox_runtime::PackageManager;
use serde_json::json;

use super::*;
use crate::pods::tests::{Answer, cluster_of};

fn bare() -> K8sBuilder {
    // Never contacted: no test here creates a pod.
    let (cluster, _) = cluster_of(|_| Answer::Never);
    K8sSandbox::builder().cluster(cluster).mode(Mode::Portable)
}

fn new() -> K8sBuilder {
    bare().image("image:1")
}

fn refused(builder: K8sBuilder) -> String {
    let error = builder.build().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    error.to_string()
}

#[tokio::test]
async fn a_cluster_and_an_image_or_a_runtime() {
    let builder = K8sSandbox::builder().image("image:1").mode(Mode::Portable);
    assert!(refused(builder).contains("no cluster"));
    assert!(refused(bare()).contains("no image"));
    assert!(refused(new().runtime(Runtime::default())).contains("choose one"));
    let error = refused(new().image("no such image"));
    assert!(error.starts_with("k8s: 'no such image'"), "{error}");
}

#[tokio::test]
async fn a_runtime_that_must_be_built_needs_an_image() {
    let ready = Runtime::from_image("ready", "image:2");
    bare().runtime(ready).build().unwrap();
    let built = || {
        let runtime = Runtime::on_base("web", "node:24");
        bare().runtime(runtime.with_package(PackageManager::Npm, "vite"))
    };
    let error = refused(built());
    for command in [
        "agentbox runtimes build web --tag",
        "--output",
        "runtime_image",
    ] {
        assert!(error.contains(command), "{error}");
    }
    built()
        .runtime_image("web", "mirror/web:1")
        .build()
        .unwrap();
    refused(built().runtime_image("other", "mirror/web:1"));
    refused(built().runtime_image("web", "no image"));
}

#[tokio::test]
async fn the_working_directory() {
    assert_eq!(new().build().unwrap().working_dir().as_str(), "/workspace");
    let given = new().working_dir("/srv//x/").build().unwrap();
    assert_eq!(given.working_dir().as_str(), "/srv/x");
    let runtime = Runtime::from_image("own", "image:1").with_work_dir("/app");
    let sandbox = bare().runtime(runtime).build().unwrap();
    assert_eq!(sandbox.working_dir().as_str(), "/app");
    for bad in ["relative", "/proc", "/"] {
        refused(new().working_dir(bad));
    }
}

#[tokio::test]
async fn every_option_is_checked() {
    refused(new().env("A=B", ""));
    refused(new().label("agentbox.dev/x", ""));
    refused(new().annotation("agentbox.dev/x", ""));
    refused(new().add_capability("ALL"));
    assert!(refused(new().user(0, 0)).contains("Relaxation::Root"));
    new().user(0, 0).relax(Relaxation::Root).build().unwrap();
    refused(new().name("a/b"));
    refused(new().runtime_class("/bin/sh"));
    refused(new().service_account("A"));
    refused(new().image_pull_secret(""));
    refused(new().owner_pod("program", "no uid"));
    refused(new().node_selector("a b", ""));
    refused(new().toleration(json!([])));
    refused(new().affinity(json!("x")));
    refused(new().overlay(json!({"status": {}})));
    refused(new().memory(1));
    refused(new().memory(u64::MAX));
    refused(new().memory(64 << 20).request_memory(65 << 20));
    for cpus in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(new().cpus(cpus));
        refused(new().request_cpus(cpus));
    }
    refused(new().cpus(0.5).request_cpus(0.6));
    refused(new().idle_timeout(Duration::ZERO));
    refused(new().start_timeout(Duration::ZERO));
    refused(new().start_timeout(Duration::MAX));
    refused(new().active_deadline(Duration::from_millis(1)));
    refused(new().grace(Duration::MAX));
}

#[tokio::test]
async fn mounts() {
    refused(new().volume(Volume::claim("data", "/proc/x")));
    refused(new().volume(Volume::claim("../x", "/x")));
    let twice = new()
        .volume(Volume::claim("data", "/x"))
        .volume(Volume::empty_dir("/x/", None));
    assert!(refused(twice).contains("two mounts"));
    new().volume(Volume::claim("data", "/x")).build().unwrap();
}

#[tokio::test]
async fn files_are_kept_on_the_nearest_claim() {
    let keeps = |builder: K8sBuilder| {
        let working_dir = backend_core::VPath::parse("/srv/app").unwrap();
        builder.settings.keeps_files(&working_dir)
    };
    assert!(!keeps(new()));
    assert!(keeps(new().volume(Volume::claim("a", "/srv/app"))));
    assert!(keeps(new().volume(Volume::claim("a", "/srv"))));
    assert!(!keeps(new().volume(Volume::claim("a", "/srv/other"))));
    let hidden = new()
        .volume(Volume::claim("a", "/srv"))
        .volume(Volume::empty_dir("/srv/app", None));
    assert!(!keeps(hidden));
}

#[tokio::test]
async fn an_agent_that_must_be_there() {
    let error = refused(new().mode(Mode::Agent));
    assert!(error.contains("the portable mode"), "{error}");
    let brought = || Delivery::Init {
        image: "agent:1".into(),
    };
    let sandbox = new().mode(Mode::Agent).delivery(brought()).build();
    sandbox.unwrap();
    refused(new().delivery(brought()));
    let wrong = Delivery::Init {
        image: "a b".into(),
    };
    refused(new().mode(Mode::Agent).delivery(wrong));
    refused(new().agent_image(""));
}

#[tokio::test]
async fn names() {
    let one = new().build().unwrap();
    let other = new().build().unwrap();
    assert!(one.id().starts_with("agentbox-"));
    assert_ne!(one.id(), other.id());
    assert_eq!(new().name("mine").build().unwrap().id(), "mine");
    assert_eq!(one.clone().id(), one.id());
    assert_eq!(one.info().name, "k8s");
}
