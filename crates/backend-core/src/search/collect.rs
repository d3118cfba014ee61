//! Sorts found files and cuts the result at its limit.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::time::SystemTime;

use crate::ops::{Entry, GlobOrder, GlobQuery, GlobResult, Skipped};
use crate::path::VPath;

/// Collects the files that a walk finds, in memory bounded by the query's limit.
#[derive(Debug)]
pub struct GlobCollector {
    limit: usize,
    found: FoundFiles,
    truncated: bool,
}

#[derive(Debug)]
enum FoundFiles {
    ByPath(Vec<Entry>),
    /// The greatest key is the file to drop first: the oldest, and among equally
    /// old ones the last by path.
    NewestFirst(BinaryHeap<ByAge>),
}

#[derive(Debug)]
struct ByAge(Entry);

impl ByAge {
    fn key(&self) -> (Reverse<Option<SystemTime>>, &VPath) {
        (Reverse(self.0.modified), &self.0.path)
    }
}

impl Ord for ByAge {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl PartialOrd for ByAge {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for ByAge {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for ByAge {}

impl GlobCollector {
    /// Creates a collector for `query`.
    pub fn new(query: &GlobQuery) -> Self {
        let found = match query.order {
            GlobOrder::Path => FoundFiles::ByPath(Vec::new()),
            GlobOrder::NewestFirst => FoundFiles::NewestFirst(BinaryHeap::new()),
        };
        Self {
            limit: query.limit,
            found,
            truncated: false,
        }
    }

    /// Adds a file. The caller must add files in path order.
    ///
    /// Breaks when no further file can change the result.
    pub fn add(&mut self, entry: Entry) -> ControlFlow<()> {
        match &mut self.found {
            FoundFiles::ByPath(files) if files.len() == self.limit => {
                self.truncated = true;
                return ControlFlow::Break(());
            }
            FoundFiles::ByPath(files) => files.push(entry),
            FoundFiles::NewestFirst(files) => {
                files.push(ByAge(entry));
                if files.len() > self.limit {
                    files.pop();
                    self.truncated = true;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the result, with the counts of what the walk skipped.
    pub fn finish(self, skipped: Skipped) -> GlobResult {
        let files = match self.found {
            FoundFiles::ByPath(files) => files,
            FoundFiles::NewestFirst(files) => {
                let sorted = files.into_sorted_vec();
                sorted.into_iter().map(|aged| aged.0).collect()
            }
        };
        GlobResult {
            files,
            truncated: self.truncated,
            skipped,
        }
    }
}
