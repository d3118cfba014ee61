//! Long replies: listings, globs, greps. The limits of the query are checked
//! again here.

use backend_core::limits::PATH_BYTES;
use backend_core::ops::{
    Entry, FileMatches, GlobQuery, GlobResult, GrepQuery, GrepResult, Listing, LsOptions,
};
use backend_core::{Result, VPath};

use crate::channel::Call;
use crate::client::SMALL;
use crate::message::{BATCH, BATCH_BYTES, Reply};

/// The size of the longest message with a batch of entries.
const ENTRIES: usize = SMALL + BATCH * (PATH_BYTES + 64);

pub(crate) async fn listing(call: &mut Call, path: &VPath, options: &LsOptions) -> Result<Listing> {
    let is_true = |entry: &Entry| {
        // A file lists itself.
        (entry.path == *path || entry.path.parent().as_ref() == Some(path))
            && !options.exclude.hides(&entry.path)
    };
    let mut entries = Vec::new();
    loop {
        let (batch, end) = match call.reply(ENTRIES).await? {
            Reply::Entries(batch) => (batch, None),
            Reply::Listing(mut end) => (std::mem::take(&mut end.entries), Some(end)),
            other => return Err(call.unexpected(&other, "a listing").await),
        };
        let good = take(&mut entries, batch, options.limit, is_true);
        match end {
            Some(mut listing) if good && listing.total >= entries.len() => {
                listing.entries = entries;
                return Ok(listing);
            }
            None if good => {}
            _ => return Err(call.broken(FOREIGN).await),
        }
    }
}

pub(crate) async fn glob(call: &mut Call, query: &GlobQuery) -> Result<GlobResult> {
    let is_true = |entry: &Entry| {
        entry.is_file() && entry.path.starts_with(&query.path) && !query.exclude.hides(&entry.path)
    };
    let mut files = Vec::new();
    loop {
        let (batch, end) = match call.reply(ENTRIES).await? {
            Reply::Entries(entries) => (entries, None),
            Reply::Glob(mut end) => (std::mem::take(&mut end.files), Some(end)),
            other => return Err(call.unexpected(&other, "files").await),
        };
        let good = take(&mut files, batch, query.limit, is_true);
        match end {
            Some(mut result) if good => {
                result.files = files;
                return Ok(result);
            }
            None if good => {}
            _ => return Err(call.broken(FOREIGN).await),
        }
    }
}

const FOREIGN: &str = "it listed more than was asked for, or other paths";

/// Adds a batch to the entries received so far, if all of it is plausible.
fn take(
    entries: &mut Vec<Entry>,
    batch: Vec<Entry>,
    limit: usize,
    is_true: impl Fn(&Entry) -> bool,
) -> bool {
    let good = entries.len() + batch.len() <= limit && batch.iter().all(is_true);
    if good {
        entries.extend(batch);
    }
    good
}

pub(crate) async fn grep(call: &mut Call, query: &GrepQuery) -> Result<GrepResult> {
    let mut all = Matches::new(query);
    loop {
        let (batch, end) = match call.reply(all.message).await? {
            Reply::Matches(files) => (files, None),
            Reply::Grep(mut end) => (std::mem::take(&mut end.files), Some(end)),
            other => return Err(call.unexpected(&other, "matches").await),
        };
        let is_true = all.take(batch);
        match end {
            Some(mut result) if is_true && result.matches == all.matches => {
                result.files = all.files;
                return Ok(result);
            }
            None if is_true => {}
            _ => return Err(call.broken(FOREIGN).await),
        }
    }
}

/// The files with matches received so far.
struct Matches<'a> {
    query: &'a GrepQuery,
    files: Vec<FileMatches>,
    matches: usize,
    bytes: usize,
    /// The size of the longest message.
    message: usize,
}

impl<'a> Matches<'a> {
    fn new(query: &'a GrepQuery) -> Self {
        // Besides its text a line has its number, length, kind, and the number
        // of cut bytes.
        let lines = query
            .max_matches
            .saturating_mul(Self::lines_for_a_match(query));
        let lines = lines.saturating_mul(36);
        let message = SMALL + BATCH_BYTES + BATCH * (PATH_BYTES + 64);
        Self {
            query,
            files: Vec::new(),
            matches: 0,
            bytes: 0,
            message: message
                .saturating_add(lines)
                .saturating_add(query.max_bytes),
        }
    }

    fn lines_for_a_match(query: &GrepQuery) -> usize {
        query.before.saturating_add(query.after).saturating_add(1)
    }

    /// Adds a batch, if all of it is plausible.
    fn take(&mut self, batch: Vec<FileMatches>) -> bool {
        for file in batch {
            self.matches = self.matches.saturating_add(file.matches);
            self.bytes = self.bytes.saturating_add(file.shown_bytes());
            let lines = file
                .matches
                .saturating_mul(Self::lines_for_a_match(self.query));
            let good = self.matches <= self.query.max_matches
                && self.bytes <= self.query.max_bytes
                && file.matches > 0
                && file.lines().len() <= lines
                && file.path.starts_with(&self.query.path)
                && !self.query.exclude.hides(&file.path);
            if !good {
                return false;
            }
            self.files.push(file);
        }
        true
    }
}
