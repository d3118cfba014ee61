//! Sandboxes that are open at once.

use std::fs::{self, DirEntry};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Instant;

use backend_core::Sandbox as _;
use backend_core::ops::StopMode;
use backend_local::LocalBackend;
use backend_testkit::measure::{self, Sample};
use futures::future::join_all;
use tempfile::TempDir;

use super::{bare, output};
use crate::Setup;

/// Measures the time until each has run a command, in turns with plain tokio.
pub(crate) fn time(setup: &Setup, id: &str, number: usize) {
    let (_scratch, places) = places(setup, number);
    let ours = |_| {
        let start = Instant::now();
        let sandboxes = setup.runtime.block_on(open(&places));
        let sample = Sample::since(start).with_size(sandboxes.len());
        setup.runtime.block_on(stop(&sandboxes));
        sample
    };
    let run = async |place| {
        let status = bare::shell("true").current_dir(place).status().await;
        assert!(status.unwrap().success());
    };
    let theirs = |_| {
        setup.timed(async {
            let ended = join_all(places.iter().map(run)).await;
            ended.len()
        })
    };
    setup.row(id, ours, theirs);
}

/// Measures the memory while each waits.
pub(crate) fn memory(setup: &Setup, id: &str, number: usize) {
    let (_scratch, places) = places(setup, number);
    let ours = setup.runtime.block_on(async {
        let before = used();
        let sandboxes = open(&places).await;
        let used = used().saturating_sub(before);
        stop(&sandboxes).await;
        used
    });
    let theirs = || {
        let before = used();
        let _runtime = setup.runtime.enter();
        let wait = |place| {
            let mut shell = bare::shell("read line");
            let shell = shell.current_dir(place).stdin(Stdio::piped());
            shell.kill_on_drop(true).spawn().unwrap()
        };
        let _shells: Vec<_> = places.iter().map(wait).collect();
        used().saturating_sub(before)
    };
    let theirs = setup.has_peer().then(theirs);
    measure::memory(id, ours, theirs, u64::try_from(number).unwrap());
}

/// Makes a directory for each.
fn places(setup: &Setup, number: usize) -> (TempDir, Vec<PathBuf>) {
    let scratch = tempfile::tempdir_in(&setup.scratch).unwrap();
    let place = |at: usize| scratch.path().join(at.to_string());
    let places: Vec<_> = (0..number).map(place).collect();
    places
        .iter()
        .for_each(|place| fs::create_dir(place).unwrap());
    (scratch, places)
}

async fn open(places: &[PathBuf]) -> Vec<LocalBackend> {
    let open = async |place: &PathBuf| {
        let sandbox = output::open(place);
        output::run(&sandbox, "true").await;
        sandbox
    };
    join_all(places.iter().map(open)).await
}

async fn stop(sandboxes: &[LocalBackend]) {
    let stop = async |sandbox: &LocalBackend| sandbox.stop(StopMode::Keep).await.unwrap();
    join_all(sandboxes.iter().map(stop)).await;
}

/// Returns the share of memory of this process and of its children.
fn used() -> u64 {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    // A thread may end meanwhile.
    let children = |task: io::Result<DirEntry>| {
        fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default()
    };
    let children: String = tasks.map(children).collect();
    children.split_whitespace().chain(["self"]).map(share).sum()
}

fn share(process: &str) -> u64 {
    // One that has ended has none.
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
