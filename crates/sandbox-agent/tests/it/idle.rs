//! Terminals, watches and connections that are open and idle cost no processor time.

use std::time::Duration;

use backend_core::Sandbox as _;
use backend_testkit::processes::token;

use crate::support::machine::HostMachine;
use crate::support::open::Open;

/// How long it is watched.
const IDLE: Duration = Duration::from_secs(3);

/// The most that both ends may use meanwhile. A loop that polls would use seconds, and one
/// that wakes up every millisecond more than this.
const MOST: Duration = Duration::from_millis(60);

/// Returns the processor time that a process has used, with all its threads.
fn used(pid: &str) -> Duration {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let nanos = threads.map(|thread| {
        let path = thread.unwrap().path().join("schedstat");
        // A thread may have ended meanwhile.
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let first = text.split(' ').next().unwrap_or_default();
        first.parse::<u64>().unwrap_or_default()
    });
    Duration::from_nanos(nanos.sum())
}

/// In a process of its own: other tests use the processor here.
#[test]
fn what_is_idle_uses_no_processor_time() {
    let program = std::env::current_exe().unwrap();
    let part = "idle::part_idle";
    let output = std::process::Command::new(program)
        .args(["--exact", part, "--ignored", "--nocapture"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("1 passed"), "{said}");
}

#[tokio::test]
#[ignore = "a part of another test, which starts it"]
async fn part_idle() {
    let directory = tempfile::tempdir().unwrap();
    let sandbox = HostMachine::new(directory.path(), "/").sandbox();
    let open = Open::everything(&sandbox, &token()).await;
    // Its last message is under way until another call was answered.
    sandbox.shell_list().await.unwrap();
    let agent = sandbox.machine().started()[0].pid.to_string();
    let total = || used("self") + used(&agent);
    let before = total();
    tokio::time::sleep(IDLE).await;
    let during = total() - before;
    println!("{during:?}");
    assert!(during < MOST, "{during:?}");
    drop(open);
}
