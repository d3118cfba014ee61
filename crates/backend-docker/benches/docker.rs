//! Compares a container with our agent to other ways into a container.
//!
//! `cargo xtask bench docker` builds the agent, prepares the peers, runs this
//! against the daemon that `DOCKER_HOST` names, and reads the lines of JSON that
//! it prints: one for each row. Calls of both sides alternate. The rows are described
//! in `xtask/bench/peer_docker.py`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

mod support {
    pub(crate) mod ours;
    pub(crate) mod peers;
}

use std::path::PathBuf;
use std::time::Instant;

use backend_core::{Backend as _, VPath};
use backend_local::LocalBackend;
use backend_testkit::measure::{self, Effort, PeerProcess, Sample};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::support::ours::{self, Ours};
use crate::support::peers::{Exec, cli, python};

/// The arguments passed by `cargo xtask bench`.
#[derive(Debug, Default)]
struct Args {
    rows: Vec<String>,
    image: String,
    agent: PathBuf,
    tree: PathBuf,
    python: Option<PathBuf>,
    script: PathBuf,
    /// Whether there are any peers.
    peers: bool,
    effort: Effort,
}

impl Args {
    fn read(mut words: impl Iterator<Item = String>) -> Self {
        let mut args = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().unwrap_or_default();
            match word.as_str() {
                "--rows" => args.rows = value().split(',').map(str::to_owned).collect(),
                "--image" => args.image = value(),
                "--agent" => args.agent = value().into(),
                "--tree" => args.tree = value().into(),
                "--python" => args.python = Some(value().into()),
                "--script" => args.script = value().into(),
                "--tokio" => args.peers = true,
                "--quick" => args.effort = Effort::QUICK,
                _ => {}
            }
        }
        args
    }
}

fn main() {
    // The local backend is a peer here, and its commands are not measured.
    let args = Args::read(std::env::args().skip(1));
    if args.rows.is_empty() {
        println!("nothing to measure; run `cargo xtask bench docker`");
        return;
    }
    let runtime = Runtime::new().unwrap();
    let busy = runtime.block_on(measure::busy());
    println!("{}", json!({ "id": "busy", "busy": busy }));
    let ours = Ours::start(&args.image, &args.agent, &args.tree, &runtime);
    let mut peers = Peers::start(&args, &runtime);
    for id in &args.rows {
        eprintln!("measuring {id}");
        println!("{}", row(id, &args, &ours, &mut peers));
    }
    peers.end(&runtime);
    ours.end();
}

/// The other implementations of the same work.
struct Peers<'r> {
    exec: Option<Exec>,
    python: Option<PeerProcess>,
    local: Option<LocalBackend>,
    runtime: &'r Runtime,
}

impl<'r> Peers<'r> {
    fn start(args: &Args, runtime: &'r Runtime) -> Self {
        let program = args.python.as_ref();
        let has_tree = !args.tree.as_os_str().is_empty();
        Self {
            exec: args
                .peers
                .then(|| runtime.block_on(Exec::start(&args.image))),
            python: program.map(|program| python(program, &args.script, &args.image)),
            local: (args.peers && has_tree)
                .then(|| LocalBackend::builder(&args.tree).open().unwrap()),
            runtime,
        }
    }

    fn end(self, runtime: &Runtime) {
        drop(self.python);
        if let Some(exec) = self.exec {
            runtime.block_on(exec.end());
        }
    }

    /// Returns a closure that does a row's work with the peer, or why there is none.
    fn caller<'a>(&'a mut self, id: &str) -> Result<Box<dyn FnMut(usize) -> Sample + 'a>, String> {
        let runtime = self.runtime;
        let missing = || "the peer is not available".to_owned();
        let exec = self.exec.as_ref().ok_or_else(missing);
        let timed = |work: Box<dyn Fn() -> usize + 'a>| -> Box<dyn FnMut(usize) -> Sample + 'a> {
            Box::new(move |_| {
                let start = Instant::now();
                let size = work();
                Sample::since(start).with_size(size)
            })
        };
        Ok(match id {
            "docker_read_exec" => {
                let exec = exec?;
                let fill = ["sh", "-c", "cat > /workspace/read.txt"];
                runtime.block_on(exec.run(&fill, Some(&ours::KIB)));
                timed(Box::new(move || {
                    let read = exec.run(&["cat", "/workspace/read.txt"], None);
                    runtime.block_on(read).len()
                }))
            }
            "docker_write_exec" => {
                let exec = exec?;
                timed(Box::new(move || {
                    let write = ["sh", "-c", "cat > /workspace/write.txt"];
                    runtime.block_on(exec.run(&write, Some(&ours::KIB)));
                    ours::KIB.len()
                }))
            }
            "docker_start_exec" => {
                let exec = exec?;
                Box::new(move |_| runtime.block_on(exec.first_command()))
            }
            "docker_execute_cli" => {
                let container = exec?.container().to_owned();
                Box::new(move |_| cli(&container))
            }
            "docker_grep_local" => {
                let local = self.local.as_ref().ok_or_else(missing)?;
                timed(Box::new(move || {
                    let found = runtime.block_on(local.grep(ours::grep(VPath::root())));
                    found.unwrap().matches
                }))
            }
            "docker_read_py" | "docker_write_py" => {
                let python = self.python.as_mut().ok_or_else(missing)?;
                let operation = if id.contains("read") { "read" } else { "write" };
                let request = json!({ "op": operation, "calls": 1 });
                Box::new(move |_| python.call(&request))
            }
            _ => return Err("there is no such peer".to_owned()),
        })
    }
}

/// Returns one row's line of the output.
fn row(id: &str, args: &Args, ours: &Ours<'_>, peers: &mut Peers<'_>) -> Value {
    let our_call = |_| ours.turn(id);
    measure::row(id, args.effort, our_call, peers.caller(id))
}
