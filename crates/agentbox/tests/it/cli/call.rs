//! `call` and `tools`.

use serde_json::json;

use crate::support::{TestDir, names};

#[test]
fn calls_work_and_the_default_directory_is_made_once() {
    let dir = TestDir::new();
    let first = dir.run(&[
        "call",
        "write_file",
        r#"{"path":"a/b.txt","content":"one\n"}"#,
    ]);
    let first = first.code(0);
    assert_eq!(first.out.lines().count(), 1, "{}", first.out);
    assert!(
        first.err.contains("agentbox-workspace (new)"),
        "{}",
        first.err
    );
    assert_eq!(dir.read("agentbox-workspace/a/b.txt"), "one\n");
    let again = dir
        .run(&["call", "read_file", r#"{"path":"a/b.txt"}"#])
        .code(0);
    assert!(again.out.contains("one\n"), "{}", again.out);
    assert_eq!(again.err, "", "said once");
    assert_eq!(names(&dir.path("")), ["agentbox-workspace", "home"]);
    assert!(names(&dir.path("home")).is_empty());
}

#[test]
fn exit_codes_tell_what_can_be_done() {
    let dir = TestDir::new();
    let fixable = dir
        .run(&["call", "read_file", r#"{"path":"none"}"#])
        .code(1);
    assert!(
        fixable.err.contains("none") && fixable.out.is_empty(),
        "{fixable:?}"
    );
    dir.run(&["call", "read_file", "no json"]).code(1);
    dir.run(&["call", "reed_file", "{}"]).code(1);
    dir.run(&["call", "read_file"]).code(1);
    let link = r#"{"command":"ln -s /etc/passwd out"}"#;
    dir.run(&["call", "execute", link]).code(0);
    dir.run(&["call", "read_file", r#"{"path":"out"}"#]).code(2);
    let write = r#"{"path":"a","content":""}"#;
    let refused = dir.run(&["--permissions", "readonly", "call", "write_file", write]);
    refused.code(2);
    // There is no terminal to ask on.
    let asked = dir
        .run(&["--permissions", "default", "call", "write_file", write])
        .code(2);
    assert!(asked.err.contains("no terminal"), "{}", asked.err);
    assert_eq!(names(&dir.path("agentbox-workspace")), ["out"]);
    dir.run(&["--backend", "local:missing", "call", "ls"])
        .code(3)
        .complains("mkdir");
    dir.run(&["call", "ls", "@missing.json"])
        .code(64)
        .complains("missing.json");
}

#[test]
fn a_command_that_fails_is_a_result() {
    let dir = TestDir::new();
    let ended = dir.run(&[
        "call",
        "execute",
        r#"{"command":"echo x; exit 3"}"#,
        "--json",
    ]);
    let reply = ended.code(0).json();
    assert_eq!(reply["structured"]["exit_code"], 3, "{reply}");
}

#[test]
fn arguments_come_from_anywhere() {
    let dir = TestDir::new();
    let write = r#"{"path":"a","content":"from stdin"}"#;
    dir.run_input(&["call", "write_file", "-"], write).code(0);
    assert_eq!(dir.read("agentbox-workspace/a"), "from stdin");
    dir.file("call.json", &write.replace("stdin", "a file"));
    dir.run(&["call", "write_file", "@call.json"]).code(0);
    assert_eq!(dir.read("agentbox-workspace/a"), "from a file");
}

#[test]
fn json_has_all_of_a_reply() {
    let dir = TestDir::new();
    let reply = dir.run(&["call", "read_file", r#"{"path":"none"}"#, "--json"]);
    let reply = reply.code(1).json();
    assert_eq!(reply["failure"], "fixable");
    assert_eq!(reply["blocks"], json!([]));
    // The smallest possible image.
    let picture = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";
    let make = format!(r#"{{"command":"echo {picture} | base64 -d > p.png"}}"#);
    dir.run(&["call", "execute", &make]).code(0);
    let see = &["call", "read_file", r#"{"path":"p.png"}"#];
    let reply = dir.run(&[&see[..], &["--json"]].concat()).code(0).json();
    assert_eq!(reply["failure"], json!(null));
    assert_eq!(reply["blocks"][0]["type"], "image");
    assert_eq!(reply["blocks"][0]["media_type"], "image/png");
    assert_eq!(reply["blocks"][0]["data"], picture);
    let said = dir.run(see).code(0).err;
    assert!(
        said.contains("an image or document is not shown; use --json"),
        "{said}"
    );
}

#[test]
fn a_shell_that_is_started_ends_with_the_call() {
    let dir = TestDir::new();
    let start = r#"{"command":"sleep 1000"}"#;
    let ended = dir
        .run(&["call", "run_in_background", start, "--json"])
        .code(0);
    assert!(ended.err.contains("background shells end"), "{}", ended.err);
    let reply = ended.json();
    let pid = reply["structured"]["pid"].as_i64();
    let pid = pid.unwrap_or_else(|| panic!("{reply}"));
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn tools_are_listed_in_every_shape() {
    let dir = TestDir::new();
    let list = dir.run(&["tools"]).code(0).out;
    assert!(
        list.lines().any(|line| line.starts_with("read_file ")),
        "{list}"
    );
    let plain = dir.run(&["tools", "--json"]).code(0).json();
    assert!(plain[0]["inputSchema"].is_object(), "{plain}");
    for (shape, pointer) in [
        ("mcp", "/0/inputSchema"),
        ("openai", "/0/function/parameters"),
        ("openai-responses", "/0/parameters"),
        ("anthropic", "/0/input_schema"),
    ] {
        let tools = dir.run(&["tools", "--shape", shape]).code(0).json();
        assert!(tools.pointer(pointer).unwrap().is_object(), "{shape}");
    }
    let names = |arguments: &[&str]| {
        let tools = dir.run(arguments).code(0).json();
        let name = |tool: &serde_json::Value| tool["name"].as_str().unwrap().to_owned();
        tools
            .as_array()
            .unwrap()
            .iter()
            .map(name)
            .collect::<Vec<_>>()
    };
    let readonly = names(&["tools", "--json", "--permissions", "readonly"]);
    assert_eq!(readonly, ["ls", "read_file", "glob", "grep"]);
    let hashline = names(&["tools", "--json", "--edit-format", "hashline"]);
    assert!(
        hashline.contains(&"hashline_edit".to_owned()),
        "{hashline:?}"
    );
    let state = names(&["tools", "--json", "--backend", "state"]);
    assert!(!state.contains(&"execute".to_owned()), "{state:?}");
    let filesystem = names(&["tools", "--json", "--profile", "filesystem"]);
    assert_eq!(filesystem.len(), 7, "{filesystem:?}");
}

#[test]
fn a_directory_without_a_name_in_text_is_not_mistaken() {
    use std::os::unix::ffi::OsStrExt as _;
    let dir = TestDir::new();
    let odd = dir.path("").join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    std::fs::create_dir(&odd).unwrap();
    let run = |arguments: &[&str]| {
        let output = dir.command(arguments).current_dir(&odd).output();
        crate::support::ProgramOutput::new(output.unwrap())
    };
    run(&["call", "ls"]).code(64).complains("UTF-8");
    run(&["--backend", "state", "call", "ls"]).code(0);
    assert_eq!(std::fs::read_dir(dir.path("")).unwrap().count(), 2);
}
