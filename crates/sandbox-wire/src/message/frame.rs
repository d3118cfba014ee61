//! Framing: a message is its length in four bytes, and its postcard.

use std::io;
use std::pin::Pin;
use std::task::Context;

use backend_core::{Error, Result};
use futures::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;

const PREFIX: usize = 4;

/// Bytes allocated ahead of their arrival.
const STEP: usize = 64 * 1024;

/// The reason why there is no message.
#[derive(Debug)]
pub(crate) enum FrameError {
    /// The stream ended or was reset, or the channel is gone.
    Ended,
    /// The received bytes are not a valid message.
    Broken(String),
}

/// Encodes a message with its length prefix.
pub(crate) fn encode(message: &impl Serialize) -> Result<Vec<u8>> {
    let body = postcard::to_extend(message, vec![0; PREFIX])
        .map_err(|error| Error::internal("a message cannot be encoded").with_source(error))?;
    let length = u32::try_from(body.len() - PREFIX)
        .map_err(|_| Error::too_large("the call has more than 4 GB; do it in parts"))?;
    let mut message = body;
    if let Some(prefix) = message.first_chunk_mut::<PREFIX>() {
        *prefix = length.to_le_bytes();
    }
    Ok(message)
}

pub(crate) async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &impl Serialize,
) -> Result<(), FrameError> {
    let bytes = encode(message).map_err(|error| FrameError::Broken(error.to_string()))?;
    stream
        .write_all(&bytes)
        .await
        .map_err(|_| FrameError::Ended)
}

/// Reads a message of at most `limit` bytes. Memory grows with the received
/// bytes, not with the announced length.
pub(crate) async fn receive<T: DeserializeOwned>(
    stream: &mut (impl AsyncRead + Unpin),
    limit: usize,
) -> Result<T, FrameError> {
    let mut prefix = [0; PREFIX];
    stream.read_exact(&mut prefix).await.map_err(no_more)?;
    let length = u32::from_le_bytes(prefix) as usize;
    if length > limit {
        let text = format!("a message of {length} bytes where at most {limit} may come");
        return Err(FrameError::Broken(text));
    }
    let mut body = Vec::new();
    while body.len() < length {
        let start = body.len();
        body.resize(length.min(start + STEP), 0);
        let Some(rest) = body.get_mut(start..) else {
            return Err(FrameError::Ended);
        };
        stream.read_exact(rest).await.map_err(no_more)?;
    }
    match postcard::take_from_bytes(&body) {
        Ok((message, [])) => Ok(message),
        Ok((_, rest)) => Err(FrameError::Broken(format!(
            "a message with {} bytes after its end",
            rest.len()
        ))),
        Err(error) => Err(FrameError::Broken(format!("an invalid message ({error})"))),
    }
}

/// Waits until no more can arrive on a stream of the multiplexer, even if there
/// are unread bytes.
pub(crate) async fn ended(stream: &mut (impl AsyncRead + Unpin)) {
    // A read into an empty buffer takes nothing, and is ready when nothing more
    // can come.
    let end = |cx: &mut Context<'_>| Pin::new(&mut *stream).poll_read(cx, &mut []);
    // An error is an end too.
    let _ = std::future::poll_fn(end).await;
}

fn no_more(_: io::Error) -> FrameError {
    FrameError::Ended
}
