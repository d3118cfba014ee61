//! Pods as a cluster describes them, and what is said about them.

use serde_json::{Value, json};

use super::*;

fn pod(status: Value) -> Pod {
    let metadata = json!({"name": "box", "uid": "1"});
    let spec = json!({"nodeName": "node-1", "containers": []});
    serde_json::from_value(json!({"metadata": metadata, "spec": spec, "status": status})).unwrap()
}

fn container(state: Value, more: Value) -> Value {
    let mut container = json!({
        "name": "sandbox",
        "image": "image:1",
        "imageID": "",
        "ready": false,
        "restartCount": 0,
        "state": state,
    });
    for (key, value) in more.as_object().unwrap() {
        container[key] = value.clone();
    }
    container
}

fn waiting(reason: &str, message: &str) -> Pod {
    let state = json!({"waiting": {"reason": reason, "message": message}});
    let container = container(state, json!({}));
    pod(json!({"phase": "Pending", "containerStatuses": [container]}))
}

fn condition_of(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": kind, "status": status, "reason": reason, "message": message})
}

fn starting(pod: &Pod) -> String {
    match PodState::of(pod) {
        PodState::Starting(Some(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn failing(pod: &Pod) -> String {
    match PodState::of(pod) {
        PodState::Failing(reason) => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_start_without_problems_needs_no_words() {
    let nothing: Pod = serde_json::from_value(json!({"metadata": {}})).unwrap();
    for pod in [
        nothing,
        pod(json!({"phase": "Pending"})),
        waiting("ContainerCreating", ""),
        waiting("PodInitializing", ""),
    ] {
        assert_eq!(PodState::of(&pod), PodState::Starting(None));
        assert_eq!(PodState::of(&pod).reason(), None);
    }
    let up = container(
        json!({"running": {}}),
        json!({"ready": true, "started": true}),
    );
    let ready = condition_of("Ready", "True", "", "");
    let up = pod(json!({"phase": "Running", "conditions": [ready], "containerStatuses": [up]}));
    assert_eq!(PodState::of(&up), PodState::Running);
}

#[test]
fn images() {
    let text = "Container image \"image:1\" is not present with pull policy of Never";
    for reason in ["ErrImageNeverPull", "ImagePullBackOff", "InvalidImageName"] {
        let told = failing(&waiting(reason, text));
        assert!(
            told.starts_with("cannot get the image 'image:1': 'Container"),
            "{told}"
        );
    }
    // The node tries again.
    for reason in ["ErrImagePull", "ImageInspectError"] {
        let told = starting(&waiting(reason, "not found"));
        assert_eq!(told, "cannot get the image 'image:1': 'not found'");
    }
}

#[test]
fn nodes_and_options() {
    let message = "0/1 nodes are available: 1 Insufficient memory.";
    let condition = condition_of("PodScheduled", "False", "Unschedulable", message);
    let told = starting(&pod(json!({"phase": "Pending", "conditions": [condition]})));
    assert!(
        told.starts_with("cannot be placed on a node: '0/1 nodes"),
        "{told}"
    );
    let told = failing(&waiting(
        "CreateContainerConfigError",
        "secret \"x\" not found",
    ));
    assert!(told.contains("options that its node refuses"), "{told}");
    let told = starting(&waiting("RunContainerError", "odd\u{1b}[2J"));
    assert!(
        told.starts_with("cannot be started ('RunContainerError'): 'odd"),
        "{told}"
    );
    assert!(!told.contains('\u{1b}'));
}

#[test]
fn ends_and_restarts() {
    let crash = |terminated: Value| {
        let state = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}});
        let more = json!({"lastState": {"terminated": terminated}, "restartCount": 3});
        pod(json!({"phase": "Running", "containerStatuses": [container(state, more)]}))
    };
    let exited = crash(json!({"exitCode": 3, "reason": "Error"}));
    assert_eq!(failing(&exited), "does not stay: it ended with code 3");
    assert_eq!(restarts(&exited), 3);
    let killed = crash(json!({"exitCode": 137, "reason": "OOMKilled"}));
    assert!(failing(&killed).contains("ran out of memory"));
    assert!(restart_reason(&killed).starts_with("ran out of memory"));
    let killed = crash(json!({"exitCode": 137, "reason": "Error"}));
    let told = restart_reason(&killed);
    assert!(
        told.starts_with("was killed (code 137); if it ran out of memory"),
        "{told}"
    );
    let ended = json!({"terminated": {"exitCode": 1, "reason": "Error", "message": "why"}});
    let ended = pod(json!({"containerStatuses": [container(ended, json!({}))]}));
    assert_eq!(starting(&ended), "ended with code 1: 'why'");
    assert_eq!(restart_reason(&pod(json!({}))), "has ended");
    assert_eq!(restarts(&pod(json!({}))), 0);
}

#[test]
fn ended_for_good() {
    let ended = |reason: &str, message: &str| {
        let status = json!({"phase": "Failed", "reason": reason, "message": message});
        match PodState::of(&pod(status)) {
            PodState::Ended(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    let full = "Usage of EmptyDir volume \"work\" exceeds the limit \"1Mi\". ";
    let told = ended("Evicted", full);
    assert!(
        told.starts_with("was evicted: 'Usage of EmptyDir"),
        "{told}"
    );
    assert!(ended("DeadlineExceeded", "").contains("deadline"));
    assert!(ended("NodeLost", "").contains("lost its node"));
    assert_eq!(ended("Odd", "x"), "was ended ('Odd'): 'x'");
    let exited = container(json!({"terminated": {"exitCode": 9}}), json!({}));
    let exited = pod(json!({"phase": "Succeeded", "containerStatuses": [exited]}));
    assert_eq!(PodState::of(&exited).reason(), Some("ended with code 9"));
}

#[test]
fn deletions_and_their_causes() {
    let deleted = |conditions: Value| {
        let up = container(json!({"running": {}}), json!({"ready": true}));
        let mut pod = pod(json!({"conditions": conditions, "containerStatuses": [up]}));
        let time = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        pod.metadata.deletion_timestamp = Some(time);
        match PodState::of(&pod) {
            PodState::Deleting(reason) => reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(deleted(json!([])), "is being deleted");
    for (reason, expected) in [
        ("EvictionByEvictionAPI", "was evicted: 'why'"),
        ("DeletionByTaintManager", "was evicted from its node: 'why'"),
        (
            "PreemptionByScheduler",
            "was evicted for a more important pod: 'why'",
        ),
    ] {
        let condition = condition_of("DisruptionTarget", "True", reason, "why");
        assert_eq!(deleted(json!([condition])), expected);
    }
}

#[test]
fn a_node_that_does_not_answer() {
    let up = container(json!({"running": {}}), json!({"ready": true}));
    let silent = condition_of("Ready", "False", "", "");
    let silent = pod(json!({"conditions": [silent], "containerStatuses": [up]}));
    assert_eq!(
        PodState::of(&silent),
        PodState::Lost("is on the node 'node-1', which does not answer".to_owned())
    );
    // The kubelet ends the pod, such as for its deadline.
    let up = container(json!({"running": {}}), json!({"ready": true}));
    let condition = condition_of("Ready", "False", "PodFailed", "");
    let ending = pod(json!({"conditions": [condition], "containerStatuses": [up]}));
    assert_eq!(PodState::of(&ending), PodState::Running);
    // A probe of an overlay that fails is no such sign.
    let unready = container(json!({"running": {}}), json!({"ready": false}));
    let condition = condition_of("Ready", "False", "ContainersNotReady", "");
    let unready = pod(json!({"conditions": [condition], "containerStatuses": [unready]}));
    assert_eq!(PodState::of(&unready), PodState::Running);
}

#[test]
fn init_containers() {
    let init = |state: Value| {
        let mut init = container(state, json!({}));
        init["name"] = "agent".into();
        let later = container(json!({"waiting": {"reason": "PodInitializing"}}), json!({}));
        pod(json!({"initContainerStatuses": [init], "containerStatuses": [later]}))
    };
    let done = init(json!({"terminated": {"exitCode": 0}}));
    assert_eq!(PodState::of(&done), PodState::Starting(None));
    let missing = init(json!({"waiting": {"reason": "ImagePullBackOff", "message": "no"}}));
    let told = failing(&missing);
    assert!(
        told.contains("the init container agent cannot get the image"),
        "{told}"
    );
    let ended = init(json!({"terminated": {"exitCode": 2, "reason": "Error"}}));
    assert!(starting(&ended).ends_with("agent ended with code 2"));
}

#[test]
fn images_without_a_shell() {
    let runc = "failed to create task: OCI runtime create failed: runc create failed: unable to start container process: exec: \"sh\": executable file not found in $PATH";
    let crun = "executable file `sh` not found in $PATH: No such file or directory";
    for text in [runc, crun] {
        assert!(lacks_shell(&waiting("RunContainerError", text)), "{text}");
        let more = json!({"lastState": {"terminated": {"exitCode": 128, "message": text}}});
        let state = json!({"waiting": {"reason": "CrashLoopBackOff"}});
        let later = pod(json!({"containerStatuses": [container(state, more)]}));
        assert!(lacks_shell(&later), "{text}");
    }
    let other = runc.replace("\"sh\"", "\"/no/such\"");
    assert!(!lacks_shell(&waiting("RunContainerError", &other)));
    assert!(!lacks_shell(&pod(json!({}))));
}
