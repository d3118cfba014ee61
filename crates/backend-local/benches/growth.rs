//! How times and memory grow: with the files of a tree, with the output of a command, and
//! with the sandboxes that are open at once.
//!
//! - A tree has directories of 100 files, in directories of 100. A file has 20 lines; one in
//!   1,000 contains the word that is searched, and another one in 1,000 has a name that the
//!   glob matches. The other files of a directory are links to one file, so that a million of
//!   them take little space; both sides open and read each link. Trees are removed in the end.
//! - ripgrep is started anew for each call, as in [the suite of a local directory](local.rs).
//!   It lists all files with `rg --files`, and those of a directory with `--max-depth 1`: names
//!   as it finds them, where ours are in order and those of `ls` have sizes and times.
//! - A command is `head -c N /dev/zero`. We keep the default limit of its output, and plain
//!   tokio keeps all of it. Its memory is the most that a process took that ran nothing else.
//! - A sandbox is a directory with a supervisor. Its time is that from nothing to the end of
//!   `true` in each of them, all at once; plain tokio runs a shell in each directory. Its
//!   memory is that of this process and its children while every sandbox waits, above that of
//!   before; plain tokio has a shell in each directory that waits for input.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

mod support {
    pub(crate) mod bare;
    pub(crate) mod child;
    pub(crate) mod opened;
    pub(crate) mod output;
    pub(crate) mod rg;
    pub(crate) mod trees;
}

use std::path::PathBuf;
use std::time::Instant;

use backend_testkit::measure::{Bench, Sample};
use tokio::runtime::Runtime;

use crate::support::trees::Trees;
use crate::support::{opened, output};

/// The things that every row needs.
pub(crate) struct Setup {
    pub(crate) bench: Bench,
    pub(crate) runtime: Runtime,
    pub(crate) scratch: PathBuf,
}

impl Setup {
    pub(crate) fn has_peer(&self) -> bool {
        self.bench.get("peers").is_some()
    }

    /// Measures a row, in turns with the peer.
    fn row(
        &self,
        id: &str,
        ours: impl FnMut(usize) -> Sample,
        theirs: impl FnMut(usize) -> Sample,
    ) {
        let theirs = self.has_peer().then_some(theirs);
        self.bench.row(id, ours, theirs);
    }

    /// Times work that returns the number of its results.
    pub(crate) fn timed(&self, work: impl Future<Output = usize>) -> Sample {
        let start = Instant::now();
        let size = self.runtime.block_on(work);
        Sample::since(start).with_size(size)
    }
}

fn main() {
    // Commands run under a supervisor, and this program can be its own.
    backend_local::supervisor::run_if_asked();
    let bench = Bench::from_args();
    let runtime = Runtime::new().unwrap();
    if let Some(side) = bench.get(output::SIDE) {
        let line = bench.get(output::LINE).unwrap();
        return println!("{}", output::child(&runtime, side, line));
    }
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let scratch = bench.path("scratch").unwrap();
    let setup = Setup {
        bench,
        runtime,
        scratch,
    };
    let mut trees = Trees::new(&setup);
    for id in &rows {
        // Its peer is the last word.
        let words: Vec<_> = id.split('_').skip(1).collect();
        match words[..] {
            ["output", size, _] => output::time(&setup, id, count(size)),
            ["memory", "output", size, _] => output::memory(&setup, id, count(size)),
            ["open", number, _] => opened::time(&setup, id, count(number)),
            ["memory", "open", number, _] => opened::memory(&setup, id, count(number)),
            [search, files, _] => trees.measure(id, search, count(files)),
            _ => panic!("there is no row {id}"),
        }
    }
}

/// Reads a number such as `10k`, or a size such as `32kb`.
fn count(text: &str) -> usize {
    let text = text.strip_suffix('b').unwrap_or(text);
    let digits = text.trim_end_matches(char::is_alphabetic);
    let factor = match &text[digits.len()..] {
        "" => 1,
        "k" => 1_000,
        "m" => 1_000_000,
        _ => 1_000_000_000,
    };
    digits.parse::<usize>().unwrap() * factor
}
