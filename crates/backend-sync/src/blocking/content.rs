//! [`BlockingContent`]: what a file is to hold, for code that blocks.

use backend_core::Result;
use backend_core::ops::Content;
use bytes::Bytes;

use crate::{Engine, SyncStream};

/// What a file is to hold: bytes at hand, or an iterator that waits for them.
#[derive(Debug)]
pub enum BlockingContent {
    /// All of it.
    Bytes(Bytes),
    /// Pieces in order. An error among them fails the write, and the file stays as
    /// it was; one comes when the call is dropped, too.
    Pieces(SyncStream<Bytes>),
}

impl BlockingContent {
    /// Brings the whole content into memory.
    ///
    /// # Errors
    ///
    /// As [`Content::collect`].
    pub fn collect(self, max_bytes: u64) -> Result<Bytes> {
        let engine = match &self {
            Self::Bytes(_) => Engine::shared(),
            Self::Pieces(pieces) => pieces.engine().clone(),
        };
        engine.run(Content::from(self).collect(max_bytes)).flatten()
    }
}

impl From<BlockingContent> for Content {
    fn from(content: BlockingContent) -> Self {
        match content {
            BlockingContent::Bytes(bytes) => Self::Bytes(bytes),
            BlockingContent::Pieces(pieces) => Self::Stream(pieces.into_stream()),
        }
    }
}
