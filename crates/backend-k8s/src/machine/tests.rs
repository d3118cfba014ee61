//! The life of a pod on a cluster that is played by a function.

use std::sync::Arc;

use backend_core::ErrorKind;
use sandbox_shell::Mode;
use serde_json::{Value, json};

use super::*;
use crate::builder::K8sBuilder;
use crate::labels::{CONTAINER, MANAGED_BY, MANAGER, SANDBOX};
use crate::options::Network;
use crate::pods::tests::{Answer, Asked, cluster_of};
use crate::sandbox::K8sSandbox;

/// The pods of a cluster, of which there is one at most.
#[derive(Debug, Default)]
struct World {
    pod: Option<Value>,
    /// Looks at the pod.
    looks: u64,
    /// Pods that were created.
    created: u64,
    /// The status of new pods.
    status: Value,
    /// Network policies that were created.
    policies: u64,
    /// Looks at a pod that are not answered. Then it runs.
    unanswered: u64,
    /// Whether the answer to a creation is lost.
    loses: bool,
    /// Whether a creation is answered as if it was repeated.
    repeats: bool,
}

type Shared = Arc<Mutex<World>>;

/// A change of the options.
type Change = fn(K8sBuilder) -> K8sBuilder;

fn status(restarts: i32, state: Value, last: Value) -> Value {
    let container = json!({
        "name": CONTAINER, "image": "image:1", "imageID": "", "ready": true,
        "restartCount": restarts, "state": state, "lastState": last,
    });
    json!({"phase": "Running", "containerStatuses": [container]})
}

fn up() -> Value {
    status(0, json!({"running": {}}), json!({}))
}

fn answer(world: &Shared, asked: &Asked) -> Answer {
    let mut world = lock(world);
    let path = asked.target.split('?').next().unwrap();
    let name = path.split("/pods/").nth(1);
    match (&*asked.method, name) {
        ("GET", Some(_)) if world.unanswered > 0 && world.pod.is_some() => {
            world.unanswered -= 1;
            if let Some(pod) = &mut world.pod {
                pod["status"] = up();
            }
            Answer::Lost
        }
        ("GET", Some(_)) => {
            world.looks += 1;
            world.pod.clone().map_or(Answer::Refused(404), Answer::Json)
        }
        ("DELETE", Some(_)) => match world.pod.take() {
            Some(pod) => Answer::Json(pod),
            None => Answer::Refused(404),
        },
        ("POST", None) if path.ends_with("/networkpolicies") => {
            world.policies += 1;
            Answer::Json(asked.body.clone())
        }
        ("POST", None) if world.pod.is_some() => Answer::Refused(409),
        ("POST", None) => {
            world.created += 1;
            let mut pod = asked.body.clone();
            pod["metadata"]["uid"] = format!("uid-{}", world.created).into();
            pod["metadata"]["resourceVersion"] = "7".into();
            let is_brought = pod["spec"].get("initContainers").is_some();
            pod["status"] = if is_brought {
                up()
            } else {
                world.status.clone()
            };
            world.pod = Some(pod.clone());
            match (world.loses, world.repeats) {
                (true, _) => Answer::Lost,
                (_, true) => Answer::Refused(409),
                _ => Answer::Json(pod),
            }
        }
        ("GET", None) if asked.target.contains("watch=true") => Answer::Never,
        ("GET", None) => Answer::Json(json!({
            "apiVersion": "v1", "kind": "PodList",
            "metadata": {"resourceVersion": "7"}, "items": [],
        })),
        _ => Answer::Refused(400),
    }
}

/// Returns the machine of a builder, and the cluster that it is on.
fn machine(change: impl FnOnce(K8sBuilder) -> K8sBuilder) -> (K8sMachine, Shared) {
    let world: Shared = Arc::default();
    lock(&world).status = up();
    let played = Arc::clone(&world);
    let (cluster, _) = cluster_of(move |asked| answer(&played, asked));
    let builder = K8sSandbox::builder()
        .cluster(cluster.clone())
        .image("image:1")
        .network(Network::Open)
        .reap_leftovers(false)
        .mode(Mode::Portable);
    let valid = change(builder).settings.validate().unwrap();
    let name = valid.settings.name.clone();
    let config = MachineConfig {
        cluster,
        name: name.unwrap_or_else(|| "box".to_owned()),
        working_dir: valid.working_dir,
        uid: None,
        foreign: false,
        agents: Agents::default(),
        start_timeout: valid.settings.start_timeout(),
        grace: valid.settings.grace(),
        recipe: Some(Recipe {
            settings: valid.settings,
            image: valid.image,
        }),
    };
    (K8sMachine::new(config), world)
}

fn unavailable(result: Result<()>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    error.message().to_owned()
}

/// The id of the pod that a machine is bound to.
fn uid(machine: Result<K8sMachine>) -> String {
    machine.unwrap().0.config.uid.clone().unwrap()
}

#[tokio::test]
async fn a_pod_is_made_on_demand_and_not_anew_unasked() {
    let (machine, world) = machine(|builder| builder);
    assert!(!machine.is_alive().await.unwrap());
    machine.start().await.unwrap();
    machine.start().await.unwrap();
    assert!(machine.is_alive().await.unwrap());
    assert_eq!(lock(&world).created, 1);
    lock(&world).pod = None;
    assert!(unavailable(machine.start().await).contains("was deleted"));
    assert!(!machine.is_alive().await.unwrap());
    let told = machine.diagnose().await.unwrap();
    assert!(told.message().contains("started again"), "{told}");
    machine.start_explicit().await.unwrap();
    assert_eq!(lock(&world).created, 2);
    machine.stop(StopMode::Purge).await.unwrap();
    assert!(lock(&world).pod.is_none());
    machine.start().await.unwrap();
    assert_eq!(lock(&world).created, 3, "this object has deleted it");
}

#[tokio::test]
async fn a_stop_that_keeps_leaves_the_pod_unless_its_files_are_on_a_claim() {
    let (machine, world) = machine(|builder| builder);
    machine.start().await.unwrap();
    machine.stop(StopMode::Keep).await.unwrap();
    assert!(!machine.is_alive().await.unwrap());
    assert!(lock(&world).pod.is_some());
    machine.start().await.unwrap();
    assert!(machine.is_alive().await.unwrap());
    assert_eq!(lock(&world).created, 1);

    let claim = crate::options::Volume::claim("files", "/workspace");
    let (machine, world) = self::machine(|builder| builder.volume(claim));
    machine.start().await.unwrap();
    machine.stop(StopMode::Keep).await.unwrap();
    assert!(lock(&world).pod.is_none());
    machine.start().await.unwrap();
    lock(&world).pod = None;
    let told = machine.diagnose().await.unwrap();
    assert!(told.message().contains("files are kept"), "{told}");
    machine.start().await.unwrap();
    assert_eq!(lock(&world).created, 3);
}

#[tokio::test]
async fn restarts_are_told_with_their_reason() {
    let (machine, world) = machine(|builder| builder);
    machine.start().await.unwrap();
    assert!(machine.diagnose().await.is_none());
    let run = machine.current_run();
    let last = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let restarted = status(1, json!({"running": {}}), last);
    lock(&world).pod.as_mut().unwrap()["status"] = restarted;
    let told = machine.diagnose().await.unwrap();
    assert!(
        told.message()
            .contains("was restarted: it ran out of memory"),
        "{told}"
    );
    // All that can be written to is a volume, which outlives the restart.
    machine.start().await.unwrap();
    assert_ne!(machine.current_run(), run);
    assert!(machine.diagnose().await.is_none());
    // Also to a command that ran before, after another call has noticed the restart.
    let judged = machine.judge_exit(Ok(137), run.clone()).await;
    let told = unavailable(judged.map(drop));
    assert!(told.contains("ran out of memory"), "{told}");
    // But not that of another pod in its place.
    {
        let mut world = lock(&world);
        world.status = world.pod.take().unwrap()["status"].clone();
    }
    machine.start_explicit().await.unwrap();
    let told = unavailable(machine.judge_exit(Ok(137), run).await.map(drop));
    assert!(told.contains("ended while the command ran"), "{told}");
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_fails_for_a_moment_does_not_hide_the_reason() {
    let (machine, world) = machine(|builder| builder);
    machine.start().await.unwrap();
    {
        let mut world = lock(&world);
        let pod = world.pod.as_mut().unwrap();
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        world.unanswered = 2;
    }
    let told = machine.diagnose().await.unwrap();
    assert!(told.message().contains("is being deleted"), "{told}");
    lock(&world).unanswered = u64::MAX;
    let asked = Instant::now();
    let told = machine.diagnose().await.unwrap();
    assert!(told.message().contains("does not answer"), "{told}");
    assert!(asked.elapsed() < 2 * LOOK_TIMEOUT);
}

#[tokio::test]
async fn a_restart_that_lost_files_is_told_once() {
    let relaxation = crate::options::Relaxation::WritableRoot;
    let (machine, world) = machine(|builder| builder.relax(relaxation));
    machine.start().await.unwrap();
    let restarted = status(1, json!({"running": {}}), json!({}));
    lock(&world).pod.as_mut().unwrap()["status"] = restarted;
    let told = unavailable(machine.start().await);
    assert!(
        told.contains("files outside its volumes are gone"),
        "{told}"
    );
    machine.start().await.unwrap();
}

#[tokio::test]
async fn a_name_that_is_taken() {
    let named = |builder: K8sBuilder| builder.name("box");
    let (first, world) = machine(named);
    first.start().await.unwrap();
    let pod = lock(&world).pod.clone();
    let taken = |pod: Option<Value>, change: Change| async move {
        let (machine, world) = machine(change);
        lock(&world).pod = pod;
        machine.start().await
    };
    taken(pod.clone(), |builder| builder.name("box"))
        .await
        .unwrap();
    let cases: [(Change, &str); 2] = [
        (|builder| builder.name("box").env("A", "b"), "other options"),
        (
            |builder| builder.name("box").exclusive(true),
            "exists already",
        ),
    ];
    for (change, expected) in cases {
        let error = taken(pod.clone(), change).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains(expected), "{error}");
    }
    let foreign = pod.map(|mut pod| {
        pod["metadata"]["labels"] = json!({MANAGED_BY: MANAGER, SANDBOX: "other"});
        pod
    });
    let error = taken(foreign, |builder| builder.name("box"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("not a sandbox"), "{error}");
}

#[tokio::test]
async fn a_creation_without_an_answer_proves_nothing() {
    let changes: [Change; 2] = [
        |builder| builder.name("box"),
        |builder| builder.name("box").exclusive(true),
    ];
    for change in changes {
        let (machine, world) = machine(change);
        lock(&world).loses = true;
        unavailable(machine.start().await);
        machine.start().await.unwrap();
        assert_eq!(lock(&world).created, 1, "its own is used");

        let (machine, world) = self::machine(change);
        lock(&world).loses = true;
        unavailable(machine.start().await);
        // Another process was faster, or has made it since.
        let mut other = lock(&world).pod.clone().unwrap();
        other["metadata"]["labels"] = json!({});
        other["metadata"]["annotations"] = json!({});
        lock(&world).pod = Some(other);
        let error = machine.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

#[tokio::test]
async fn a_creation_that_was_repeated_is_no_other_pod() {
    let (machine, world) = machine(|builder| builder.name("box").exclusive(true));
    lock(&world).repeats = true;
    assert_eq!(uid(machine.create_new().await), "uid-1");
    assert!(lock(&world).pod.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_was_just_seen_is_not_looked_at_again() {
    let (machine, world) = machine(|builder| builder.name("box").exclusive(true));
    let looks = || std::mem::take(&mut lock(&world).looks);
    let bound = machine.create_new().await.unwrap();
    looks();
    // As when a sandbox is started, and then its agent.
    bound.start_explicit().await.unwrap();
    bound.start().await.unwrap();
    assert_eq!(looks(), 0, "it was just created");
    assert!(bound.current_run().is_some_and(|run| run.uid == "uid-1"));
    bound.start().await.unwrap();
    assert_eq!(looks(), 1, "once only");
    bound.start_explicit().await.unwrap();
    bound.start_explicit().await.unwrap();
    assert_eq!(looks(), 2, "a start that is asked for looks");
    bound.start().await.unwrap();
    assert_eq!(looks(), 0);

    let config = &bound.0.config;
    let pod: Pod = serde_json::from_value(lock(&world).pod.clone().unwrap()).unwrap();
    let attached = || K8sMachine::attached(config.clone(), &pod);
    attached().start().await.unwrap();
    assert_eq!(looks(), 0, "it was just read");
    let late = attached();
    tokio::time::advance(Duration::from_secs(2)).await;
    late.start().await.unwrap();
    assert_eq!(looks(), 1, "that was a while ago");
    late.start_explicit().await.unwrap();
    looks();
    late.0.state().suspect_until = Some(Instant::now());
    late.start().await.unwrap();
    assert_eq!(looks(), 1, "a stream has ended since");

    let mut ended = pod.clone();
    ended.status = None;
    K8sMachine::attached(config.clone(), &ended)
        .start()
        .await
        .unwrap();
    assert_eq!(looks(), 1, "it did not run");
}

#[tokio::test]
async fn a_pod_that_the_policy_does_not_select_is_not_one_without_a_network() {
    let named = |builder: K8sBuilder| builder.name("box");
    let (first, world) = machine(named);
    first.start().await.unwrap();
    for label in ["none", "other"] {
        let mut pod = lock(&world).pod.clone().unwrap();
        pod["metadata"]["labels"][crate::labels::NETWORK] = label.into();
        let (second, world) = machine(named);
        lock(&world).pod = Some(pod);
        let error = second.start().await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

#[tokio::test]
async fn the_policy_is_made_sure_of_before_a_pod_is_used() {
    let named = |builder: K8sBuilder| builder.name("box").network(Network::None);
    let (first, world) = machine(named);
    first.start().await.unwrap();
    assert_eq!(lock(&world).policies, 1);
    let pod = lock(&world).pod.clone();
    let (second, world) = machine(named);
    lock(&world).pod = pod;
    second.start().await.unwrap();
    let world = lock(&world);
    assert_eq!((world.created, world.policies), (0, 1));
}

#[tokio::test]
async fn a_new_one_is_never_one_that_exists() {
    let (first, world) = machine(|builder| builder.name("box").exclusive(true));
    assert_eq!(uid(first.create_new().await), "uid-1");
    let pod = lock(&world).pod.clone();
    let (second, world) = machine(|builder| builder.name("box").exclusive(true));
    lock(&world).pod = pod;
    let error = second.create_new().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(lock(&world).pod.is_some());
}

#[tokio::test]
async fn a_pod_that_does_not_start_is_deleted_and_the_reason_told() {
    let (machine, world) = machine(|builder| builder);
    let waiting = json!({"waiting": {"reason": "ErrImageNeverPull", "message": "not present"}});
    lock(&world).status = status(0, waiting, json!({}));
    let told = unavailable(machine.start().await);
    assert!(
        told.contains("cannot get the image 'image:1': 'not present'"),
        "{told}"
    );
    assert!(lock(&world).pod.is_none());
    // Nothing of its own exists, so the next call tries again.
    lock(&world).status = up();
    machine.start().await.unwrap();
}

#[tokio::test]
async fn a_cluster_or_a_node_that_is_busy_does_not_end_a_start() {
    let mut lost = up();
    lost["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    for status in [json!({"phase": "Pending"}), lost] {
        let (machine, world) = machine(|builder| builder);
        lock(&world).status = status.clone();
        lock(&world).unanswered = 1;
        machine.start().await.unwrap();
        let world = lock(&world);
        assert_eq!((world.created, world.unanswered), (1, 0), "{status}");
        assert!(world.pod.is_some(), "{status}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_that_takes_too_long_is_deleted_and_the_reason_told() {
    let (machine, world) = machine(|builder| builder);
    lock(&world).status = json!({"phase": "Pending", "conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable",
        "message": "0/1 nodes are available",
    }]});
    let told = unavailable(machine.start().await);
    assert!(told.contains("cannot be placed on a node"), "{told}");
    assert!(told.contains("120 s"), "{told}");
    assert!(lock(&world).pod.is_none());
}

#[tokio::test]
async fn an_image_without_a_shell_gets_the_agent_from_an_init_container() {
    let message = "exec: \"sh\": executable file not found in $PATH";
    let waiting = json!({"waiting": {"reason": "RunContainerError", "message": message}});
    let without = || status(0, waiting.clone(), json!({}));
    let (machine, world) = machine(|builder| builder.image("no-shell:1"));
    lock(&world).status = without();
    let error = machine.start().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    assert!(error.message().contains("agent_image"), "{error}");
    assert!(lock(&world).pod.is_none());

    let brought = |builder: K8sBuilder| {
        let builder = builder.image("no-shell:2").mode(Mode::Agent);
        builder.agent_image("agent:1")
    };
    for created in [2, 1] {
        let (machine, world) = self::machine(brought);
        lock(&world).status = without();
        machine.start().await.unwrap();
        let world = lock(&world);
        assert_eq!(world.created, created, "the image is remembered");
        let init = &world.pod.as_ref().unwrap()["spec"]["initContainers"][0];
        assert_eq!(init["image"], "agent:1");
    }
}

#[tokio::test]
async fn nothing_is_made_after_the_last_clone_is_gone() {
    let (machine, world) = machine(|builder| builder);
    assert!(machine.close().is_none(), "nothing was asked for");
    assert!(unavailable(machine.start().await).contains("dropped"));
    assert_eq!(lock(&world).created, 0);
    let (machine, world) = self::machine(|builder| builder);
    machine.start().await.unwrap();
    machine.close().unwrap().await.unwrap();
    assert!(lock(&world).pod.is_none());
}
