//! Stage `docker`: tests that need a real Docker daemon.
//!
//! Such tests are in files `tests/docker_*.rs`, are marked as ignored, and read the
//! variables that are set here. A running daemon is used as it is; otherwise a private
//! one is started and stopped again. Tests must remove what they create, and the stage
//! checks that.

use std::collections::BTreeSet;
use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::docker::daemon::{Daemon, Found};
use crate::docker::{Docker, images};
use crate::images::{BUSYBOX, PYTHON};
use crate::test_all::cargo::{TestProgram, TestRun, cargo, run_tests};
use crate::test_all::clients::{self, Sandboxes};
use crate::test_all::stage::{Ctx, Outcome};
use crate::{agent, process};

/// The labels of sandbox containers, and of images that were built for them.
const SANDBOX_LABEL: &str = "agentbox.sandbox";
const RUNTIME_LABEL: &str = "agentbox.runtime";

/// Images that take minutes to build. Their names depend on their content, so the next
/// run reuses them.
const KEPT: &[&str] = &[
    "image agentbox-runtime:python-datascience-",
    "image agentbox-runtime:test-cargo-",
    "image agentbox-runtime:test-npm-",
];

/// The certificates that this machine trusts. If a proxy re-signs TLS, installations in
/// a container need them too. Tests look for them where OpenSSL does.
const CERTIFICATES: &str = "/etc/ssl/certs/ca-certificates.crt";

/// The seconds that the soak of sessions takes in full runs.
const FULL_SOAK: &str = "120";

pub(super) fn run(ctx: &Ctx) -> Result<Outcome> {
    let daemon = match Daemon::find(&ctx.workspace)? {
        Found::Daemon(daemon) => daemon,
        Found::Nothing(reason) => return Ok(Outcome::Skipped(reason)),
    };
    println!("{}", daemon.describe());
    let docker = Docker::new(&ctx.workspace, &daemon);
    if let Some(missing) = images::load(&docker, &[BUSYBOX, PYTHON])? {
        return Ok(Outcome::Skipped(missing));
    }
    let before = docker.things()?;
    let agent = agent::build(&ctx.workspace, None)?;
    let run = docker.tests(ctx, &agent.path)?;
    let containers = Sandboxes {
        backend: "docker",
        agent: &agent.path,
        image: PYTHON.name,
        reach: &|mut command| {
            command.env("DOCKER_HOST", &docker.host);
            Ok(command)
        },
    };
    let outcome = match clients::converse_in(ctx, containers) {
        Ok(()) => run.outcome(),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    };
    let left = docker.things()?;
    let left = left.difference(&before).map(String::as_str);
    let left: Vec<_> = left.filter(|thing| !is_kept(thing)).collect();
    Ok(match (outcome, &left[..]) {
        (outcome, []) => noted(outcome, &daemon.describe()),
        (Outcome::Passed(note), _) => {
            Outcome::Failed(format!("{note}; left behind: {}", left.join(", ")))
        }
        (other, _) => noted(other, &format!("left behind: {}", left.join(", "))),
    })
}

/// Whether an object is an image that is kept on purpose.
fn is_kept(thing: &str) -> bool {
    KEPT.iter().any(|image| thing.starts_with(image))
}

/// Appends to the note of an outcome.
fn noted(outcome: Outcome, more: &str) -> Outcome {
    let add = |note: String| format!("{note}; {more}");
    match outcome {
        Outcome::Passed(note) => Outcome::Passed(add(note)),
        Outcome::Failed(note) => Outcome::Failed(add(note)),
        Outcome::Skipped(note) => Outcome::Skipped(add(note)),
    }
}

impl Docker<'_> {
    /// Runs the tests, one module `docker_*` after the other, because some inspect
    /// every container of the daemon.
    fn tests(&self, ctx: &Ctx, agent: &Path) -> Result<TestRun> {
        let programs = TestProgram::build(cargo(ctx, "test", &["--test", "it"])?)?;
        let mut run = TestRun::default();
        for program in programs {
            for module in program.ignored_modules(ctx, "docker_")? {
                let mut command = program.command(ctx)?;
                command.args(["--ignored", &format!("{module}::")]);
                if ctx.is_full {
                    command.env("SOAK_SECONDS", FULL_SOAK);
                }
                run = run.and(run_tests(self.prepare(&mut command, agent))?);
            }
        }
        Ok(run)
    }

    /// Sets the variables that tests read.
    fn prepare<'a>(&self, command: &'a mut Command, agent: &Path) -> &'a mut Command {
        command.env("DOCKER_HOST", &self.host);
        command.env("SANDBOX_AGENT", agent);
        command.env("TEST_IMAGE_BUSYBOX", BUSYBOX.name);
        command.env("TEST_IMAGE_PYTHON", PYTHON.name);
        if env::var_os("SSL_CERT_FILE").is_none() && Path::new(CERTIFICATES).is_file() {
            command.env("SSL_CERT_FILE", CERTIFICATES);
        }
        command
    }

    /// Returns our containers and images, by readable names. On a private daemon, all
    /// of them are ours.
    pub(super) fn things(&self) -> Result<BTreeSet<String>> {
        let lists: [(&[&str], &str); 3] = [
            (
                &[
                    "ps",
                    "--all",
                    "--format",
                    "container {{.Names}} of {{.Image}}",
                ],
                SANDBOX_LABEL,
            ),
            (
                &[
                    "images",
                    "--format",
                    "image {{.Repository}}:{{.Tag}} {{.ID}}",
                ],
                RUNTIME_LABEL,
            ),
            (
                &["volume", "ls", "--format", "volume {{.Name}}"],
                SANDBOX_LABEL,
            ),
        ];
        let mut things = BTreeSet::new();
        for (list, label) in lists {
            let mut command = self.command(list)?;
            if !self.is_private {
                command.args(["--filter", &format!("label={label}")]);
            }
            let listed = process::output(&mut command)?;
            things.extend(listed.lines().map(String::from));
        }
        Ok(things)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_add_up() {
        let passed = noted(Outcome::Passed("1 passed".to_owned()), "here");
        assert_eq!(passed, Outcome::Passed("1 passed; here".to_owned()));
        let failed = noted(Outcome::Failed("1 failed".to_owned()), "here");
        assert_eq!(failed, Outcome::Failed("1 failed; here".to_owned()));
    }

    #[test]
    fn what_takes_minutes_to_build_is_kept() {
        assert!(is_kept("image agentbox-runtime:test-npm-0123456789ab 0a1b"));
        assert!(!is_kept(
            "image agentbox-runtime:test-once-0123456789ab 0a1b"
        ));
        assert!(!is_kept("container test-npm of agentbox-runtime"));
    }

    #[test]
    fn the_tests_are_told_where_everything_is() {
        let docker = Docker {
            workspace: &crate::workspace::Workspace::discover().unwrap(),
            host: "unix:///somewhere".to_owned(),
            is_private: false,
        };
        let mut command = Command::new("tests");
        docker.prepare(&mut command, Path::new("/agent"));
        let value = |name: &str| {
            let (_, value) = command.get_envs().find(|(key, _)| *key == name)?;
            value?.to_str()
        };
        assert_eq!(value("DOCKER_HOST"), Some("unix:///somewhere"));
        assert_eq!(value("SANDBOX_AGENT"), Some("/agent"));
        assert_eq!(value("TEST_IMAGE_BUSYBOX"), Some(BUSYBOX.name));
        assert_eq!(value("TEST_IMAGE_PYTHON"), Some(PYTHON.name));
    }
}
