//! Containers of the program, and the `docker` program.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use backend_testkit::processes::PATIENCE;

use crate::support::{ProgramOutput, TestDir, variable};

/// The label that marks a test's containers.
const LABEL: &str = "agentbox-test";

pub(crate) fn docker(arguments: &[&str]) -> Command {
    let mut docker = Command::new("docker");
    docker.env("DOCKER_HOST", variable("DOCKER_HOST"));
    docker.args(arguments);
    docker
}

/// Runs the `docker` program, which must succeed. Returns what it printed.
pub(crate) fn run_docker(arguments: &[&str]) -> String {
    let output = docker(arguments).output().unwrap();
    ProgramOutput::new(output).code(0).out
}

/// A place whose containers can be told from all others.
pub(crate) struct Containers {
    pub(crate) dir: TestDir,
    mark: String,
}

impl Containers {
    pub(crate) fn new(test: &str) -> Self {
        let dir = TestDir::new();
        let mark = format!("{test}-{}", std::process::id());
        let config = format!(
            "backend = \"docker:{}\"\n[docker]\nlabels = {{ {LABEL} = \"{mark}\" }}\n",
            variable("TEST_IMAGE_BUSYBOX")
        );
        dir.file("config.toml", &config);
        Self { dir, mark }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let all = [&["--config", "config.toml"], arguments].concat();
        let mut command = self.dir.command(&all);
        for name in ["DOCKER_HOST", "SANDBOX_AGENT"] {
            command.env(name, variable(name));
        }
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::new(self.command(arguments).output().unwrap())
    }

    fn filter(&self) -> String {
        format!("label={LABEL}={}", self.mark)
    }

    /// Returns the names of its containers.
    pub(crate) fn names(&self) -> Vec<String> {
        let format = ["--format", "{{.Names}}", "--filter", &self.filter()];
        let listed = run_docker(&[&["ps", "--all"], &format[..]].concat());
        listed.lines().map(str::to_owned).collect()
    }

    /// Reports removals from now on.
    pub(crate) fn removals(&self) -> Removals {
        let minute = Duration::from_secs(60);
        let until = (SystemTime::now() + minute).duration_since(UNIX_EPOCH);
        let until = until.unwrap().as_secs().to_string();
        let mut events = docker(&["events", "--since", "1m", "--until", &until]);
        events.args(["--filter", "event=destroy", "--filter", &self.filter()]);
        events.args(["--format", "{{.Actor.Attributes.name}}"]);
        let mut child = events.stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Removals { child, lines }
    }
}

/// The names of containers as they are removed.
pub(crate) struct Removals {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Removals {
    pub(crate) fn next(&mut self) -> String {
        let line = self.lines.next();
        line.expect("nothing was removed within a minute").unwrap()
    }
}

impl Drop for Removals {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A container that the program did not create, in which one program runs. It is removed
/// on drop.
pub(crate) struct Foreign {
    pub(crate) name: String,
    program: &'static str,
}

impl Foreign {
    /// Starts a container that runs a program, and waits until `ready` succeeds in it.
    pub(crate) fn start(test: &str, program: &'static str, ready: &str) -> Self {
        let name = format!("agentbox-test-{test}-{}", std::process::id());
        let image = variable("TEST_IMAGE_BUSYBOX");
        let mut run = vec!["run", "--detach", "--init", "--network", "none"];
        run.extend(["--name", &name, &image]);
        run.extend(program.split(' '));
        run_docker(&run);
        let foreign = Self { name, program };
        foreign.run(&format!("until {ready}; do sleep 0.05; done"));
        foreign.has_only_its_program();
        foreign
    }

    /// Runs a line in it.
    pub(crate) fn run(&self, line: &str) {
        run_docker(&["exec", &self.name, "sh", "-c", line]);
    }

    /// Waits until nothing runs in it but its own program and the one that reaps. What has
    /// ended may take a moment to be reaped.
    #[track_caller]
    pub(crate) fn has_only_its_program(&self) {
        let start = Instant::now();
        loop {
            let all = run_docker(&["top", &self.name, "-o", "pid,args"]);
            let others = |line: &&str| {
                let expected = [self.program, "/sbin/docker-init"];
                !expected.iter().any(|program| line.contains(program))
            };
            let others: Vec<&str> = all.lines().skip(1).filter(others).collect();
            if others.is_empty() {
                return;
            }
            assert!(start.elapsed() < PATIENCE, "{others:?}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        let _ = docker(&["rm", "--force", &self.name]).output();
    }
}
