//! [`Client`]: passes calls to the tools.

use async_trait::async_trait;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::YesNo;

/// Number of hex digits of a hash in a transcript.
const HASH_DIGITS: usize = 16;

/// A call to the tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call<'a> {
    /// The conversation.
    pub conversation: &'a str,
    /// The tool.
    pub tool: &'a str,
    /// Its arguments.
    pub arguments: Value,
    /// The answer if the call asks. Without it the answer is no.
    pub answer: Option<YesNo>,
}

/// The result of a call, as any client sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// The text for the model.
    pub text: String,
    /// Whether the text is an error.
    pub is_error: bool,
    /// Pictures and documents.
    pub blocks: Vec<BlockSummary>,
    /// The structured data.
    pub structured: Option<Value>,
    /// Number of questions that were asked.
    pub questions: usize,
}

/// A summary of content that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BlockSummary {
    /// The media type.
    pub media_type: String,
    /// The size.
    pub bytes: usize,
    /// The beginning of its SHA-256, in hex.
    pub hash: String,
}

impl BlockSummary {
    /// Summarizes `data` of this type.
    pub fn new(media_type: impl Into<String>, data: &[u8]) -> Self {
        let digest = Sha256::digest(data);
        let beginning = digest.iter().take(HASH_DIGITS / 2);
        Self {
            media_type: media_type.into(),
            bytes: data.len(),
            hash: beginning.map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// Passes calls to the tools: in the same process, through a protocol, or through
/// another language.
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn call(&self, call: Call<'_>) -> Outcome;
/// ```
#[async_trait]
pub trait Client: Send + Sync {
    /// Makes a call. A failure on the way is an [`Outcome`] too.
    async fn call(&self, call: Call<'_>) -> Outcome;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_bytes() {
        let seen = BlockSummary::new("text/plain", b"abc");
        assert_eq!((seen.bytes, &*seen.hash), (3, "ba7816bf8f01cfea"));
    }
}
