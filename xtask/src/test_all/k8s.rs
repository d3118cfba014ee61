//! Stage `k8s`: tests that need a real Kubernetes cluster.
//!
//! Such tests are in modules `k8s_*`, are marked as ignored, and read the variables that
//! are set here and by [`crate::cluster`]. They are built while the cluster starts, and run
//! inside its namespaces, all programs at once. Those that kill its daemons are in modules
//! `k8s_alone_*` and run last, one at a time. Tests must remove the objects that they create,
//! and the stage checks that.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::Command;
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use anyhow::{Result, anyhow, ensure};

use crate::agent;
use crate::cluster::Cluster;
use crate::dist;
use crate::images::{BUSYBOX, PYTHON};
use crate::process;
use crate::test_all::cargo::{TestProgram, TestRun, cargo, run_labelled_tests, run_tests};
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

/// More tests at once than processors: most of the time they wait for the cluster. Programs
/// with fewer tests than another one need not be as quick.
const THREADS: &str = "4";
const FEWER_THREADS: &str = "2";

/// The directory of the program for users.
const PROGRAM: &str = "agentbox";

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
    // Both at once. The cluster ends with the thread that has started it, which is this one.
    let (cluster, built) = thread::scope(|scope| {
        let building = scope.spawn(|| Built::new(ctx));
        let cluster = Cluster::start(&ctx.workspace);
        (cluster, joined(building))
    });
    let built = built?;
    let cluster = cluster?;
    dist::load_agent_image(&built.agent, &cluster)?;
    let before = objects(&cluster)?;
    let lab = Lab {
        ctx,
        cluster,
        built,
    };
    let (run, conversed) = lab.run_beside()?;
    let run = run.and(lab.run_alone()?);
    let outcome = with_conversation(run.outcome(), conversed);
    let mut left = BTreeSet::new();
    process::wait_for(REMOVAL, || {
        left = &objects(&lab.cluster)? - &before;
        Ok(left.is_empty())
    })?;
    Ok(unless_left(outcome, &left))
}

/// The programs that the stage runs.
struct Built {
    /// Test programs with their modules of such tests. The one with the most comes first.
    tests: Vec<(TestProgram, BTreeSet<String>)>,
    agent: agent::Built,
}

impl Built {
    fn new(ctx: &Ctx) -> Result<Self> {
        let mut tests = Vec::new();
        for program in TestProgram::build(cargo(ctx, "test", &["--test", "it"])?)? {
            let modules = program.ignored_modules(ctx, MODULES)?;
            if !modules.is_empty() {
                tests.push((program, modules));
            }
        }
        ensure!(!tests.is_empty(), "there is no test in a module {MODULES}*");
        tests.sort_by_key(|(_, modules)| Reverse(modules.len()));
        let agent = agent::build(&ctx.workspace, None)?;
        Ok(Self { tests, agent })
    }
}

/// The programs, and the cluster that they use.
struct Lab<'c> {
    ctx: &'c Ctx,
    cluster: Cluster<'c>,
    built: Built,
}

impl Lab<'_> {
    /// Runs all test programs at once, without the tests that run alone, and the scripted
    /// conversation beside them.
    ///
    /// That starts the program of users, as the tests of that program do. Each of its starts
    /// removes what killed ones have left in the same namespace, and a test looks for that. So
    /// it comes after them.
    fn run_beside(&self) -> Result<(TestRun, Result<()>)> {
        let mut commands = Vec::new();
        for (number, (program, modules)) in self.built.tests.iter().enumerate() {
            let threads = if number == 0 { THREADS } else { FEWER_THREADS };
            if let Some(command) = self.command(program, &filters(modules, false), threads)? {
                commands.push((program.package(), command));
            }
        }
        let of_program = |(package, _): &(&str, Command)| *package == PROGRAM;
        let (own, others): (Vec<_>, Vec<_>) = commands.into_iter().partition(of_program);
        thread::scope(|scope| {
            let others: Vec<_> = others
                .into_iter()
                .map(|one| scope.spawn(|| run_labelled(one)))
                .collect();
            let mut run = TestRun::default();
            for one in own {
                run = run.and(run_labelled(one)?);
            }
            let conversed = converse(self.ctx, &self.cluster, &self.built.agent.path);
            for other in others {
                run = run.and(joined(other)?);
            }
            Ok((run, conversed))
        })
    }

    /// Runs the tests that no other one can run beside.
    fn run_alone(&self) -> Result<TestRun> {
        let mut run = TestRun::default();
        for (program, modules) in &self.built.tests {
            if let Some(mut command) = self.command(program, &filters(modules, true), "1")? {
                run = run.and(run_tests(&mut command)?);
            }
        }
        Ok(run)
    }

    /// Returns the command that runs the selected tests of a program, if there are any.
    fn command(
        &self,
        program: &TestProgram,
        filters: &[String],
        threads: &str,
    ) -> Result<Option<Command>> {
        if filters.is_empty() {
            return Ok(None);
        }
        let mut command = program.command(self.ctx)?;
        command.args(["--ignored", "--test-threads", threads]);
        command.args(filters);
        prepare(&mut command, &self.built.agent.path);
        self.cluster.inside(command).map(Some)
    }
}

fn run_labelled((package, mut command): (&str, Command)) -> Result<TestRun> {
    run_labelled_tests(&mut command, &format!("{package}: "))
}

/// Waits for a thread.
fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    let ended = thread.join();
    ended.unwrap_or_else(|_| Err(anyhow!("a thread of the stage panicked")))
}

/// Fails a run that passed if the conversation did not.
fn with_conversation(outcome: Outcome, conversed: Result<()>) -> Outcome {
    match (outcome, conversed) {
        (outcome, Ok(())) => outcome,
        (Outcome::Passed(note) | Outcome::Failed(note) | Outcome::Skipped(note), Err(error)) => {
            Outcome::Failed(format!("{note}; {error:#}"))
        }
    }
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
    fn a_conversation_that_failed_fails_the_run() {
        let passed = Outcome::Passed("2 passed".to_owned());
        assert_eq!(with_conversation(passed.clone(), Ok(())), passed);
        let failed = Outcome::Failed("2 passed; no".to_owned());
        assert_eq!(with_conversation(passed, Err(anyhow!("no"))), failed);
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
