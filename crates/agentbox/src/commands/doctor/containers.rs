//! Checks for containers: the daemon, the image, leftovers of earlier runs.

use std::time::Duration;

use backend_docker::{Daemon, DaemonInfo, image};

use super::UsedBackend;
use super::finding::{Finding, IMAGE};
use crate::backend::docker::settings::DockerSettings;
use crate::backend::docker::{self, NeededImage};
use crate::backend::kind::Kind;
use crate::backend::spec::BackendSpec;

/// Time allowed for a daemon to describe itself, or to look for an image.
const DAEMON_TIMEOUT: Duration = Duration::from_secs(5);

/// The first versions in which runc prevents a container from writing to the host
/// through masked paths (CVE-2025-31133 and two similar ones).
const FIXED_RUNC: [[u32; 3]; 2] = [[1, 2, 8], [1, 3, 3]];

pub(super) async fn findings(backend: &UsedBackend) -> Vec<Finding> {
    let is_used = backend.uses(Kind::Docker);
    let finding = Finding::new("docker", "containers").needed(is_used);
    let docker = match DockerSettings::configured(&backend.tables) {
        Ok(docker) => docker,
        Err(failure) => return vec![finding.wrong(&failure)],
    };
    match docker.daemon() {
        Ok(daemon) => of_daemon(&daemon, backend, finding).await,
        Err(failure) => vec![finding.wrong(&failure)],
    }
}

async fn of_daemon(daemon: &Daemon, backend: &UsedBackend, finding: Finding) -> Vec<Finding> {
    let asked = tokio::time::timeout(DAEMON_TIMEOUT, daemon.info()).await;
    let info = match asked {
        Ok(Ok(info)) => info,
        Ok(Err(error)) => return vec![finding.wrong(&error)],
        Err(_) => {
            let found = format!("{} does not answer", daemon.address());
            return vec![finding.missing(found, "restart Docker")];
        }
    };
    let DaemonInfo {
        version,
        api,
        cgroup,
        storage,
        ..
    } = &info;
    let found = format!(
        "version {version} (API {api}, cgroup v{cgroup}, {storage}) at {}",
        daemon.address()
    );
    let mut findings = vec![finding.ok(found)];
    findings.extend(image_finding(daemon, backend).await);
    findings.extend([runc(&info), leftovers(daemon).await]);
    findings
}

/// Looks for the image of the backend, if that creates containers.
async fn image_finding(daemon: &Daemon, backend: &UsedBackend) -> Option<Finding> {
    let spec = BackendSpec::new(backend.spec.as_deref(), &backend.tables).ok()?;
    let needed = docker::needed_image(&spec).ok()??;
    let NeededImage { name, command, .. } = &needed;
    let finding = Finding::new(IMAGE, "containers are made of it");
    let asked = tokio::time::timeout(DAEMON_TIMEOUT, image::is_present(daemon, name)).await;
    Some(match asked {
        Ok(Ok(true)) => finding.ok(name),
        Ok(Ok(false)) => {
            let gets = if needed.is_built { "builds" } else { "fetches" };
            let found = format!("{name} is not on this machine; the first call {gets} it");
            finding.doubtful(found, command)
        }
        Ok(Err(error)) => finding.doubtful(error.chain().to_string(), command),
        Err(_) => finding.doubtful("the daemon does not answer", "restart Docker"),
    })
}

fn runc(info: &DaemonInfo) -> Finding {
    let finding = Finding::new("runc", "keeps containers apart from this machine");
    let version = info.runc.as_str();
    match is_fixed(version) {
        Some(true) => finding.ok(format!("version {version}")),
        Some(false) => finding.doubtful(
            format!("version {version} can be left by what runs in a container (CVE-2025-31133)"),
            "install runc 1.2.8, 1.3.3 or newer, unless your distribution has mended this one",
        ),
        None => finding.doubtful(
            "its version is unknown",
            "see that it is 1.2.8, 1.3.3 or newer: docker version",
        ),
    }
}

/// Returns `true` if the known container escapes are fixed in a version.
fn is_fixed(version: &str) -> Option<bool> {
    let mut numbers = version.split(|c: char| !c.is_ascii_digit());
    let mut next = || numbers.next()?.parse().ok();
    let version: [u32; 3] = [next()?, next()?, next().unwrap_or(0)];
    let [old, new] = FIXED_RUNC;
    let fixed = if version < [1, 3, 0] { old } else { new };
    Some(version >= fixed)
}

async fn leftovers(daemon: &Daemon) -> Finding {
    let finding = Finding::new("leftovers", "containers of programs that crashed");
    match backend_docker::leftovers(daemon).await {
        Ok(found) if found.is_empty() => finding.ok("there are none"),
        Ok(found) => finding.doubtful(
            format!("there are {}", found.len()),
            "remove them with agentbox sandboxes reap; the next container that is started does so too",
        ),
        Err(error) => finding.doubtful(error.chain().to_string(), "look at docker ps --all"),
    }
}

#[cfg(test)]
mod tests {
    use super::is_fixed;

    #[test]
    fn versions_of_runc_are_told_apart() {
        for (version, mended) in [
            ("1.1.5+ds1", Some(false)),
            ("1.2.7", Some(false)),
            ("1.2.8", Some(true)),
            ("1.2.8-rc.1", Some(true)),
            ("1.3.2", Some(false)),
            ("1.3.3", Some(true)),
            ("1.4.0", Some(true)),
            ("2.0", Some(true)),
            ("", None),
            ("unknown", None),
        ] {
            assert_eq!(is_fixed(version), mended, "{version}");
        }
    }
}
