//! Processes that outlive the shell that started them.

use backend_core::Sandbox as _;
use backend_core::ops::Command;
use backend_testkit::processes::{PATIENCE, survivors};
use sandbox_wire::{AgentSandbox, Machine};

/// Ways to outlive a shell: in its group, in another session, as a daemon
/// without a parent, and without its environment.
fn escapees(token: &str) -> Command {
    let sleep = format!("sleep {token}");
    Command::new(format!(
        "{sleep} & setsid {sleep} & (setsid {sleep} & ) ; (env -i setsid {sleep} & ) ; \
         trap '' TERM; echo ready; {sleep}"
    ))
}

/// Starts the escapees in a background shell and waits until they run.
pub(crate) async fn unleash(sandbox: &AgentSandbox<impl Machine>, token: &str) {
    let shell = sandbox.shell_start(escapees(token)).await.unwrap();
    let mut printed = String::new();
    while !printed.contains("ready") {
        let read = sandbox.shell_read(&shell.id, PATIENCE).await.unwrap();
        printed.push_str(&String::from_utf8_lossy(&read.stdout));
    }
    while survivors(token).len() < 5 {
        tokio::task::yield_now().await;
    }
}
