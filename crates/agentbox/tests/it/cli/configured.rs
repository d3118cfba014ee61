//! The config file, variables and flags.

use crate::support::Place;

/// Returns the number of tools: one profile has 7, another 15.
fn tools(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> usize {
    let all = [&["tools", "--json", "--backend", "state"], arguments].concat();
    let ended = place.run_with(&all, variables).code(0);
    ended.json().as_array().unwrap().len()
}

#[test]
fn a_flag_beats_a_variable_beats_the_file() {
    let place = Place::new();
    let (usual, few) = (tools(&place, &[], &[]), 7);
    assert_ne!(usual, few);
    let config = "home/.config/agentbox/config.toml";
    place.file(config, "profile = \"filesystem\"\n");
    assert_eq!(tools(&place, &[], &[]), few);
    let variable = [("AGENTBOX_PROFILE", "coding")];
    assert_eq!(tools(&place, &[], &variable), usual);
    assert_eq!(tools(&place, &["--profile", "filesystem"], &variable), few);
    // A named file instead of the default one.
    place.file("other.toml", "[options]\ninclude_file_operations = false\n");
    let fewer = usual - 3;
    assert_eq!(tools(&place, &["--config", "other.toml"], &[]), fewer);
    assert_eq!(
        tools(&place, &[], &[("AGENTBOX_CONFIG", "other.toml")]),
        fewer
    );
    let variable = [("AGENTBOX_OPTIONS_INCLUDE_FILE_OPERATIONS", "true")];
    assert_eq!(tools(&place, &["--config", "other.toml"], &variable), usual);
}

#[test]
fn what_is_not_known_is_64_with_the_nearest() {
    let place = Place::new();
    place.file("config.toml", "permision = \"readonly\"\n");
    let wrong = place.run(&["--config", "config.toml", "tools"]).code(64);
    wrong.complains("did you mean permissions?");
    let wrong = place.run_with(&["tools"], &[("AGENTBOX_PERMISSION", "readonly")]);
    wrong
        .code(64)
        .complains("did you mean AGENTBOX_PERMISSIONS?");
    place
        .run(&["--config", "missing.toml", "tools"])
        .code(64)
        .complains("missing.toml");
    assert_eq!(
        crate::support::names(&place.path("")),
        ["config.toml", "home"]
    );
}

#[test]
fn backends_that_there_are_not_are_64() {
    let place = Place::new();
    for spec in ["k8s", "daytona:a", ""] {
        let wrong = place.run(&["--backend", spec, "tools"]).code(64);
        wrong.complains("local:DIR, state[:FILE]");
    }
    place
        .run(&["--backend", "home", "tools"])
        .code(64)
        .complains("local:home");
    place
        .run(&["--backend", "local:", "tools"])
        .code(64)
        .complains("local:DIR");
    place
        .run(&["--backend", "state:", "tools"])
        .code(64)
        .complains("state:FILE");
}

#[test]
fn what_cannot_be_opened_is_named_once() {
    let place = Place::new();
    place.file("home/a.py", "");
    let file = place.run(&["--backend", "local:home/a.py", "tools"]);
    let path = place.path("home/a.py");
    let said = format!("{} is not a directory", path.display());
    file.code(3).complains(&said);
    let missing = place.run(&["--backend", "mounts:none.toml", "tools"]);
    let missing = missing.code(64);
    assert_eq!(
        missing.err.matches("No such file").count(),
        1,
        "{}",
        missing.err
    );
}

#[test]
fn paths_in_the_file_start_where_it_is() {
    let place = Place::new();
    let rules = "[read]\n[[read.rules]]\npattern = \"a\"\naction = \"deny\"\n";
    place.file("sub/rules.toml", rules);
    place.file("sub/project/a", "secret");
    place.file("sub/project/b", "public");
    let config = "backend = \"local:project\"\npermissions = \"rules.toml\"\n";
    place.file("sub/config.toml", config);
    let call = |path: &str| {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        place.run(&[
            "--config",
            "sub/config.toml",
            "call",
            "read_file",
            &arguments,
        ])
    };
    call("a").code(2);
    assert!(call("b").code(0).out.contains("public"));
}

#[test]
fn a_tilde_is_the_home() {
    let place = Place::new();
    place.file("home/project/a", "");
    let list = place
        .run(&["--backend", "local:~/project", "call", "ls"])
        .code(0);
    assert!(list.out.contains('a'), "{}", list.out);
}

#[test]
fn settings_of_the_backend_count() {
    let place = Place::new();
    place.file(
        "config.toml",
        "[local]\nread_only = true\ncommands = false\n",
    );
    let tools = place.run(&["--config", "config.toml", "tools"]).code(0).out;
    assert!(
        !tools.contains("execute") && !tools.contains("write_file"),
        "{tools}"
    );
    place.file("config.toml", "[local]\nnetwork = true\n");
    let wrong = place.run(&["--config", "config.toml", "--backend", "local:.", "tools"]);
    wrong.code(64).complains("confinement");
    place.file("config.toml", "[local]\nprocesses = \"many\"\n");
    let wrong = place.run(&["--config", "config.toml", "--backend", "local:.", "tools"]);
    wrong.code(64).complains("[local]");
}

#[test]
fn commands_do_not_ask_unless_it_is_said() {
    let place = Place::new();
    let run = ["call", "execute", r#"{"command":"true"}"#];
    place.run(&run).code(0);
    let variable = [("AGENTBOX_OPTIONS_REQUIRE_EXECUTE_APPROVAL", "true")];
    place.run_with(&run, &variable).code(2);
    place.file("config.toml", "[tools.tools.execute]\naction = \"deny\"\n");
    place
        .run(&[&["--config", "config.toml"][..], &run].concat())
        .code(2);
}

#[test]
fn the_log_goes_to_standard_error() {
    let place = Place::new();
    let ended = place
        .run(&["--log", "debug", "call", "ls", "--json"])
        .code(0);
    ended.json();
    assert!(ended.err.contains("DEBUG"), "{}", ended.err);
    let quiet = place
        .run(&["--log", "console_tools=debug", "call", "ls"])
        .code(0);
    assert!(quiet.err.contains("console_tools"), "{}", quiet.err);
}

#[test]
fn names_of_the_python_library_are_understood() {
    let place = Place::new();
    let lean = place.run(&["tools", "--json", "--profile", "lean"]).code(0);
    let agent = place
        .run(&["tools", "--json", "--profile", "agent"])
        .code(0);
    assert_eq!(lean.out, agent.out);
    place.file("config.toml", "profile = \"agent\"\nmax_image_bytes = 10\n");
    let configured = ["--config", "config.toml"];
    let tools = place.run(&[&["tools", "--json"], &configured[..]].concat());
    assert_eq!(lean.out, tools.code(0).out);
    let picture = place.file("agentbox-workspace/a.png", "");
    std::fs::write(picture, b"\x89PNG\r\n\x1a\n and more").unwrap();
    let call = ["call", "read_file", r#"{"path": "a.png"}"#];
    let large = place.run(&[&call[..], &configured].concat()).code(1);
    assert!(
        large.err.contains("too large") || large.out.contains("too large"),
        "{large:?}"
    );
    let twice = "max_image_bytes = 10\n[options.limits]\nimage_bytes = 11\n";
    place.file("config.toml", twice);
    let twice = [&["tools"], &configured[..]].concat();
    place.run(&twice).code(64).complains("which are one");
    let twice = [
        ("AGENTBOX_DOCKER_MEM_LIMIT", "1g"),
        ("AGENTBOX_DOCKER_MEMORY", "2g"),
    ];
    let twice = place.run_with(&["tools", "--backend", "state"], &twice);
    twice
        .code(64)
        .complains("docker.mem_limit and docker.memory");
    let rules = ["check", "READONLY_RULESET", "write", "/a"];
    place.run(&rules).code(1);
}

#[test]
fn more_directories_can_be_allowed() {
    let place = Place::new();
    let here = place.path("").canonicalize().unwrap();
    for name in ["work", "more", "other"] {
        place.file(&format!("{name}/a.txt"), name);
    }
    let of = |name: &str| here.join(name).join("a.txt").display().to_string();
    let read = |flags: &[&str], path: &str| {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let call = [
            &["call", "read_file", &arguments, "--backend", "local:work"],
            flags,
        ]
        .concat();
        place.run(&call)
    };
    let allowed = ["--allow-dir", "more"];
    // Paths are those of the machine; relative ones start in the backend's directory.
    for (path, text) in [
        ("a.txt", "work"),
        (&*of("work"), "work"),
        (&*of("more"), "more"),
    ] {
        assert!(read(&allowed, path).code(0).out.contains(text), "{path}");
    }
    for path in [&*of("other"), "../other/a.txt", "/etc/passwd"] {
        let ended = read(&allowed, path);
        assert_ne!(ended.code, 0, "{path}: {ended:?}");
    }
    read(&[], &of("more")).code(1);
    // The same in a file, whose paths are relative to it.
    place.file(
        "conf/config.toml",
        "[local]\nallowed_directories = [\"../more\", \"../other\"]\n",
    );
    let file = ["--config", "conf/config.toml"];
    assert!(read(&file, &of("other")).code(0).out.contains("other"));
    let both = [&file[..], &allowed].concat();
    assert_ne!(
        read(&both, &of("other")).code,
        0,
        "a flag outranks the file"
    );
    assert_ne!(read(&["--allow-dir", "missing"], "a.txt").code, 0);
    // Rules would match only one of the file's two paths.
    std::os::unix::fs::symlink("more", place.path("alias")).unwrap();
    read(&["--allow-dir", "alias"], "a.txt")
        .code(64)
        .complains("leads through a link");
    let state = ["tools", "--backend", "state", "--allow-dir", "more"];
    place.run(&state).code(64).complains("local:DIR");
    place.file("tree.toml", "default = \"local:work\"\n");
    let tree = [
        "tools",
        "--backend",
        "composite:tree.toml",
        "--config",
        "conf/config.toml",
    ];
    place.run(&tree).code(64).complains("a part of its own");
    // A client's snippet includes them.
    let snippet = [
        "mcp-config",
        "cursor",
        "--backend",
        "local:work",
        "--allow-dir",
        "more/.",
    ];
    let args = place.run(&snippet).code(0).json()["mcpServers"]["agentbox"]["args"].take();
    assert_eq!(args[3], "--allow-dir");
    assert_eq!(args[4], here.join("more").to_str().unwrap());
}
