//! Sends long results in batches.

use backend_core::ops::{Entry, GlobResult, GrepResult, Listing};

use crate::message::{BATCH, BATCH_BYTES, FrameError, Reply, send};
use crate::serve::stream::Writer;

pub(super) async fn send_listing(
    mut listing: Listing,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    listing.entries = send_entries(listing.entries, writer).await?;
    send(writer, &Reply::Listing(listing)).await
}

pub(super) async fn send_files(
    mut result: GlobResult,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    result.files = send_entries(result.files, writer).await?;
    send(writer, &Reply::Glob(result)).await
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
) -> Result<(), FrameError> {
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
    send(writer, &Reply::Grep(result)).await
}
