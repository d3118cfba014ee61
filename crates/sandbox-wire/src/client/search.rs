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

const FOREIGN: &str = "it listed more than was asked for, or other paths";

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
        if !batch.iter().all(is_true) || entries.len() + batch.len() > options.limit {
            return Err(call.broken(FOREIGN).await);
        }
        entries.extend(batch);
        match end {
            Some(listing) if listing.total < entries.len() => {
                return Err(call.broken(FOREIGN).await);
            }
            Some(mut listing) => {
                listing.entries = entries;
                return Ok(listing);
            }
            None => {}
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
        if !batch.iter().all(is_true) || files.len() + batch.len() > query.limit {
            return Err(call.broken(FOREIGN).await);
        }
        files.extend(batch);
        if let Some(mut result) = end {
            result.files = files;
            return Ok(result);
        }
    }
}

pub(crate) async fn grep(call: &mut Call, query: &GrepQuery) -> Result<GrepResult> {
    let lines_for_a_match = query.before.saturating_add(query.after).saturating_add(1);
    // Besides its text a line has its number, length, kind, and the number of cut
    // bytes.
    let lines = query.max_matches.saturating_mul(lines_for_a_match);
    let message = SMALL + BATCH_BYTES + BATCH * (PATH_BYTES + 64);
    let message = message.saturating_add(lines.saturating_mul(36));
    let message = message.saturating_add(query.max_bytes);
    let (mut files, mut matches, mut bytes) = (Vec::new(), 0_usize, 0_usize);
    loop {
        let (batch, end) = match call.reply(message).await? {
            Reply::Matches(batch) => (batch, None),
            Reply::Grep(mut end) => (std::mem::take(&mut end.files), Some(end)),
            other => return Err(call.unexpected(&other, "matches").await),
        };
        let is_true = |file: &FileMatches| {
            matches = matches.saturating_add(file.matches);
            bytes = bytes.saturating_add(file.shown_bytes());
            matches <= query.max_matches
                && bytes <= query.max_bytes
                && file.matches > 0
                && file.lines().len() <= file.matches.saturating_mul(lines_for_a_match)
                && file.path.starts_with(&query.path)
                && !query.exclude.hides(&file.path)
        };
        if !batch.iter().all(is_true) {
            return Err(call.broken(FOREIGN).await);
        }
        files.extend(batch);
        match end {
            Some(result) if result.matches != matches => {
                return Err(call.broken(FOREIGN).await);
            }
            Some(mut result) => {
                result.files = files;
                return Ok(result);
            }
            None => {}
        }
    }
}
