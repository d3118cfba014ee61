//! Brings a cluster up: from nothing to a node that takes pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::cluster::binary::Programs;
use crate::cluster::daemons::{
    self, AGENT_SANDBOX, APISERVER, CONTAINERD, CONTROLLERS, ETCD, KUBELET, SCHEDULER,
};
use crate::cluster::layout::Layout;
use crate::cluster::namespace::{Lifetime, Namespace};
use crate::cluster::running::Running;
use crate::cluster::{certificates, configuration, control_group};
use crate::workspace::Workspace;
use crate::{process, scratch};

/// The directories of a cluster that its daemons do not make themselves.
const DIRECTORIES: &[&str] = &[
    "certificates",
    "covers",
    "kubelet",
    "network",
    "pids",
    "pod-logs",
    "start",
    "volume-plugins",
];

/// The daemons that the others need.
const FIRST: [&str; 3] = [CONTAINERD, ETCD, APISERVER];

/// Starts a cluster with images, given by their names and archives. Of an earlier one, nothing is left.
pub(super) fn start<'w>(
    workspace: &'w Workspace,
    layout: &Layout,
    programs: &Programs,
    images: &[(&'static str, PathBuf)],
    lifetime: Lifetime,
) -> Result<Running<'w>> {
    scratch::empty(&layout.beside("log"))?;
    for directory in DIRECTORIES {
        fs::create_dir_all(layout.path(directory))?;
    }
    certificates::make(layout)?;
    configuration::write(layout)?;
    daemons::write_scripts(layout, programs)?;
    control_group::make(&layout.control_group())?;
    let namespace = Namespace::start(workspace, layout, lifetime)?;
    let running = Running::new(workspace, layout, namespace);
    running.start(&FIRST)?;
    wait_for_containerd(&running)?;
    forget_containers(&running)?;
    // The images are loaded while the API server starts.
    let loading = load_missing(&running, images)?;
    running.wait(&FIRST, "the API server is ready", || {
        running.answers("/readyz")
    })?;
    running.start(&[CONTROLLERS, SCHEDULER, KUBELET])?;
    // The node needs longer than this.
    define_kinds(&running, &programs.definitions())?;
    running.start(&[AGENT_SANDBOX])?;
    for (name, mut child) in loading {
        ensure!(child.wait()?.success(), "cannot load {name}");
    }
    running.wait(&daemons::ALL, "the node takes pods", || {
        running.is_schedulable()
    })?;
    Ok(running)
}

fn wait_for_containerd(running: &Running<'_>) -> Result<()> {
    running.wait(&FIRST, "containerd answers", || {
        Ok(process::succeeds(&mut running.containerd(&["version"])?))
    })
}

/// Removes what containerd still knows of containers of earlier clusters.
fn forget_containers(running: &Running<'_>) -> Result<()> {
    let known = process::output(&mut running.containerd(&["containers", "list", "--quiet"])?)?;
    if known.is_empty() {
        return Ok(());
    }
    let mut remove = running.containerd(&["containers", "rm"])?;
    process::output(remove.args(known.lines()))?;
    // It has read them when it started.
    running.stop(CONTAINERD)?;
    running.start(&[CONTAINERD])?;
    wait_for_containerd(running)
}

/// Makes the API server know the kinds of agent-sandbox, which otherwise looks for them
/// only every ten seconds.
fn define_kinds(running: &Running<'_>, definitions: &Path) -> Result<()> {
    let mut create = running.kubectl(&["create", "--validate=false", "--filename"])?;
    process::output(create.arg(definitions)).context("agent-sandbox was not installed")?;
    let mut wait = running.kubectl(&["wait", "--for=condition=Established", "--timeout=60s"])?;
    process::output(wait.arg("--filename").arg(definitions))
        .context("the kinds of agent-sandbox are not known")?;
    Ok(())
}

/// Begins to load the images that are not there yet.
fn load_missing(
    running: &Running<'_>,
    images: &[(&'static str, PathBuf)],
) -> Result<Vec<(&'static str, Child)>> {
    let present = process::output(&mut running.containerd(&["images", "list", "--quiet"])?)?;
    let mut loading = Vec::new();
    for (name, archive) in images {
        if !is_present(&present, name) {
            let mut command = running.containerd(&["images", "import"])?;
            command
                .arg(archive)
                .stdin(Stdio::null())
                .stdout(Stdio::null());
            loading.push((*name, command.spawn().context("cannot start nsenter")?));
        }
    }
    Ok(loading)
}

/// Whether an image is in a list of containerd, which knows no short names.
fn is_present(list: &str, name: &str) -> bool {
    let mut names = list.lines();
    names.any(|listed| listed.strip_prefix("docker.io/") == Some(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_present_by_its_whole_name() {
        let list = "docker.io/agentbox-test/busybox:1\nsha256:0123\n";
        assert!(is_present(list, "agentbox-test/busybox:1"));
        assert!(!is_present(list, "agentbox-test/busybox:12"));
        assert!(!is_present(list, "busybox:1"));
    }
}
