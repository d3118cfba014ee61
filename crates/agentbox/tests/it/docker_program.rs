//! The program with containers: each client has its own. None is left when the client
//! disconnects, when the program ends, or after the leftovers of a killed program were
//! reaped.

use std::sync::Mutex;

use backend_core::sync::lock;
use serde_json::json;

use crate::support::containers::{Containers, run_docker};
use crate::support::sessions::{SessionClient, SessionServer};
use crate::support::variable;

/// Every start removes leftovers of other programs. While a test leaves something on
/// purpose, no other test may start one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

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
    run_docker(&["image", "rm", &name]);
    assert_eq!(built, format!("{name}\n"));
    let archive = std::fs::read(containers.dir.path("small.tar")).unwrap();
    // Its manifest, which is not compressed.
    let archive = String::from_utf8_lossy(&archive);
    assert!(archive.contains(&name), "the file holds it under that name");
}
