//! Sends long results in batches, and returns the last.

use backend_core::ops::{Entry, GlobResult, GrepResult, Listing};

use crate::message::{BATCH, BATCH_BYTES, FrameError, Reply, send};
use crate::serve::stream::Writer;

pub(super) async fn send_listing(
    mut listing: Listing,
    writer: &mut Writer,
) -> Result<Reply, FrameError> {
    listing.entries = send_entries(listing.entries, writer).await?;
    Ok(Reply::Listing(listing))
}

pub(super) async fn send_files(
    mut result: GlobResult,
    writer: &mut Writer,
) -> Result<Reply, FrameError> {
    result.files = send_entries(result.files, writer).await?;
    Ok(Reply::Glob(result))
}

/// Sends all but the last batch, and returns that one to be sent with the end
/// of the result.
async fn send_entries(entries: Vec<Entry>, writer: &mut Writer) -> Result<Vec<Entry>, FrameError> {
    let mut entries = entries.into_iter();
    loop {
        let batch: Vec<_> = entries.by_ref().take(BATCH).collect();
        if entries.len() == 0 {
            return Ok(batch);
        }
        send(writer, &Reply::Entries(batch)).await?;
    }
}

pub(super) async fn send_matches(
    mut result: GrepResult,
    writer: &mut Writer,
) -> Result<Reply, FrameError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for file in std::mem::take(&mut result.files) {
        // A line has a number and a length besides its text.
        bytes += file.shown_bytes() + file.lines().len() * 8;
        batch.push(file);
        if batch.len() == BATCH || bytes > BATCH_BYTES {
            send(writer, &Reply::Matches(std::mem::take(&mut batch))).await?;
            bytes = 0;
        }
    }
    result.files = batch;
    Ok(Reply::Grep(result))
}
