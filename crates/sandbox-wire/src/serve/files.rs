//! File content: read in ranges, written as it arrives.

use backend_core::ops::{Content, FileBytes, ReadOptions, StatOptions, WriteOptions};
use backend_core::{Backend, Error, ErrorKind, Operation, Result, VPath};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use tokio::sync::mpsc;

use crate::message::{
    FrameError, More, PIECE_BYTES, PIECE_MESSAGE, Reply, WHOLE_BYTES, ended, receive, send,
};
use crate::serve::stream::{Answer, CallError, Reader, Writer, gone};

/// Reads a file. A large one is never in memory as a whole.
pub(super) async fn read(
    backend: &dyn Backend,
    path: &VPath,
    options: ReadOptions,
    writer: &mut Writer,
) -> Result<Reply, CallError> {
    let head = read_head(backend, path, options).await?;
    let offsets = options.offsets(head.size);
    let offsets = offsets.map_err(|error| error.at(Operation::Read, path))?;
    if head.data.len() as u64 == offsets.end - offsets.start {
        return Ok(Reply::Bytes(head));
    }
    drop(head.data);
    send_ranges(backend, path, options, head.size, offsets, writer).await?;
    Ok(Reply::Done)
}

/// Reads the start of the requested range, which is all of it for most files.
async fn read_head(backend: &dyn Backend, path: &VPath, options: ReadOptions) -> Result<FileBytes> {
    let mut range = options.range;
    let end = range.start.saturating_add(WHOLE_BYTES);
    range.end = Some(range.end.unwrap_or(u64::MAX).min(end));
    let mut head = options;
    head.range = range;
    head.max_bytes = WHOLE_BYTES;
    backend.read(path, head).await
}

/// Sends the bytes in ranges. Returns `Conflict` if the file changes meanwhile.
async fn send_ranges(
    backend: &dyn Backend,
    path: &VPath,
    options: ReadOptions,
    size: u64,
    offsets: std::ops::Range<u64>,
    writer: &mut Writer,
) -> Result<(), CallError> {
    let look = StatOptions::default().links(options.links);
    let in_read = |error: Error| error.as_part_of(Operation::Read, path);
    let before = backend.stat(path, look).await.map_err(in_read)?;
    send(writer, &Reply::Pieces(size)).await?;
    let mut at = offsets.start;
    while at < offsets.end {
        let end = offsets.end.min(at + PIECE_BYTES as u64);
        let piece = match backend.read(path, options.range(at..end)).await {
            Ok(piece) if piece.size == size && piece.data.len() as u64 == end - at => piece.data,
            Err(error) if error.kind() != ErrorKind::InvalidInput => return Err(error.into()),
            // It has other bytes, or the range now lies past its end.
            _ => return Err(changed(path).into()),
        };
        at = end;
        send(writer, &Reply::Piece(piece)).await?;
    }
    let after = backend.stat(path, look).await.map_err(in_read)?;
    if (after.size, after.modified) != (before.size, before.modified) {
        return Err(changed(path).into());
    }
    Ok(())
}

fn changed(path: &VPath) -> Error {
    let text = "the file was changed while it was read; read it again";
    Error::new(ErrorKind::Conflict, text).at(Operation::Read, path)
}

/// Writes content that arrives in pieces. If it is incomplete, nothing is
/// written.
pub(super) async fn write_stream(
    backend: &dyn Backend,
    path: &VPath,
    options: WriteOptions,
    reader: &mut Reader,
) -> Answer {
    let (pieces, content) = mpsc::channel(1);
    let write = backend.write(path, Content::Stream(content_of(content)), options);
    tokio::select! {
        biased;
        written = write => Ok(Some(Reply::Written(written?))),
        fault = take_pieces(reader, pieces) => Err(fault.into()),
    }
}

/// A piece; `None` is the end of the content.
type Piece = Option<Bytes>;

/// Returns the content as a stream. Pieces that stop without an end are an
/// error in it, because the backend must not mistake that for the end.
fn content_of(pieces: mpsc::Receiver<Piece>) -> BoxStream<'static, Result<Bytes>> {
    futures::stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        match pieces.recv().await {
            Some(Some(piece)) => Some((Ok(piece), Some(pieces))),
            Some(None) => None,
            None => {
                let text = "the content is incomplete";
                Some((Err(Error::new(ErrorKind::Cancelled, text)), None))
            }
        }
    })
    .boxed()
}

/// Forwards the pieces until the call is cancelled.
async fn take_pieces(reader: &mut Reader, pieces: mpsc::Sender<Piece>) -> FrameError {
    loop {
        let piece = match receive(reader, PIECE_MESSAGE).await {
            Ok(More::Piece(piece)) => Some(piece),
            Ok(More::End) => None,
            Ok(More::Beat) => return FrameError::Broken("a heartbeat instead of content".into()),
            Err(fault) => return fault,
        };
        let is_end = piece.is_none();
        tokio::select! {
            biased;
            // A backend that takes no more answers soon, and further pieces are
            // dropped.
            _ = pieces.send(piece) => {}
            () = ended(reader) => return FrameError::Ended,
        }
        if is_end {
            return gone(reader).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The content of a cancelled call must not look like a whole file, even if
    /// the backend's own task is dropped a moment later.
    #[tokio::test]
    async fn content_without_its_end_is_an_error() {
        let (pieces, content) = mpsc::channel(2);
        pieces
            .send(Some(Bytes::from_static(b"half")))
            .await
            .unwrap();
        drop(pieces);
        let content = Content::Stream(content_of(content));
        let error = content.collect(100).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Cancelled);

        let (pieces, content) = mpsc::channel(2);
        pieces.send(Some(Bytes::from_static(b"all"))).await.unwrap();
        pieces.send(None).await.unwrap();
        let content = Content::Stream(content_of(content));
        assert_eq!(content.collect(100).await.unwrap(), "all");
    }
}
