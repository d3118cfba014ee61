//! The peers' side of every workload.

use std::path::{Path, PathBuf};
use std::time::Instant;

use backend_testkit::measure::{Bench, PeerProcess, Sample};
use serde_json::json;
use tokio::runtime::Runtime;

use super::bare;
use super::job::{self, Job, READ_FILE, THEIR_FILES};
use super::rg::Rg;

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
            rg: bench.path("rg").map(|program| Rg::new(program, &tree)),
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
                Some(Box::new(move |_| search(rg, job)))
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

fn search(rg: &mut Rg, job: &Job) -> Sample {
    let sample = match *job {
        Job::Grep { pattern, .. } => rg.call(&["--line-number", pattern, "."]),
        Job::Glob { pattern, .. } => rg.call(&["--files", "-g", pattern]),
        _ => unreachable!("rg only searches"),
    };
    Sample {
        size: job.asked_for(sample.size),
        ..sample
    }
}

fn bare_command(runtime: &Runtime) -> Sample {
    let start = Instant::now();
    runtime.block_on(bare::run("true"));
    Sample::since(start).with_size(1)
}
