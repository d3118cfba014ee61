//! Compares sessions in containers with those of another manager.
//!
//! `cargo xtask bench docker_sessions` builds the agent, prepares the peer, runs this
//! against the daemon that `DOCKER_HOST` names, and reads the lines of JSON that it prints: one
//! for each row. Calls of both sides alternate. The rows are described in
//! `xtask/bench/peer_docker_sessions.py`.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that cannot run should stop, and it prints what it found"
)]

use std::path::PathBuf;
use std::process::Command as Process;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::Sandbox as _;
use backend_core::ops::Command;
use backend_docker::{AgentBinary, Daemon, DockerSandbox, Runtime as Image};
use backend_testkit::measure::{self, Effort, PeerProcess, Sample};
use serde_json::{Value, json};
use sessions::{DockerEngine, Session, SessionManager};
use tokio::runtime::Runtime;

/// Containers that are kept ready.
const POOL: usize = 2;

/// Sessions whose memory is measured.
const IDLE: usize = 5;

/// The arguments passed by `cargo xtask bench`.
#[derive(Debug, Default)]
struct Args {
    rows: Vec<String>,
    image: String,
    agent: PathBuf,
    python: Option<PathBuf>,
    script: PathBuf,
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
                "--python" => args.python = Some(value().into()),
                "--script" => args.script = value().into(),
                "--quick" => args.effort = Effort::QUICK,
                _ => {}
            }
        }
        args
    }
}

fn main() {
    let args = Args::read(std::env::args().skip(1));
    if args.rows.is_empty() {
        println!("nothing to measure; run `cargo xtask bench docker_sessions`");
        return;
    }
    let runtime = Runtime::new().unwrap();
    let busy = runtime.block_on(measure::busy());
    println!("{}", json!({ "id": "busy", "busy": busy }));
    let root = tempfile::tempdir().unwrap();
    let mut ours = Ours::start(&args, root.path().to_owned(), &runtime);
    let start = |program: &PathBuf| {
        PeerProcess::start(Process::new(program).arg(&args.script).arg(&args.image))
    };
    let mut python = args.python.as_ref().map(start);
    for id in &args.rows {
        eprintln!("measuring {id}");
        println!("{}", row(id, &args, &mut ours, python.as_mut()));
    }
    drop(python);
    ours.end();
}

/// Returns one row's line of the output.
fn row(id: &str, args: &Args, ours: &mut Ours<'_>, python: Option<&mut PeerProcess>) -> Value {
    if id == "docker_sessions_memory" {
        return json!({ "id": id, "idle_bytes": 0, "peak_bytes": ours.memory() });
    }
    let their_call = match python {
        Some(python) if id.ends_with("_py") => {
            Ok(move |_: usize| python.call(&json!({ "op": "open", "calls": 1 })))
        }
        Some(_) => Err("there is no such peer"),
        None => Err("the peer is not available"),
    };
    measure::row(id, args.effort, |_| ours.call(id), their_call)
}

/// Our side: a manager without a pool and one with.
struct Ours<'r> {
    cold: SessionManager,
    pooled: SessionManager,
    pool: DockerEngine,
    sessions: usize,
    runtime: &'r Runtime,
}

impl<'r> Ours<'r> {
    fn start(args: &Args, root: PathBuf, runtime: &'r Runtime) -> Self {
        let image = Image::from_image("bench", args.image.clone());
        let agent = AgentBinary::new(&args.agent).unwrap();
        let engine = |name: &str| {
            let space = format!("bench{}{name}", std::process::id());
            DockerEngine::builder(Daemon::from_env().unwrap())
                .space(space)
                .runtime(image.clone())
                .template(DockerSandbox::builder().agent(agent.clone()))
                .workspace_root(root.join(name))
        };
        runtime.block_on(async {
            let cold = engine("cold").build().unwrap();
            let pool = engine("pooled").pool(image.clone(), POOL).build().unwrap();
            let manager = |engine: &DockerEngine| {
                let engine = Arc::new(engine.clone());
                SessionManager::builder().engine(engine).build().unwrap()
            };
            Self {
                cold: manager(&cold),
                pooled: manager(&pool),
                pool,
                sessions: 0,
                runtime,
            }
        })
    }

    fn call(&mut self, id: &str) -> Sample {
        self.sessions += 1;
        let user = format!("user-{}", self.sessions);
        let runtime = self.runtime;
        match id {
            "docker_sessions_cold_py" => runtime.block_on(open_new(&self.cold, &user)),
            "docker_sessions_pooled_py" => runtime.block_on(async {
                // A claim is measured, not the refill after the last one.
                self.pool.warm().await.unwrap();
                open_new(&self.pooled, &user).await
            }),
            "docker_sessions_wake" => runtime.block_on(async {
                self.cold.get_or_create(&user).await.unwrap();
                self.cold.release(&user).await.unwrap();
                open_new(&self.cold, &user).await
            }),
            _ => panic!("there is no row {id}"),
        }
    }

    /// Returns the memory of a session that does nothing, in bytes.
    fn memory(&self) -> u64 {
        self.runtime.block_on(async {
            for number in 0..IDLE {
                let user = format!("idle-{number}");
                let session = self.cold.get_or_create(&user).await.unwrap();
                first_command(&session).await;
            }
            tokio::time::sleep(Duration::from_secs(2)).await;
            let snapshot = self.cold.snapshot().await;
            let used = |status: &sessions::SessionStatus| status.usage?.memory_bytes;
            let mut used: Vec<_> = snapshot.sessions.iter().filter_map(used).collect();
            for number in 0..IDLE {
                self.cold.purge(&format!("idle-{number}")).await.unwrap();
            }
            used.sort_unstable();
            used[used.len() / 2]
        })
    }

    fn end(self) {
        self.runtime.block_on(async {
            for manager in [&self.cold, &self.pooled] {
                manager.shutdown(Duration::from_secs(60)).await;
            }
        });
    }
}

/// Opens a session, runs its first command, and purges it, which is not timed.
async fn open_new(manager: &SessionManager, user: &str) -> Sample {
    let start = Instant::now();
    let session = manager.get_or_create(user).await.unwrap();
    first_command(&session).await;
    let sample = Sample::since(start).with_size(1);
    manager.purge(user).await.unwrap();
    sample
}

async fn first_command(session: &Session) {
    let outcome = session.execute(Command::new("true")).await.unwrap();
    assert!(outcome.status.success());
}
