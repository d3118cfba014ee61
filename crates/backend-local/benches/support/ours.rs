//! Our side of every workload.

use std::fs;
use std::path::Path;
use std::time::Instant;

use backend_core::ops::{
    Command, EditOptions, GlobQuery, GrepQuery, TextOptions, View, WriteOptions,
};
use backend_core::search::Exclude;
use backend_core::{Backend as _, Edit, Enforcement, Result, Sandbox as _, VPath};
use backend_local::{Commands, Confinement, Landlock, LocalBackend};
use backend_testkit::measure::{Bench, Sample};
use bytes::Bytes;
use tokio::runtime::Runtime;

use super::job::{self, Job, OUR_FILES, READ_FILE, THEIR_FILES};

/// The backends that are measured, and the runtime they are called from.
#[derive(Debug)]
pub(crate) struct Ours<'a> {
    runtime: &'a Runtime,
    tree: Option<LocalBackend>,
    scratch: LocalBackend,
    /// The scratch directory again, with commands.
    commands: Option<LocalBackend>,
    /// The scratch directory again, with confined commands that have views.
    confined: Option<LocalBackend>,
}

impl<'a> Ours<'a> {
    pub(crate) fn open(
        bench: &Bench,
        scratch: &Path,
        rows: &[String],
        runtime: &'a Runtime,
    ) -> Self {
        for name in [READ_FILE, OUR_FILES.edit, THEIR_FILES.edit] {
            fs::write(scratch.join(name), job::fifty_lines()).unwrap();
        }
        for name in [OUR_FILES.write, THEIR_FILES.write] {
            fs::write(scratch.join(name), job::one_kib()).unwrap();
        }
        let open = |root: &Path| LocalBackend::builder(root).open().unwrap();
        let runs_commands = rows.iter().any(|id| id.contains("_execute_"));
        let commands = LocalBackend::builder(scratch).enable_execute(true);
        Self {
            runtime,
            tree: bench.path("tree").map(|tree| open(&tree)),
            scratch: open(scratch),
            commands: runs_commands.then(|| commands.open().unwrap()),
            confined: rows.iter().any(|id| id == "local_view_confined").then(|| {
                for name in job::denied() {
                    fs::write(scratch.join(name), "denied").unwrap();
                }
                confined(scratch)
            }),
        }
    }

    /// Runs a command that does nothing, confined and without a view.
    pub(crate) fn confined_call(&self) -> Sample {
        self.run_confined(Command::new("true"))
    }

    fn run_confined(&self, command: Command) -> Sample {
        let backend = self.confined.as_ref().unwrap();
        let (sample, outcome) = self.timed(backend.execute(command));
        assert!(outcome.status.success());
        sample.with_size(1)
    }

    /// Runs the calls of one turn of `job`, and returns the last sample.
    pub(crate) fn turn(&self, job: &Job, round: usize) -> Sample {
        let n_calls = job.calls_per_turn();
        let numbers = round * n_calls..(round + 1) * n_calls;
        let samples: Vec<_> = numbers.map(|number| self.call(job, number)).collect();
        *samples.last().unwrap()
    }

    /// Makes one call. Its result is dropped after the clock has stopped.
    fn call(&self, job: &Job, number: usize) -> Sample {
        match *job {
            Job::Grep { pattern, max } => {
                let query = GrepQuery::new(pattern, VPath::root())
                    .max_matches(max.unwrap_or(usize::MAX))
                    .max_bytes(usize::MAX);
                let (sample, found) = self.timed(self.tree().grep(query));
                sample.with_size(found.matches)
            }
            Job::Glob {
                pattern, metadata, ..
            } => {
                let query = GlobQuery::new(pattern, VPath::root()).limit(usize::MAX);
                let query = query.metadata(metadata);
                let (sample, found) = self.timed(self.tree().glob(query));
                sample.with_size(found.files.len())
            }
            Job::Read => {
                let path = path(READ_FILE);
                let read = self.scratch.read_text(&path, TextOptions::default());
                let (sample, window) = self.timed(read);
                sample.with_size(window.lines().len())
            }
            Job::Edit => {
                let (old, new) = job::edited(number);
                let (path, edits) = (path(OUR_FILES.edit), [Edit::new(old, new)]);
                let edit = self.scratch.edit(&path, &edits, EditOptions::default());
                let (sample, outcome) = self.timed(edit);
                sample.with_size(outcome.replacements.iter().sum())
            }
            Job::Write => {
                let (path, content) = (path(OUR_FILES.write), Bytes::from(job::one_kib()));
                let options = WriteOptions::default();
                let write = self.scratch.write(&path, content.into(), options);
                self.timed(write).0.with_size(1)
            }
            Job::Execute => {
                let sandbox = self.commands.as_ref().unwrap().as_sandbox().unwrap();
                let (sample, outcome) = self.timed(sandbox.execute(Command::new("true")));
                assert!(outcome.status.success());
                sample.with_size(1)
            }
            Job::View => {
                let view = View::new(Exclude::hide(job::denied()).unwrap(), Exclude::none());
                self.run_confined(Command::new("true").view(view))
            }
        }
    }

    fn timed<T>(&self, work: impl Future<Output = Result<T>>) -> (Sample, T) {
        let start = Instant::now();
        let done = self.runtime.block_on(work);
        let sample = Sample::since(start);
        (sample, done.unwrap())
    }

    fn tree(&self) -> &LocalBackend {
        self.tree.as_ref().unwrap()
    }
}

/// Opens a directory with confined commands that have views.
pub(crate) fn confined(root: &Path) -> LocalBackend {
    let confinement = Confinement::Landlock(Landlock::new().views(true));
    let builder = LocalBackend::builder(root).enable_execute(true);
    let builder = builder.commands(Commands::new().confinement(confinement));
    let backend = builder.open().unwrap();
    assert_eq!(backend.info().enforcement, Enforcement::View);
    backend
}

fn path(name: &str) -> VPath {
    VPath::parse(&format!("/{name}")).unwrap()
}
