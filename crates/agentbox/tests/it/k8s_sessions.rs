//! Sessions in pods: each named client has one, and finds its files after the server was
//! killed.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::pods::Pods;
use crate::support::sessions::SessionServer;

const ALICE: &str = "0123456789abcdef-alice";
const BOB: &str = "0123456789abcdef-bob";

fn serve(pods: &Pods) -> SessionServer {
    let serve = ["mcp", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    SessionServer::start(pods.command(&serve))
}

#[test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
fn a_returning_client_finds_its_files_and_no_others() {
    let pods = Pods::new("sessions");
    let tokens = format!("alice {ALICE}\nbob {BOB}\n");
    let tokens = pods.dir.file("tokens", &tokens);
    std::fs::set_permissions(tokens, Permissions::from_mode(0o600)).unwrap();
    let server = serve(&pods);
    let alice = server.connect(ALICE, None).unwrap();
    alice.write("notes.md", "of alice\n");
    let bob = server.connect(BOB, None).unwrap();
    let looked = bob.call("execute", json!({"command": "ls -a; echo there"}));
    assert!(
        looked.contains("there") && !looked.contains("notes"),
        "{looked}"
    );
    let used = pods.run(&["sessions", "show", "alice", "--json"]);
    let used = used.code(0).json();
    assert_eq!(used["state"], "running");
    assert_eq!(used["tenant"], "alice");
    assert_eq!(pods.names().len(), 2);
    server.kill();

    let server = serve(&pods);
    let alice = server.connect(ALICE, None).unwrap();
    assert!(alice.read("notes.md").contains("of alice"));
    assert_eq!(pods.names().len(), 2, "it was found, and not created again");
    let released = pods.run(&["sessions", "release", "bob"]).code(0).out;
    assert_eq!(released, "bob has ended.\n");
    pods.run(&["sessions", "purge", "alice", "--yes"]).code(0);
    let left = pods.run(&["sessions", "list", "--json"]).code(0).json();
    assert_eq!(left, json!([]));
    server.end();
    assert_eq!(pods.names(), [""; 0]);
}
