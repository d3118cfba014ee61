//! Compares a local directory with ripgrep, the Python package and plain tokio.
//!
//! `cargo xtask bench local` prepares the files and the peers, runs this, and
//! reads the lines of JSON that it prints, one for each row.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

mod support {
    pub(crate) mod args;
    pub(crate) mod job;
    pub(crate) mod memory;
    pub(crate) mod ours;
    pub(crate) mod peers;
}

use backend_testkit::measure;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::args::{Args, Task};
use crate::support::job::Job;
use crate::support::memory;
use crate::support::ours::Ours;
use crate::support::peers::Peers;

fn main() {
    // Commands run under a supervisor, and this program can be its own.
    backend_local::supervisor::run_if_asked();
    match Args::task(std::env::args().skip(1)) {
        Task::Nothing => println!("nothing to measure; run `cargo xtask bench local`"),
        Task::Grep { path, pattern } => println!("{}", memory::child(&path, &pattern)),
        Task::Rows(args) => measure_rows(&args),
    }
}

fn measure_rows(args: &Args) {
    let runtime = Runtime::new().unwrap();
    let busy = runtime.block_on(measure::busy());
    println!("{}", json!({ "id": "busy", "busy": busy }));
    let ours = Ours::open(args, &runtime);
    let mut peers = Peers::new(args, &runtime);
    for id in &args.rows {
        eprintln!("measuring {id}");
        println!("{}", measure_row(args, &ours, &mut peers, id));
    }
}

/// Measures one row and returns its line of output.
fn measure_row(args: &Args, ours: &Ours<'_>, peers: &mut Peers<'_>, id: &str) -> Value {
    match id {
        "local_memory_big" => return memory::measure(id, &args.big),
        "local_memory_many" => return memory::measure(id, &args.many),
        _ => {}
    }
    let (name, peer) = id.rsplit_once('_').unwrap_or((id, ""));
    let Some(job) = Job::named(name) else {
        return json!({ "id": id, "error": "there is no such row" });
    };
    let our_call = |round| ours.turn(&job, round);
    measure::row(id, args.effort, our_call, peers.caller(peer, &job))
}
