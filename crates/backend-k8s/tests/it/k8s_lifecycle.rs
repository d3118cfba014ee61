//! The states of a sandbox's pod, and every transition between them.

use std::time::Duration;

use backend_core::ops::{Command, StopMode};
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_k8s::{DEFAULT_MEMORY, K8sSandbox, Mode};
use backend_testkit::fails;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use serde_json::json;

use crate::support::place::{Place, agent, busybox, phase};
use crate::support::sandbox::{first_failure, is_unavailable, outcome, purge, run, says};
use crate::support::wait::until;

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_first_operation_starts_it_and_files_survive_a_stop() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    assert!(!sandbox.is_alive().await.unwrap());
    assert!(
        !place.exists(sandbox.pod_name()).await,
        "nothing is made before it is needed"
    );
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    assert!(sandbox.is_alive().await.unwrap());
    let uid = place.uid(sandbox.pod_name()).await;
    assert_eq!(run(&sandbox, "pwd; cat a.txt").await, "/workspace\none");
    sandbox.stop(StopMode::Keep).await.unwrap();
    sandbox.stop(StopMode::Keep).await.unwrap();
    assert!(!sandbox.is_alive().await.unwrap());
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    assert_eq!(place.uid(sandbox.pod_name()).await, uid);
    purge(&sandbox).await;
    purge(&sandbox).await;
    assert!(!place.exists(sandbox.pod_name()).await);
    let error = sandbox.read_to_string("a.txt").await.unwrap_err();
    assert_eq!(
        error.kind(),
        ErrorKind::NotFound,
        "a new, empty one: {error}"
    );
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn one_that_was_deleted_is_never_made_anew_unasked() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    place.delete(sandbox.pod_name()).await;
    says(&first_failure(&sandbox).await, &["was deleted"]);
    for _ in 0..3 {
        is_unavailable(sandbox.read_to_string("a.txt").await, &["was deleted"]);
        is_unavailable(sandbox.exists("a.txt").await, &["was deleted"]);
    }
    assert!(!sandbox.is_alive().await.unwrap());
    assert!(!place.exists(sandbox.pod_name()).await);
    sandbox.start().await.unwrap();
    assert!(!sandbox.exists("a.txt").await.unwrap());
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_last_clone_takes_the_pod_along_unless_it_is_kept() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    sandbox.start().await.unwrap();
    let name = sandbox.pod_name().to_owned();
    let clone = sandbox.clone();
    drop(sandbox);
    assert_eq!(run(&clone, "echo still").await, "still");
    drop(clone);
    place.gone(&name).await;

    let kept = place.builder().keep(true).build().unwrap();
    kept.write_file("a.txt", "one\n").await.unwrap();
    let name = kept.pod_name().to_owned();
    drop(kept);
    // A pod that is started and dropped now is gone when any other would be.
    let last = place.builder().build().unwrap();
    last.start().await.unwrap();
    let gone = last.pod_name().to_owned();
    drop(last);
    place.gone(&gone).await;
    let attached = place.attach(&name).open().await.unwrap();
    assert_eq!(attached.read_to_string("a.txt").await.unwrap(), "one\n");
    purge(&attached).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_idle_one_is_stopped_and_wakes_up() {
    let place = Place::new().await;
    let idle = Duration::from_millis(300);
    let sandbox = place.builder().idle_timeout(idle).build().unwrap();
    sandbox.write_file("a.txt", "one\n").await.unwrap();
    let stopped = async || !sandbox.is_alive().await.unwrap();
    until("the stop", stopped).await;
    assert_eq!(sandbox.read_to_string("a.txt").await.unwrap(), "one\n");
    until("the second stop", stopped).await;
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn statistics_are_those_of_the_pod() {
    let place = Place::new().await;
    let sandbox = place.builder().memory(96 << 20).build().unwrap();
    sandbox.start().await.unwrap();
    let first = sandbox.stats().await.unwrap();
    assert_eq!(first.cpu_percent, None);
    assert!(first.pids >= 2 && first.memory > 0, "{first:?}");
    assert_eq!(first.memory_limit, 96 << 20);
    let used = sandbox.stats().await.unwrap();
    assert!(used.cpu_percent.is_some(), "{used:?}");
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_cancelled_start_leaves_nothing() {
    let place = Place::new().await;
    let sandbox = place.builder().build().unwrap();
    for delay in [1, 5, 20, 60, 120] {
        let start = sandbox.start();
        let cancelled = tokio::time::timeout(Duration::from_millis(delay), start).await;
        drop(cancelled);
    }
    sandbox.start().await.unwrap();
    let name = sandbox.pod_name().to_owned();
    drop(sandbox);
    place.gone(&name).await;
    // The same if nothing is awaited after the cancelled call.
    for delay in [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512] {
        let sandbox = place.builder().build().unwrap();
        let start = tokio::time::timeout(Duration::from_millis(delay), sandbox.start());
        let _ = start.await;
    }
    // Every pod that will be created exists by now.
    let last = place.builder().build().unwrap();
    last.start().await.unwrap();
    purge(&last).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn the_time_of_a_pod_can_be_limited() {
    let place = Place::new().await;
    let deadline = Duration::from_secs(3);
    let sandbox = place.builder().active_deadline(deadline).build().unwrap();
    sandbox.start().await.unwrap();
    place
        .awaits::<Pod>(sandbox.pod_name(), |pod| phase(pod) == "Failed")
        .await;
    is_unavailable(outcome(&sandbox, "true").await, &["deadline"]);
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn what_was_asked_for_is_in_the_pod() {
    let place = Place::new().await;
    let overlay = json!({
        "metadata": {"annotations": {"example.com/overlaid": "yes"}},
        "spec": {"hostAliases": [{"ip": "127.0.0.9", "hostnames": ["box.example"]}]},
    });
    let sandbox = place
        .builder()
        .env("MINE", "a b")
        .label("example.com/team", "red")
        .annotation("example.com/note", "any text: here")
        .working_dir("/srv/work")
        .overlay(overlay)
        .build()
        .unwrap();
    let said = run(&sandbox, "pwd; echo $MINE; grep box.example /etc/hosts").await;
    let said: Vec<_> = said.lines().collect();
    assert_eq!(said[..2], ["/srv/work", "a b"]);
    assert!(said[2].starts_with("127.0.0.9"), "{said:?}");
    let pod = place.pod(sandbox.pod_name()).await;
    let (labels, annotations) = (pod.labels(), pod.annotations());
    assert_eq!(labels["example.com/team"], "red");
    assert_eq!(labels["agentbox.dev/sandbox"], sandbox.pod_name());
    assert_eq!(labels["app.kubernetes.io/managed-by"], "agentbox");
    assert_eq!(annotations["example.com/note"], "any text: here");
    assert_eq!(annotations["example.com/overlaid"], "yes");
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn an_overlay_cannot_undo_what_identifies_a_sandbox() {
    let place = Place::new().await;
    for overlay in [
        json!({"metadata": {"labels": {"agentbox.dev/sandbox": "another"}}}),
        json!({"metadata": {"name": "another"}}),
        json!({"spec": {"containers": [{"name": "sandbox", "$patch": "delete"}]}}),
        json!(["no object"]),
    ] {
        let built = place.builder().overlay(overlay.clone()).build();
        let started = match built {
            Ok(sandbox) => sandbox.start().await,
            Err(error) => Err(error),
        };
        let error = fails(ErrorKind::Config, started);
        says(&error, &["overlay"]);
    }
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn without_options_it_is_small_and_chooses_the_agent() {
    let place = Place::new().await;
    let sandbox = K8sSandbox::builder()
        .cluster(place.cluster.clone())
        .image(busybox())
        .agent(agent())
        .build()
        .unwrap();
    assert_eq!(run(&sandbox, "echo here").await, "here");
    let pod = place.pod(sandbox.pod_name()).await;
    let pod = serde_json::to_value(pod.spec.unwrap()).unwrap();
    let resources = &pod["containers"][0]["resources"];
    let limit = sandbox.stats().await.unwrap().memory_limit;
    assert_eq!(limit, DEFAULT_MEMORY);
    assert!(resources["requests"]["memory"].is_string(), "{resources}");
    assert!(resources["requests"]["cpu"].is_string(), "{resources}");
    purge(&sandbox).await;
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn a_new_one_never_adopts_and_is_never_made_anew() {
    let place = Place::new().await;
    let first = place.builder().name("box").create().await.unwrap();
    run(&first, "echo kept > file").await;
    let second = place.builder().name("box").create().await;
    fails(ErrorKind::Conflict, second);
    assert_eq!(run(&first, "cat file").await, "kept");
    drop(first);
    assert!(place.exists("box").await, "a drop changes nothing");
    let bound = place.attach("box").open().await.unwrap();
    assert_eq!(run(&bound, "cat file").await, "kept");
    place.delete("box").await;
    says(&first_failure(&bound).await, &["was deleted"]);
    is_unavailable(outcome(&bound, "true").await, &["was deleted"]);
    fails(ErrorKind::Unavailable, bound.start().await);
    assert!(!place.exists("box").await);
    place.end().await;
}

#[tokio::test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
async fn calls_need_no_poll_to_their_end() {
    let place = Place::new().await;
    for mode in [Mode::Agent, Mode::Portable] {
        let sandbox = place.builder().mode(mode).build().unwrap();
        sandbox.start().await.unwrap();
        // A runtime that is dropped during a call.
        let other = sandbox.clone();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                let call = other.execute(Command::new("sleep 4324"));
                let _ = tokio::time::timeout(Duration::from_millis(500), call).await;
            });
        });
        thread.join().unwrap();
        until("the end of the abandoned command", async || {
            let left = place.pids(sandbox.pod_name(), "sleep 4324").await;
            left.is_empty()
        })
        .await;
        assert_eq!(run(&sandbox, "echo on").await, "on");
        purge(&sandbox).await;
    }
    place.end().await;
}
