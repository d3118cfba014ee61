//! What is around: clusters, and what clients are made of.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::Finding;

const NOT_YET: &str = "this version has no backend for it";

pub(super) fn findings() -> Vec<Finding> {
    vec![
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
