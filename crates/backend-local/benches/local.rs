//! Compares a local directory with ripgrep, the Python package and plain tokio.
//!
//! - The tree holds sources of crates from cargo's registry, copied once into the
//!   cache; at least 10,000 of its files are Rust. Searches start at its root.
//! - `grep` is the Python package's `grep_raw` with ripgrep on the PATH, which it then
//!   uses. It has no maximum, so it returns every hit where we return the first 100.
//! - `glob` is its `glob_info`. Its `*.toml` is that of the top directory alone; the
//!   pattern that finds the same files as ours is `**/*.toml`.
//! - ripgrep is started anew for each call and timed until it has ended and its
//!   output is read: `rg --no-require-git --line-number PATTERN .` and
//!   `rg --no-require-git --files -g PATTERN`. Beside it our `glob` returns names only
//!   (`GlobQuery::metadata`).
//! - Results may differ a little. The Python package honours no ignore files outside a
//!   git repository, and its glob also finds what is hidden or ignored; so does a `-g`
//!   that names a file. ripgrep gives up on a file at the first NUL wherever that is; we
//!   look for one in the first 8 KiB.
//! - `read` reads a whole file of 50 lines, `edit` replaces one line of such a file,
//!   `write` overwrites a file with 1 KiB.
//! - `view` runs `true` where ten files are denied, in a view that is kept. The peer is ours
//!   without a view.
//! - `view_…_more` is the difference of two medians: in a fresh view with ten denied files,
//!   or in a kept one with `**/.env` in a tree of so many files, and without a view.
//!   `walk` is the first command with such a rule, less one in a fresh view that denies one
//!   file, for each name in the tree.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

mod support {
    pub(crate) mod bare;
    pub(crate) mod child;
    pub(crate) mod job;
    pub(crate) mod memory;
    pub(crate) mod ours;
    pub(crate) mod peers;
    pub(crate) mod rg;
    pub(crate) mod views;
}

use backend_testkit::measure::Bench;
use tokio::runtime::Runtime;

use crate::support::job::Job;
use crate::support::memory;
use crate::support::ours::Ours;
use crate::support::peers::{Call, Peers};
use crate::support::views;

fn main() {
    // Commands run under a supervisor, and this program can be its own.
    backend_local::supervisor::run_if_asked();
    let bench = Bench::from_args();
    if let Some(path) = bench.path(memory::CHILD) {
        return println!("{}", memory::search(&path));
    }
    let runtime = Runtime::new().unwrap();
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let scratch = bench.path("scratch").unwrap();
    let ours = Ours::open(&bench, &scratch, &rows, &runtime);
    let mut peers = Peers::new(&bench, &scratch, &runtime);
    for id in &rows {
        if id.starts_with("local_memory") {
            memory::measure(id, &scratch);
            continue;
        }
        if id.ends_with("_more") {
            views::measure(&bench, id, &scratch, &runtime);
            continue;
        }
        let (name, peer) = id.rsplit_once('_').unwrap();
        let job = Job::named(name, peer);
        let our_call = |round| ours.turn(&job, round);
        let caller = match peer {
            "confined" => Some(Box::new(|_| ours.confined_call()) as Call<'_>),
            _ => peers.caller(peer, &job),
        };
        bench.row(id, our_call, caller);
    }
}
