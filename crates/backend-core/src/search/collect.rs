//! Sorts found files and cuts the result at its limit.

use std::cmp::Reverse;
use std::collections::BTreeMap;
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
    /// The last is the file to drop first: the oldest, and among equally old ones the
    /// last by path.
    NewestFirst(BTreeMap<(Reverse<Option<SystemTime>>, VPath), Entry>),
}

impl GlobCollector {
    /// Creates a collector for `query`.
    pub fn new(query: &GlobQuery) -> Self {
        let found = match query.order {
            GlobOrder::Path => FoundFiles::ByPath(Vec::new()),
            GlobOrder::NewestFirst => FoundFiles::NewestFirst(BTreeMap::new()),
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
                files.insert((Reverse(entry.modified), entry.path.clone()), entry);
                if files.len() > self.limit {
                    files.pop_last();
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
            FoundFiles::NewestFirst(files) => files.into_values().collect(),
        };
        GlobResult {
            files,
            truncated: self.truncated,
            skipped,
        }
    }
}
