//! Several backends as one tree, and named directories.

use crate::support::{TestDir, names};

const TREE: &str = r#"
    default = "state"
    working_dir = "/desk"

    [routes]
    "/docs" = "local:docs"

    [routes."/desk"]
    backend = "local:desk"
    settings = { commands = true }

    [routes."/desk/plain"]
    backend = "local:plain"
    settings = { commands = false }
"#;

fn tree() -> TestDir {
    let dir = TestDir::new();
    dir.file("tree/tree.toml", TREE);
    dir.file("tree/docs/guide.md", "# Guide\nneedle\n");
    dir.file("tree/desk/a.txt", "needle\n");
    dir.file("tree/plain/b.txt", "hay\n");
    dir
}

fn call(dir: &TestDir, tool: &str, arguments: &str) -> crate::support::ProgramOutput {
    dir.run(&[
        "--backend",
        "composite:tree/tree.toml",
        "call",
        tool,
        arguments,
    ])
}

#[test]
fn files_of_a_tree_lie_where_the_file_says() {
    let dir = tree();
    let write = r#"{"path": "new.txt", "content": "new\n"}"#;
    call(&dir, "write_file", write).code(0);
    assert_eq!(dir.read("tree/desk/new.txt"), "new\n");
    let write = r#"{"path": "/docs/more.md", "content": "more\n"}"#;
    call(&dir, "write_file", write).code(0);
    assert_eq!(dir.read("tree/docs/more.md"), "more\n");
    let found = call(&dir, "grep", r#"{"pattern": "needle", "path": "/"}"#).code(0);
    assert!(found.out.contains("/docs/guide.md"), "{}", found.out);
    assert!(found.out.contains("/desk/a.txt"), "{}", found.out);
    let listed = call(&dir, "ls", r#"{"path": "/"}"#).code(0).out;
    assert!(
        listed.contains("docs/") && listed.contains("desk/"),
        "{listed}"
    );
}

#[test]
fn commands_run_where_their_directory_is() {
    let dir = tree();
    let ran = dir.run(&["--backend", "composite:tree/tree.toml", "run", "--", "ls"]);
    assert_eq!(ran.code(0).out, "a.txt\n");
    let arguments = r#"{"command": "ls", "directory": "/docs"}"#;
    let ran = call(&dir, "execute", arguments).code(0);
    assert!(ran.out.contains("guide.md"), "{}", ran.out);
    let arguments = r#"{"command": "ls", "directory": "/desk/plain"}"#;
    assert_ne!(call(&dir, "execute", arguments).code, 0);
}

#[test]
fn what_is_wrong_in_a_file_is_64_with_its_place() {
    let dir = TestDir::new();
    for (text, about) in [
        ("routes = 1", "wrong.toml:1"),
        ("rotues = {}", "rotues"),
        ("", "it names no backend"),
        ("[routes]\ndocs = \"state\"", "absolute path"),
        (
            "[routes]\n\"/a\" = \"nowhere:b\"",
            "this version has no backend",
        ),
        (
            "[routes]\n\"/a\" = \"composite:wrong.toml\"",
            "names itself",
        ),
        ("[routes]\n\"/a\" = \"state\"\n\"/a/\" = \"state\"", "/a"),
        (
            "[routes.\"/a\"]\nbackend = \"local:.\"\nsettings = { comands = true }",
            "comands",
        ),
    ] {
        dir.file("wrong.toml", text);
        let wrong = dir.run(&["--backend", "composite:wrong.toml", "tools"]);
        assert!(
            wrong.code == 64 || wrong.code == 3,
            "{text}: {}",
            wrong.code
        );
        wrong.complains(about);
    }
    for spec in [
        "composite:",
        "composite",
        "composite:none.toml",
        "mounts",
        "mounts:none.toml",
    ] {
        dir.run(&["--backend", spec, "tools"]).code(64);
    }
}

const MOUNTS: &str = r#"
    [[mounts]]
    host_path = "input"
    mount_point = "/input"

    [[mounts]]
    host_path = "output"
    mount_point = "/output"
    mode = "rw"
    suffixes = [".md"]
    max_file_bytes = 10
    write_approval = false

    [[mounts]]
    host_path = "config"
    mount_point = "/config"
    read_approval = true
"#;

#[test]
fn named_directories_say_what_may_be_done_in_them() {
    let dir = TestDir::new();
    dir.file("m/mounts.toml", MOUNTS);
    dir.file("m/input/a.txt", "input\n");
    dir.file("m/config/c.txt", "config\n");
    std::fs::create_dir(dir.path("m/output")).unwrap();
    let call = |tool: &str, arguments: &str| {
        let flags = [
            "--backend",
            "mounts:m/mounts.toml",
            "--profile",
            "filesystem",
        ];
        dir.run(&[&flags[..], &["call", tool, arguments]].concat())
    };
    let read = call("read_file", r#"{"path": "/input/a.txt"}"#).code(0);
    assert!(read.out.contains("input"), "{}", read.out);
    call(
        "write_file",
        r#"{"path": "/output/a.md", "content": "short"}"#,
    )
    .code(0);
    assert_eq!(dir.read("m/output/a.md"), "short");
    for refused in [
        r#"{"path": "/input/a.txt", "content": "x"}"#,
        r#"{"path": "/output/a.sh", "content": "x"}"#,
        r#"{"path": "/output/b.md", "content": "longer than ten"}"#,
        r#"{"path": "/elsewhere.md", "content": "x"}"#,
    ] {
        let code = call("write_file", refused).code;
        assert!(code == 1 || code == 2, "{refused}: {code}");
    }
    // Without a terminal the user cannot be asked.
    let asked = call("read_file", r#"{"path": "/config/c.txt"}"#).code(2);
    assert!(asked.err.contains("read_approval"), "{}", asked.err);
    assert_eq!(names(&dir.path("m/output")), ["a.md"]);
    assert_eq!(dir.read("m/input/a.txt"), "input\n");
}
