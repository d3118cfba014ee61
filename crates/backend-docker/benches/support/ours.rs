//! Our side of every workload.

use std::time::Instant;

use backend_core::ops::{Command, GrepQuery, StopMode};
use backend_core::{Backend as _, BackendExt as _, Sandbox as _, VPath};
use backend_docker::{Daemon, DockerBuilder, DockerSandbox, Volume};
use backend_testkit::measure::{Bench, Sample};
use sandbox_wire::agent::AgentBinary;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::support::live::Live;

/// The content that is read and written.
pub(crate) const KIB: [u8; 1_024] = [b'x'; 1_024];

/// Directory of the tree in the container.
const TREE: &str = "/tree";

/// Number of short calls in one turn; the median of the later half counts. The daemon
/// is busy with cleanup for a while after a peer's exec, and a side that has just
/// waited for the other has cold caches. Neither is part of the cost of a call.
pub(crate) const CALLS: usize = 40;

/// The sandbox that is measured, and the runtime it is called from.
pub(crate) struct Ours<'r> {
    image: String,
    /// Its version was queried once, like the peer's.
    daemon: Daemon,
    agent: AgentBinary,
    /// The directory for sockets, as the program sets it.
    sockets: TempDir,
    sandbox: DockerSandbox,
    runtime: &'r Runtime,
}

impl<'r> Ours<'r> {
    pub(crate) fn start(bench: &Bench, runtime: &'r Runtime) -> Self {
        let image = bench.get("image").unwrap();
        let agent = AgentBinary::new(bench.get("agent").unwrap()).unwrap();
        let daemon = Daemon::from_env().unwrap();
        let sockets = TempDir::new().unwrap();
        let mut builder = builder(image, &agent, &daemon, &sockets);
        if let Some(tree) = bench.path("tree") {
            builder = builder.volume(Volume::host(tree, TREE).read_only(true));
        }
        let sandbox = builder.build().unwrap();
        runtime.block_on(async {
            let mib = vec![b'x'; 1 << 20];
            sandbox.write_file("read.txt", KIB.to_vec()).await.unwrap();
            sandbox.write_file("mib.bin", mib).await.unwrap();
        });
        Self {
            image: image.to_owned(),
            daemon,
            agent,
            sockets,
            sandbox,
            runtime,
        }
    }

    /// Runs one turn of a row, for any peer.
    pub(crate) fn turn(&self, id: &str) -> Sample {
        let calls = match id {
            "docker_grep_local" | "docker_start_exec" => 1,
            _ => CALLS,
        };
        turn(calls, || self.call(id))
    }

    /// Opens a terminal, a watch and a connection.
    pub(crate) fn live(&self) -> Live<'r> {
        Live::start(&self.sandbox, self.runtime)
    }

    fn call(&self, id: &str) -> Sample {
        let sandbox = &self.sandbox;
        let start = Instant::now();
        let size = match id {
            "docker_read_exec" | "docker_read_py" => {
                self.wait(sandbox.read_bytes("read.txt")).len()
            }
            "docker_read_1mib" => self.wait(sandbox.read_bytes("mib.bin")).len(),
            "docker_write_exec" | "docker_write_py" => {
                self.wait(sandbox.write_file("write.txt", KIB.to_vec()));
                KIB.len()
            }
            "docker_execute_cli" => {
                let outcome = self.wait(sandbox.execute(Command::new("true")));
                usize::from(outcome.status.success())
            }
            "docker_grep_local" => {
                let found = self.wait(sandbox.grep(grep(VPath::parse(TREE).unwrap())));
                let sample = Sample::since(start);
                return sample.with_size(found.matches);
            }
            "docker_start_exec" => return self.first_command(),
            _ => panic!("there is no row {id}"),
        };
        Sample::since(start).with_size(size)
    }

    /// Creates a sandbox, runs a command in it, and removes it. The removal is not
    /// timed.
    fn first_command(&self) -> Sample {
        let start = Instant::now();
        let builder = builder(&self.image, &self.agent, &self.daemon, &self.sockets);
        let sandbox = builder.build().unwrap();
        let outcome = self.wait(sandbox.execute(Command::new("true")));
        let sample = Sample::since(start);
        self.wait(sandbox.stop(StopMode::Purge));
        sample.with_size(usize::from(outcome.status.success()))
    }

    fn wait<T>(&self, work: impl Future<Output = backend_core::Result<T>>) -> T {
        self.runtime.block_on(work).unwrap()
    }

    pub(crate) fn end(self) {
        self.wait(self.sandbox.stop(StopMode::Purge));
    }
}

/// Makes so many calls, and returns the median of the later half.
pub(crate) fn turn(calls: usize, mut call: impl FnMut() -> Sample) -> Sample {
    let mut samples: Vec<Sample> = (0..calls).map(|_| call()).collect();
    let later = &mut samples[calls / 2..];
    later.sort_by_key(|sample| sample.nanos);
    later[later.len() / 2]
}

fn builder(image: &str, agent: &AgentBinary, daemon: &Daemon, sockets: &TempDir) -> DockerBuilder {
    DockerSandbox::builder()
        .daemon(daemon.clone())
        .image(image)
        .agent(agent.clone())
        .socket_dir(sockets.path().join("sockets"))
        .label("bench.agentbox", "ours")
}

/// A query for every line with `fn main` below a directory.
pub(crate) fn grep(path: VPath) -> GrepQuery {
    GrepQuery::new("fn main", path)
        .max_matches(usize::MAX)
        .max_bytes(usize::MAX)
}
