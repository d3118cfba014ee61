//! Commands with much output.

use std::fs;
use std::path::Path;
use std::process::{Command as Program, Stdio};
use std::time::Instant;

use backend_core::ops::Command;
use backend_core::{Backend as _, Sandbox as _};
use backend_local::LocalBackend;
use backend_testkit::measure::{self, Bench, Sample};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::count;

/// The argument that tells a child how much output to read.
pub(crate) const CHILD: &str = "output";

/// Measures the time of a command.
pub(crate) fn time(bench: &Bench, id: &str, scratch: &Path, runtime: &Runtime, size: &str) {
    let backend = LocalBackend::builder(scratch).enable_execute(true);
    let backend = backend.open().unwrap();
    let call = |_| {
        let start = Instant::now();
        let size = run(&backend, runtime, size);
        Sample::since(start).with_size(size)
    };
    bench.row(id, call, None::<fn(usize) -> Sample>);
}

/// Measures the memory of one command in a child.
pub(crate) fn memory(id: &str, size: &str) {
    let output = Program::new(std::env::current_exe().unwrap())
        .args([&format!("--{CHILD}"), size])
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the child failed");
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let number = |key| found.get(key).and_then(Value::as_u64).unwrap();
    measure::memory(id, number("bytes"), None, number("size"));
}

/// In the child: runs one command.
pub(crate) fn child(runtime: &Runtime, size: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path()).enable_execute(true);
    let backend = backend.open().unwrap();
    let idle = status("VmRSS:");
    let size = run(&backend, runtime, size);
    let peak = status("VmHWM:");
    json!({ "bytes": peak.saturating_sub(idle), "size": size })
}

/// Runs a command and returns how much it has written.
fn run(backend: &LocalBackend, runtime: &Runtime, size: &str) -> usize {
    let size = count(size);
    let sandbox = backend.as_sandbox().unwrap();
    let command = Command::new(format!("head -c {size} /dev/zero"));
    let outcome = runtime.block_on(sandbox.execute(command)).unwrap();
    assert!(outcome.status.success());
    size
}

/// Returns a value from `/proc/self/status`, in bytes.
fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}
