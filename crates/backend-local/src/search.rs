//! Searching over directory handles: in parallel, in order, and no further than
//! needed.

mod ahead;
mod content;
mod handles;
mod listing;
mod pipeline;
mod walker;

use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use backend_core::ops::{
    Entry, FileKind, GlobOrder, GlobQuery, GlobResult, GrepQuery, GrepResult, Skipped,
};
use backend_core::search::{GlobCollector, GrepCollector, SkipReason};
use backend_core::{Error, Result, VPath};
use content::{Contents, GrepTask};
use handles::about_entry;
use pipeline::Task;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;
use walker::{Candidate, Walker};

use crate::cancel::CancelFlag;
use crate::engine;
use crate::fs::entry;

/// The start of a search.
pub(crate) enum SearchRoot {
    /// A directory, open for listing, with its path.
    Directory(OwnedFd, VPath),
    /// A regular file named by the caller, open for reading, with its path.
    File(OwnedFd, VPath),
}

/// A function that reads an ignore file above the start. It returns `None` if
/// there is none.
pub(crate) type ReadAbove = dyn Fn(&VPath) -> Option<Vec<u8>> + Send + Sync;

/// Finds files. `open` is called after the query has been validated.
pub(crate) async fn glob(
    open: impl FnOnce() -> Result<SearchRoot> + Send + 'static,
    query: GlobQuery,
    above: Arc<ReadAbove>,
) -> Result<GlobResult> {
    let stop = CancelFlag::default();
    let _call = stop.guard();
    engine::blocking(move || {
        let options = query.compile()?;
        let SearchRoot::Directory(directory, path) = open()? else {
            return Err(Error::not_a_directory());
        };
        let walker = Walker::new(directory, path, options, above);
        let task = GlobTask {
            metadata: query.metadata || query.order == GlobOrder::NewestFirst,
        };
        let (found, skipped) = pipeline::run(task, GlobCollector::new(&query), walker, stop)?;
        Ok(found.finish(skipped))
    })
    .await
}

/// Finds lines. `open` is called after the query has been validated.
pub(crate) async fn grep(
    open: impl FnOnce() -> Result<SearchRoot> + Send + 'static,
    query: GrepQuery,
    above: Arc<ReadAbove>,
) -> Result<GrepResult> {
    let stop = CancelFlag::default();
    let _call = stop.guard();
    engine::blocking(move || {
        let (options, grep) = query.compile()?;
        let mut found = GrepCollector::new(&query);
        match open()? {
            SearchRoot::Directory(directory, path) => {
                let walker = Walker::new(directory, path, options, above);
                let (found, skipped) = pipeline::run(GrepTask(grep), found, walker, stop)?;
                Ok(found.finish(skipped))
            }
            SearchRoot::File(file, path) => {
                if !query.exclude.hides(&path) {
                    match Contents::new(&grep).search(&path, &file, &stop) {
                        Err(SkipReason::Unreadable(error)) => return Err(handles::failed(error)),
                        searched => found.add(searched),
                    };
                }
                Ok(found.finish(Skipped::default()))
            }
        }
    })
    .await
}

/// Fills in an [`Entry`].
pub(super) struct GlobTask {
    metadata: bool,
}

impl Task for GlobTask {
    const BATCH: usize = 64;
    type Worker<'a> = ();
    type Found = Entry;
    type Collector = GlobCollector;

    fn worker(&self) {}

    fn examine(&self, (): &mut (), file: Candidate, _: &CancelFlag) -> Result<Option<Entry>> {
        if !self.metadata {
            return Ok(Some(Entry::of_kind(file.path, FileKind::File)));
        }
        match statat(&*file.directory, file.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some(entry(file.path, &stat)))
            }
            // Gone, or no longer a regular file.
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            // It exists, but its metadata cannot be read.
            Err(error) => {
                about_entry(error)?;
                Ok(Some(Entry::of_kind(file.path, FileKind::File)))
            }
        }
    }

    fn size(entry: &Entry) -> usize {
        size_of::<Entry>() + entry.path.as_str().len()
    }

    fn collect(found: &mut GlobCollector, entry: Entry) -> ControlFlow<()> {
        found.add(entry)
    }
}

#[cfg(test)]
mod tests;
