//! Sessions in hosted sandboxes, on a stand-in for Daytona: each named client has one, and finds
//! its files after the server was killed, or the session was released.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::support::hosted::Hosted;
use crate::support::sessions::SessionServer;

const ALICE: &str = "0123456789abcdef-alice";
const BOB: &str = "0123456789abcdef-bob";

fn serve(hosted: &Hosted) -> SessionServer {
    let serve = ["mcp", "--http", "127.0.0.1:0", "--token-file", "tokens"];
    SessionServer::start(hosted.command(&serve))
}

#[test]
fn a_returning_client_finds_its_files_and_no_others() {
    let hosted = Hosted::new();
    let tokens = format!("alice {ALICE}\nbob {BOB}\n");
    let tokens = hosted.dir.file("tokens", &tokens);
    std::fs::set_permissions(tokens, Permissions::from_mode(0o600)).unwrap();
    let server = serve(&hosted);
    let alice = server.connect(ALICE, None).unwrap();
    alice.write("notes.md", "of alice\n");
    let bob = server.connect(BOB, None).unwrap();
    let looked = bob.call("execute", json!({"command": "ls -a; echo there"}));
    assert!(
        looked.contains("there") && !looked.contains("notes"),
        "{looked}"
    );
    let used = hosted.run(&["sessions", "show", "alice", "--json"]);
    let used = used.code(0).json();
    assert_eq!(used["state"], "running");
    assert_eq!(used["tenant"], "alice");
    assert_eq!(hosted.sandboxes().len(), 2);
    server.kill();

    let server = serve(&hosted);
    let alice = server.connect(ALICE, None).unwrap();
    assert!(alice.read("notes.md").contains("of alice"));
    let names = hosted.sandboxes();
    assert_eq!(names.len(), 2, "it was found, and not created again");
    let released = hosted.run(&["sessions", "release", "bob"]).code(0).out;
    assert_eq!(released, "bob has ended.\n");
    let states = hosted.sandboxes();
    let stopped = states.iter().filter(|(_, state)| state == "stopped");
    assert_eq!(stopped.count(), 1, "{states:?}");
    let left = hosted.run(&["sandboxes", "reap"]).code(0).out;
    assert_eq!(left, "Nothing was left.\n", "sessions are none of them");
    for user in ["alice", "bob"] {
        hosted.run(&["sessions", "purge", user, "--yes"]).code(0);
    }
    let left = hosted.run(&["sessions", "list", "--json"]).code(0).json();
    assert_eq!(left, json!([]));
    server.end();
    assert_eq!(hosted.sandboxes(), []);
}
