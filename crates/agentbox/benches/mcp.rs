//! Compares `agentbox mcp` with the official file system server, both over stdio.
//!
//! Calls alternate between the servers. Both get the same requests on separate files, and
//! answer in plain text. Ours checks every call against a policy.
//!
//! | row | ours | the peer's |
//! |---|---|---|
//! | `mcp_read` | `read_file`, 50 lines | `read_text_file` |
//! | `mcp_write` | `write_file`, 1 KiB over a file | `write_file` |
//! | `mcp_edit` | `edit_file`, one line of 50 | `edit_file` |
//! | `mcp_search` | `glob` for 1,000 of 2,000 files | `search_files` |
//! | `mcp_start` | from the start of the process to the list of tools | the same |
//! | `mcp_memory` | the most memory that the process held after all of that | the same |
//!
//! The rows `docker_mcp_read`, `docker_mcp_write` and `docker_mcp_edit` are the same calls
//! of our server on a container. The daemon is the one that `DOCKER_HOST` names.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a benchmark that cannot run should stop"
)]

mod support {
    pub(crate) mod server;
}

use std::path::{Path, PathBuf};
use std::time::Instant;

use backend_testkit::measure::{self, Bench, Sample};
use serde_json::{Value, json};

use crate::support::server::Server;

/// Number of directories in the tree that is searched, and of files of each kind per
/// directory.
const DIRECTORIES: usize = 50;
const FILES: usize = 20;

/// Number of times a call is made in one turn; only the last one counts. Otherwise a
/// server that has just waited for the other would be measured with cold caches.
const CALLS: usize = 5;

fn main() {
    let bench = Bench::from_args();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let rows = runtime.block_on(bench.rows());
    if let Some(image) = bench.get("image") {
        return measure_container(&bench, &rows, image);
    }
    let Some(scratch) = bench.path("scratch") else {
        return;
    };
    let ours = Side::ours(&scratch.join("ours"));
    let peer = bench.path("node");
    let theirs = peer.map(|script| Side::theirs(&script, &scratch.join("theirs")));
    for id in &rows {
        measure_row(&bench, id, &ours, theirs.as_ref());
    }
}

/// Measures our server on a container, which has no peer.
fn measure_container(bench: &Bench, rows: &[String], image: &str) {
    let side = Side {
        program: env!("CARGO_BIN_EXE_agentbox").into(),
        arguments: vec!["mcp".into(), "--backend".into(), format!("docker:{image}")],
        agent: bench.path("agent"),
        directory: PathBuf::new(),
        is_ours: true,
    };
    let mut server = side.start();
    for path in ["read.txt", "edit.txt"] {
        let arguments = json!({ "path": path, "content": text() });
        call(&mut server, path, "write_file", &arguments);
    }
    for id in rows {
        let turn = |round| turn(&side, &mut server, id, round);
        bench.row(id, turn, None::<fn(usize) -> Sample>);
    }
    // It removes the container.
    server.end();
}

/// One of the two servers, with its own directory.
struct Side {
    program: PathBuf,
    arguments: Vec<String>,
    /// The agent for containers, if there is one.
    agent: Option<PathBuf>,
    directory: PathBuf,
    is_ours: bool,
}

impl Side {
    fn ours(directory: &Path) -> Self {
        fill(directory);
        let backend = format!("local:{}", directory.display());
        Self {
            program: env!("CARGO_BIN_EXE_agentbox").into(),
            arguments: vec!["mcp".into(), "--backend".into(), backend],
            agent: None,
            directory: directory.to_owned(),
            is_ours: true,
        }
    }

    fn theirs(script: &Path, directory: &Path) -> Self {
        fill(directory);
        Self {
            program: "node".into(),
            arguments: vec![
                script.display().to_string(),
                directory.display().to_string(),
            ],
            agent: None,
            directory: directory.to_owned(),
            is_ours: false,
        }
    }

    fn start(&self) -> Server {
        let agent = self
            .agent
            .iter()
            .map(|path| ("AGENTBOX_DOCKER_AGENT", path));
        Server::start(&self.program, &self.arguments, agent)
    }

    fn path(&self, name: &str) -> String {
        if self.is_ours {
            name.to_owned()
        } else {
            self.directory.join(name).display().to_string()
        }
    }

    /// Returns the tool and the arguments of one call of a row.
    fn call(&self, id: &str, number: usize) -> (&'static str, Value) {
        let (old, new) = edited(number);
        match (id.trim_start_matches("docker_"), self.is_ours) {
            ("mcp_read", true) => ("read_file", json!({ "path": "read.txt" })),
            ("mcp_read", false) => ("read_text_file", json!({ "path": self.path("read.txt") })),
            ("mcp_write", _) => (
                "write_file",
                json!({ "path": self.path("write.txt"), "content": "x".repeat(1_024) }),
            ),
            ("mcp_edit", true) => (
                "edit_file",
                json!({ "path": "edit.txt", "old_string": old, "new_string": new }),
            ),
            ("mcp_edit", false) => (
                "edit_file",
                json!({ "path": self.path("edit.txt"), "edits": [{ "oldText": old, "newText": new }] }),
            ),
            ("mcp_search", true) => ("glob", json!({ "pattern": "**/*.rs" })),
            ("mcp_search", false) => (
                "search_files",
                json!({ "path": self.path(""), "pattern": "**/*.rs" }),
            ),
            _ => panic!("there is no row {id}"),
        }
    }

    /// Measures the time from the start of the process to the list of its tools.
    fn turn_start(&self) -> Sample {
        let start = Instant::now();
        let mut server = self.start();
        let tools = server.tools();
        Sample::since(start).with_size(tools)
    }
}

fn measure_row(bench: &Bench, id: &str, ours: &Side, theirs: Option<&Side>) {
    match id {
        "mcp_start" => {
            let their_call = theirs.map(|theirs| move |_: usize| theirs.turn_start());
            bench.row(id, |_| ours.turn_start(), their_call);
        }
        "mcp_memory" => measure::memory(id, memory(ours), theirs.map(memory), 1),
        _ => {
            let mut our_server = ours.start();
            let our_call = |round| turn(ours, &mut our_server, id, round);
            let their_call = theirs.map(|theirs| {
                let mut server = theirs.start();
                move |round: usize| turn(theirs, &mut server, id, round)
            });
            bench.row(id, our_call, their_call);
        }
    }
}

fn turn(side: &Side, server: &mut Server, id: &str, round: usize) -> Sample {
    let mut last = None;
    for number in 0..CALLS {
        // The number of calls per turn is odd, so that edits undo each other in order.
        let (tool, arguments) = side.call(id, round * CALLS + number);
        last = Some(call(server, id, tool, &arguments));
    }
    last.unwrap()
}

/// Calls a tool. A failure ends the benchmark.
fn call(server: &mut Server, id: &str, tool: &str, arguments: &Value) -> Sample {
    let request = server.request(
        "tools/call",
        json!({ "name": tool, "arguments": arguments }),
    );
    let start = Instant::now();
    let answer = server.ask(&request);
    let sample = Sample::since(start);
    sample.with_size(checked(id, &answer))
}

/// Returns the amount of work that an answer reports. A failure ends the benchmark.
fn checked(id: &str, answer: &Value) -> usize {
    let result = &answer["result"];
    assert_ne!(result["isError"], json!(true), "{id}: {answer}");
    let failure = &result["_meta"]["console-tools/failure"];
    assert!(failure.is_null(), "{id}: {answer}");
    let text = result["content"][0]["text"].as_str();
    let text = text.unwrap_or_else(|| panic!("{id}: {answer}"));
    match id {
        "mcp_search" => text.lines().filter(|line| line.ends_with(".rs")).count(),
        _ => usize::from(!text.is_empty()),
    }
}

/// Returns the peak memory of a server during a hundred calls of each kind.
fn memory(side: &Side) -> u64 {
    // An edit of another row may have left the file changed.
    std::fs::write(side.directory.join("edit.txt"), text()).unwrap();
    let mut server = side.start();
    for round in 0..20 {
        for id in ["mcp_read", "mcp_write", "mcp_edit", "mcp_search"] {
            turn(side, &mut server, id, round);
        }
    }
    server.peak_bytes()
}

/// Creates the files that the rows work on.
fn fill(directory: &Path) {
    for number in 0..DIRECTORIES {
        let inner = directory.join(format!("tree/part-{number:02}"));
        std::fs::create_dir_all(&inner).unwrap();
        for file in 0..FILES {
            std::fs::write(inner.join(format!("{file}.rs")), "fn main() {}\n").unwrap();
            std::fs::write(inner.join(format!("{file}.md")), "# Notes\n").unwrap();
        }
    }
    std::fs::write(directory.join("read.txt"), text()).unwrap();
    std::fs::write(directory.join("edit.txt"), text()).unwrap();
}

/// Returns the text that is read and edited.
fn text() -> String {
    let lines: String = (0..49)
        .map(|number| {
            format!("    let value_{number:02} = compute(input, {number}, &mut state)?;\n")
        })
        .collect();
    format!("{}\n{lines}", edited(0).0)
}

/// Returns the text that an edit replaces, and its replacement. Each edit undoes the
/// one before.
fn edited(number: usize) -> (&'static str, &'static str) {
    let lines = (
        "    let edited = first(input, &mut state)?;",
        "    let edited = other(input, &mut state)?;",
    );
    match number % 2 {
        0 => lines,
        _ => (lines.1, lines.0),
    }
}
