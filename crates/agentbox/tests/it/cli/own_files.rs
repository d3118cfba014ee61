//! The files that define what the tools may do, in places that the tools can reach.

use crate::support::TestDir;

const RULES: &str = "default = \"allow\"\n";

/// Creates a directory that holds its own rules.
fn dir() -> TestDir {
    let dir = TestDir::new();
    dir.file("work/conf/rules.toml", RULES);
    dir.file("work/config.toml", "profile = \"lean\"\n");
    dir.file("work/a.txt", "a\n");
    dir
}

const FLAGS: &[&str] = &[
    "--backend",
    "local:work",
    "--permissions",
    "work/conf/rules.toml",
    "--config",
    "work/config.toml",
];

#[test]
fn tools_do_not_change_the_rules_that_hold_them() {
    let dir = dir();
    let call = |tool: &str, arguments: &str| dir.run(&[FLAGS, &["call", tool, arguments]].concat());
    for (tool, arguments) in [
        (
            "write_file",
            r#"{"path": "conf/rules.toml", "content": "x"}"#,
        ),
        ("write_file", r#"{"path": "config.toml", "content": "x"}"#),
        (
            "edit_file",
            r#"{"path": "config.toml", "old_string": "lean", "new_string": "x"}"#,
        ),
        ("delete_file", r#"{"path": "conf/rules.toml"}"#),
        ("delete_file", r#"{"path": "conf", "recursive": true}"#),
        ("move_file", r#"{"source": "conf", "destination": "old"}"#),
        (
            "move_file",
            r#"{"source": "a.txt", "destination": "config.toml", "overwrite": true}"#,
        ),
        ("execute", r#"{"command": "echo x > conf/rules.toml"}"#),
        ("execute", r#"{"command": "mv conf old"}"#),
        ("execute", r#"{"command": "cd conf; rm rules.toml"}"#),
    ] {
        let refused = call(tool, arguments);
        assert_eq!(refused.code, 2, "{tool} {arguments}: {refused:?}");
    }
    // The same with the host path, which commands can use.
    let named = dir.path("work/conf/rules.toml").canonicalize().unwrap();
    let line = format!(r#"{{"command": "echo x > {}"}}"#, named.display());
    call("execute", &line).code(2);
    assert_eq!(dir.read("work/conf/rules.toml"), RULES);
    assert_eq!(dir.read("work/config.toml"), "profile = \"lean\"\n");
    // Reading them is allowed, and so is everything beside them.
    call("read_file", r#"{"path": "conf/rules.toml"}"#).code(0);
    call(
        "execute",
        r#"{"command": "cat conf/rules.toml; cp a.txt conf/b.txt"}"#,
    )
    .code(0);
    call("write_file", r#"{"path": "conf/new.txt", "content": "x"}"#).code(0);
    call(
        "move_file",
        r#"{"source": "a.txt", "destination": "b.txt"}"#,
    )
    .code(0);
    let run = ["run", "--", "sh", "-c", "echo x > config.toml"];
    dir.run(&[FLAGS, &run].concat()).code(125);
}

#[test]
fn without_rules_the_configuration_is_protected_all_the_same() {
    let dir = dir();
    let flags = [
        "--backend",
        "local:work",
        "--config",
        "work/config.toml",
        "call",
    ];
    let call = |tool: &str, arguments: &str| dir.run(&[&flags[..], &[tool, arguments]].concat());
    call("write_file", r#"{"path": "config.toml", "content": "x"}"#).code(2);
    call("execute", r#"{"command": "sed -i s/lean/x/ *.toml"}"#).code(2);
    call("execute", r#"{"command": "V=a.txt; cat $V"}"#).code(0);
    // A config file created there would take effect at the next start.
    let home = dir.path("home");
    std::fs::create_dir_all(&home).unwrap();
    let flags = ["--backend", "local:home", "call", "write_file"];
    let write = r#"{"path": ".config/agentbox/config.toml", "content": ""}"#;
    dir.run(&[&flags[..], &[write]].concat()).code(2);
    assert!(!home.join(".config").exists());
}

#[test]
fn files_that_describe_a_tree_are_protected_in_it() {
    let dir = TestDir::new();
    dir.file(
        "work/tree.toml",
        "default = \"state\"\n[routes]\n\"/docs\" = \"local:.\"\n",
    );
    let mounts = "[[mounts]]\nhost_path = \".\"\nmount_point = \"/m\"\nmode = \"rw\"\nwrite_approval = false\n";
    dir.file("work/mounts.toml", mounts);
    for (backend, path) in [
        ("composite:work/tree.toml", "/docs/tree.toml"),
        ("mounts:work/mounts.toml", "/m/mounts.toml"),
    ] {
        let call = |path: &str| {
            let write = format!(r#"{{"path": "{path}", "content": "x"}}"#);
            dir.run(&["--backend", backend, "call", "write_file", &write])
        };
        call(path).code(2);
        call(&path.replace(".toml", ".txt")).code(0);
    }
    assert_eq!(dir.read("work/mounts.toml"), mounts);
}

#[test]
fn confined_commands_and_rules_they_could_change_exclude_each_other() {
    let dir = dir();
    let config = dir.file(
        "config.toml",
        "permissions = \"work/conf/rules.toml\"\n[local]\nconfinement = \"landlock\"\n",
    );
    let config = config.to_str().unwrap();
    let flags = [
        "--backend",
        "local:work",
        "--config",
        config,
        "run",
        "--",
        "true",
    ];
    dir.run(&flags).code(64).complains("put it elsewhere");
    std::fs::rename(dir.path("work/conf"), dir.path("conf")).unwrap();
    dir.file(
        "config.toml",
        "permissions = \"conf/rules.toml\"\n[local]\nconfinement = \"landlock\"\n",
    );
    dir.run(&flags).code(0);
}

#[test]
fn a_token_that_the_tools_could_read_is_refused() {
    let dir = dir();
    let flags = ["mcp", "--backend", "local:work", "--http", "127.0.0.1:0"];
    let inside = [&flags[..], &["--token-file", "work/token"]].concat();
    dir.run(&inside).code(64).complains("could read the token");
    assert!(!dir.path("work/token").exists());
    // The same if only a part of a tree shows it.
    dir.file(
        "tree.toml",
        "default = \"state\"\n[routes]\n\"/w\" = \"local:work\"\n",
    );
    let part = [
        "mcp",
        "--backend",
        "composite:tree.toml",
        "--http",
        "127.0.0.1:0",
    ];
    let part = [&part[..], &["--token-file", "work/token"]].concat();
    dir.run(&part).code(64).complains("could read the token");
}
