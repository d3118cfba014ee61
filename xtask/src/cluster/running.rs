//! A cluster that runs: commands in it, its health, its end.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;

use crate::cluster::control_group;
use crate::cluster::daemons;
use crate::cluster::layout::{Layout, NODE};
use crate::cluster::namespace::{self, Namespace, last_line};
use crate::process;
use crate::workspace::Workspace;

/// The variable that tells a test where the cluster's files are.
const DIRECTORY: &str = "TEST_CLUSTER_DIR";

/// Time limit for each thing that is waited for. On a machine that is not busy, each
/// takes a few seconds.
const PATIENCE: Duration = Duration::from_secs(120);

/// The time that an answer may take. A daemon that was paused does not answer at all.
const SOON: &str = "--request-timeout=10s";

/// The time in which the files of ended processes can be removed.
const REMOVAL: Duration = Duration::from_secs(10);

/// A cluster that runs.
#[derive(Debug)]
pub(super) struct Running<'w> {
    workspace: &'w Workspace,
    layout: Layout,
    namespace: Namespace<'w>,
}

impl<'w> Running<'w> {
    pub(super) fn new(workspace: &'w Workspace, layout: &Layout, namespace: Namespace<'w>) -> Self {
        Self {
            workspace,
            layout: layout.clone(),
            namespace,
        }
    }

    /// Returns the cluster that an earlier command has started, if it still runs.
    pub(super) fn find(workspace: &'w Workspace, layout: &Layout) -> Option<Self> {
        let namespace = Namespace::find(workspace, layout)?;
        Some(Self::new(workspace, layout, namespace))
    }

    /// Returns a command that does in the cluster's namespaces what `command` does, and
    /// knows the cluster.
    pub(super) fn inside(&self, command: &Command) -> Result<Command> {
        let mut inside = self.namespace.inside(command)?;
        inside.env("KUBECONFIG", self.layout.kubeconfig());
        inside.env(DIRECTORY, self.layout.directory());
        Ok(inside)
    }

    pub(super) fn kubectl(&self, args: &[&str]) -> Result<Command> {
        self.inside(self.workspace.command(self.layout.kubectl())?.args(args))
    }

    /// Returns a command for containerd, whose images are kept apart for Kubernetes.
    pub(super) fn containerd(&self, args: &[&str]) -> Result<Command> {
        let mut command = self.workspace.command("ctr")?;
        command.args(["--address", &self.layout.socket()]);
        self.inside(command.args(["--namespace", "k8s.io"]).args(args))
    }

    /// Starts daemons with their scripts, as tests do.
    pub(super) fn start(&self, daemons: &[&str]) -> Result<()> {
        for daemon in daemons {
            let mut script = self.inside(&self.workspace.command(self.layout.start(daemon))?)?;
            let status = script.status().context("cannot start nsenter")?;
            ensure!(status.success(), "cannot start {daemon} ({status})");
        }
        Ok(())
    }

    /// Ends a daemon and waits for that.
    pub(super) fn stop(&self, daemon: &str) -> Result<()> {
        if let Some(pid) = self.pid(daemon) {
            let mut kill = self.workspace.command("kill")?;
            process::succeeds(&mut self.inside(kill.args(["-TERM", &pid]))?);
        }
        self.wait(&[], &format!("{daemon} ends"), || {
            Ok(self.pid(daemon).is_none())
        })
    }

    /// Returns the number of a daemon, if it runs.
    pub(super) fn pid(&self, daemon: &str) -> Option<String> {
        let pid = fs::read_to_string(self.layout.pid(daemon)).ok()?;
        let pid = pid.trim();
        (!pid.is_empty() && self.namespace.is_running(pid)).then(|| pid.to_owned())
    }

    /// Whether all daemons run and pods would be started.
    pub(super) fn is_healthy(&self) -> Result<bool> {
        let is_running = |daemon: &&str| self.pid(daemon).is_some();
        Ok(daemons::ALL.iter().all(is_running) && self.is_schedulable()?)
    }

    /// Whether the node takes pods, and pods of the default namespace can be created.
    pub(super) fn is_schedulable(&self) -> Result<bool> {
        let node = format!("node/{NODE}");
        let mut ask = self.kubectl(&["get", "--output=json", &node, "serviceaccount/default"])?;
        Ok(answer(ask.arg(SOON))?.is_some_and(|list| takes_pods(&list)))
    }

    /// Whether a path of the API server answers.
    pub(super) fn answers(&self, path: &str) -> Result<bool> {
        Ok(answer(&mut self.kubectl(&["get", "--raw", path, SOON])?)?.is_some())
    }

    /// Waits until `check` returns `true`. Fails when one of the daemons ends before.
    pub(super) fn wait(
        &self,
        daemons: &[&str],
        condition: &str,
        mut check: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        let is_true = process::wait_for(PATIENCE, || {
            if let Some(ended) = daemons.iter().find(|daemon| self.pid(daemon).is_none()) {
                let log = self.layout.log(ended);
                bail!("{ended} ended: {} (see {log})", last_line(&log));
            }
            check()
        })?;
        let logs = self.layout.beside("log");
        ensure!(
            is_true,
            "{condition}: not after {} s; see {}",
            PATIENCE.as_secs(),
            logs.display()
        );
        Ok(())
    }

    /// Ends the cluster and removes everything of it.
    pub(super) fn end(&mut self) -> Result<()> {
        self.namespace.end()?;
        remove(&self.layout)
    }
}

/// Removes the files and control groups of a cluster that does not run.
pub(super) fn remove(layout: &Layout) -> Result<()> {
    control_group::remove(&layout.control_group())?;
    namespace::remove_made(layout);
    let directory = layout.directory();
    // Mounts of the namespaces may be released a moment after their last process.
    let removed = process::wait_for(REMOVAL, || {
        Ok(!fs::exists(&directory)? || fs::remove_dir_all(&directory).is_ok())
    })?;
    ensure!(removed, "cannot remove {directory}");
    Ok(())
}

/// Returns the output of a command that succeeds. Its complaints are not shown.
fn answer(command: &mut Command) -> Result<Option<String>> {
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .context("cannot start nsenter")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    Ok(output.status.success().then_some(text))
}

/// Whether the node in a list of objects is ready and has no taint. A new node has one
/// for a while after it is ready.
fn takes_pods(list: &str) -> bool {
    let list: Value = serde_json::from_str(list).unwrap_or_default();
    let mut objects = list["items"].as_array().into_iter().flatten();
    let node = objects.find(|object| object["kind"] == "Node");
    let Some(node) = node else {
        return false;
    };
    let mut conditions = node["status"]["conditions"]
        .as_array()
        .into_iter()
        .flatten();
    let is_ready = conditions.any(|it| it["type"] == "Ready" && it["status"] == "True");
    is_ready && node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_with_a_taint_takes_no_pods() {
        let list = |status: &str, taints: Value| {
            let conditions = json!([{"type": "MemoryPressure", "status": "False"},
                                    {"type": "Ready", "status": status}]);
            let node = json!({"kind": "Node", "spec": {"taints": taints},
                              "status": {"conditions": conditions}});
            json!({"kind": "List", "items": [{"kind": "ServiceAccount"}, node]}).to_string()
        };
        assert!(takes_pods(&list("True", Value::Null)));
        assert!(takes_pods(&list("True", json!([]))));
        assert!(!takes_pods(&list("True", json!([{"key": "not-ready"}]))));
        assert!(!takes_pods(&list("False", Value::Null)));
        assert!(!takes_pods("") && !takes_pods(r#"{"items": []}"#));
    }

    #[test]
    fn only_a_command_that_succeeds_answers() {
        let shell = |script: &str| {
            let mut command = Command::new("sh");
            command.args(["-c", script]);
            answer(&mut command).unwrap()
        };
        assert_eq!(shell("echo ok; echo no >&2").as_deref(), Some("ok\n"));
        assert_eq!(shell("echo ok; exit 1"), None);
    }
}
