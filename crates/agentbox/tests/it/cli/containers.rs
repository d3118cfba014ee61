//! Messages about containers if there is no daemon.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};

use crate::support::TestDir;

const NOWHERE: (&str, &str) = ("DOCKER_HOST", "unix:///nowhere/docker.sock");

#[test]
fn no_daemon_is_3_with_what_to_do() {
    let dir = TestDir::new();
    for arguments in [
        &["--backend", "docker:python:3.12", "call", "ls"][..],
        &["sandboxes", "list"],
        &["sandboxes", "reap"],
        &["runtimes", "build", "python-minimal"],
    ] {
        let ended = dir.run_with(arguments, &[NOWHERE]).code(3);
        let said = "listens at 'unix:///nowhere/docker.sock'; start dockerd or set DOCKER_HOST\n";
        assert!(ended.err.ends_with(said), "{}", ended.err);
    }
    // Nothing was started, so nothing is left to be stopped.
    let refused = [("DOCKER_HOST", "tcp://127.0.0.1:1")];
    let ended = dir.run_with(&["--backend", "docker:a", "call", "ls"], &refused);
    let ended = ended.code(3);
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
}

#[test]
fn what_makes_no_sense_is_64() {
    let dir = TestDir::new();
    dir.file("logins.json", r#"{"auths": {"a.example": {"auth": "?"}}}"#);
    for (config, spec, about) in [
        ("", "docker", "docker:IMAGE"),
        ("", "docker:", "docker:IMAGE"),
        ("", "docker:runtime=", "docker:runtime=NAME"),
        ("", "docker:runtime=pyton-web", "python-web"),
        ("privileged = true", "docker:a", "privileged"),
        ("memory = \"lots\"", "docker:a", "512m"),
        ("volumes = [\"/a\"]", "docker:a", "SOURCE:TARGET"),
        ("relax = [\"everything\"]", "docker:a", "everything"),
        ("image = \"a\"\nruntime = \"b\"", "docker", "remove one"),
        ("logins = \"none.json\"", "docker:a", "none.json"),
        ("logins = \"logins.json\"", "docker:a", "docker login"),
    ] {
        dir.file("config.toml", &format!("[docker]\n{config}\n"));
        let arguments = ["--config", "config.toml", "--backend", spec, "tools"];
        let ended = dir.run_with(&arguments, &[NOWHERE]);
        assert_eq!(ended.code, 64, "{config} {spec}: {}", ended.err);
        assert!(ended.err.contains(about), "{}", ended.err);
    }
}

#[test]
fn runtimes_are_listed_and_shown() {
    let dir = TestDir::new();
    let list = dir.run(&["runtimes", "list"]).code(0).out;
    for name in [
        "python-minimal",
        "python-datascience",
        "node-react",
        "go",
        "rust",
    ] {
        assert!(list.contains(name), "{list}");
    }
    let shown = dir.run(&["runtimes", "show", "python-web"]).code(0).out;
    dir.file("own.toml", &shown.replace("python-web", "own-web"));
    dir.file("config.toml", "[docker]\nruntimes = \"own.toml\"\n");
    let own = ["--config", "config.toml", "runtimes", "show", "own-web"];
    assert_eq!(
        dir.run(&own).code(0).out,
        shown.replace("python-web", "own-web"),
        "what is shown can be used"
    );
    let file = dir.run(&["runtimes", "show", "--dockerfile", "python-web"]);
    assert!(file.code(0).out.starts_with("FROM "));
    let json = dir.run(&["runtimes", "list", "--json"]).code(0).json();
    assert!(json.as_array().unwrap().len() >= 15);
    dir.run(&["runtimes", "show", "cobol"])
        .code(64)
        .complains("python-minimal");
}

#[test]
fn the_doctor_finds_no_daemon() {
    let dir = TestDir::new();
    let found = dir
        .run_with(&["doctor", "--json"], &[NOWHERE])
        .code(0)
        .json();
    let findings = found["findings"].as_array().unwrap();
    let docker = findings.iter().find(|finding| finding["name"] == "docker");
    let docker = docker.unwrap();
    assert_eq!(docker["ok"], false);
    assert!(docker["fix"].as_str().unwrap().contains("DOCKER_HOST"));
}

/// Starts a daemon that has one image, and returns its address.
fn daemon_with(image: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // The client may close the connection at any time.
            let _ = answer(stream, image);
        }
    });
    address
}

fn answer(mut stream: TcpStream, image: &str) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.extend(byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split([' ', '?']).nth(1).unwrap_or_default();
    let (status, body) = if path.ends_with("/version") {
        (
            200,
            r#"{"Version":"28.0.0","ApiVersion":"1.41","Components":[{"Name":"runc","Version":"1.3.3"}]}"#,
        )
    } else if path.ends_with("/info") {
        (200, r#"{"Driver":"overlay2","CgroupVersion":"2"}"#)
    } else if path.ends_with("/containers/json") {
        (200, "[]")
    } else if path.ends_with(&format!("/images/{image}/json")) {
        (200, r#"{"Id":"sha256:1"}"#)
    } else {
        (404, r#"{"message":"No such image"}"#)
    };
    write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn the_doctor_looks_for_the_image() {
    let dir = TestDir::new();
    let address = daemon_with("there");
    let variables = [("DOCKER_HOST", &*address)];
    let image = |spec: &str| {
        let doctor = ["doctor", "--backend", spec, "--json"];
        let findings = dir.run_with(&doctor, &variables).code(0).json()["findings"].take();
        let findings = findings.as_array().unwrap().clone();
        findings
            .into_iter()
            .find(|finding| finding["name"] == "image")
    };
    assert_eq!(image("docker:there").unwrap()["ok"], true);
    let absent = image("docker:nosuch").unwrap();
    assert_eq!(absent["doubtful"], true, "{absent}");
    assert_eq!(
        absent["found"],
        "nosuch is not on this machine; the first call fetches it"
    );
    assert_eq!(absent["fix"], "docker pull nosuch");
    let unbuilt = image("docker:runtime=python-minimal").unwrap();
    assert_eq!(unbuilt["fix"], "agentbox runtimes build python-minimal");
    for spec in ["docker:attach=box", "state"] {
        assert_eq!(image(spec), None, "{spec}");
    }
    let told = |spec: &str| {
        let ended = dir.run_with(&["doctor", "--backend", spec], &variables);
        ended.code(0).out.trim_end().to_owned()
    };
    assert!(told("docker:there").ends_with("docker:there works here."));
    let unsure = told("docker:nosuch");
    assert!(
        unsure.ends_with("docker:nosuch works here, if its image can be obtained."),
        "{unsure}"
    );
}
