//! `agent`: installed agents are found, and only valid agents are installed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::{TestDir, names};

/// The processors in these tests, by their ELF numbers: this machine's, and one whose
/// programs it cannot run.
const PROCESSORS: [(u8, &str); 2] = if cfg!(target_arch = "aarch64") {
    [(183, "arm64"), (62, "amd64")]
} else {
    [(62, "amd64"), (183, "arm64")]
};

/// Writes the smallest file that passes for a static program.
fn program(dir: &TestDir, name: &str, processor: u8) -> PathBuf {
    let mut bytes = vec![0; 64 + 56];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    // The type, the processor, the offset of the table, and one entry in it.
    for (at, value) in [
        (16, 2),
        (18, processor),
        (32, 64),
        (54, 56),
        (56, 1),
        (64, 1),
    ] {
        bytes[at] = value;
    }
    let path = dir.path(name);
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn without_an_agent_one_command_is_named() {
    let dir = TestDir::new();
    dir.run(&["agent", "where"])
        .code(3)
        .complains("run agentbox agent install");
    let found = dir.run(&["doctor", "--json"]).json();
    let findings = found["findings"].as_array().unwrap();
    let agent = findings.iter().find(|it| it["name"] == "sandbox-agent");
    let fix = agent.unwrap()["fix"].as_str().unwrap();
    assert!(fix.contains("run agentbox agent install"), "{fix}");
}

#[test]
fn a_file_is_installed_and_found() {
    let dir = TestDir::new();
    let [_, (other, arch)] = PROCESSORS;
    program(&dir, "built", other);
    let ended = dir.run(&["agent", "install", "--file", "built"]).code(0);
    assert!(
        ended.err.contains("its version is not checked"),
        "{}",
        ended.err
    );
    let directory = format!(
        "home/.local/share/agentbox/agents/{}",
        env!("CARGO_PKG_VERSION")
    );
    let path = dir.path(&directory).join(format!("sandbox-agent-{arch}"));
    assert_eq!(ended.out, format!("{}\n", path.display()));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let found = dir.run(&["agent", "where"]).code(0).out;
    assert_eq!(found, format!("{arch}  {}\n", path.display()));
    // Installing again replaces the agent and leaves no other file.
    dir.run(&["agent", "install", "--file", "built"]).code(0);
    assert_eq!(names(&dir.path(&directory)).len(), 1);
    let named = ["agent", "install", "--file", "built", "--dir", "dist/bin"];
    dir.run(&named).code(0);
    assert_eq!(names(&dir.path("dist/bin")), ["sandbox-agent"]);
    // The variable outranks installed agents.
    let named = dir.path("dist/bin/sandbox-agent");
    let variable = [("SANDBOX_AGENT", named.to_str().unwrap())];
    let found = dir.run_with(&["agent", "where"], &variable).code(0).out;
    assert_eq!(found, format!("{arch}  {}\n", named.display()));
}

#[test]
fn an_agent_that_others_could_replace_is_not_used() {
    let dir = TestDir::new();
    let [_, (other, _)] = PROCESSORS;
    program(&dir, "built", other);
    dir.run(&["agent", "install", "--file", "built"]).code(0);
    let directory = dir.path("home/.local/share/agentbox/agents");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    dir.run(&["agent", "where"]).code(3);
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    dir.run(&["agent", "where"]).code(0);
}

#[test]
fn what_is_no_agent_of_this_version_is_not_installed() {
    let dir = TestDir::new();
    let [(own, _), _] = PROCESSORS;
    dir.file("text", "no program");
    program(&dir, "broken", own);
    for (file, code, about) in [
        ("missing", 64, "is not an agent"),
        ("text", 64, "is not an agent"),
        ("/bin/sh", 64, "shared libraries"),
        // Depending on the kernel it does not start, or exits at once.
        ("broken", 64, "broken"),
    ] {
        let ended = dir.run(&["agent", "install", "--file", file]).code(code);
        ended.complains(about);
    }
    assert!(!dir.path("home/.local").exists());
}

#[test]
fn a_build_needs_cargo_and_a_source() {
    let dir = TestDir::new();
    let nothing = [("PATH", "/nowhere")];
    dir.file("checkout/crates/sandbox-agent/Cargo.toml", "");
    dir.run_with(&["agent", "install", "--source", "checkout"], &nothing)
        .code(3)
        .complains("agentbox agent install --file FILE");
    dir.run(&["agent", "install", "--source", "home"])
        .code(64)
        .complains("crates/sandbox-agent");
    let both = ["agent", "install", "--file", "a", "--source", "b"];
    dir.run(&both).code(64);
}
