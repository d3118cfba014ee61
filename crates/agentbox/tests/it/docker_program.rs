//! The program with containers: each client has its own. None is left when the client
//! disconnects, when the program ends, or after the leftovers of a killed program were
//! reaped.

use std::io::{BufRead as _, BufReader, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use backend_core::sync::lock;
use serde_json::{Value, json};

use crate::support::{ProgramOutput, TestDir};

/// Every start removes leftovers of other programs. While a test leaves something on
/// purpose, no other test may start one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The label that marks a test's containers.
const LABEL: &str = "agentbox-test";

fn variable(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set; run `cargo xtask test-all`, which sets it"))
}

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

/// A server for many clients, and its address.
struct Server {
    child: Child,
    address: String,
    _said: Lines<BufReader<ChildStderr>>,
}

impl Server {
    fn start(containers: &Containers) -> Self {
        let mut command = containers.command(&["mcp", "--http", "127.0.0.1:0", "--no-token"]);
        let mut child = command.spawn().unwrap();
        let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
        let listening = said.by_ref().map(Result::unwrap);
        let mut addresses = listening.filter_map(|line| {
            let address = line.split_once("http://")?.1;
            Some(address.split_once("/mcp")?.0.to_owned())
        });
        let address = addresses.next().expect("it does not listen");
        drop(addresses);
        Self {
            child,
            address,
            _said: said,
        }
    }

    /// Sends one request. Returns the head and the body of the response.
    fn ask(&self, method: &str, session: Option<&str>, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let session = session.map_or(String::new(), |id| format!("Mcp-Session-Id: {id}\r\n"));
        let (host, length) = (&self.address, body.len());
        write!(
            stream,
            "{method} /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             {session}Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").expect("no whole answer");
        (head.to_owned(), body.to_owned())
    }

    /// Connects a client. Returns its session id.
    fn connect(&self) -> String {
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        }});
        let (head, _) = self.ask("POST", None, &hello.to_string());
        let header = |line: &str| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("mcp-session-id")
                .then(|| value.to_owned())
        };
        let session = head.lines().find_map(header).expect("no session");
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        self.ask("POST", Some(&session), &ready.to_string());
        session
    }

    fn call(&self, session: &str, tool: &str, arguments: Value) -> String {
        let params = json!({"name": tool, "arguments": arguments});
        let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
        let (head, body) = self.ask("POST", Some(session), &call.to_string());
        assert!(head.contains(" 200 "), "{head}");
        body
    }
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
    let mut server = Server::start(&containers);
    let (one, two) = (server.connect(), server.connect());
    let secret = json!({"path": "secret.txt", "content": "one's\n"});
    server.call(&one, "write_file", secret);
    let first = containers.names();
    let looked = server.call(&two, "execute", json!({"command": "ls -a; echo there"}));
    assert!(looked.contains("there"), "{looked}");
    assert!(!looked.contains("secret"), "{looked}");
    assert_eq!(containers.names().len(), 2);
    let mut removals = containers.removals();
    let (head, _) = server.ask("DELETE", Some(&one), "");
    assert!(head.contains(" 20"), "{head}");
    assert_eq!(first, [removals.next()]);
    // The other client is still served.
    let still = server.call(&two, "execute", json!({"command": "echo still"}));
    assert!(still.contains("still"), "{still}");
    let server_pid = rustix::process::Pid::from_child(&server.child);
    rustix::process::kill_process(server_pid, rustix::process::Signal::TERM).unwrap();
    assert!(server.child.wait().unwrap().success());
    assert_eq!(containers.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn what_a_killed_program_left_is_listed_and_reaped() {
    let _alone = lock(&ONE_AT_A_TIME);
    let containers = Containers::new("killed");
    let mut server = Server::start(&containers);
    let client = server.connect();
    server.call(&client, "write_file", json!({"path": "a", "content": "b"}));
    let left = containers.names();
    assert_eq!(left.len(), 1);
    let listed = containers.run(&["sandboxes", "list"]).code(0).out;
    assert!(!listed.contains(&left[0]), "it is in use: {listed}");
    server.child.kill().unwrap();
    server.child.wait().unwrap();
    let listed = containers.run(&["sandboxes", "list"]).code(0).out;
    assert!(listed.contains(&left[0]), "{listed}");
    let reaped = containers.run(&["sandboxes", "reap"]).code(0).out;
    assert!(reaped.contains(&left[0]), "{reaped}");
    assert_eq!(containers.names(), [""; 0]);
}
