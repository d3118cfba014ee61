//! Looks at a file for glob: its size, time and mode.

use std::ops::ControlFlow;

use backend_core::Result;
use backend_core::ops::{Entry, FileKind};
use backend_core::search::GlobCollector;
use rustix::fs::{AtFlags, FileType, statat};
use rustix::io::Errno;

use super::Stop;
use super::handles::about_entry;
use super::pipeline::Task;
use super::walker::Target;
use crate::fs::entry;

/// Finds out what an [`Entry`] tells.
pub(super) struct Stats;

impl Task for Stats {
    const BATCH: usize = 64;
    type Worker<'a> = ();
    type Found = Entry;
    type Collector = GlobCollector;

    fn worker(&self) {}

    fn look(&self, (): &mut (), file: Target, _: &Stop) -> Result<Option<Entry>> {
        match statat(&*file.directory, file.name(), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                Ok(Some(entry(file.path, &stat)))
            }
            // Gone, or something else by now.
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            // It is there, and nobody may know more.
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
