//! Compares a hosted sandbox with our agent, and sessions in hosted sandboxes, with the Python
//! package and Daytona's own SDK (daytona 0.226.1).
//!
//! - The service is a stand-in on this machine. Each request to it is delayed by 50 ms, and so
//!   are the bytes that a client sends on an open stream, as if it were that far away.
//! - `read` is of 1 KiB, on the side of Python `read_bytes`; `write` overwrites a file with 1 KiB;
//!   `edit` replaces a word in such a file; `ls` lists 20 files; `search` greps a word in them,
//!   with one hit in each; `execute` runs `true`.
//! - `daytona_reads_py` makes 64 reads at once; Python makes them with 16 threads.
//! - `daytona_requests` counts the HTTP requests of one call of each kind.
//! - The rows with `portable` count those of one call without an agent, on the image's own tools.
//!   The Python package makes so many: read 1, write 2, edit 4, ls 1, search 1, execute 1; ours
//!   must not be more.
//! - `daytona_session_new` opens a new session and runs a command in it, `daytona_session_wake`
//!   one that was stopped, `daytona_session_moved` one that another engine has opened, which
//!   stands for another process. A stand-in starts a sandbox at once.
#![allow(
    clippy::unwrap_used,
    reason = "a benchmark that cannot run should stop"
)]

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use backend_core::ops::{Command, GrepQuery, StopMode};
use backend_core::{Backend as _, BackendExt as _, Sandbox};
use backend_daytona::{Account, AgentBinary, DaytonaBuilder, DaytonaSandbox, Mode};
use backend_testkit::measure::{self, Bench, PeerProcess, Sample};
use daytona_testkit::Standin;
use futures_util::future::join_all;
use serde_json::json;
use sessions::{DaytonaEngine, SessionManager};
use tokio::runtime::Runtime;

/// The time that a request or a byte takes to the service.
const LATENCY: Duration = Duration::from_millis(50);
/// The content that is read and written.
const KIB: [u8; 1_024] = [b'x'; 1_024];
/// Files in the directory that is listed and searched.
const FILES: usize = 20;
/// Reads at once.
const READS: usize = 64;
/// Calls in one turn; the median of the later half counts.
const CALLS: usize = 4;
/// The kinds of calls.
const OPERATIONS: [&str; 6] = ["read", "write", "edit", "ls", "search", "execute"];

fn main() {
    let bench = Bench::from_args();
    let runtime = Runtime::new().unwrap();
    let rows = runtime.block_on(bench.rows());
    if rows.is_empty() {
        return;
    }
    let service = Service::start(&bench, &runtime);
    let variables = [
        ("DAYTONA_API_URL", service.standin.api_url()),
        ("DAYTONA_API_KEY", service.standin.api_key().to_owned()),
    ];
    let mut python = bench.get("peers").and_then(|_| {
        let variables = variables.iter().map(|(name, value)| (*name, &**value));
        bench.python_with("daytona", &variables.collect::<Vec<_>>())
    });
    for id in &rows {
        service.row(&bench, id, python.as_mut());
    }
    drop(python);
    runtime.block_on(service.end());
}

/// The service, our sandboxes there, and the managers of sessions.
struct Service<'r> {
    standin: Standin,
    ours: Side,
    portable: Side,
    here: SessionManager,
    there: SessionManager,
    runtime: &'r Runtime,
}

impl<'r> Service<'r> {
    fn start(bench: &Bench, runtime: &'r Runtime) -> Self {
        let agent = AgentBinary::new(bench.get("agent").unwrap()).unwrap();
        let standin = runtime.block_on(Standin::start()).unwrap();
        let account = Account::builder().url(standin.api_url());
        let account = account.api_key(standin.api_key()).build().unwrap();
        let template = DaytonaSandbox::builder().reap_leftovers(false);
        let with_agent = template.clone().agent(agent).mode(Mode::Agent);
        let side = |template: &DaytonaBuilder| {
            let sandbox = template.clone().account(account.clone()).build().unwrap();
            runtime.block_on(Side::fill(sandbox))
        };
        let manager = || {
            let _inside = runtime.enter();
            let engine = DaytonaEngine::builder(account.clone()).template(with_agent.clone());
            let engine = Arc::new(engine.build().unwrap());
            SessionManager::builder().engine(engine).build().unwrap()
        };
        let service = Self {
            ours: side(&with_agent),
            portable: side(&template.mode(Mode::Portable)),
            here: manager(),
            there: manager(),
            standin,
            runtime,
        };
        service.standin.set_latency(LATENCY);
        service
    }

    /// Measures one row.
    fn row(&self, bench: &Bench, id: &str, python: Option<&mut PeerProcess>) {
        let name = id.strip_prefix("daytona_").unwrap();
        if name == "requests" {
            let all = OPERATIONS.iter().map(|op| self.requests(&self.ours, op));
            return measure::figure(id, all.sum());
        }
        if let Some(operation) = name.strip_prefix("portable_") {
            return measure::figure(id, self.requests(&self.portable, operation));
        }
        if let Some(kind) = name.strip_prefix("session_") {
            let open = |round| self.runtime.block_on(self.open(kind, round));
            return bench.row(id, open, None::<fn(usize) -> Sample>);
        }
        let operation = name.strip_suffix("_py").unwrap();
        let request = json!({ "op": operation, "calls": 1 });
        let their_call = python.map(|python| move |_: usize| python.call(&request));
        bench.row(id, |_| self.turn(operation), their_call);
    }

    /// Runs one turn of a row.
    fn turn(&self, operation: &str) -> Sample {
        let call = || self.runtime.block_on(self.ours.call(operation));
        let mut samples: Vec<Sample> = (0..CALLS).map(|_| call()).collect();
        let later = &mut samples[CALLS / 2..];
        later.sort_by_key(|sample| sample.nanos);
        later[later.len() / 2]
    }

    /// Returns the number of HTTP requests of one call.
    fn requests(&self, side: &Side, operation: &str) -> f64 {
        // The first one may have to connect.
        self.runtime.block_on(side.call(operation));
        let before = self.standin.requests();
        self.runtime.block_on(side.call(operation));
        let used = self.standin.requests().since(&before);
        f64::from(u32::try_from(used.total()).unwrap())
    }

    /// Opens a session and runs a command in it. Its end is not timed.
    async fn open(&self, kind: &str, round: usize) -> Sample {
        let user = format!("user-{kind}-{round}");
        match kind {
            "new" => {}
            "wake" => {
                run_true(&self.here.get_or_create(&user).await.unwrap()).await;
                self.here.release(&user).await.unwrap();
            }
            "moved" => assert!(run_true(&self.there.get_or_create(&user).await.unwrap()).await),
            _ => panic!("there is no row for {kind}"),
        }
        let start = Instant::now();
        run_true(&self.here.get_or_create(&user).await.unwrap()).await;
        let sample = Sample::since(start).with_size(1);
        self.here.purge(&user).await.unwrap();
        sample
    }

    async fn end(self) {
        for side in [&self.ours, &self.portable] {
            side.sandbox.stop(StopMode::Purge).await.unwrap();
        }
        self.standin.close().await;
    }
}

/// A sandbox with files.
struct Side {
    sandbox: DaytonaSandbox,
    /// The number of edits so far: each one undoes the one before.
    edits: Cell<usize>,
}

impl Side {
    /// Writes the files that are read, edited, listed and searched.
    async fn fill(sandbox: DaytonaSandbox) -> Self {
        for name in ["read.txt", "write.txt"] {
            sandbox.write_file(name, KIB.to_vec()).await.unwrap();
        }
        sandbox.write_file("edit.txt", text("one")).await.unwrap();
        for number in 0..FILES {
            let name = format!("tree/{number}.txt");
            sandbox.write_file(name, text("needle")).await.unwrap();
        }
        let edits = Cell::new(0);
        Self { sandbox, edits }
    }

    /// Makes one call.
    async fn call(&self, operation: &str) -> Sample {
        let sandbox = &self.sandbox;
        let start = Instant::now();
        let size = match operation {
            "read" => sandbox.read_bytes("read.txt").await.unwrap().len(),
            "write" => {
                let written = sandbox.write_file("write.txt", KIB.to_vec()).await;
                usize::try_from(written.unwrap().size).unwrap()
            }
            "edit" => {
                let words = ["one", "two"];
                let number = self.edits.replace(self.edits.get() + 1);
                let (old, new) = (words[number % 2], words[(number + 1) % 2]);
                let edited = sandbox.replace_text("edit.txt", old, new).await;
                edited.unwrap().replacements[0]
            }
            "ls" => sandbox.list_dir("tree").await.unwrap().entries.len(),
            "search" => {
                let tree = sandbox.path("tree").unwrap();
                let found = sandbox.grep(GrepQuery::new("needle", tree)).await;
                found.unwrap().matches
            }
            "execute" => usize::from(run_true(sandbox).await),
            "reads" => {
                let reads = (0..READS).map(|_| sandbox.read_bytes("read.txt"));
                let read = join_all(reads).await.into_iter();
                read.map(|read| read.unwrap().len()).sum()
            }
            _ => panic!("there is no call {operation}"),
        };
        Sample::since(start).with_size(size)
    }
}

/// Lines of text, one of which is a word.
fn text(word: &str) -> String {
    let lines = "a line of text\n".repeat(30);
    format!("{lines}{word}\n{lines}")
}

async fn run_true(sandbox: &dyn Sandbox) -> bool {
    let outcome = sandbox.execute(Command::new("true")).await.unwrap();
    outcome.status.success()
}
