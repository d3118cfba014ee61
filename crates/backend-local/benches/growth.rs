//! How times and memory grow: with the files of a tree, with sandboxes that are open at
//! once, and with the output of a command.
//!
//! - A tree of `n` files has directories of 100 entries in directories of 100. A file has 20
//!   lines; one in 1,000 contains the word that is searched, and one in 1,000 has a name that
//!   the glob matches. On disk, the files of a directory are links to one, so that a million
//!   of them fit; the state has the same tree.
//! - ripgrep is started anew for each call, as in [the suite of a local directory](local.rs).
//! - Sandboxes are sessions in directories, each with a supervisor process of its own. Their
//!   time is that from nothing to the end of `true` in each, all at once. Their memory is the
//!   proportional share of this process and of those beneath it, above that of before.
//! - A command is `head -c N /dev/zero`, of whose output the default limit is kept. Its memory
//!   is the most that a process took that did nothing else, above its start.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

mod support {
    pub(crate) mod grown_tree;
    pub(crate) mod opened;
    pub(crate) mod output;
}

use backend_testkit::measure::Bench;
use tokio::runtime::Runtime;

use crate::support::grown_tree::Trees;
use crate::support::{opened, output};

fn main() {
    // Commands run under a supervisor, and this program can be its own.
    backend_local::supervisor::run_if_asked();
    let bench = Bench::from_args();
    let runtime = Runtime::new().unwrap();
    if let Some(bytes) = bench.get(output::CHILD) {
        return println!("{}", output::child(&runtime, bytes));
    }
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let scratch = bench.path("scratch").unwrap();
    let mut trees = Trees::new(&bench, &scratch, &runtime);
    for id in &rows {
        let words: Vec<_> = id.split('_').skip(1).collect();
        match words[..] {
            ["open", n] => opened::time(&bench, id, &scratch, &runtime, n),
            ["memory", "open", n] => opened::memory(id, &scratch, &runtime, n),
            ["output", size] => output::time(&bench, id, &scratch, &runtime, size),
            ["memory", "output", size] => output::memory(id, size),
            [kind, "state", n] => trees.in_memory(id, kind, count(n)),
            [kind, n] | [kind, n, "rg"] => trees.on_disk(id, kind, count(n)),
            _ => panic!("there is no row {id}"),
        }
    }
    trees.remove();
}

/// Reads a number such as `10k`, or a size such as `32kb`.
pub(crate) fn count(text: &str) -> usize {
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
