//! The program with containers: each client has its own. None is left when the client
//! disconnects, when the program ends, or after the leftovers of a killed program were
//! reaped.

use std::io::{BufRead as _, BufReader, Lines};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::sync::lock;
use serde_json::json;

use crate::support::sessions::{SessionClient, SessionServer};
use crate::support::{ProgramOutput, TestDir, variable};

/// Every start removes leftovers of other programs. While a test leaves something on
/// purpose, no other test may start one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The label that marks a test's containers.
const LABEL: &str = "agentbox-test";

fn docker(arguments: &[&str]) -> Command {
    let mut docker = Command::new("docker");
    docker.env("DOCKER_HOST", variable("DOCKER_HOST"));
    docker.args(arguments);
    docker
}

/// A place whose containers can be told from all others.
struct Containers {
    dir: TestDir,
    mark: String,
}

impl Containers {
    fn new(test: &str) -> Self {
        let dir = TestDir::new();
        let mark = format!("{test}-{}", std::process::id());
        let config = format!(
            "backend = \"docker:{}\"\n[docker]\nlabels = {{ {LABEL} = \"{mark}\" }}\n",
            variable("TEST_IMAGE_BUSYBOX")
        );
        dir.file("config.toml", &config);
        Self { dir, mark }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let all = [&["--config", "config.toml"], arguments].concat();
        let mut command = self.dir.command(&all);
        for name in ["DOCKER_HOST", "SANDBOX_AGENT"] {
            command.env(name, variable(name));
        }
        command
    }

    fn run(&self, arguments: &[&str]) -> ProgramOutput {
        ProgramOutput::new(self.command(arguments).output().unwrap())
    }

    fn filter(&self) -> String {
        format!("label={LABEL}={}", self.mark)
    }

    /// Returns the names of its containers.
    fn names(&self) -> Vec<String> {
        let format = ["--format", "{{.Names}}", "--filter", &self.filter()];
        let mut list = docker(&[&["ps", "--all"], &format[..]].concat());
        let listed = ProgramOutput::new(list.output().unwrap()).code(0).out;
        listed.lines().map(str::to_owned).collect()
    }

    /// Reports removals from now on.
    fn removals(&self) -> Removals {
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
struct Removals {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Removals {
    fn next(&mut self) -> String {
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

/// Starts a server for many clients.
fn serve(containers: &Containers) -> SessionServer {
    let serve = ["mcp", "--http", "127.0.0.1:0", "--no-token"];
    SessionServer::start(containers.command(&serve))
}

fn connect(server: &SessionServer) -> SessionClient<'_> {
    server.connect("none", None).unwrap()
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn a_call_leaves_no_container() {
    let _alone = lock(&ONE_AT_A_TIME);
    let containers = Containers::new("call");
    let written = r#"{"path": "a.txt", "content": "one\n"}"#;
    containers.run(&["call", "write_file", written]).code(0);
    let script = ["run", "--", "sh", "-c", "echo $((6 * 7)); exit 3"];
    assert_eq!(containers.run(&script).code(3).out, "42\n");
    assert_eq!(containers.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn every_client_has_its_container_until_it_goes() {
    let _alone = lock(&ONE_AT_A_TIME);
    let containers = Containers::new("clients");
    let server = serve(&containers);
    let (one, two) = (connect(&server), connect(&server));
    one.write("secret.txt", "one's\n");
    let first = containers.names();
    let looked = two.call("execute", json!({"command": "ls -a; echo there"}));
    assert!(looked.contains("there"), "{looked}");
    assert!(!looked.contains("secret"), "{looked}");
    assert_eq!(containers.names().len(), 2);
    let mut removals = containers.removals();
    let status = one.disconnect();
    assert!(status.contains(" 20"), "{status}");
    assert_eq!(first, [removals.next()]);
    // The other client is still served.
    let still = two.call("execute", json!({"command": "echo still"}));
    assert!(still.contains("still"), "{still}");
    server.end();
    assert_eq!(containers.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn what_a_killed_program_left_is_listed_and_reaped() {
    let _alone = lock(&ONE_AT_A_TIME);
    let containers = Containers::new("killed");
    let server = serve(&containers);
    connect(&server).write("a", "b");
    let left = containers.names();
    assert_eq!(left.len(), 1);
    let listed = containers.run(&["sandboxes", "list"]).code(0).out;
    assert!(!listed.contains(&left[0]), "it is in use: {listed}");
    server.kill();
    let listed = containers.run(&["sandboxes", "list"]).code(0).out;
    assert!(listed.contains(&left[0]), "{listed}");
    let reaped = containers.run(&["sandboxes", "reap"]).code(0).out;
    assert!(reaped.contains(&left[0]), "{reaped}");
    assert_eq!(containers.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn the_image_of_a_runtime_gets_a_name_and_becomes_a_file() {
    let containers = Containers::new("runtime");
    let image = variable("TEST_IMAGE_BUSYBOX");
    let own = format!("[runtimes.small]\nimage = \"{image}\"\n");
    containers.dir.file("own.toml", &own);
    let config = containers.dir.read("config.toml");
    let config = format!("{config}runtimes = \"own.toml\"\n");
    containers.dir.file("config.toml", &config);
    let name = format!("agentbox-test/named:{}", std::process::id());
    let build = ["runtimes", "build", "small", "--tag", &name];
    let build = [&build, &["--output", "small.tar"][..]].concat();
    let built = containers.run(&build).code(0).out;
    ProgramOutput::new(docker(&["image", "rm", &name]).output().unwrap()).code(0);
    assert_eq!(built, format!("{name}\n"));
    let archive = std::fs::read(containers.dir.path("small.tar")).unwrap();
    // Its manifest, which is not compressed.
    let archive = String::from_utf8_lossy(&archive);
    assert!(archive.contains(&name), "the file holds it under that name");
}
