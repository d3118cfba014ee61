//! Replies about files and their content.

use backend_core::ops::{
    Content, EditOutcome, Entry, FileBytes, ReadOptions, TextOptions, WriteOutcome,
};
use backend_core::text::TextWindow;
use backend_core::{Result, VPath};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use futures::stream::{self, BoxStream};

use crate::channel::Call;
use crate::client::SMALL;
use crate::message::{More, PIECE_BYTES, Reply, WHOLE_BYTES};

pub(crate) async fn done(call: &mut Call) -> Result<()> {
    match call.reply(SMALL).await? {
        Reply::Done => Ok(()),
        other => Err(call.unexpected(&other, "an end").await),
    }
}

pub(crate) async fn path(call: &mut Call) -> Result<VPath> {
    match call.reply(SMALL).await? {
        Reply::Path(path) => Ok(path),
        other => Err(call.unexpected(&other, "a path").await),
    }
}

pub(crate) async fn entry(call: &mut Call, path: &VPath) -> Result<Entry> {
    match call.reply(SMALL).await? {
        Reply::Entry(entry) if entry.path == *path => Ok(entry),
        Reply::Entry(_) => Err(call.broken("it described another path").await),
        other => Err(call.unexpected(&other, "an entry").await),
    }
}

pub(crate) async fn written(call: &mut Call) -> Result<WriteOutcome> {
    match call.reply(SMALL).await? {
        Reply::Written(outcome) => Ok(outcome),
        other => Err(call.unexpected(&other, "a written file").await),
    }
}

pub(crate) async fn edited(call: &mut Call, edits: usize) -> Result<EditOutcome> {
    match call.reply(SMALL + 10 * edits).await? {
        Reply::Edited(outcome) if outcome.replacements.len() == edits => Ok(outcome),
        Reply::Edited(_) => Err(call.broken("it did not do the edits it was given").await),
        other => Err(call.unexpected(&other, "an edited file").await),
    }
}

pub(crate) async fn text(call: &mut Call, options: &TextOptions) -> Result<TextWindow> {
    // One line is always shown, even if it exceeds the window.
    let bytes = options.max_bytes.max(options.max_line_bytes);
    // Each cut line is reported with its number and the missing bytes.
    let cuts = options
        .limit
        .min(bytes.saturating_add(1))
        .saturating_mul(20);
    let limit = SMALL.saturating_add(bytes).saturating_add(cuts);
    match call.reply(limit).await? {
        Reply::Text(window)
            if window.text().len() <= bytes
                && window.line_count() <= options.limit
                && window.first_line() == options.offset.saturating_add(1) =>
        {
            Ok(window)
        }
        Reply::Text(_) => Err(call.broken("it sent other lines than were asked for").await),
        other => Err(call.unexpected(&other, "text").await),
    }
}

pub(crate) async fn read(call: &mut Call, options: &ReadOptions) -> Result<FileBytes> {
    let whole = WHOLE_BYTES.min(options.max_bytes) as usize;
    let size = match call.reply(SMALL + whole).await? {
        Reply::Bytes(bytes) => {
            let offsets = options.offsets(bytes.size).ok();
            let length = offsets.map(|offsets| offsets.end - offsets.start);
            return if length == Some(bytes.data.len() as u64) {
                Ok(bytes)
            } else {
                Err(call.broken("it sent other bytes than were asked for").await)
            };
        }
        Reply::Pieces(size) => size,
        other => return Err(call.unexpected(&other, "bytes").await),
    };
    let Ok(offsets) = options.offsets(size) else {
        return Err(call.broken("it sent more bytes than were asked for").await);
    };
    let wanted = offsets.end - offsets.start;
    let mut data = BytesMut::new();
    loop {
        match call.reply(SMALL + PIECE_BYTES).await? {
            Reply::Piece(piece) if (data.len() + piece.len()) as u64 <= wanted => {
                data.extend_from_slice(&piece);
            }
            Reply::Done if data.len() as u64 == wanted => {
                return Ok(FileBytes::new(data.freeze(), size));
            }
            Reply::Piece(_) => return Err(call.broken("it sent more bytes than it said").await),
            Reply::Done => return Err(call.broken("it sent fewer bytes than it said").await),
            other => return Err(call.unexpected(&other, "bytes").await),
        }
    }
}

/// Sends content as it comes, and stops if the answer comes first. If the
/// source fails, the call is dropped, and nothing is written.
pub(crate) async fn write_pieces(mut call: Call, content: Content) -> Result<WriteOutcome> {
    let mut content: BoxStream<'static, Result<Bytes>> = match content {
        Content::Bytes(bytes) => stream::once(std::future::ready(Ok(bytes))).boxed(),
        Content::Stream(stream) => stream,
    };
    loop {
        let piece = tokio::select! {
            biased;
            piece = content.next() => piece,
            () = call.answered() => return written(&mut call).await,
        };
        let Some(piece) = piece else { break };
        let mut piece = piece?;
        while !piece.is_empty() {
            let part = piece.split_to(piece.len().min(PIECE_BYTES));
            if !call.send(&More::Piece(part)).await? {
                // The reset came with a reply that gives the reason.
                return written(&mut call).await;
            }
        }
    }
    call.send(&More::End).await?;
    written(&mut call).await
}
