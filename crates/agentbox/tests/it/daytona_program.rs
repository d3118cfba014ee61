//! The program with hosted sandboxes, on a stand-in for Daytona: each client has its own. None is
//! left when the client disconnects, when the program ends, or after those of a killed program
//! were reaped.

use serde_json::json;

use crate::support::hosted::Hosted;
use crate::support::sessions::{SessionClient, SessionServer};

/// Starts a server for many clients.
fn serve(hosted: &Hosted) -> SessionServer {
    let serve = ["mcp", "--http", "127.0.0.1:0", "--no-token"];
    SessionServer::start(hosted.command(&serve))
}

fn connect(server: &SessionServer) -> SessionClient<'_> {
    server.connect("none", None).unwrap()
}

#[test]
fn a_call_leaves_no_sandbox() {
    let hosted = Hosted::new();
    let written = r#"{"path": "a.txt", "content": "one\n"}"#;
    hosted.run(&["call", "write_file", written]).code(0);
    let script = ["run", "--", "sh", "-c", "echo $((6 * 7)); exit 3"];
    assert_eq!(hosted.run(&script).code(3).out, "42\n");
    for spec in [
        "daytona",
        "daytona:snapshot=agents",
        "daytona:runtime=python-minimal",
    ] {
        let run = ["--backend", spec, "run", "--", "echo", "there"];
        assert_eq!(hosted.run(&run).code(0).out, "there\n");
    }
    assert_eq!(hosted.sandboxes(), []);
    let created = hosted.standin.recorded("POST /api/sandbox");
    let bodies: Vec<_> = created.iter().filter_map(|one| one.body.as_ref()).collect();
    assert_eq!(bodies.len(), 5);
    assert_eq!(
        bodies[0]["buildInfo"]["dockerfileContent"],
        "FROM busybox\n"
    );
    assert_eq!(bodies[0]["networkBlockAll"], true);
    assert_eq!(bodies[3]["snapshot"], "agents");
}

#[test]
fn the_console_works_in_a_sandbox() {
    let hosted = Hosted::new();
    let mut console = hosted.command(&[]);
    console.stdin(std::process::Stdio::piped());
    let mut child = console.spawn().unwrap();
    let lines = "write a.txt \"hello\"\nread a.txt\nrun echo it runs\n";
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, lines.as_bytes()).unwrap();
    drop(input);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(said.contains("hello") && said.contains("it runs"), "{said}");
    assert_eq!(hosted.sandboxes(), []);
}

#[test]
fn the_doctor_finds_the_service_and_hides_the_key() {
    let hosted = Hosted::new();
    let ended = hosted.run(&["doctor", "--json"]).code(0);
    assert!(!ended.out.contains(hosted.standin.api_key()));
    let found = ended.json();
    assert_eq!(found["works"], true, "{found}");
    let findings = found["findings"].as_array().unwrap();
    for (name, said) in [
        ("daytona key", "is in DAYTONA_API_KEY"),
        ("daytona", "accepts the key"),
        ("sandbox", "its settings are valid"),
        ("left sandboxes", "there are none"),
    ] {
        let finding = findings.iter().find(|finding| finding["name"] == name);
        let finding = finding.unwrap_or_else(|| panic!("{name} is missing"));
        let text = finding["found"].as_str().unwrap();
        assert!(finding["ok"] == true && text.contains(said), "{finding}");
    }
    let mut refused = hosted.command(&["doctor", "--json"]);
    refused.env("DAYTONA_API_KEY", "dtn_wrong");
    let refused = refused.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stdout);
    assert_eq!(refused.status.code(), Some(3), "{said}");
    assert!(!said.contains("dtn_wrong"), "{said}");
    let mut refused = hosted.command(&["sandboxes", "list"]);
    refused.env("DAYTONA_API_KEY", "dtn_wrong");
    let refused = refused.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("check the key in DAYTONA_API_KEY"), "{said}");
    assert_eq!(said.matches("status 401").count(), 1, "{said}");
}

#[test]
fn the_doctor_refuses_what_run_refuses() {
    let hosted = Hosted::new();
    for (backend, about) in [
        ("daytona:attach=nope", "there is no sandbox nope"),
        ("daytona:bad image", "bad image"),
    ] {
        let run = ["--backend", backend, "run", "--", "true"];
        let said = hosted.run(&run).err;
        assert!(said.contains(about), "{said}");
        let ended = hosted.run(&["doctor", "--backend", backend, "--json"]);
        let found = ended.code(3).json();
        let findings = found["findings"].as_array().unwrap();
        let finding = findings.iter().find(|finding| finding["name"] == "sandbox");
        let told = finding.unwrap()["found"].as_str().unwrap();
        assert!(told.contains(about) && said.contains(told), "{told}");
    }
    assert_eq!(hosted.sandboxes(), []);
}

#[test]
fn a_sandbox_with_a_name_stays_and_is_attached_to() {
    let hosted = Hosted::new();
    let config = hosted.dir.read("config.toml");
    hosted
        .dir
        .file("config.toml", &format!("{config}name = \"box\"\n"));
    hosted
        .run(&["run", "--", "sh", "-c", "echo kept > kept.txt"])
        .code(0);
    let kept = ("box".to_owned(), "stopped".to_owned());
    assert_eq!(hosted.sandboxes(), [kept]);
    let read = [
        "--backend",
        "daytona:attach=box",
        "run",
        "--",
        "cat",
        "kept.txt",
    ];
    assert_eq!(hosted.run(&read).code(0).out, "kept\n");
    let left = ("box".to_owned(), "started".to_owned());
    assert_eq!(hosted.sandboxes(), [left], "it was started, and is left so");
}

#[test]
fn the_name_of_a_kept_sandbox_is_told() {
    let hosted = Hosted::new();
    let config = hosted.dir.read("config.toml");
    hosted
        .dir
        .file("config.toml", &format!("{config}keep = true\n"));
    let ended = hosted.run(&["run", "--", "true"]).code(0);
    let kept = hosted.sandboxes();
    assert_eq!(kept.len(), 1);
    let use_it = format!("daytona:attach={}", kept[0].0);
    assert!(ended.err.contains(&use_it), "{}", ended.err);
}

#[test]
fn without_a_sandbox_none_is_said_to_be_left() {
    let hosted = Hosted::new();
    let mut refused = hosted.command(&["run", "--", "true"]);
    refused.env("DAYTONA_API_KEY", "dtn_wrong");
    let refused = refused.output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(said.contains("check the key"), "{said}");
    assert!(!said.contains("WARN"), "{said}");
}

#[test]
fn every_client_has_its_sandbox_until_it_goes() {
    let hosted = Hosted::new();
    let server = serve(&hosted);
    let (one, two) = (connect(&server), connect(&server));
    one.write("secret.txt", "one's\n");
    let first = hosted.sandboxes();
    assert_eq!(first.len(), 1);
    let looked = two.call("execute", json!({"command": "ls -a; echo there"}));
    assert!(looked.contains("there"), "{looked}");
    assert!(!looked.contains("secret"), "{looked}");
    assert_eq!(hosted.sandboxes().len(), 2);
    let status = one.disconnect();
    assert!(status.contains(" 20"), "{status}");
    hosted.wait_for_end(&first[0].0);
    // The other client is still served.
    let still = two.call("execute", json!({"command": "echo still"}));
    assert!(still.contains("still"), "{still}");
    server.end();
    assert_eq!(hosted.sandboxes(), []);
}

#[test]
fn what_a_killed_program_left_is_listed_and_reaped() {
    let hosted = Hosted::new();
    let server = serve(&hosted);
    connect(&server).write("a", "b");
    let left = hosted.sandboxes();
    assert_eq!(left.len(), 1);
    let name = &left[0].0;
    let listed = hosted.run(&["sandboxes", "list"]).code(0).out;
    assert!(!listed.contains(name), "it is in use: {listed}");
    server.kill();
    let listed = hosted.run(&["sandboxes", "list"]).code(0).out;
    assert!(listed.contains(name), "{listed}");
    let listed = hosted.run(&["sandboxes", "list", "--json"]).code(0).json();
    assert_eq!(listed[0]["keep"], false, "{listed}");
    assert_eq!(listed[0]["removed"], false, "it is only listed: {listed}");
    let reaped = hosted.run(&["sandboxes", "reap", "--json"]).code(0).json();
    assert_eq!(reaped[0]["name"], name.as_str(), "{reaped}");
    assert_eq!(reaped[0]["removed"], true, "{reaped}");
    assert_eq!(hosted.sandboxes(), []);
}
