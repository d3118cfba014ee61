//! The task of glob: reads the size, time and mode of a file.

use std::ops::ControlFlow;

use backend_core::Result;
use backend_core::ops::{Entry, FileKind};
use backend_core::search::GlobCollector;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::handles::about_entry;
use super::pipeline::Task;
use super::walker::Candidate;
use crate::cancel::CancelFlag;
use crate::fs::entry;

/// Fills in an [`Entry`].
pub(super) struct GlobTask;

impl Task for GlobTask {
    const BATCH: usize = 64;
    type Worker<'a> = ();
    type Found = Entry;
    type Collector = GlobCollector;

    fn worker(&self) {}

    fn examine(&self, (): &mut (), file: Candidate, _: &CancelFlag) -> Result<Option<Entry>> {
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
