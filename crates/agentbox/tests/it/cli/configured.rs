//! The config file, variables and flags.

use crate::support::TestDir;

/// Returns the number of tools: one profile has 7, another 15.
fn tools(dir: &TestDir, arguments: &[&str], variables: &[(&str, &str)]) -> usize {
    let all = [&["tools", "--json", "--backend", "state"], arguments].concat();
    let ended = dir.run_with(&all, variables).code(0);
    ended.json().as_array().unwrap().len()
}

#[test]
fn a_flag_beats_a_variable_beats_the_file() {
    let dir = TestDir::new();
    let (usual, few) = (tools(&dir, &[], &[]), 7);
    assert_ne!(usual, few);
    let config = "home/.config/agentbox/config.toml";
    dir.file(config, "profile = \"filesystem\"\n");
    assert_eq!(tools(&dir, &[], &[]), few);
    let variable = [("AGENTBOX_PROFILE", "coding")];
    assert_eq!(tools(&dir, &[], &variable), usual);
    assert_eq!(tools(&dir, &["--profile", "filesystem"], &variable), few);
    // A named file instead of the default one.
    dir.file("other.toml", "[options]\ninclude_file_operations = false\n");
    let fewer = usual - 3;
    assert_eq!(tools(&dir, &["--config", "other.toml"], &[]), fewer);
    assert_eq!(
        tools(&dir, &[], &[("AGENTBOX_CONFIG", "other.toml")]),
        fewer
    );
    let variable = [("AGENTBOX_OPTIONS_INCLUDE_FILE_OPERATIONS", "true")];
    assert_eq!(tools(&dir, &["--config", "other.toml"], &variable), usual);
}

#[test]
fn what_is_not_known_is_64_with_the_nearest() {
    let dir = TestDir::new();
    dir.file("config.toml", "permision = \"readonly\"\n");
    let wrong = dir.run(&["--config", "config.toml", "tools"]).code(64);
    wrong.complains("did you mean permissions?");
    let wrong = dir.run_with(&["tools"], &[("AGENTBOX_PERMISSION", "readonly")]);
    wrong
        .code(64)
        .complains("did you mean AGENTBOX_PERMISSIONS?");
    dir.run(&["--config", "missing.toml", "tools"])
        .code(64)
        .complains("missing.toml");
    assert_eq!(
        crate::support::names(&dir.path("")),
        ["config.toml", "home"]
    );
}

#[test]
fn backends_that_there_are_not_are_64() {
    let dir = TestDir::new();
    for spec in ["pods", "podman:a", ""] {
        let wrong = dir.run(&["--backend", spec, "tools"]).code(64);
        wrong.complains("local:DIR, state[:FILE]");
    }
    dir.run(&["--backend", "home", "tools"])
        .code(64)
        .complains("local:home");
    dir.run(&["--backend", "local:", "tools"])
        .code(64)
        .complains("local:DIR");
    dir.run(&["--backend", "state:", "tools"])
        .code(64)
        .complains("state:FILE");
}

#[test]
fn what_cannot_be_opened_is_named_once() {
    let dir = TestDir::new();
    dir.file("home/a.py", "");
    let file = dir.run(&["--backend", "local:home/a.py", "tools"]);
    let path = dir.path("home/a.py");
    let said = format!("{} is not a directory", path.display());
    file.code(3).complains(&said);
    let missing = dir.run(&["--backend", "mounts:none.toml", "tools"]);
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
    let dir = TestDir::new();
    let rules = "[read]\n[[read.rules]]\npattern = \"a\"\naction = \"deny\"\n";
    dir.file("sub/rules.toml", rules);
    dir.file("sub/project/a", "secret");
    dir.file("sub/project/b", "public");
    let config = "backend = \"local:project\"\npermissions = \"rules.toml\"\n";
    dir.file("sub/config.toml", config);
    let call = |path: &str| {
        let arguments = format!(r#"{{"path":"{path}"}}"#);
        dir.run(&[
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
    let dir = TestDir::new();
    dir.file("home/project/a", "");
    let list = dir
        .run(&["--backend", "local:~/project", "call", "ls"])
        .code(0);
    assert!(list.out.contains('a'), "{}", list.out);
}

#[test]
fn settings_of_the_backend_count() {
    let dir = TestDir::new();
    dir.file(
        "config.toml",
        "[local]\nread_only = true\ncommands = false\n",
    );
    let tools = dir.run(&["--config", "config.toml", "tools"]).code(0).out;
    assert!(
        !tools.contains("execute") && !tools.contains("write_file"),
        "{tools}"
    );
    dir.file("config.toml", "[local]\nnetwork = true\n");
    let wrong = dir.run(&["--config", "config.toml", "--backend", "local:.", "tools"]);
    wrong.code(64).complains("confinement");
    dir.file("config.toml", "[local]\nprocesses = \"many\"\n");
    let wrong = dir.run(&["--config", "config.toml", "--backend", "local:.", "tools"]);
    wrong.code(64).complains("[local]");
}

#[test]
fn commands_do_not_ask_unless_it_is_said() {
    let dir = TestDir::new();
    let run = ["call", "execute", r#"{"command":"true"}"#];
    dir.run(&run).code(0);
    let variable = [("AGENTBOX_OPTIONS_REQUIRE_EXECUTE_APPROVAL", "true")];
    dir.run_with(&run, &variable).code(2);
    dir.file("config.toml", "[tools.tools.execute]\naction = \"deny\"\n");
    dir.run(&[&["--config", "config.toml"][..], &run].concat())
        .code(2);
}

#[test]
fn the_log_goes_to_standard_error() {
    let dir = TestDir::new();
    let ended = dir.run(&["--log", "debug", "call", "ls", "--json"]).code(0);
    ended.json();
    assert!(ended.err.contains("DEBUG"), "{}", ended.err);
    let quiet = dir
        .run(&["--log", "console_tools=debug", "call", "ls"])
        .code(0);
    assert!(quiet.err.contains("console_tools"), "{}", quiet.err);
}

#[test]
fn names_of_the_python_library_are_understood() {
    let dir = TestDir::new();
    let lean = dir.run(&["tools", "--json", "--profile", "lean"]).code(0);
    let agent = dir.run(&["tools", "--json", "--profile", "agent"]).code(0);
    assert_eq!(lean.out, agent.out);
    dir.file("config.toml", "profile = \"agent\"\nmax_image_bytes = 10\n");
    let configured = ["--config", "config.toml"];
    let tools = dir.run(&[&["tools", "--json"], &configured[..]].concat());
    assert_eq!(lean.out, tools.code(0).out);
    let picture = dir.file("agentbox-workspace/a.png", "");
    std::fs::write(picture, b"\x89PNG\r\n\x1a\n and more").unwrap();
    let call = ["call", "read_file", r#"{"path": "a.png"}"#];
    let large = dir.run(&[&call[..], &configured].concat()).code(1);
    assert!(
        large.err.contains("too large") || large.out.contains("too large"),
        "{large:?}"
    );
    let twice = "max_image_bytes = 10\n[options.limits]\nimage_bytes = 11\n";
    dir.file("config.toml", twice);
    let twice = [&["tools"], &configured[..]].concat();
    dir.run(&twice)
        .code(64)
        .complains("which are the same option");
    let twice = [
        ("AGENTBOX_DOCKER_MEM_LIMIT", "1g"),
        ("AGENTBOX_DOCKER_MEMORY", "2g"),
    ];
    let twice = dir.run_with(&["tools", "--backend", "state"], &twice);
    twice
        .code(64)
        .complains("docker.mem_limit and docker.memory");
    let rules = ["check", "READONLY_RULESET", "write", "/a"];
    dir.run(&rules).code(1);
}

#[test]
fn more_directories_can_be_allowed() {
    let dir = TestDir::new();
    let here = dir.path("").canonicalize().unwrap();
    for name in ["work", "more", "other"] {
        dir.file(&format!("{name}/a.txt"), name);
    }
    let of = |name: &str| here.join(name).join("a.txt").display().to_string();
    let read = |flags: &[&str], path: &str| {
        let arguments = serde_json::json!({ "path": path }).to_string();
        let call = [
            &["call", "read_file", &arguments, "--backend", "local:work"],
            flags,
        ]
        .concat();
        dir.run(&call)
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
    dir.file(
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
    read(&["--allow-dir", "missing"], "a.txt")
        .code(3)
        .complains("create it with mkdir, or name another");
    // Rules would match only one of the file's two paths.
    std::os::unix::fs::symlink("more", dir.path("alias")).unwrap();
    read(&["--allow-dir", "alias"], "a.txt")
        .code(64)
        .complains("leads through a link");
    let state = ["tools", "--backend", "state", "--allow-dir", "more"];
    dir.run(&state).code(64).complains("local:DIR");
    dir.file("tree.toml", "default = \"local:work\"\n");
    let tree = [
        "tools",
        "--backend",
        "composite:tree.toml",
        "--config",
        "conf/config.toml",
    ];
    dir.run(&tree).code(64).complains("a part of its own");
    // A client's snippet includes them.
    let snippet = [
        "mcp-config",
        "cursor",
        "--backend",
        "local:work",
        "--allow-dir",
        "work/../more/.",
    ];
    let args = dir.run(&snippet).code(0).json()["mcpServers"]["agentbox"]["args"].take();
    assert_eq!(args[3], "--allow-dir");
    assert_eq!(args[4], here.join("more").to_str().unwrap());
}
