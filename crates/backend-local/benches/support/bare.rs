//! Commands with the obvious code: a shell and two pipes of plain tokio.

use std::process::Stdio;

use tokio::process::Command;

/// Returns a command for a line.
pub(crate) fn shell(line: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", line]).stdin(Stdio::null());
    command
}

/// Runs a line, and returns how much it has written.
pub(crate) async fn run(line: &str) -> usize {
    let output = shell(line).output().await.unwrap();
    assert!(output.status.success());
    output.stdout.len()
}
