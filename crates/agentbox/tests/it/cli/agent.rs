//! `agent`: installed agents are found, and only valid agents are installed.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use crate::support::{Place, names};

/// The processors in these tests, by their ELF numbers: this machine's, and one whose
/// programs it cannot run.
const PROCESSORS: [(u8, &str); 2] = match cfg!(target_arch = "aarch64") {
    true => [(183, "arm64"), (62, "amd64")],
    false => [(62, "amd64"), (183, "arm64")],
};

/// Writes the smallest file that passes for a static program.
fn program(place: &Place, name: &str, processor: u8) -> PathBuf {
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
    let path = place.path(name);
    std::fs::write(&path, bytes).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}

#[test]
fn without_an_agent_one_command_is_named() {
    let place = Place::new();
    place
        .run(&["agent", "where"])
        .code(3)
        .complains("run agentbox agent install");
    let found = place.run(&["doctor", "--json"]).json();
    let findings = found["findings"].as_array().unwrap();
    let agent = findings.iter().find(|it| it["name"] == "sandbox-agent");
    let fix = agent.unwrap()["fix"].as_str().unwrap();
    assert!(fix.contains("run agentbox agent install"), "{fix}");
}

#[test]
fn a_file_is_installed_and_found() {
    let place = Place::new();
    let [_, (other, arch)] = PROCESSORS;
    program(&place, "built", other);
    let ended = place.run(&["agent", "install", "--file", "built"]).code(0);
    assert!(
        ended.err.contains("its version is not checked"),
        "{}",
        ended.err
    );
    let directory = format!(
        "home/.local/share/agentbox/agents/{}",
        env!("CARGO_PKG_VERSION")
    );
    let path = place.path(&directory).join(format!("sandbox-agent-{arch}"));
    assert_eq!(ended.out, format!("{}\n", path.display()));
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    let found = place.run(&["agent", "where"]).code(0).out;
    assert_eq!(found, format!("{arch}  {}\n", path.display()));
    // Installing again replaces the agent and leaves no other file.
    place.run(&["agent", "install", "--file", "built"]).code(0);
    assert_eq!(names(&place.path(&directory)).len(), 1);
    let named = ["agent", "install", "--file", "built", "--dir", "dist/bin"];
    place.run(&named).code(0);
    assert_eq!(names(&place.path("dist/bin")), ["sandbox-agent"]);
    // The variable outranks installed agents.
    let named = place.path("dist/bin/sandbox-agent");
    let variable = [("SANDBOX_AGENT", named.to_str().unwrap())];
    let found = place.run_with(&["agent", "where"], &variable).code(0).out;
    assert_eq!(found, format!("{arch}  {}\n", named.display()));
}

#[test]
fn an_agent_that_others_could_replace_is_not_used() {
    let place = Place::new();
    let [_, (other, _)] = PROCESSORS;
    program(&place, "built", other);
    place.run(&["agent", "install", "--file", "built"]).code(0);
    let directory = place.path("home/.local/share/agentbox/agents");
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    place.run(&["agent", "where"]).code(3);
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o755)).unwrap();
    place.run(&["agent", "where"]).code(0);
}

#[test]
fn what_is_no_agent_of_this_version_is_not_installed() {
    let place = Place::new();
    let [(own, _), _] = PROCESSORS;
    place.file("text", "no program");
    program(&place, "broken", own);
    for (file, code, about) in [
        ("missing", 64, "is no agent"),
        ("text", 64, "is no agent"),
        ("/bin/sh", 64, "shared libraries"),
        // Depending on the kernel it does not start, or exits at once.
        ("broken", 64, "broken"),
    ] {
        let ended = place.run(&["agent", "install", "--file", file]).code(code);
        ended.complains(about);
    }
    assert!(!place.path("home/.local").exists());
}

#[test]
fn a_build_needs_cargo_and_a_source() {
    let place = Place::new();
    let nothing = [("PATH", "/nowhere")];
    place.file("checkout/crates/sandbox-agent/Cargo.toml", "");
    place
        .run_with(&["agent", "install", "--source", "checkout"], &nothing)
        .code(3)
        .complains("agentbox agent install --file FILE");
    place
        .run(&["agent", "install", "--source", "home"])
        .code(64)
        .complains("crates/sandbox-agent");
    let both = ["agent", "install", "--file", "a", "--source", "b"];
    place.run(&both).code(64);
}
