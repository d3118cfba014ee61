//! What is around: container engines, clusters, and what clients are made of.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use super::Finding;

/// How long an engine may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(2);

const NOT_YET: &str = "this version has no backend for it";

pub(super) async fn findings() -> Vec<Finding> {
    vec![
        docker().await,
        kubernetes(),
        program("python3", "MCP clients in Python"),
        program("node", "MCP clients in JavaScript"),
    ]
}

#[expect(
    clippy::disallowed_methods,
    reason = "the program looks where others are told to look"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

async fn docker() -> Finding {
    let finding = Finding::new("docker", "containers");
    let host = variable("DOCKER_HOST");
    let socket = match host.as_deref() {
        None => "/var/run/docker.sock",
        Some(host) => match host.strip_prefix("unix://") {
            Some(socket) => socket,
            None => {
                return finding.missing(
                    format!("DOCKER_HOST is {host}, which is not looked at"),
                    "set DOCKER_HOST to unix:///path/of/docker.sock",
                );
            }
        },
    };
    let answer = tokio::time::timeout(PATIENCE, ping(socket)).await;
    match answer {
        Ok(Ok(true)) => finding.ok(format!("answers at {socket}; {NOT_YET}")),
        Ok(Ok(false)) => finding.missing(
            format!("{socket} answers, but not like Docker"),
            "look at docker version",
        ),
        Ok(Err(error)) => finding.missing(
            format!("{socket}: {error}"),
            "install and start Docker, and let your user reach its socket",
        ),
        Err(_) => finding.missing(format!("{socket} does not answer"), "restart Docker"),
    }
}

/// Whether Docker listens there.
async fn ping(socket: &str) -> std::io::Result<bool> {
    let mut stream = UnixStream::connect(socket).await?;
    let request = b"GET /_ping HTTP/1.0\r\nHost: docker\r\n\r\n";
    stream.write_all(request).await?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer
        .lines()
        .next()
        .is_some_and(|line| line.contains(" 200 ")))
}

fn kubernetes() -> Finding {
    let finding = Finding::new("kubernetes", "pods of a cluster");
    let inside = Path::new("/var/run/secrets/kubernetes.io/serviceaccount/token");
    if inside.exists() {
        return finding.ok(format!("this machine is in a cluster; {NOT_YET}"));
    }
    let named = variable("KUBECONFIG").map(PathBuf::from);
    let usual = variable("HOME").map(|home| Path::new(&home).join(".kube/config"));
    match named.or(usual) {
        Some(config) if config.is_file() => {
            finding.ok(format!("configured in {}; {NOT_YET}", config.display()))
        }
        _ => finding.missing(
            "there is no configuration",
            "put one to ~/.kube/config, or set KUBECONFIG",
        ),
    }
}

fn program(name: &'static str, purpose: &'static str) -> Finding {
    let finding = Finding::new(name, purpose);
    let path = variable("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).map(|directory| directory.join(name));
    let found = places.find(|place| {
        let found = place.metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    });
    match found {
        Some(place) => finding.ok(place.display().to_string()),
        None => finding.missing("is not in PATH", format!("install {name} if you need it")),
    }
}
