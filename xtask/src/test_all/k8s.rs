//! Stage `k8s`: tests that need a real Kubernetes cluster.
//!
//! Such tests are in modules `k8s_*`, are marked as ignored, and read the variables that
//! are set here and by [`crate::cluster`]. They are built first and run inside the
//! cluster's namespaces. Those that kill its daemons are in modules `k8s_alone_*` and run
//! last, one at a time. Tests must remove the objects that they create, and the stage checks
//! that.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::agent;
use crate::cluster::Cluster;
use crate::dist;
use crate::images::{BUSYBOX, PYTHON};
use crate::process;
use crate::scratch::Scratch;
use crate::test_all::cargo::{TestProgram, TestRun, cargo, run_tests};
use crate::test_all::clients::{self, Sandboxes};
use crate::test_all::stage::{Ctx, Outcome};

/// Programs that are installed for this stage. A cluster of others needs none of them.
pub(super) const TOOLS: &[&str] = &[
    "/usr/lib/cni/bridge",
    "busybox",
    "containerd",
    "ctr",
    "debootstrap",
    "ip",
    "runc",
];

/// Beginning of the names of modules with such tests.
const MODULES: &str = "k8s_";

/// The same of tests that no other one can run beside. They are kept apart, because each
/// would wait for all others that have begun, and these would wait for it.
const ALONE: &str = "k8s_alone_";

/// The variables that name the images of the tests. For a cluster of others they have to
/// be set, because it cannot be given images. That also keeps the tests away from
/// clusters that are not meant for them.
const BUSYBOX_VARIABLE: &str = "TEST_IMAGE_BUSYBOX";
const PYTHON_VARIABLE: &str = "TEST_IMAGE_PYTHON";
const AGENT_VARIABLE: &str = "TEST_IMAGE_AGENT";

/// Objects that tests create and remove, and the label that ours have.
const OBJECTS: &str = "pods,persistentvolumeclaims,persistentvolumes,namespaces";
const LABEL: &str = "app.kubernetes.io/managed-by=agentbox";

/// More tests at once than processors: most of the time they wait for the cluster.
const TEST_THREADS: &str = "--test-threads=4";
const ONE_THREAD: &str = "--test-threads=1";

/// The time that deleted objects get to be gone. Namespaces are left alone by the cluster
/// for the first five seconds.
const REMOVAL: Duration = Duration::from_secs(60);

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let obstacle = if Cluster::is_given() {
        unnamed_image(|name| env::var_os(name).is_some())
    } else {
        Cluster::obstacle(&ctx.workspace, ctx.is_full)?
    };
    if let Some(obstacle) = obstacle {
        return Ok(Outcome::Skipped(obstacle));
    }
    let programs = TestProgram::build(cargo(ctx, "test", &["--test", "it"])?)?;
    let mut tests = Vec::new();
    for program in &programs {
        let modules = program.ignored_modules(ctx, MODULES)?;
        if !modules.is_empty() {
            tests.push((program, modules));
        }
    }
    ensure!(!tests.is_empty(), "there is no test in a module {MODULES}*");
    let agent = agent::build(&ctx.workspace, None)?;
    let cluster = Cluster::start(&ctx.workspace)?;
    let archives = Scratch::temporary("agent-image")?;
    let archive = archives.join("agent.tar");
    fs::write(&archive, dist::pack_agent_image(&agent)?)?;
    cluster.load_image(&archive)?;
    let before = objects(&cluster)?;
    let mut run = TestRun::default();
    for is_alone in [false, true] {
        for (program, modules) in &tests {
            let filters = filters(modules, is_alone);
            if filters.is_empty() {
                continue;
            }
            let threads = if is_alone { ONE_THREAD } else { TEST_THREADS };
            let mut command = program.command(ctx)?;
            command.args(["--ignored", threads]).args(filters);
            prepare(&mut command, &agent.path);
            run = run.and(run_tests(&mut cluster.inside(command)?)?);
        }
    }
    let outcome = match converse(ctx, &cluster, &agent.path) {
        Ok(()) => run.outcome(),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    };
    let mut left = BTreeSet::new();
    process::wait_for(REMOVAL, || {
        left = &objects(&cluster)? - &before;
        Ok(left.is_empty())
    })?;
    Ok(unless_left(outcome, &left))
}

/// Returns the arguments that select the tests of modules: those that run alone, or the
/// others.
fn filters(modules: &BTreeSet<String>, is_alone: bool) -> Vec<String> {
    let modules = modules.iter();
    let selected = modules.filter(|module| module.starts_with(ALONE) == is_alone);
    selected.map(|module| format!("{module}::")).collect()
}

/// Runs the scripted conversation in pods. Its files are in a directory of this machine,
/// which only the nodes of our own cluster have.
fn converse(ctx: &Ctx, cluster: &Cluster<'_>, agent: &Path) -> Result<()> {
    if let Cluster::Given(_) = cluster {
        return Ok(());
    }
    let pods = Sandboxes {
        backend: "k8s",
        agent,
        image: PYTHON.name,
        reach: &|command| cluster.inside(command),
    };
    clients::converse_in(ctx, pods)
}

/// Returns the variable of an image that is missing, if one is.
fn unnamed_image(is_set: impl Fn(&str) -> bool) -> Option<String> {
    let variables = [BUSYBOX_VARIABLE, PYTHON_VARIABLE, AGENT_VARIABLE];
    let missing = variables.iter().find(|name| !is_set(name))?;
    Some(format!(
        "KUBECONFIG names a cluster, but {missing} names no image that it has"
    ))
}

/// Sets the variables that tests read, except those of the cluster.
fn prepare(command: &mut Command, agent: &Path) {
    command.env("AGENTBOX_TEST_K8S", "1");
    command.env("SANDBOX_AGENT", agent);
    if !Cluster::is_given() {
        command.env(BUSYBOX_VARIABLE, BUSYBOX.name);
        command.env(PYTHON_VARIABLE, PYTHON.name);
        command.env(AGENT_VARIABLE, dist::agent_image_name());
    }
}

/// Returns our objects, by namespace and name. In our own cluster, all of them are ours.
fn objects(cluster: &Cluster<'_>) -> Result<BTreeSet<String>> {
    let format = "--output=jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{\"\\n\"}{end}";
    let mut list = cluster.kubectl(&["get", OBJECTS, "--all-namespaces", format])?;
    if let Cluster::Given(_) = cluster {
        list.args(["--selector", LABEL]);
    }
    let listed = process::output(&mut list)?;
    Ok(listed.lines().map(String::from).collect())
}

/// Fails a run that passed if it has left objects behind, and names them.
fn unless_left(outcome: Outcome, left: &BTreeSet<String>) -> Outcome {
    if left.is_empty() {
        return outcome;
    }
    let left: Vec<_> = left.iter().map(String::as_str).collect();
    let left = format!("left behind: {}", left.join(", "));
    match outcome {
        Outcome::Passed(note) | Outcome::Failed(note) => Outcome::Failed(format!("{note}; {left}")),
        Outcome::Skipped(note) => Outcome::Skipped(note),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_of_others_needs_images_that_it_has() {
        assert_eq!(unnamed_image(|_| true), None);
        let missing = unnamed_image(|name| name == BUSYBOX_VARIABLE).unwrap();
        assert!(missing.contains(PYTHON_VARIABLE), "{missing}");
    }

    #[test]
    fn tests_that_hurt_the_cluster_run_apart() {
        let modules = ["k8s_alone_node", "k8s_pods"].map(str::to_owned).into();
        assert_eq!(filters(&modules, false), ["k8s_pods::"]);
        assert_eq!(filters(&modules, true), ["k8s_alone_node::"]);
    }

    #[test]
    fn the_tests_are_told_where_the_agent_is() {
        let mut command = Command::new("tests");
        prepare(&mut command, Path::new("/agent"));
        let mut set = command.get_envs();
        assert!(set.any(|it| it == ("SANDBOX_AGENT".as_ref(), Some("/agent".as_ref()))));
    }

    #[test]
    fn what_is_left_behind_fails_the_run() {
        let passed = Outcome::Passed("2 passed".to_owned());
        let nothing = BTreeSet::new();
        assert_eq!(unless_left(passed.clone(), &nothing), passed);
        let left = BTreeSet::from(["Pod default/a".to_owned()]);
        let failed = Outcome::Failed("2 passed; left behind: Pod default/a".to_owned());
        assert_eq!(unless_left(passed, &left), failed);
    }
}
