//! The reaper against a daemon that records its requests: only containers that are
//! proven to be sandboxes are removed.

use backend_docker::{Daemon, leftovers, reap};
use futures::FutureExt as _;
use serde_json::{Value, json};

use crate::support::fake_daemon::{self, Answer, Requests};

/// Starts a daemon that has these containers. Also returns the requests it gets.
async fn start(containers: Vec<Value>) -> (Daemon, Requests) {
    fake_daemon::start(move |method, path| {
        futures::future::ready(respond(&containers, &method, &path)).boxed()
    })
    .await
}

fn respond(containers: &[Value], method: &str, path: &str) -> Answer {
    let listed = |one: &Value| json!({"Id": one["Id"], "Labels": one["Config"]["Labels"], "State": "running", "Created": 1});
    if method == "DELETE" {
        Answer::new(204, "")
    } else if path.ends_with("/version") {
        Answer::new(200, r#"{"ApiVersion":"1.41","Os":"linux"}"#)
    } else if path.ends_with("/containers/json") {
        let all: Vec<_> = containers.iter().map(listed).collect();
        Answer::new(200, json!(all).to_string())
    } else {
        let id = path.rsplit('/').nth(1).unwrap();
        match containers.iter().find(|one| one["Id"] == id) {
            Some(one) if one.get("Gone").is_none() => Answer::new(200, one.to_string()),
            _ => Answer::new(404, r#"{"message":"no such container"}"#),
        }
    }
}

/// A container with the labels of a sandbox whose process is gone, and the log section
/// of its host configuration.
fn container(id: &str, log: Value) -> Value {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap();
    let space = space.to_str().unwrap();
    let space = space.trim_matches(|c: char| !c.is_ascii_digit());
    let labels = json!({
        "agentbox.sandbox": "box",
        "agentbox.nonce": "7",
        "agentbox.disposal": "remove",
        "agentbox.owner": format!("{}:1:{}:{space}", u32::MAX - 9, boot.trim()),
    });
    json!({"Id": id, "Config": {"Labels": labels}, "HostConfig": {"LogConfig": log}})
}

#[tokio::test]
async fn only_what_is_proven_to_be_a_sandbox_is_removed() {
    let log = |nonce: &str| json!({"Type": "none", "Config": {"agentbox.nonce": nonce}});
    let mut vanished = container("vanished", log("7"));
    vanished["Gone"] = true.into();
    let (daemon, requests) = start(vec![
        container("committed", json!({"Type": "json-file", "Config": {}})),
        container("unlogged", Value::Null),
        container("mixed", log("8")),
        vanished,
        container("ours", log("7")),
    ])
    .await;
    let ids = |all: Vec<backend_docker::Leftover>| -> Vec<String> {
        all.into_iter().map(|left| left.id).collect()
    };
    assert_eq!(ids(leftovers(&daemon).await.unwrap()), ["ours"]);
    assert_eq!(ids(reap(&daemon).await.unwrap()), ["ours"]);
    let requests = requests.lock().unwrap();
    let removed: Vec<_> = requests
        .iter()
        .filter(|line| line.starts_with("DELETE "))
        .collect();
    assert_eq!(removed.len(), 1, "{removed:?}");
    assert!(removed[0].contains("/containers/ours?"), "{removed:?}");
}
