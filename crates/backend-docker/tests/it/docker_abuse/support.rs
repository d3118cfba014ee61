//! Shared by these tests: the `docker` program, a sandbox that verifies its own
//! cleanup, and waiting for a condition.

use std::process::{Output, Stdio};

use backend_core::ops::{Command, ExecuteOutcome, StopMode};
use backend_core::{BackendExt as _, ErrorKind, Result, Sandbox as _};
use backend_docker::{DockerBuilder, DockerSandbox};

use crate::support::docker::{agent, busybox, daemon, variable};

/// Label of these tests' containers, in addition to our own.
pub(crate) const LABEL: &str = "abuse.agentbox";

/// The `docker` program, connected to a daemon.
#[derive(Debug, Clone)]
pub(crate) struct Cli(String);

impl Cli {
    pub(crate) fn new() -> Self {
        Self(variable("DOCKER_HOST"))
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> std::process::Command {
        let mut command = std::process::Command::new("docker");
        command
            .args(arguments)
            .env("DOCKER_HOST", &self.0)
            .stdin(Stdio::null());
        command
    }

    pub(crate) fn try_run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Returns its output. It must succeed.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &[&str]) -> String {
        let output = self.try_run(arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "docker {arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Returns the containers with this label, in any state.
    #[track_caller]
    pub(crate) fn containers(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        let found = self.run(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]);
        found.lines().map(str::to_owned).collect()
    }

    /// Removes those that the daemon lists, ignoring errors.
    fn sweep(&self, label: &str) {
        let filter = format!("label={label}");
        let found = self.try_run(&["ps", "--all", "--quiet", "--filter", &filter]);
        for container in String::from_utf8_lossy(&found.stdout).lines() {
            self.try_run(&["rm", "--force", "--volumes", container]);
        }
    }
}

/// The sandbox of one test.
#[derive(Debug)]
pub(crate) struct Box {
    pub(crate) sandbox: DockerSandbox,
    pub(crate) cli: Cli,
    label: String,
}

impl Box {
    /// Creates a busybox container with the agent.
    pub(crate) fn new() -> Self {
        Self::with(|builder| builder)
    }

    pub(crate) fn with(configure: impl FnOnce(DockerBuilder) -> DockerBuilder) -> Self {
        let label = format!("{LABEL}={:016x}", fastrand::u64(..));
        let (key, value) = label.split_once('=').unwrap();
        let builder = DockerSandbox::builder()
            .daemon(daemon())
            .image(busybox())
            .agent(agent())
            .label(key, value);
        Self {
            sandbox: configure(builder).build().unwrap(),
            cli: Cli::new(),
            label,
        }
    }

    /// Returns the container, which must exist.
    #[track_caller]
    pub(crate) fn container(&self) -> String {
        let mut all = self.cli.containers(&self.label);
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Runs a script in the container without the sandbox's knowledge.
    #[track_caller]
    pub(crate) fn exec(&self, script: &str) -> String {
        self.exec_with(script, "")
    }

    /// The same, with an argument for the script.
    #[track_caller]
    pub(crate) fn exec_with(&self, script: &str, argument: &str) -> String {
        let container = self.container();
        let command = ["exec", &container, "sh", "-c", script, "sh", argument];
        self.cli.run(&command)
    }

    /// Returns the pid of the agent in the container. Its supervisor is started later.
    #[track_caller]
    pub(crate) fn agent(&self) -> String {
        let all = self.exec(
            r#"for p in /proc/[0-9]*; do
                   case "$(tr '\0' ' ' 2>/dev/null < $p/cmdline)" in
                       */[s]andbox-agent*|*/.[a]gentbox-agent*) echo "${p#/proc/}";;
                   esac
               done | sort -n"#,
        );
        all.lines().next().expect("an agent runs").to_owned()
    }

    pub(crate) fn kill_agent(&self) {
        // It may have ended already.
        self.exec_with("kill -9 $1 || true", &self.agent());
    }

    pub(crate) async fn sh(&self, line: &str) -> Result<ExecuteOutcome> {
        self.sandbox.execute(Command::new(line)).await
    }

    /// Returns a command's output. It must have succeeded.
    #[track_caller]
    pub(crate) fn said(outcome: Result<ExecuteOutcome>) -> String {
        let outcome = outcome.unwrap();
        assert!(outcome.status.success(), "{outcome:?}");
        outcome.stdout.text().trim().to_owned()
    }

    /// Checks that every kind of operation works.
    pub(crate) async fn works(&self) {
        let text = format!("{:x}", fastrand::u64(..));
        self.sandbox
            .write_file("works.txt", text.clone())
            .await
            .unwrap();
        let said = Self::said(self.sh("cat works.txt").await);
        assert_eq!(said, text);
        self.sandbox.delete_file("works.txt").await.unwrap();
    }

    /// Removes the container and verifies that it is gone.
    pub(crate) async fn end(self) {
        self.sandbox.stop(StopMode::Purge).await.unwrap();
        assert_eq!(self.cli.containers(&self.label), [""; 0]);
    }
}

impl Drop for Box {
    fn drop(&mut self) {
        // A failed test leaves no container either.
        self.cli.sweep(&self.label);
    }
}

/// Checks that a call failed because the sandbox is unavailable, and returns the
/// message.
#[track_caller]
pub(crate) fn is_unavailable<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{}", error.chain());
    error.chain().to_string()
}

/// Returns the resident memory of this process, in bytes.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1_024
}
