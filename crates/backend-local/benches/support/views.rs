//! Measures how much longer a command takes for its view.

use std::fs;
use std::path::Path;
use std::time::Instant;

use backend_core::Sandbox as _;
use backend_core::ops::{Command, View};
use backend_core::search::Exclude;
use backend_local::LocalBackend;
use backend_testkit::measure::{self, Bench};
use tokio::runtime::Runtime;

use super::job;
use super::ours::confined;

/// The files in each directory of a tree.
const FILES: usize = 20;

/// Commands of each kind, which take turns.
const ROUNDS: usize = 101;
const QUICK_ROUNDS: usize = 15;

/// A backend, and the commands that are run on it.
struct Commands<'a> {
    runtime: &'a Runtime,
    backend: LocalBackend,
    rounds: usize,
}

/// Measures what a row is about.
pub(crate) fn measure(bench: &Bench, id: &str, scratch: &Path, runtime: &Runtime) {
    let root = scratch.join(id);
    fs::create_dir(&root).unwrap();
    for name in job::denied() {
        fs::write(root.join(name), "denied").unwrap();
    }
    let names = match id {
        _ if id.contains("_20k_") => write_tree(&root, 1_000),
        _ if id.contains("_100k_") => write_tree(&root, 5_000),
        _ => 0,
    };
    let commands = Commands {
        runtime,
        backend: confined(&root),
        rounds: match bench.get("quick") {
            Some(_) => QUICK_ROUNDS,
            None => ROUNDS,
        },
    };
    let fresh = |number: usize, denied: &[&str]| {
        let own = format!("/fresh-{number}");
        hiding(denied.iter().copied().chain([own.as_str()]))
    };
    let denied = job::denied();
    let denied: Vec<_> = denied.iter().map(String::as_str).collect();
    let amount = match id {
        "local_view_fresh_more" => commands.more(|number| {
            let fresh = Command::new("true").view(fresh(number, &denied));
            (fresh, Command::new("true"))
        }),
        _ if id.contains("_walk_") => {
            let more = commands.more(|number| {
                let first = fresh(2 * number, &["**/.env"]);
                let other = fresh(2 * number + 1, &["/denied-0"]);
                let command = |view| Command::new("true").view(view);
                (command(first), command(other))
            });
            more * 1e3 / names as f64
        }
        _ => commands.more(|_| {
            let kept = Command::new("true").view(hiding(["**/.env"]));
            (kept, Command::new("true"))
        }),
    };
    measure::figure(id, amount);
    drop(commands);
    fs::remove_dir_all(&root).unwrap();
}

fn hiding<'a>(patterns: impl IntoIterator<Item = &'a str>) -> View {
    View::new(Exclude::hide(patterns).unwrap(), Exclude::none())
}

/// Writes small files, ten of which are called `.env`. Returns the number of names.
fn write_tree(root: &Path, directories: usize) -> usize {
    for number in 0..directories {
        let path = root.join(format!("d{:02}/e{number:04}", number % 50));
        fs::create_dir_all(&path).unwrap();
        for file in 0..FILES {
            fs::write(path.join(format!("file-{file:02}")), "x").unwrap();
        }
        if number % (directories / 10) == 0 {
            fs::write(path.join(".env"), "denied").unwrap();
        }
    }
    directories * (FILES + 1)
}

impl Commands<'_> {
    /// Returns how many microseconds more the first of two commands takes than the second.
    fn more(&self, pair: impl Fn(usize) -> (Command, Command)) -> f64 {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..=self.rounds {
            let (one, two) = pair(round);
            for (command, times) in [one, two].into_iter().zip(&mut times) {
                let start = Instant::now();
                let outcome = self.runtime.block_on(self.backend.execute(command));
                let time = start.elapsed();
                assert!(outcome.unwrap().status.success());
                // The first fills the caches and is not counted.
                if round > 0 {
                    times.push(time);
                }
            }
        }
        let [one, two] = times.map(|mut times| {
            times.sort_unstable();
            times[times.len() / 2].as_secs_f64() * 1e6
        });
        one - two
    }
}
