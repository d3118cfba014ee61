//! Brings a cluster up: from nothing to a node that takes pods.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context as _, Result, ensure};

use crate::cluster::daemons::{self, APISERVER, CONTAINERD, CONTROLLERS, ETCD, KUBELET, SCHEDULER};
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

/// Starts a cluster with the images of `archives`. Of an earlier one, nothing is left.
pub(super) fn start<'w>(
    workspace: &'w Workspace,
    layout: &Layout,
    kube: &Path,
    archives: &[PathBuf],
    lifetime: Lifetime,
) -> Result<Running<'w>> {
    scratch::empty(&layout.beside("log"))?;
    for directory in DIRECTORIES {
        fs::create_dir_all(layout.path(directory))?;
    }
    certificates::make(layout)?;
    configuration::write(layout)?;
    daemons::write_scripts(layout, kube)?;
    control_group::make(&layout.control_group())?;
    let namespace = Namespace::start(workspace, layout, lifetime)?;
    let running = Running::new(workspace, layout, namespace);
    running.start(&FIRST)?;
    running.wait(&FIRST, "containerd answers", || {
        Ok(process::succeeds(&mut running.containerd(&["version"])?))
    })?;
    // The images are loaded while the API server starts.
    let loading = archives
        .iter()
        .map(|archive| load(&running, archive))
        .collect::<Result<Vec<_>>>()?;
    running.wait(&FIRST, "the API server is ready", || {
        running.answers("/readyz")
    })?;
    running.start(&[CONTROLLERS, SCHEDULER, KUBELET])?;
    for (mut child, archive) in loading.into_iter().zip(archives) {
        ensure!(child.wait()?.success(), "cannot load {}", archive.display());
    }
    running.wait(&daemons::ALL, "the node takes pods", || {
        running.is_schedulable()
    })?;
    Ok(running)
}

/// Begins to load an image.
fn load(running: &Running<'_>, archive: &Path) -> Result<Child> {
    let mut command = running.containerd(&["images", "import"])?;
    command
        .arg(archive)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command.spawn().context("cannot start nsenter")
}
