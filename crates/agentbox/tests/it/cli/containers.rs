//! Messages about containers if there is no daemon.

use crate::support::Place;

const NOWHERE: (&str, &str) = ("DOCKER_HOST", "unix:///nowhere/docker.sock");

#[test]
fn no_daemon_is_3_with_what_to_do() {
    let place = Place::new();
    for arguments in [
        &["--backend", "docker:python:3.12", "call", "ls"][..],
        &["sandboxes", "list"],
        &["sandboxes", "reap"],
        &["runtimes", "build", "python-minimal"],
    ] {
        let ended = place.run_with(arguments, &[NOWHERE]).code(3);
        let said = "listens at 'unix:///nowhere/docker.sock'; start dockerd or set DOCKER_HOST\n";
        assert!(ended.err.ends_with(said), "{}", ended.err);
    }
    // Nothing was started, so nothing is left to be stopped.
    let refused = [("DOCKER_HOST", "tcp://127.0.0.1:1")];
    let ended = place.run_with(&["--backend", "docker:a", "call", "ls"], &refused);
    let ended = ended.code(3);
    assert!(!ended.err.contains("WARN"), "{}", ended.err);
}

#[test]
fn what_makes_no_sense_is_64() {
    let place = Place::new();
    place.file("logins.json", r#"{"auths": {"a.example": {"auth": "?"}}}"#);
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
        place.file("config.toml", &format!("[docker]\n{config}\n"));
        let arguments = ["--config", "config.toml", "--backend", spec, "tools"];
        let ended = place.run_with(&arguments, &[NOWHERE]);
        assert_eq!(ended.code, 64, "{config} {spec}: {}", ended.err);
        assert!(ended.err.contains(about), "{}", ended.err);
    }
}

#[test]
fn runtimes_are_listed_and_shown() {
    let place = Place::new();
    let list = place.run(&["runtimes", "list"]).code(0).out;
    for name in [
        "python-minimal",
        "python-datascience",
        "node-react",
        "go",
        "rust",
    ] {
        assert!(list.contains(name), "{list}");
    }
    let shown = place.run(&["runtimes", "show", "python-web"]).code(0).out;
    place.file("own.toml", &shown.replace("python-web", "own-web"));
    place.file("config.toml", "[docker]\nruntimes = \"own.toml\"\n");
    let own = ["--config", "config.toml", "runtimes", "show", "own-web"];
    assert_eq!(
        place.run(&own).code(0).out,
        shown.replace("python-web", "own-web"),
        "what is shown can be used"
    );
    let file = place.run(&["runtimes", "show", "--dockerfile", "python-web"]);
    assert!(file.code(0).out.starts_with("FROM "));
    let json = place.run(&["runtimes", "list", "--json"]).code(0).json();
    assert!(json.as_array().unwrap().len() >= 15);
    place
        .run(&["runtimes", "show", "cobol"])
        .code(64)
        .complains("python-minimal");
}

#[test]
fn the_doctor_finds_no_daemon() {
    let place = Place::new();
    let found = place
        .run_with(&["doctor", "--json"], &[NOWHERE])
        .code(0)
        .json();
    let findings = found["findings"].as_array().unwrap();
    let docker = findings.iter().find(|finding| finding["name"] == "docker");
    let docker = docker.unwrap();
    assert_eq!(docker["ok"], false);
    assert!(docker["fix"].as_str().unwrap().contains("DOCKER_HOST"));
}
