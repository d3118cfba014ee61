//! Trees of any number of files, and searches in them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use backend_core::ops::{GlobQuery, GrepQuery, LsOptions};
use backend_core::{Backend as _, VPath};
use backend_local::LocalBackend;
use backend_testkit::measure::Sample;
use tempfile::TempDir;

use super::rg::Rg;
use crate::Setup;

/// Files of a directory.
const FILES: usize = 100;

/// One in so many files contains the word.
const RARE: usize = 1_000;

/// The word that is searched, the names that are searched, and the directory that is listed.
const WORD: &str = "needle";
const NAMES: &str = "*_000.txt";
const LISTED: &str = "0/0";

/// The trees that were made. They are removed in the end.
pub(crate) struct Trees<'a> {
    setup: &'a Setup,
    made: BTreeMap<usize, TempDir>,
}

impl<'a> Trees<'a> {
    pub(crate) fn new(setup: &'a Setup) -> Self {
        let made = BTreeMap::new();
        Self { setup, made }
    }

    /// Measures a search in a tree, in turns with ripgrep.
    pub(crate) fn measure(&mut self, id: &str, search: &str, files: usize) {
        let setup = self.setup;
        let tree = self.made.entry(files);
        let tree = tree.or_insert_with(|| make(&setup.scratch, files)).path();
        let backend = LocalBackend::open(tree).unwrap();
        let ours = |_| setup.runtime.block_on(call(&backend, search));
        let rg = setup.bench.path("rg").map(|program| Rg::new(program, tree));
        let theirs = rg.map(|mut rg| {
            move |_| match search {
                "lines" => rg.call(&["--line-number", WORD, "."]),
                "names" => rg.call(&["--files", "-g", NAMES]),
                "walk" => rg.call(&["--files"]),
                _ => rg.call(&["--files", "--max-depth", "1", LISTED]),
            }
        });
        setup.bench.row(id, ours, theirs);
    }
}

/// Makes a call. Its result is dropped after the clock has stopped.
async fn call(backend: &LocalBackend, search: &str) -> Sample {
    let start = Instant::now();
    let glob = |pattern: String| {
        GlobQuery::new(pattern, VPath::root())
            .limit(usize::MAX)
            .metadata(false)
    };
    match search {
        "lines" => {
            let query = GrepQuery::new(WORD, VPath::root());
            let found = backend.grep(query).await.unwrap();
            Sample::since(start).with_size(found.matches)
        }
        "names" | "walk" => {
            let names = if search == "names" { NAMES } else { "*" };
            let found = backend.glob(glob(format!("**/{names}"))).await.unwrap();
            Sample::since(start).with_size(found.files.len())
        }
        _ => {
            let path = VPath::parse(&format!("/{LISTED}")).unwrap();
            let listing = backend.ls(&path, LsOptions::default()).await.unwrap();
            Sample::since(start).with_size(listing.entries.len())
        }
    }
}

fn make(scratch: &Path, files: usize) -> TempDir {
    let root = tempfile::tempdir_in(scratch).unwrap();
    let mut original = PathBuf::new();
    for number in 0..files {
        let directory = number / FILES;
        let directory = format!("{}/{}", directory / FILES, directory % FILES);
        let directory = root.path().join(directory);
        let rest = number % RARE;
        let path = directory.join(format!("{number:07}_{rest:03}.txt"));
        if number % FILES == 0 {
            fs::create_dir_all(&directory).unwrap();
            fs::write(&path, text("straw")).unwrap();
            original = path;
        } else if rest == 1 {
            fs::write(path, text(WORD)).unwrap();
        } else {
            fs::hard_link(&original, path).unwrap();
        }
    }
    root
}

fn text(last: &str) -> String {
    "a line of a file in a large tree\n".repeat(19) + last + "\n"
}
