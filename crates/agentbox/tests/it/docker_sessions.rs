//! Sessions in containers: each named client has one, and finds its files after a restart of
//! the server and of its container.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

use serde_json::json;

use crate::support::sessions::SessionServer;
use crate::support::{ProgramOutput, TestDir, variable};

const ALICE: &str = "0123456789abcdef-alice";
const BOB: &str = "0123456789abcdef-bob";

fn command(dir: &TestDir, arguments: &[&str]) -> Command {
    let backend = format!("docker:{}", variable("TEST_IMAGE_BUSYBOX"));
    let all = [&["--backend", &backend], arguments].concat();
    let mut command = dir.command(&all);
    for name in ["DOCKER_HOST", "SANDBOX_AGENT"] {
        command.env(name, variable(name));
    }
    command
}

fn serve(dir: &TestDir) -> SessionServer {
    let flags = ["--token-file", "tokens", "--workspaces", "files"];
    let all = [&["mcp", "--http", "127.0.0.1:0"], &flags[..]].concat();
    SessionServer::start(command(dir, &all))
}

fn sessions(dir: &TestDir, arguments: &[&str]) -> ProgramOutput {
    let all = [&["sessions", "--workspaces", "files"], arguments].concat();
    ProgramOutput::new(command(dir, &all).output().unwrap())
}

#[test]
#[ignore = "needs a Docker daemon; run by cargo xtask test-all"]
fn a_returning_client_finds_its_files_and_no_others() {
    let dir = TestDir::new();
    let tokens = dir.file("tokens", &format!("alice {ALICE}\nbob {BOB}\n"));
    std::fs::set_permissions(tokens, Permissions::from_mode(0o600)).unwrap();
    let server = serve(&dir);
    let alice = server.connect(ALICE, None).unwrap();
    alice.write("notes.md", "of alice\n");
    let bob = server.connect(BOB, None).unwrap();
    let looked = bob.call("execute", json!({"command": "ls -a; echo there"}));
    assert!(
        looked.contains("there") && !looked.contains("notes"),
        "{looked}"
    );
    let used = sessions(&dir, &["show", "alice", "--json"]).code(0).json();
    assert_eq!(used["state"], "running");
    assert_eq!(used["tenant"], "alice");
    server.end();

    let stored = sessions(&dir, &["list", "--json"]).code(0).json();
    assert_eq!(stored[0]["state"], "stopped", "{stored}");
    let read = sessions(&dir, &["files", "alice", "notes.md"]).code(0).out;
    assert_eq!(read, "of alice\n");
    let server = serve(&dir);
    let alice = server.connect(ALICE, None).unwrap();
    assert!(alice.read("notes.md").contains("of alice"));
    let released = sessions(&dir, &["release", "alice"]).code(0).out;
    assert_eq!(released, "alice has ended.\n");
    server.end();
    for id in ["alice", "bob"] {
        sessions(&dir, &["purge", id, "--yes"]).code(0);
    }
    let left = sessions(&dir, &["list", "--json"]).code(0).json();
    assert_eq!(left, json!([]));
}
