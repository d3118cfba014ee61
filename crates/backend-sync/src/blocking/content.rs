//! [`BlockingContent`]: the content of a file to write, for code that blocks.

use backend_core::Result;
use backend_core::ops::Content;
use bytes::Bytes;

use crate::engine::Engine;
use crate::stream::SyncStream;

/// The content of a file to write: bytes in memory, or a blocking iterator.
#[derive(Debug)]
pub enum BlockingContent {
    /// The whole content.
    Bytes(Bytes),
    /// Pieces in order. An error among them fails the write and leaves the file
    /// unchanged. When the call is dropped, an error follows too.
    Pieces(SyncStream<Bytes>),
}

impl BlockingContent {
    /// Reads the whole content into memory, with the errors of [`Content::collect`].
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
