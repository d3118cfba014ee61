//! The stream of one call.

use backend_core::Result;
use futures::AsyncReadExt as _;

use crate::message::{FrameError, Reply, send};

pub(super) type Reader = futures::io::ReadHalf<yamux::Stream>;
pub(super) type Writer = futures::io::WriteHalf<yamux::Stream>;

/// Waits for the host to cancel the call.
pub(super) async fn gone(reader: &mut Reader) -> Result<(), FrameError> {
    match reader.read(&mut [0]).await {
        Ok(1..) => Err(FrameError::Broken("more than a request".into())),
        _ => Err(FrameError::Ended),
    }
}

/// Sends the reply, or the error of a call that failed.
pub(super) async fn finish(reply: Result<Reply>, writer: &mut Writer) -> Result<(), FrameError> {
    send(writer, &reply.unwrap_or_else(Reply::Failed)).await
}
