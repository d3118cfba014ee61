//! The reaper against a daemon that records its requests: only containers that are
//! proven to be sandboxes are removed.

use std::sync::{Arc, Mutex};

use backend_docker::{Daemon, leftovers, reap};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

type Requests = Arc<Mutex<Vec<String>>>;

/// Starts a daemon that has these containers. Also returns the requests it gets.
async fn start(containers: Vec<Value>) -> (Daemon, Requests) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    let requests = Requests::default();
    let seen = Arc::clone(&requests);
    let containers = Arc::new(containers);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(answer(stream, Arc::clone(&containers), Arc::clone(&seen)));
        }
    });
    (Daemon::at(&address).unwrap(), requests)
}

async fn answer(mut stream: TcpStream, containers: Arc<Vec<Value>>, seen: Requests) {
    let mut head = Vec::new();
    while !head.windows(4).any(|it| it == b"\r\n\r\n") {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => head.extend_from_slice(&buffer[..count]),
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let line = head.lines().next().unwrap().to_owned();
    let target = line.split(' ').nth(1).unwrap();
    let (path, _) = target.split_once('?').unwrap_or((target, ""));
    let listed = |one: &Value| json!({"Id": one["Id"], "Labels": one["Config"]["Labels"], "State": "running", "Created": 1});
    let (status, body) = if line.starts_with("DELETE ") {
        (204, String::new())
    } else if path.ends_with("/version") {
        (200, r#"{"ApiVersion":"1.41","Os":"linux"}"#.to_owned())
    } else if path.ends_with("/containers/json") {
        let all: Vec<_> = containers.iter().map(listed).collect();
        (200, json!(all).to_string())
    } else {
        let id = path.rsplit('/').nth(1).unwrap();
        match containers.iter().find(|one| one["Id"] == id) {
            Some(one) if one.get("Gone").is_none() => (200, one.to_string()),
            _ => (404, r#"{"message":"no such container"}"#.to_owned()),
        }
    };
    seen.lock().unwrap().push(line);
    let head = format!(
        "HTTP/1.1 {status} X\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
    let _ = stream.shutdown().await;
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
