//! The task of grep: finds the matching lines of a file.

use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use backend_core::ops::FileMatches;
use backend_core::search::{Grep, GrepCollector, GrepWorker, SkipReason};
use backend_core::{Result, VPath};
use rustix::io::Errno;

use super::handles::{about_entry, open_file, stat_regular};
use super::pipeline::Task;
use super::walker::Candidate;
use crate::cancel::CancelFlag;

/// Files up to this size are read whole and searched at once, larger ones while
/// they are read.
const WHOLE_BYTES: usize = 256 * 1024;

/// Like [`WHOLE_BYTES`], for a search of unknown speed and for the slowest
/// searches.
const FIRST_BYTES: usize = 4 * 1024;
const FEW_BYTES: usize = 1024;

/// The longest acceptable time of an uninterruptible search, and the time below
/// which more is searched at once.
const LONG: Duration = Duration::from_millis(5);
const SHORT: Duration = Duration::from_millis(1);

/// Searches files for the pattern it holds.
pub(super) struct GrepTask(pub(super) Grep);

impl Task for GrepTask {
    const BATCH: usize = 16;
    type Worker<'a> = Contents<'a>;
    type Found = Result<FileMatches, SkipReason>;
    type Collector = GrepCollector;

    fn worker(&self) -> Contents<'_> {
        Contents::new(&self.0)
    }

    fn examine(
        &self,
        worker: &mut Contents<'_>,
        file: Candidate,
        stop: &CancelFlag,
    ) -> Result<Option<Self::Found>> {
        let searched = match open_file(&file.directory, file.name()) {
            Ok(handle) => worker.search(&file.path, &handle, stop),
            Err(error) => Err(SkipReason::Unreadable(about_entry(error)?.into())),
        };
        Ok(match searched {
            Ok(lines) if lines.is_empty() => None,
            searched => Some(searched),
        })
    }

    fn size(found: &Self::Found) -> usize {
        // The size of a line besides its text.
        const LINE: usize = 24;
        let of_lines = |lines: &FileMatches| lines.shown_bytes() + LINE * lines.lines().len();
        size_of::<Self::Found>() + found.as_ref().map_or(0, of_lines)
    }

    fn collect(found: &mut GrepCollector, lines: Self::Found) -> ControlFlow<()> {
        if found.add(lines) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

/// The buffers and state of one search thread, reused for each file.
pub(super) struct Contents<'g> {
    worker: GrepWorker<'g>,
    buffer: Vec<u8>,
    pace: Pace,
}

impl<'g> Contents<'g> {
    pub(super) fn new(grep: &'g Grep) -> Self {
        Self {
            worker: grep.worker(),
            // One more, to detect the end of a file.
            buffer: vec![0; WHOLE_BYTES + 1],
            pace: Pace::new(),
        }
    }

    /// Searches an open file, if it is a regular one. After `stop` is set it
    /// returns soon, with a meaningless result.
    pub(super) fn search(
        &mut self,
        path: &VPath,
        file: &OwnedFd,
        stop: &CancelFlag,
    ) -> Result<FileMatches, SkipReason> {
        let unreadable = |error: Errno| SkipReason::Unreadable(error.into());
        let stat = stat_regular(file).map_err(unreadable)?;
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        let at_once = self.pace.bytes;
        let rest = Reading {
            file: file.as_fd(),
            stop,
            pace: &mut self.pace,
        };
        if size > at_once {
            return self.worker.search_reader(path, rest);
        }
        let mut filled = 0;
        while let Some(free) = self.buffer.get_mut(filled..=at_once) {
            match rest.read_some(free) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(Errno::INTR) => {}
                Err(error) => return Err(unreadable(error)),
            }
            // More was asked for, so this is all. Files without a size, such as
            // those in /proc, are read until they end.
            if filled == size {
                break;
            }
        }
        let content = self.buffer.get(..filled).unwrap_or_default();
        if filled > at_once {
            return self.worker.search_reader(path, content.chain(rest));
        }
        self.pace.begin();
        let found = self.worker.search_slice(path, content);
        self.pace.end();
        found
    }
}

/// The amount of data that is searched at once.
///
/// A search for a pattern cannot be interrupted, and some patterns take seconds
/// where others take microseconds. So a thread starts with little data and
/// adapts to the measured speed. That way a search ends soon after it is
/// cancelled.
struct Pace {
    bytes: usize,
    begun: Option<Instant>,
}

impl Pace {
    fn new() -> Self {
        Self {
            bytes: FIRST_BYTES,
            begun: None,
        }
    }

    fn begin(&mut self) {
        self.begun = Some(Instant::now());
    }

    fn end(&mut self) {
        self.bytes = match self.begun.take().map(|begun| begun.elapsed()) {
            Some(taken) if taken > LONG => (self.bytes / 4).max(FEW_BYTES),
            Some(taken) if taken < SHORT => (self.bytes * 2).min(WHOLE_BYTES),
            _ => self.bytes,
        };
    }
}

/// Reads a file. The file appears to end when `stop` is set.
struct Reading<'a> {
    file: BorrowedFd<'a>,
    stop: &'a CancelFlag,
    pace: &'a mut Pace,
}

impl Reading<'_> {
    fn read_some(&self, buffer: &mut [u8]) -> rustix::io::Result<usize> {
        if self.stop.is_set() {
            return Ok(0);
        }
        rustix::io::read(self.file, buffer)
    }
}

impl Read for Reading<'_> {
    /// Between one call and the next, the searcher searches the data it was
    /// given.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.pace.end();
        let most = buffer.len().min(self.pace.bytes);
        let count = self.read_some(buffer.get_mut(..most).unwrap_or_default())?;
        self.pace.begin();
        Ok(count)
    }
}
