//! `doctor`.

use crate::support::{TestDir, names};

#[test]
fn the_doctor_tells_what_is_there_and_what_to_do() {
    let dir = TestDir::new();
    let ended = dir.run(&["doctor"]).code(0);
    assert!(
        ended.out.contains("The default backend works here."),
        "{}",
        ended.out
    );
    let found = dir.run(&["doctor", "--json"]).code(0).json();
    assert_eq!(found["works"], true);
    let findings = found["findings"].as_array().unwrap();
    for name in [
        "configuration",
        "workspace",
        "files",
        "commands",
        "landlock",
        "docker",
        "python3",
    ] {
        let finding = findings.iter().find(|finding| finding["name"] == name);
        let finding = finding.unwrap_or_else(|| panic!("{name} is missing"));
        // Every problem comes with a fix.
        assert_ne!(
            finding["ok"] == true,
            finding["fix"].is_string(),
            "{finding}"
        );
    }
    // The user is not told to set up something that no backend uses.
    assert!(!ended.out.contains("kube"), "{}", ended.out);
    assert_eq!(names(&dir.path("")), ["home"], "looking changes nothing");
}

#[test]
fn a_wrong_configuration_is_a_finding() {
    let dir = TestDir::new();
    dir.file("home/.config/agentbox/config.toml", "bakend = 'state'");
    let found = dir.run(&["doctor", "--json"]).code(3).json();
    assert_eq!(found["works"], false);
    assert_eq!(found["findings"][0]["ok"], false);
}

#[test]
fn the_backend_in_force_is_judged() {
    let dir = TestDir::new();
    dir.file("mounts.toml", "root = \"home\"\n");
    dir.file("tree.toml", "default = \"local:nope\"\n");
    for (spec, name, fix) in [
        ("local:nope", "backend", "mkdir"),
        ("local:mounts.toml", "backend", "name one"),
        ("composite:none.toml", "backend", "name another"),
        ("composite:tree.toml", "backend", "mkdir"),
        ("mounts:none.toml", "backend", "name a TOML file"),
        ("docker", "backend", "agentbox runtimes list"),
        ("docker:busybox", "docker", "DOCKER_HOST"),
    ] {
        let variables = [("DOCKER_HOST", "unix:///nowhere/docker.sock")];
        let doctor = ["doctor", "--backend", spec, "--json"];
        let found = dir.run_with(&doctor, &variables).code(3).json();
        assert_eq!(found["works"], false, "{spec}");
        let findings = found["findings"].as_array().unwrap();
        let bad =
            |finding: &&serde_json::Value| finding["needed"] == true && finding["ok"] == false;
        let bad: Vec<_> = findings.iter().filter(bad).collect();
        assert_eq!(bad.len(), 1, "{spec}: {bad:?}");
        assert_eq!(bad[0]["name"], name, "{spec}");
        let said = bad[0]["fix"].as_str().unwrap();
        assert!(said.contains(fix), "{spec}: {said}");
    }
    dir.file("config.toml", "[local]\nnetwork = true\n");
    let doctor = ["doctor", "--config", "config.toml"];
    let ended = dir.run(&doctor).code(3);
    assert!(ended.out.contains("fix: set confinement"), "{}", ended.out);
    for spec in ["local:home", "state", "mounts:mounts.toml"] {
        let ended = dir.run(&["doctor", "--backend", spec]).code(0);
        let (_, verdict) = ended.out.trim_end().rsplit_once('\n').unwrap();
        assert!(verdict.starts_with("The backend "), "{verdict}");
        assert!(verdict.ends_with(" works here."), "{verdict}");
    }
}

#[test]
fn an_agent_that_is_none_comes_with_its_cure() {
    let dir = TestDir::new();
    for named in ["/bin/ls", "/nowhere"] {
        let variables = [
            ("SANDBOX_AGENT", named),
            ("DOCKER_HOST", "tcp://127.0.0.1:1"),
        ];
        let found = dir.run_with(&["doctor", "--json"], &variables).code(0);
        let found = found.json()["findings"].take();
        let all = found.as_array().unwrap();
        let agent = all.iter().find(|one| one["name"] == "sandbox-agent");
        assert_eq!(
            agent.unwrap()["fix"],
            "unset SANDBOX_AGENT, or name an agent"
        );
        let call = ["--backend", "docker:busybox", "call", "ls"];
        let ended = dir.run_with(&call, &variables).code(64);
        ended.complains("unset SANDBOX_AGENT, or name an agent");
    }
}

#[test]
fn nowhere_to_write_is_a_finding() {
    let dir = TestDir::new();
    let temporary = dir.path("none");
    let variable = [("TMPDIR", temporary.to_str().unwrap())];
    let ended = dir.run_with(&["doctor"], &variable).code(3);
    assert!(ended.out.contains("MISSING"), "{}", ended.out);
    assert!(ended.out.contains("TMPDIR"), "{}", ended.out);
}
