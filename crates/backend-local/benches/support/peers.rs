//! The peers' side of every workload.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use backend_testkit::measure::{Bench, PeerProcess, Sample};
use serde_json::json;
use tokio::runtime::Runtime;

use super::job::{self, Job, READ_FILE, THEIR_FILES};

/// A call to a peer, which gets the number of its round.
pub(crate) type Call<'a> = Box<dyn FnMut(usize) -> Sample + 'a>;

/// The programs that do the same work.
#[derive(Debug)]
pub(crate) struct Peers<'r> {
    rg: Option<Rg>,
    python: Option<Python>,
    /// The runtime that our side uses as well.
    tokio: Option<&'r Runtime>,
}

impl<'r> Peers<'r> {
    pub(crate) fn new(bench: &Bench, scratch: &Path, runtime: &'r Runtime) -> Self {
        let tree = bench.path("tree").unwrap_or_default();
        Self {
            rg: bench.path("rg").map(|program| Rg {
                program,
                tree: tree.clone(),
                output: Vec::new(),
            }),
            python: bench.python("local").map(|process| Python {
                process,
                tree: tree.clone(),
                scratch: scratch.to_owned(),
            }),
            tokio: bench.get("peers").map(|_| runtime),
        }
    }

    /// Returns the call that does `job` with the named peer, if it is available.
    pub(crate) fn caller<'a>(&'a mut self, peer: &str, job: &'a Job) -> Option<Call<'a>> {
        match peer {
            "rg" => {
                let rg = self.rg.as_mut()?;
                Some(Box::new(move |_| rg.call(job)))
            }
            "py" => {
                let python = self.python.as_mut()?;
                Some(Box::new(move |round| python.call(job, round)))
            }
            _ => {
                let tokio = self.tokio?;
                Some(Box::new(move |_| bare_command(tokio)))
            }
        }
    }
}

/// The program `rg`, from start to exit, with its output read to the end.
#[derive(Debug)]
struct Rg {
    program: PathBuf,
    tree: PathBuf,
    /// Kept, so that only the first call pays for its pages.
    output: Vec<u8>,
}

impl Rg {
    fn call(&mut self, job: &Job) -> Sample {
        let mut command = Command::new(&self.program);
        command.arg("--no-require-git");
        match *job {
            Job::Grep { pattern, .. } => command.args(["--line-number", pattern, "."]),
            Job::Glob { pattern, .. } => command.args(["--files", "-g", pattern]),
            _ => unreachable!("rg only searches"),
        };
        command
            .current_dir(&self.tree)
            .env_remove("RIPGREP_CONFIG_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        self.output.clear();
        let start = Instant::now();
        let mut child = command.spawn().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_to_end(&mut self.output).unwrap();
        let status = child.wait().unwrap();
        let sample = Sample::since(start);
        assert!(status.success(), "rg failed or found nothing ({status})");
        let sample = sample.with_size(count_results(&self.output));
        Sample {
            size: job.asked_for(sample.size),
            ..sample
        }
    }
}

/// Counts the output lines, except those that only report a matching binary
/// file.
fn count_results(output: &[u8]) -> usize {
    let is_result = |line: &&[u8]| !line.is_empty() && !is_binary_note(line);
    output
        .split(|byte| *byte == b'\n')
        .filter(is_result)
        .count()
}

fn is_binary_note(line: &[u8]) -> bool {
    let note = b": binary file matches (found ";
    line.ends_with(b")") && line.windows(note.len()).any(|window| window == note)
}

/// The Python package.
#[derive(Debug)]
struct Python {
    process: PeerProcess,
    tree: PathBuf,
    scratch: PathBuf,
}

impl Python {
    fn call(&mut self, job: &Job, round: usize) -> Sample {
        let (tree, scratch) = (&self.tree, &self.scratch);
        let mut request = match *job {
            Job::Grep { pattern, .. } => json!({ "op": "grep", "root": tree, "pattern": pattern }),
            Job::Glob { pathlib, .. } => json!({ "op": "glob", "root": tree, "pattern": pathlib }),
            Job::Read => json!({ "op": "read", "root": scratch, "path": READ_FILE }),
            Job::Edit => {
                let (old, new) = job::edited(round);
                let path = THEIR_FILES.edit;
                json!({ "op": "edit", "root": scratch, "path": path, "old": old, "new": new })
            }
            Job::Write => {
                let (path, content) = (THEIR_FILES.write, job::one_kib());
                json!({ "op": "write", "root": scratch, "path": path, "content": content })
            }
            Job::Execute | Job::View => unreachable!("commands have other peers"),
        };
        request["calls"] = json!(job.calls_per_turn());
        let sample = self.process.call(&request);
        Sample {
            size: job.asked_for(sample.size),
            ..sample
        }
    }
}

/// The obvious code: a shell and two pipes.
fn bare_command(runtime: &Runtime) -> Sample {
    let start = Instant::now();
    let output = runtime.block_on(async {
        tokio::process::Command::new("sh")
            .args(["-c", "true"])
            .stdin(Stdio::null())
            .output()
            .await
    });
    let sample = Sample::since(start);
    assert!(output.unwrap().status.success());
    sample.with_size(1)
}
