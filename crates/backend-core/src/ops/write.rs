//! Changing files: writing, editing, deleting, moving, copying.

use std::fmt;
use std::future::poll_fn;

use bytes::{Bytes, BytesMut};
use futures_core::stream::BoxStream;
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};
use crate::ops::links::Links;
use crate::setters::setters;

/// The content of a file to write: bytes in memory, or a stream of them.
pub enum Content {
    /// The whole content.
    Bytes(Bytes),
    /// Pieces in order. An error in the stream fails the write, and the file
    /// remains unchanged.
    Stream(BoxStream<'static, Result<Bytes>>),
}

impl Content {
    /// Reads the whole content into memory.
    ///
    /// # Errors
    ///
    /// `TooLarge` as soon as more than `max_bytes` have arrived; any error of the stream.
    pub async fn collect(self, max_bytes: u64) -> Result<Bytes> {
        let too_large = || {
            Error::too_large(format!(
                "the content has more than the {max_bytes} bytes that a file may have here"
            ))
        };
        match self {
            Self::Bytes(bytes) if bytes.len() as u64 > max_bytes => Err(too_large()),
            Self::Bytes(bytes) => Ok(bytes),
            Self::Stream(mut stream) => {
                let mut all = BytesMut::new();
                while let Some(piece) = poll_fn(|cx| stream.as_mut().poll_next(cx)).await {
                    let piece = piece?;
                    if (all.len() + piece.len()) as u64 > max_bytes {
                        return Err(too_large());
                    }
                    all.extend_from_slice(&piece);
                }
                Ok(all.freeze())
            }
        }
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({} bytes)", bytes.len()),
            Self::Stream(_) => f.write_str("Stream"),
        }
    }
}

macro_rules! content_from {
    ($($type:ty),+) => {$(
        impl From<$type> for Content {
            fn from(content: $type) -> Self {
                Self::Bytes(content.into())
            }
        }
    )+};
}

content_from!(Bytes, Vec<u8>, String);

impl<T: AsRef<[u8]> + ?Sized> From<&T> for Content {
    fn from(content: &T) -> Self {
        Self::Bytes(Bytes::copy_from_slice(content.as_ref()))
    }
}

/// The SHA-256 of a file's bytes, as compared by [`WriteMode::IfUnchanged`].
///
/// ```
/// use backend_core::ops::ContentHash;
/// let hash = ContentHash::of(b"hello\n");
/// assert_eq!(hash.to_string().parse(), Ok(hash));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ContentHash([u8; 32]);

impl ContentHash {
    /// Computes the hash of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Creates a hash from its 32 bytes.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// Returns the bytes of the hash.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

/// Computes a [`ContentHash`] of content that arrives in pieces.
#[derive(Debug, Clone, Default)]
pub struct ContentHasher(Sha256);

impl ContentHasher {
    /// Creates a hasher without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next piece.
    pub fn update(&mut self, piece: &[u8]) {
        self.0.update(piece);
    }

    /// Returns the hash of all pieces.
    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.finalize().into())
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The error for text that is not 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a content hash is 64 hexadecimal digits")]
pub struct ContentHashError;

impl std::str::FromStr for ContentHash {
    type Err = ContentHashError;

    fn from_str(text: &str) -> Result<Self, ContentHashError> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return Err(ContentHashError);
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: u8| char::from(at).to_digit(16).ok_or(ContentHashError);
            // Two hexadecimal digits are at most 0xff.
            *byte = (digit(pair[0])? * 16 + digit(pair[1])?) as u8;
        }
        Ok(Self(bytes))
    }
}

/// The condition under which a write may replace a file.
///
/// This enum is exhaustive on purpose. If a mode is added, a backend that does not
/// handle it must fail to compile instead of overwriting the file, so match every
/// variant by name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum WriteMode {
    /// Write unconditionally.
    #[default]
    Overwrite,
    /// Write only if nothing exists at the path; otherwise `AlreadyExists`.
    CreateNew,
    /// Write only if the file's bytes still have this hash; otherwise `Conflict`,
    /// also if the file is gone.
    IfUnchanged(ContentHash),
}

impl WriteMode {
    /// Checks whether a write may go ahead. `existing` is the content of the file
    /// at the path, or `None` if there is none.
    ///
    /// # Errors
    ///
    /// `AlreadyExists` or `Conflict`, depending on the mode.
    pub fn check(self, existing: Option<&[u8]>) -> Result<()> {
        match (self, existing) {
            (Self::Overwrite, _) | (Self::CreateNew, None) => Ok(()),
            (Self::CreateNew, Some(_)) => Err(Error::already_exists()),
            (Self::IfUnchanged(hash), Some(content)) if hash == ContentHash::of(content) => Ok(()),
            (Self::IfUnchanged(_), _) => Err(Error::conflict()),
        }
    }

    /// Returns the error for a write to a directory.
    pub fn on_directory(self) -> Error {
        match self {
            Self::CreateNew => Error::already_exists(),
            Self::Overwrite | Self::IfUnchanged(_) => Error::is_a_directory(),
        }
    }
}

/// Options of `write`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WriteOptions {
    /// Treatment of symbolic links.
    pub links: Links,
    /// The condition for the write.
    pub mode: WriteMode,
    /// Whether the bytes must be on the disk before the call returns. Ignored
    /// by a backend that has no disk.
    pub durable: bool,
}

impl WriteOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the condition for the write.
        mode: WriteMode,
        /// Sets whether to wait for the disk.
        durable: bool,
    }
}

/// The outcome of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WriteOutcome {
    /// Whether the file is new.
    pub created: bool,
    /// New size of the file in bytes.
    pub size: u64,
    /// The hash of the new content.
    pub hash: ContentHash,
}

impl WriteOutcome {
    /// Describes a finished write whose content is in memory.
    pub fn of(created: bool, content: &[u8]) -> Self {
        Self::new(created, content.len() as u64, ContentHash::of(content))
    }

    /// Describes a finished write.
    pub fn new(created: bool, size: u64, hash: ContentHash) -> Self {
        Self {
            created,
            size,
            hash,
        }
    }
}

/// Options of `edit`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EditOptions {
    /// Treatment of symbolic links.
    pub links: Links,
    /// The hash that the file's bytes must have; otherwise `Conflict`.
    pub expected: Option<ContentHash>,
}

impl EditOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the hash that the file must have for the edit to go ahead.
        expected: ContentHash,
    }
}

/// The outcome of an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct EditOutcome {
    /// Number of replacements by each edit, in the order given.
    pub replacements: Vec<usize>,
    /// The line, counted from 1, at which the first replacement of the first edit now starts.
    pub first_line: u64,
    /// New size of the file in bytes.
    pub size: u64,
    /// The hash of the new content.
    pub hash: ContentHash,
}

impl EditOutcome {
    /// Describes a finished edit.
    pub fn new(replacements: Vec<usize>, first_line: u64, size: u64, hash: ContentHash) -> Self {
        Self {
            replacements,
            first_line,
            size,
            hash,
        }
    }
}

/// Options of `create_dir`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CreateDirOptions {
    /// Treatment of symbolic links.
    pub links: Links,
}

impl CreateDirOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
    }
}

/// Options of `delete`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct DeleteOptions {
    /// Treatment of symbolic links above the path. The last component is never followed.
    pub links: Links,
    /// Whether a directory may be deleted, with its contents.
    pub recursive: bool,
}

impl DeleteOptions {
    setters! {
        /// Sets how to treat symbolic links above the path.
        links: Links,
        /// Sets whether a directory may be deleted, with its contents.
        recursive: bool,
    }
}

/// Options of `rename`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct RenameOptions {
    /// Treatment of symbolic links above either path. The last components are never followed.
    pub links: Links,
    /// Whether a file at the destination may be replaced.
    pub overwrite: bool,
}

impl RenameOptions {
    setters! {
        /// Sets how to treat symbolic links above either path.
        links: Links,
        /// Sets whether a file at the destination may be replaced.
        overwrite: bool,
    }
}

/// Options of `copy`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct CopyOptions {
    /// Treatment of symbolic links above either path. The last components are never followed.
    pub links: Links,
    /// Whether a file at the destination may be replaced.
    pub overwrite: bool,
    /// Whether a directory may be copied, with its contents.
    pub recursive: bool,
}

impl CopyOptions {
    setters! {
        /// Sets how to treat symbolic links above either path.
        links: Links,
        /// Sets whether a file at the destination may be replaced.
        overwrite: bool,
        /// Sets whether a directory may be copied, with its contents.
        recursive: bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;
    use futures::executor::block_on;
    use futures::stream::{self, StreamExt as _};

    #[test]
    fn content_collects_up_to_a_limit() {
        let pieces = || {
            let pieces = [Ok(Bytes::from("ab")), Ok(Bytes::from("cd"))];
            Content::Stream(stream::iter(pieces).boxed())
        };
        assert_eq!(block_on(pieces().collect(4)).unwrap(), "abcd");
        let error = block_on(pieces().collect(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        let error = block_on(Content::from("abcd").collect(3)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge);
        assert_eq!(
            format!("{:?} {:?}", pieces(), Content::from(b"ab")),
            "Stream Bytes(2 bytes)"
        );
    }

    #[test]
    fn a_failing_stream_fails_the_collection() {
        let pieces = [Ok(Bytes::from("ab")), Err(Error::unavailable("gone"))];
        let content = Content::Stream(stream::iter(pieces).boxed());
        assert_eq!(
            block_on(content.collect(9)).unwrap_err().kind(),
            ErrorKind::Unavailable
        );
    }

    #[test]
    fn hashes_read_back() {
        let hash = ContentHash::of(b"");
        assert!(hash.to_string().starts_with("e3b0c442"));
        assert_eq!(format!("{hash:?}"), hash.to_string());
        assert_eq!(ContentHash::from_bytes(*hash.as_bytes()), hash);
        for bad in ["", "zz", &"g".repeat(64), &"é".repeat(32)] {
            assert_eq!(bad.parse::<ContentHash>(), Err(ContentHashError));
        }
    }
}
