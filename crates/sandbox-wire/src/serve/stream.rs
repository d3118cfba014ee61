//! The stream of one call.

use backend_core::{Error, Result};
use futures::AsyncReadExt as _;

use crate::message::{FrameError, Reply, send};

pub(super) type Reader = futures::io::ReadHalf<yamux::Stream>;
pub(super) type Writer = futures::io::WriteHalf<yamux::Stream>;

/// The last reply to a call, or `None` if everything was sent.
pub(super) type Answer = Result<Option<Reply>, CallError>;

/// The reason why a call has no last reply.
#[derive(Debug)]
pub(super) enum CallError {
    /// The operation failed, and the host is told why.
    Failed(Error),
    Stream(FrameError),
}

impl From<Error> for CallError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<FrameError> for CallError {
    fn from(error: FrameError) -> Self {
        Self::Stream(error)
    }
}

/// Waits for the host to cancel the call.
pub(super) async fn gone(reader: &mut Reader) -> FrameError {
    match reader.read(&mut [0]).await {
        Ok(1..) => FrameError::Broken("more than a request".into()),
        _ => FrameError::Ended,
    }
}

/// Sends the last reply, or the error of a call that failed.
pub(super) async fn finish(answer: Answer, writer: &mut Writer) -> Result<(), FrameError> {
    match answer {
        Ok(Some(reply)) => send(writer, &reply).await,
        Ok(None) => Ok(()),
        Err(CallError::Failed(error)) => send(writer, &Reply::Failed(error)).await,
        Err(CallError::Stream(error)) => Err(error),
    }
}
