//! Compares sessions in containers with those of another manager.
//!
//! - `docker_sessions_cold_py` opens a session that did not exist, and ends when its first
//!   command, `true`, has ended. The end of the session is not timed.
//! - `docker_sessions_pooled_py` is the same for us with containers that are ready. The
//!   peer has none and does what it does in `docker_sessions_cold_py`.
//! - `docker_sessions_wake` opens a session whose container was stopped.
//! - `docker_sessions_memory` is what the daemon says that a session uses which has run one
//!   command and does nothing: the median of five.
//!
//! The daemon is the one that `DOCKER_HOST` names. Both sides use the same image.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::Sandbox as _;
use backend_core::ops::Command;
use backend_docker::{AgentBinary, Daemon, DockerSandbox, Runtime as Image};
use backend_testkit::measure::{self, Bench, PeerProcess, Sample};
use serde_json::json;
use sessions::{DockerEngine, Session, SessionManager};
use tokio::runtime::Runtime;

/// Containers that are kept ready.
const POOL: usize = 2;

/// Sessions whose memory is measured.
const IDLE: usize = 5;

fn main() {
    let bench = Bench::from_args();
    let runtime = Runtime::new().unwrap();
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let mut ours = Ours::start(&bench, root.path().to_owned(), &runtime);
    let mut python = bench.python("docker_sessions");
    for id in &rows {
        measure_row(&bench, id, &mut ours, python.as_mut());
    }
    drop(python);
    ours.end();
}

fn measure_row(bench: &Bench, id: &str, ours: &mut Ours<'_>, python: Option<&mut PeerProcess>) {
    if id == "docker_sessions_memory" {
        return measure::memory(id, ours.memory(), None, 1);
    }
    let python = python.filter(|_| id.ends_with("_py"));
    let request = json!({ "op": "open", "calls": 1 });
    let their_call = python.map(|python| move |_: usize| python.call(&request));
    bench.row(id, |_| ours.call(id), their_call);
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
    fn start(bench: &Bench, root: PathBuf, runtime: &'r Runtime) -> Self {
        let image = Image::from_image("bench", bench.get("image").unwrap());
        let agent = AgentBinary::new(bench.get("agent").unwrap()).unwrap();
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
