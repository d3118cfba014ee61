//! Searches start no process and leak no descriptor for any input.
//!
//! This runs in a separate process, because the children of the process are
//! counted. The vulnerabilities: a pattern `--pre=sh` that ran every file as a
//! script (earendil-works/pi#4018, hermes-agent#50357, TeXRA#6226) and a path
//! `-delete` that emptied the tree, both in pydantic-ai-backend;
//! CVE-2026-33718, a helper that went through a shell.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use backend_core::ops::{GlobQuery, GrepQuery};
use backend_core::{Backend as _, BackendExt as _};
use backend_local::LocalBackend;

use crate::support::commands::{passes, this_test};
use crate::support::snapshot;

/// Strings that look like an option, a file of options, or a part of a shell
/// line.
const HOSTILE: &[&str] = &[
    "--pre=sh",
    "--pre=./run.sh",
    "--pre-glob=*",
    "-f/etc/passwd",
    "--file=/etc/passwd",
    "@options",
    "-delete",
    "-exec",
    "-exec sh run.sh ;",
    "-e",
    "--",
    "-",
    "--files",
    "--search-zip",
    "--hostname-bin=./run.sh",
    "$(sh run.sh)",
    "`sh run.sh`",
    "; sh run.sh",
    "| sh run.sh",
    "&& sh run.sh",
    "\nsh run.sh\n",
    "'; sh run.sh; '",
    "\"; sh run.sh; \"",
    "!sh run.sh",
];

/// Returns the page faults of children that have been waited for, and the
/// living children. Neither changes if no process is started.
fn children() -> (String, String) {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // The program name may contain anything. Numbers follow it.
    let numbers = stat.rsplit(')').next().unwrap().split_whitespace();
    let faults = numbers.skip(8).take(1).collect();
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let living = tasks.map(|task| task.unwrap().path().join("children"));
    let living = living.map(|file| fs::read_to_string(file).unwrap_or_default());
    (faults, living.collect())
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn lay_out(root: &Path) {
    fs::write(root.join("run.sh"), "#!/bin/sh\ntouch ran\n").unwrap();
    fs::write(root.join("options"), "--pre=./run.sh\n").unwrap();
    fs::set_permissions(root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for name in HOSTILE.iter().filter(|name| !name.contains('/')) {
        fs::write(root.join(name), "touch ran\n").unwrap();
    }
    fs::create_dir(root.join("-directory")).unwrap();
    fs::write(root.join("-directory/--pre=sh"), "touch ran\n").unwrap();
}

async fn ask_everything(backend: &LocalBackend) {
    let root = backend.working_dir();
    for text in HOSTILE {
        let _ = backend.glob(GlobQuery::new(*text, root.clone())).await;
        let query = GrepQuery::new(*text, root.clone());
        let _ = backend.grep(query.clone()).await;
        let literal = query.literal(true).multi_line(true);
        let _ = backend.grep(literal).await.unwrap();
        let query = GrepQuery::new("touch", root.clone()).files(*text);
        let _ = backend.grep(query.hidden(true).ignored(true)).await;
        let path = backend.path(text).unwrap();
        let _ = backend.glob(GlobQuery::new("*", path.clone())).await;
        let _ = backend.grep(GrepQuery::new("touch", path)).await;
        let _ = backend.list_dir(text).await;
        let _ = backend.read_bytes(text).await;
    }
}

#[test]
fn searches_start_no_process_and_leak_no_descriptor() {
    passes(&mut this_test("attack_no_process::part_searches"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another test, which starts it"]
async fn part_searches() {
    let directory = tempfile::tempdir().unwrap();
    lay_out(directory.path());
    let tree = snapshot::snapshot(directory.path());
    let backend = LocalBackend::builder(directory.path()).open().unwrap();
    let before = children();
    ask_everything(&backend).await;
    let open = descriptors();
    for _ in 0..10 {
        ask_everything(&backend).await;
    }
    assert_eq!(children(), before, "a search started a process");
    assert_eq!(snapshot::snapshot(directory.path()), tree);
    assert!(
        descriptors() <= open,
        "{} descriptors became {}",
        open,
        descriptors()
    );
    // The counter does detect a child.
    let ran = std::process::Command::new("true").status().unwrap();
    assert!(ran.success());
    assert_ne!(children(), before);
}
