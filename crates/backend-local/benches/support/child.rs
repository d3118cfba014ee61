//! A copy of this program that does one thing, so that its memory is that of this thing.

use std::ffi::OsStr;
use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;

/// Starts this program with these arguments, and returns the JSON that it prints.
pub(crate) fn printed(args: &[&OsStr]) -> Value {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(args)
        .stderr(Stdio::inherit())
        .output()
        .unwrap();
    assert!(output.status.success(), "the child failed");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Returns a value from `/proc/self/status`, in bytes.
pub(crate) fn status(name: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib * 1024
}
