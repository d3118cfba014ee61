//! Checks for the interpreters that MCP clients run on.

use std::env::consts::EXE_SUFFIX;

use super::finding::Finding;
use crate::system;

pub(super) fn findings() -> Vec<Finding> {
    vec![
        program("python3", "MCP clients in Python"),
        program("node", "MCP clients in JavaScript"),
    ]
}

fn program(name: &'static str, purpose: &'static str) -> Finding {
    let finding = Finding::new(name, purpose);
    let path = system::variable("PATH").unwrap_or_default();
    let mut paths =
        std::env::split_paths(&path).map(|directory| directory.join(format!("{name}{EXE_SUFFIX}")));
    let found = paths.find(|path| {
        let found = path.metadata();
        found.is_ok_and(|found| found.is_file() && system::is_executable(&found))
    });
    match found {
        Some(path) => finding.ok(path.display().to_string()),
        None => finding.missing("is not in PATH", format!("install {name} if you need it")),
    }
}
