//! Commands with any amount of output.

use std::path::Path;

use backend_core::Sandbox as _;
use backend_core::ops::Command;
use backend_local::LocalBackend;
use backend_testkit::measure;
use tokio::runtime::Runtime;

use super::{bare, child};
use crate::Setup;

/// The arguments of a child: whose code runs a command, and its line.
pub(crate) const SIDE: &str = "side";
pub(crate) const LINE: &str = "line";

const OURS: &str = "ours";

/// Measures the time of a command, in turns with plain tokio.
pub(crate) fn time(setup: &Setup, id: &str, bytes: usize) {
    let line = line(bytes);
    let sandbox = open(&setup.scratch);
    let ours = |_| setup.timed(run(&sandbox, &line));
    let theirs = |_| setup.timed(bare::run(&line));
    setup.row(id, ours, theirs);
}

/// Measures the memory of a process that runs one command.
pub(crate) fn memory(setup: &Setup, id: &str, bytes: usize) {
    let peak = |side| {
        let (of_side, of_line) = (format!("--{SIDE}"), format!("--{LINE}"));
        let args = [of_side.as_str(), side, &of_line, &line(bytes)];
        child::printed(&args.map(AsRef::as_ref)).as_u64().unwrap()
    };
    let theirs = setup.has_peer().then(|| peak("tokio"));
    measure::memory(id, peak(OURS), theirs, u64::try_from(bytes).unwrap());
}

/// In the child: runs the command, and returns the most memory that it took.
pub(crate) fn child(runtime: &Runtime, side: &str, line: &str) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        match side {
            OURS => run(&open(directory.path()), line).await,
            _ => bare::run(line).await,
        }
    });
    child::status("VmHWM:")
}

fn line(bytes: usize) -> String {
    format!("head -c {bytes} /dev/zero")
}

pub(crate) fn open(root: &Path) -> LocalBackend {
    let builder = LocalBackend::builder(root).enable_execute(true);
    builder.open().unwrap()
}

/// Runs a line in a sandbox, and returns how much it has written.
pub(crate) async fn run(sandbox: &LocalBackend, line: &str) -> usize {
    let outcome = sandbox.execute(Command::new(line)).await.unwrap();
    assert!(outcome.status.success());
    let output = outcome.stdout;
    let kept = output.head.len() + output.tail.len();
    kept + usize::try_from(output.dropped).unwrap()
}
