//! Tokens that identify a test's processes, and a search for survivors.

#![expect(clippy::unwrap_used, reason = "a test that cannot look has failed")]

use std::fs;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use rustix::process::{Pid, PidfdFlags};

/// The time that a test waits for an event that must happen.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Returns an identifier for the processes of a test: a number of seconds that
/// no other test sleeps.
pub fn token() -> String {
    format!("9{:012}", fastrand::u64(0..1_000_000_000_000))
}

/// Returns the system's reason if it lets no process of this user mount anything in a
/// namespace of its own. Tests of what is mounted for commands are skipped for that
/// reason, and for no other.
pub fn mounts_refused() -> Option<String> {
    let mut command = std::process::Command::new("unshare");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let tried = command
        .args(["--mount", "sh", "-c", "mount -t tmpfs none /tmp"])
        .output();
    match tried {
        Ok(output) if !output.status.success() => {
            Some(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
        // Without the program nothing is known to be refused.
        _ => None,
    }
}

/// Returns the processes that have `token` in their arguments.
pub fn survivors(token: &str) -> Vec<i32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Some(pid) = entry
            .file_name()
            .to_str()
            .and_then(|name| name.parse().ok())
        else {
            continue;
        };
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains(token) {
            found.push(pid);
        }
    }
    found
}

/// Describes a process for messages.
pub fn describe(pid: i32) -> String {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    format!("{} | {}", read("cmdline").replace('\0', " "), read("stat"))
}

/// Opens a handle to a process.
pub fn handle(pid: i32) -> Option<OwnedFd> {
    rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()
}

/// Waits for a process to end. Returns whether it did.
pub fn wait(handle: &OwnedFd, limit: Duration) -> bool {
    let limit = Timespec::try_from(limit).unwrap();
    let mut polled = [PollFd::new(handle, PollFlags::IN)];
    // A signal may interrupt it, such as that of a child of another test.
    retry_on_intr(|| poll(&mut polled, Some(&limit))).unwrap() == 1
}

/// Waits until no process has `token`.
///
/// # Panics
///
/// If some are left after [`PATIENCE`].
pub fn gone(token: &str) {
    let until = Instant::now() + PATIENCE;
    loop {
        let left = survivors(token);
        let Some(&pid) = left.first() else {
            return;
        };
        let patience = until.saturating_duration_since(Instant::now());
        if handle(pid).is_some_and(|handle| !wait(&handle, patience)) {
            let left: Vec<String> = left.iter().map(|&pid| describe(pid)).collect();
            kill(token);
            panic!("survivors: {left:#?}");
        }
    }
}

/// Checks that no process has `token` now.
///
/// # Panics
///
/// If one has.
pub fn none(token: &str) {
    let left = survivors(token);
    let shown: Vec<String> = left.iter().map(|&pid| describe(pid)).collect();
    if !left.is_empty() {
        kill(token);
    }
    assert!(shown.is_empty(), "survivors: {shown:#?}");
}

/// Kills all processes that have `token`.
pub fn kill(token: &str) {
    for pid in survivors(token) {
        if let Some(handle) = handle(pid) {
            let _ = rustix::process::pidfd_send_signal(handle, rustix::process::Signal::KILL);
        }
    }
}
