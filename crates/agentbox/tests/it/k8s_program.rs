//! The program with pods: each client has its own. None is left when the client
//! disconnects, when the program ends, or after those of a killed program were reaped.

use std::sync::Mutex;

use backend_core::sync::lock;
use serde_json::json;

use crate::support::pods::Pods;
use crate::support::sessions::{SessionClient, SessionServer};

/// Every start removes leftovers of other programs. While a test leaves something on
/// purpose, no other test may start one.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Starts a server for many clients.
fn serve(pods: &Pods) -> SessionServer {
    let serve = ["mcp", "--http", "127.0.0.1:0", "--no-token"];
    SessionServer::start(pods.command(&serve))
}

fn connect(server: &SessionServer) -> SessionClient<'_> {
    server.connect("none", None).unwrap()
}

#[test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
fn a_call_leaves_no_pod() {
    let _alone = lock(&ONE_AT_A_TIME);
    let pods = Pods::new("call");
    let written = r#"{"path": "a.txt", "content": "one\n"}"#;
    pods.run(&["call", "write_file", written]).code(0);
    let script = ["run", "--", "sh", "-c", "echo $((6 * 7)); exit 3"];
    assert_eq!(pods.run(&script).code(3).out, "42\n");
    assert_eq!(pods.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
fn the_doctor_finds_the_cluster_and_the_rights() {
    let pods = Pods::new("doctor");
    let found = pods.run(&["doctor", "--json"]).code(0).json();
    assert_eq!(found["works"], true, "{found}");
    let findings = found["findings"].as_array().unwrap();
    for (name, said) in [
        ("kubernetes", "version v1."),
        ("rights", "all of them"),
        ("session rights", "all of them"),
        ("sandbox-agent", "sandbox-agent"),
    ] {
        let finding = findings.iter().find(|finding| finding["name"] == name);
        let finding = finding.unwrap_or_else(|| panic!("{name} is missing"));
        let text = finding["found"].as_str().unwrap();
        assert!(finding["ok"] == true && text.contains(said), "{finding}");
    }
}

#[test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
fn a_pod_with_a_name_stays_and_is_attached_to() {
    let _alone = lock(&ONE_AT_A_TIME);
    let pods = Pods::new("named");
    let name = format!("agentbox-test-{}", std::process::id());
    let config = pods.dir.read("config.toml");
    pods.dir
        .file("config.toml", &format!("{config}name = \"{name}\"\n"));
    pods.run(&["run", "--", "sh", "-c", "echo kept > kept.txt"])
        .code(0);
    assert_eq!(pods.names(), [&*name]);
    let attach = format!("k8s:attach={name}");
    let read = ["--backend", &attach, "run", "--", "cat", "kept.txt"];
    assert_eq!(pods.run(&read).code(0).out, "kept\n");
    pods.delete(&name);
}

#[test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
fn every_client_has_its_pod_until_it_goes() {
    let _alone = lock(&ONE_AT_A_TIME);
    let pods = Pods::new("clients");
    let server = serve(&pods);
    let (one, two) = (connect(&server), connect(&server));
    one.write("secret.txt", "one's\n");
    let first = pods.names();
    assert_eq!(first.len(), 1);
    let looked = two.call("execute", json!({"command": "ls -a; echo there"}));
    assert!(looked.contains("there"), "{looked}");
    assert!(!looked.contains("secret"), "{looked}");
    assert_eq!(pods.names().len(), 2);
    let status = one.disconnect();
    assert!(status.contains(" 20"), "{status}");
    pods.wait_for_end(&first[0]);
    // The other client is still served.
    let still = two.call("execute", json!({"command": "echo still"}));
    assert!(still.contains("still"), "{still}");
    server.end();
    assert_eq!(pods.names(), [""; 0]);
}

#[test]
#[ignore = "needs a Kubernetes cluster; run by cargo xtask test-all"]
fn what_a_killed_program_left_is_listed_and_reaped() {
    let _alone = lock(&ONE_AT_A_TIME);
    let pods = Pods::new("killed");
    let server = serve(&pods);
    connect(&server).write("a", "b");
    let left = pods.names();
    assert_eq!(left.len(), 1);
    let listed = pods.run(&["sandboxes", "list"]).code(0).out;
    assert!(!listed.contains(&left[0]), "it is in use: {listed}");
    server.kill();
    let listed = pods.run(&["sandboxes", "list"]).code(0).out;
    assert!(listed.contains(&left[0]), "{listed}");
    let reaped = pods.run(&["sandboxes", "reap"]).code(0).out;
    assert!(reaped.contains(&left[0]), "{reaped}");
    assert_eq!(pods.names(), [""; 0]);
}
