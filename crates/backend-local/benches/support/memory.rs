//! Measures the memory that a search takes, in a separate process.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use backend_core::ops::GrepQuery;
use backend_core::{Backend as _, VPath};
use backend_local::LocalBackend;
use serde_json::{Value, json};

/// The pattern. It occurs now and then in the searched files.
const PATTERN: &str = "needle";

/// Searches `path` in a child.
pub(crate) fn measure(id: &str, path: &Path) -> Value {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--child", "grep"])
        .arg(path)
        .arg(PATTERN)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the child failed");
    let mut row: Value = serde_json::from_slice(&output.stdout).unwrap();
    row["id"] = json!(id);
    row
}

/// In the child: searches a file or a directory with the default limits.
pub(crate) fn child(path: &Path, pattern: &str) -> Value {
    let (root, target) = if path.is_file() {
        let name = path.file_name().unwrap().to_str().unwrap();
        let target = VPath::root().join(name).unwrap();
        (path.parent().unwrap(), target)
    } else {
        (path, VPath::root())
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let backend = LocalBackend::builder(root).open().unwrap();
    let idle = status("VmRSS:");
    let query = GrepQuery::new(pattern, target);
    let found = runtime.block_on(backend.grep(query)).unwrap();
    let peak = status("VmHWM:");
    json!({ "idle_bytes": idle, "peak_bytes": peak, "hits": found.matches })
}

/// Returns a value from `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}
