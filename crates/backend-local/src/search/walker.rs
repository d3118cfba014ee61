//! Drives the shared walk over directory handles and groups the files it finds
//! into batches.

use std::fs::File;
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use backend_core::limits::IGNORE_FILE_BYTES;
use backend_core::ops::Skipped;
use backend_core::search::{Step, Walk, WalkOptions};
use backend_core::{Result, VPath};
use rustix::io::Errno;

use super::ReadAbove;
use super::ahead::{AHEAD, Ahead};
use super::handles::{about_entry, failed, open_file, stat_regular};
use super::listing::{Listing, ListingBuffer, list, list_beneath};
use crate::cancel::CancelFlag;

/// The number of directories in one batch, and so the number of handles it
/// keeps open.
const BATCH_DIRECTORIES: usize = 16;

pub(super) struct Candidate {
    pub(super) directory: Arc<OwnedFd>,
    pub(super) path: VPath,
}

impl Candidate {
    pub(super) fn name(&self) -> &str {
        self.path.file_name().unwrap_or_default()
    }
}

/// Consecutive files in path order.
pub(super) struct Batch {
    /// The number of batches before it.
    pub(super) number: u64,
    /// The files, each with the entries skipped before it.
    pub(super) files: Vec<(Skipped, Candidate)>,
}

/// Finds files in path order.
pub(super) struct Walker {
    pub(super) walk: Walk<Arc<OwnedFd>, ()>,
    /// The start, until it is entered.
    start: Option<OwnedFd>,
    above: Arc<ReadAbove>,
    pub(super) ahead: Arc<Ahead>,
    batches: u64,
    buffer: ListingBuffer,
    /// A buffer for ignore files.
    rules: Vec<u8>,
}

impl Walker {
    pub(super) fn new(
        start: OwnedFd,
        path: VPath,
        options: WalkOptions,
        above: Arc<ReadAbove>,
    ) -> Self {
        Self {
            walk: Walk::new(path, options),
            start: Some(start),
            above,
            ahead: Arc::default(),
            batches: 0,
            buffer: ListingBuffer::default(),
            rules: Vec::new(),
        }
    }

    /// Returns the next files, at most `most`. Returns `None` at the end, or if
    /// `stop` is set.
    pub(super) fn next_batch(&mut self, most: usize, stop: &CancelFlag) -> Result<Option<Batch>> {
        let mut files: Vec<(Skipped, Candidate)> = Vec::with_capacity(most);
        let mut directories = 0;
        while files.len() < most && directories < BATCH_DIRECTORIES {
            if stop.is_set() {
                return Ok(None);
            }
            match self.walk.step() {
                Step::Done => break,
                Step::File {
                    directory, path, ..
                } => {
                    let directory = Arc::clone(directory);
                    let last = files.last().map(|(_, file)| &file.directory);
                    directories +=
                        usize::from(last.is_none_or(|last| !Arc::ptr_eq(last, &directory)));
                    files.push((self.walk.skipped(), Candidate { directory, path }));
                }
                Step::Enter { parent, name, .. } => {
                    let is_start = parent.is_none();
                    let listed = match parent {
                        None => {
                            let start = self.start.take().ok_or(Errno::BADF);
                            start.and_then(|start| list(start, &mut self.buffer, stop))
                        }
                        Some(parent) => match self.ahead.take(parent, name) {
                            Some(listing) => Ok(listing),
                            None => list_beneath(parent, name, &mut self.buffer, stop),
                        },
                    };
                    self.look_ahead();
                    self.enter(listed, is_start)?;
                }
                Step::IgnoreFile {
                    directory,
                    name,
                    path,
                } => {
                    let Some(directory) = directory else {
                        let rules = (self.above)(path);
                        self.walk.ignore_file(rules.as_deref());
                        continue;
                    };
                    let rules = match read_rules(directory, name, &mut self.rules) {
                        Ok(()) => Some(self.rules.as_slice()),
                        Err(error) => about_entry(error).map(|_| None)?,
                    };
                    self.walk.ignore_file(rules);
                }
            }
        }
        if files.is_empty() {
            return Ok(None);
        }
        let number = self.batches;
        self.batches += 1;
        Ok(Some(Batch { number, files }))
    }

    /// Tells the other threads which directories come after the one that is entered.
    fn look_ahead(&mut self) {
        let ahead = &self.ahead;
        if let Some((parent, names)) = self.walk.coming(AHEAD, |parent| ahead.wants(parent)) {
            ahead.add(parent, names);
        }
    }

    /// Answers the walk's request to enter a directory.
    fn enter(&mut self, listed: rustix::io::Result<Listing>, is_start: bool) -> Result<()> {
        match listed {
            Ok(listing) => {
                self.walk.skip_names(listing.not_utf8);
                self.walk
                    .entered(Arc::new(listing.directory), listing.children);
            }
            Err(error) => {
                let error = about_entry(error)?;
                if is_start {
                    return Err(failed(error.into()));
                }
                self.walk.unreadable();
            }
        }
        Ok(())
    }
}

/// Reads an ignore file into `buffer`, up to one byte more than the size limit.
fn read_rules(directory: &OwnedFd, name: &str, buffer: &mut Vec<u8>) -> rustix::io::Result<()> {
    let file = open_file(directory, name)?;
    stat_regular(&file)?;
    buffer.clear();
    let mut file = File::from(file).take(IGNORE_FILE_BYTES as u64 + 1);
    match file.read_to_end(buffer) {
        Ok(_) => Ok(()),
        Err(error) => Err(Errno::from_io_error(&error).unwrap_or(Errno::IO)),
    }
}
