//! Compares a container with our agent to other ways into a container.
//!
//! - `read` and `write` are of 1 KiB, in the working directory. On the side of the
//!   Docker API they are `cat FILE` and `cat > FILE`, each by one exec: create, start, the
//!   output to its end, inspect.
//! - `docker_execute_cli` is `docker exec CONTAINER sh -c true`, from the start of the
//!   program to its end.
//! - `docker_grep_local`: the tree holds sources of crates from cargo's registry, at
//!   least 10,000 of them Rust, mounted read-only in the container; all hits.
//! - `docker_key`: `cat` in a raw terminal sends the key back.
//! - `docker_port_read`: a server in the container sends the bytes through
//!   `Sandbox::connect`. The peer is our own `read` of a file, over the same stream.
//! - `docker_change` begins with the call that runs the command, and ends with the event.
//! - `docker_idle` is about this process and all of the container, while an attached
//!   terminal, a watch and a connection are open.
//! - `docker_start_exec` begins with nothing and ends when the first command has ended;
//!   the removal that follows is not timed. Both sides have the same limits.
//!
//! The daemon is the one that `DOCKER_HOST` names. Each side has a container of its own
//! of the same image.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

mod support {
    pub(crate) mod live;
    pub(crate) mod ours;
    pub(crate) mod peers;
}

use std::time::Instant;

use backend_core::{Backend as _, VPath};
use backend_local::LocalBackend;
use backend_testkit::measure::{Bench, PeerProcess, Sample, figure};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::support::ours::{self, Ours};
use crate::support::peers::{Exec, cli};

/// Rows about what stays open.
const LIVE: [&str; 4] = [
    "docker_key",
    "docker_port_read",
    "docker_change",
    "docker_idle",
];

const NO_PEER: Option<fn(usize) -> Sample> = None;

fn main() {
    // The local backend is a peer here, and its commands are not measured.
    let bench = Bench::from_args();
    let runtime = Runtime::new().unwrap();
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let ours = Ours::start(&bench, &runtime);
    let mut peers = Peers::start(&bench, &runtime);
    let live = rows.iter().any(|id| LIVE.contains(&id.as_str()));
    let live = live.then(|| ours.live());
    for id in &rows {
        match (id.as_str(), &live) {
            ("docker_idle", Some(live)) => figure(id, live.idle()),
            ("docker_port_read", Some(live)) => {
                let file = bench.get("peers").map(|_| |_| live.file());
                bench.row(id, |_| live.port(), file);
            }
            ("docker_key", Some(live)) => {
                bench.row(id, |_| ours::turn(ours::CALLS, || live.key()), NO_PEER);
            }
            ("docker_change", Some(live)) => {
                bench.row(id, |_| ours::turn(ours::CALLS, || live.change()), NO_PEER);
            }
            _ => bench.row(id, |_| ours.turn(id), peers.caller(id)),
        }
    }
    drop(live);
    peers.end();
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
    fn start(bench: &Bench, runtime: &'r Runtime) -> Self {
        let image = bench.get("peers").and_then(|_| bench.get("image"));
        let tree = image.and_then(|_| bench.path("tree"));
        Self {
            exec: image.map(|image| runtime.block_on(Exec::start(image))),
            python: bench.python("docker"),
            local: tree.map(|tree| LocalBackend::builder(tree).open().unwrap()),
            runtime,
        }
    }

    fn end(self) {
        drop(self.python);
        if let Some(exec) = self.exec {
            self.runtime.block_on(exec.end());
        }
    }

    /// Returns a closure that does a row's work with the peer, if there is one.
    fn caller<'a>(&'a mut self, id: &str) -> Option<Box<dyn FnMut(usize) -> Sample + 'a>> {
        let runtime = self.runtime;
        let exec = self.exec.as_ref();
        let timed = |work: Box<dyn Fn() -> usize + 'a>| -> Box<dyn FnMut(usize) -> Sample + 'a> {
            Box::new(move |_| {
                let start = Instant::now();
                let size = work();
                Sample::since(start).with_size(size)
            })
        };
        Some(match id {
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
                let local = self.local.as_ref()?;
                timed(Box::new(move || {
                    let found = runtime.block_on(local.grep(ours::grep(VPath::root())));
                    found.unwrap().matches
                }))
            }
            "docker_read_py" | "docker_write_py" => {
                let python = self.python.as_mut()?;
                let operation = if id.contains("read") { "read" } else { "write" };
                let request = json!({ "op": operation, "calls": 1 });
                Box::new(move |_| python.call(&request))
            }
            _ => return None,
        })
    }
}
