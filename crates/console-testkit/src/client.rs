//! [`Client`]: whoever carries calls to the tools.

use std::fmt::Write as _;

use async_trait::async_trait;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::YesNo;

/// Hex digits of a hash that a transcript shows.
const HASH_DIGITS: usize = 16;

/// One call, as it goes to the tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Call<'a> {
    /// In which conversation.
    pub conversation: &'a str,
    /// Which tool.
    pub tool: &'a str,
    /// With what.
    pub arguments: Value,
    /// What is said if the call asks. Without it the answer is no.
    pub answer: Option<YesNo>,
}

/// What came back, as any client sees it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// What the model reads.
    pub text: String,
    /// Whether that is an error.
    pub is_error: bool,
    /// What it sees besides.
    pub blocks: Vec<Seen>,
    /// The same as data.
    pub structured: Option<Value>,
    /// How often somebody was asked.
    pub questions: usize,
}

/// Something that is not text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Seen {
    /// What it is.
    pub media_type: String,
    /// How long it is.
    pub bytes: usize,
    /// The beginning of its SHA-256, in hex.
    pub hash: String,
}

impl Seen {
    /// `data` of this type.
    pub fn new(media_type: impl Into<String>, data: &[u8]) -> Self {
        let mut hash = String::new();
        for byte in Sha256::digest(data).iter().take(HASH_DIGITS / 2) {
            // Writing to a string cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        Self {
            media_type: media_type.into(),
            bytes: data.len(),
            hash,
        }
    }
}

/// Whoever carries calls to the tools: in the same process, through a protocol,
/// through another language.
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
    /// Makes a call. What fails on the way is an [`Outcome`] too.
    async fn call(&self, call: Call<'_>) -> Outcome;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_bytes() {
        let seen = Seen::new("text/plain", b"abc");
        assert_eq!((seen.bytes, &*seen.hash), (3, "ba7816bf8f01cfea"));
    }
}
