//! Sandboxes that are open at once.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::ops::Command;
use backend_core::{Backend as _, Sandbox as _};
use backend_testkit::measure::{self, Bench, Sample};
use sessions::{LocalEngine, SessionManager};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::count;

/// Until sessions must have ended.
const END: Duration = Duration::from_secs(60);

/// Measures the time until all have run a command.
pub(crate) fn time(bench: &Bench, id: &str, scratch: &Path, runtime: &Runtime, number: &str) {
    let number = count(number);
    let call = |_| {
        let root = tempfile::tempdir_in(scratch).unwrap();
        runtime.block_on(async {
            let manager = manager(root.path());
            let start = Instant::now();
            open(&manager, number).await;
            let sample = Sample::since(start).with_size(number);
            manager.shutdown(END).await;
            sample
        })
    };
    bench.row(id, call, None::<fn(usize) -> Sample>);
}

/// Measures the memory of all processes while the sandboxes are idle.
pub(crate) fn memory(id: &str, scratch: &Path, runtime: &Runtime, number: &str) {
    let number = count(number);
    let root = tempfile::tempdir_in(scratch).unwrap();
    runtime.block_on(async {
        let manager = manager(root.path());
        let before = used();
        open(&manager, number).await;
        let bytes = used().saturating_sub(before);
        measure::memory(id, bytes, None, u64::try_from(number).unwrap());
        manager.shutdown(END).await;
    });
}

fn manager(root: &Path) -> SessionManager {
    let engine = LocalEngine::open(root).unwrap();
    let builder = SessionManager::builder().engine(Arc::new(engine));
    builder.build().unwrap()
}

async fn open(manager: &SessionManager, number: usize) {
    let mut users = JoinSet::new();
    for user in 0..number {
        let manager = manager.clone();
        users.spawn(async move {
            let session = manager.get_or_create(&format!("user-{user}")).await;
            let session = session.unwrap();
            let sandbox = session.as_sandbox().unwrap();
            let outcome = sandbox.execute(Command::new("true")).await.unwrap();
            assert!(outcome.status.success());
        });
    }
    while let Some(user) = users.join_next().await {
        user.unwrap();
    }
}

/// Returns the proportional share of memory of this process and those beneath it.
fn used() -> u64 {
    let mut parents = BTreeMap::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name();
        let Some(process) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // It may have ended meanwhile.
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let after_name = stat.rsplit_once(") ").map_or("", |(_, rest)| rest);
        let parent = after_name.split(' ').nth(1);
        if let Some(parent) = parent.and_then(|parent| parent.parse().ok()) {
            parents.insert(process, parent);
        }
    }
    let own = std::process::id();
    let is_ours = |process: &&u32| {
        let up = |process: &u32| parents.get(process).copied();
        std::iter::successors(Some(**process), up).any(|process| process == own)
    };
    parents.keys().filter(is_ours).map(share).sum()
}

fn share(process: &u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{process}/smaps_rollup"));
    let rollup = rollup.unwrap_or_default();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or_default() * 1024
}
