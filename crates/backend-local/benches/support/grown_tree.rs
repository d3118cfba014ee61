//! Trees of any number of files, on disk and in memory, and searches in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use backend_core::ops::{GlobQuery, GrepQuery, LsOptions};
use backend_core::{Backend, BackendExt as _, VPath};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use backend_testkit::measure::{Bench, Sample};
use bytes::Bytes;
use tokio::runtime::Runtime;

/// One in so many files matches.
const RARE: usize = 1_000;

/// Entries of a directory.
const ENTRIES: usize = 100;

/// The word that is searched, and the names.
const WORD: &str = "needle";
const NAMES: &str = "*_000.txt";

/// The directory that is listed.
const LISTED: &str = "/0/0";

/// The trees that were made, and what searches them.
pub(crate) struct Trees<'a> {
    bench: &'a Bench,
    runtime: &'a Runtime,
    scratch: &'a Path,
    rg: Option<PathBuf>,
    /// The last store, because the largest takes much memory.
    store: Option<(usize, StateBackend)>,
}

impl<'a> Trees<'a> {
    pub(crate) fn new(bench: &'a Bench, scratch: &'a Path, runtime: &'a Runtime) -> Self {
        Self {
            bench,
            runtime,
            scratch,
            rg: bench.path("rg"),
            store: None,
        }
    }

    /// Measures a row about a tree on disk, in turns with ripgrep if it searches.
    pub(crate) fn on_disk(&self, id: &str, kind: &str, files: usize) {
        let root = self.scratch.join(format!("tree-{files}"));
        if !root.exists() {
            write(&root, files);
        }
        let backend = LocalBackend::builder(&root).open().unwrap();
        let ours = |_| self.call(&backend, kind);
        let rg = self.rg.as_deref().filter(|_| id.ends_with("_rg"));
        let theirs = rg.map(|rg| move |_| search(rg, &root, kind));
        self.bench.row(id, ours, theirs);
    }

    /// Measures a row about a tree in memory.
    pub(crate) fn in_memory(&mut self, id: &str, kind: &str, files: usize) {
        if self.store.as_ref().is_none_or(|(held, _)| *held != files) {
            self.store = None;
            self.store = Some((files, self.runtime.block_on(store(files))));
        }
        let (_, store) = self.store.as_ref().unwrap();
        let ours = |_| self.call(store, kind);
        self.bench.row(id, ours, None::<fn(usize) -> Sample>);
    }

    fn call(&self, backend: &dyn Backend, kind: &str) -> Sample {
        let start = Instant::now();
        match kind {
            "lines" => {
                let query = GrepQuery::new(WORD, VPath::root());
                let found = self.runtime.block_on(backend.grep(query)).unwrap();
                Sample::since(start).with_size(found.matches)
            }
            "names" => {
                let query = GlobQuery::new(format!("**/{NAMES}"), VPath::root());
                let found = self.runtime.block_on(backend.glob(query)).unwrap();
                Sample::since(start).with_size(found.files.len())
            }
            _ => {
                let path = VPath::parse(LISTED).unwrap();
                let listed = backend.ls(&path, LsOptions::default());
                let listed = self.runtime.block_on(listed).unwrap();
                Sample::since(start).with_size(listed.entries.len())
            }
        }
    }

    pub(crate) fn remove(self) {
        for entry in fs::read_dir(self.scratch).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                fs::remove_dir_all(path).unwrap();
            }
        }
    }
}

/// Runs ripgrep, from its start to its end with its output read.
fn search(rg: &Path, root: &Path, kind: &str) -> Sample {
    let start = Instant::now();
    let mut command = Command::new(rg);
    command.arg("--no-require-git");
    match kind {
        "lines" => command.args(["--line-number", WORD, "."]),
        _ => command.args(["--files", "-g", NAMES]),
    };
    let output = command
        .current_dir(root)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "rg failed");
    let sample = Sample::since(start);
    sample.with_size(output.stdout.iter().filter(|byte| **byte == b'\n').count())
}

/// Returns the directory and the name of a file.
fn place(number: usize) -> (String, String) {
    let directory = number / ENTRIES;
    let directory = format!("{}/{}", directory / ENTRIES, directory % ENTRIES);
    (directory, format!("{number:07}_{:03}.txt", number % RARE))
}

fn text(number: usize) -> String {
    let word = if number % RARE == RARE / 2 {
        WORD
    } else {
        "straw"
    };
    let line = |line| format!("line {line} of a file of a large tree\n");
    (0..19).map(line).collect::<String>() + word + "\n"
}

fn write(root: &Path, files: usize) {
    for first in (0..files).step_by(ENTRIES) {
        let (directory, name) = place(first);
        let directory = root.join(directory);
        fs::create_dir_all(&directory).unwrap();
        let original = directory.join(name);
        fs::write(&original, text(1)).unwrap();
        for number in first + 1..first + ENTRIES {
            fs::hard_link(&original, directory.join(place(number).1)).unwrap();
        }
    }
    // The links of a file that matches have the old text, also if it was the first.
    for number in (RARE / 2..files).step_by(RARE) {
        let (directory, name) = place(number);
        let path = root.join(directory).join(name);
        fs::remove_file(&path).unwrap();
        fs::write(path, text(number)).unwrap();
    }
}

async fn store(files: usize) -> StateBackend {
    let store = StateBackend::new();
    let common = Bytes::from(text(1));
    for number in 0..files {
        let (directory, name) = place(number);
        let content = if number % RARE == RARE / 2 {
            Bytes::from(text(number))
        } else {
            common.clone()
        };
        let path = format!("/{directory}/{name}");
        store.write_file(&path, content).await.unwrap();
    }
    store
}
