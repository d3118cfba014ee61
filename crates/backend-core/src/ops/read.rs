//! Reading: bytes and ranges, text windows, resolved paths.

use bytes::Bytes;

use crate::error::{Error, Result};
use crate::limits::{LINE_BYTES, READ_BYTES, WINDOW_BYTES, WINDOW_LINES};
use crate::ops::links::Links;
use crate::setters::setters;

/// Options of `resolve`. There are none yet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ResolveOptions {}

/// A range of bytes; the end may lie past the end of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ByteRange {
    /// The first byte.
    pub start: u64,
    /// One past the last byte; `None` is the end of the file.
    pub end: Option<u64>,
}

impl ByteRange {
    /// Returns the offsets of this range in a file of `size` bytes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the range ends before it starts or starts past the end.
    pub fn within(self, size: u64) -> Result<std::ops::Range<u64>> {
        let end = self.end.unwrap_or(size);
        if self.start > end && self.end.is_some() {
            return Err(Error::invalid_input(format!(
                "the range ends at {end}, before it begins at {}",
                self.start
            )));
        }
        if self.start > size {
            return Err(Error::invalid_input(format!(
                "the range begins at {}, past the end of the file, which has {size} bytes",
                self.start
            )));
        }
        Ok(self.start..end.min(size))
    }
}

impl From<std::ops::Range<u64>> for ByteRange {
    fn from(range: std::ops::Range<u64>) -> Self {
        Self {
            start: range.start,
            end: Some(range.end),
        }
    }
}

impl From<std::ops::RangeFrom<u64>> for ByteRange {
    fn from(range: std::ops::RangeFrom<u64>) -> Self {
        Self {
            start: range.start,
            end: None,
        }
    }
}

/// Options of `read`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct ReadOptions {
    /// Treatment of symbolic links.
    pub links: Links,
    /// The bytes to read; the whole file by default.
    pub range: ByteRange,
    /// Most bytes to return. More is `TooLarge`, never a shortened answer.
    pub max_bytes: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            links: Links::default(),
            range: ByteRange::default(),
            max_bytes: READ_BYTES,
        }
    }
}

impl ReadOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the bytes to read: `0..100` or `100..`.
        range: impl Into<ByteRange>,
        /// Sets the most bytes to return.
        max_bytes: u64,
    }

    /// Returns the offsets to read from a file of `size` bytes.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for an invalid range and `TooLarge` for more than
    /// [`max_bytes`](Self::max_bytes).
    pub fn offsets(&self, size: u64) -> Result<std::ops::Range<u64>> {
        let offsets = self.range.within(size)?;
        let length = offsets.end - offsets.start;
        if length > self.max_bytes {
            return Err(Error::too_large(format!(
                "{length} bytes are more than the {} that one read returns; read a range, or a window of lines",
                self.max_bytes
            )));
        }
        Ok(offsets)
    }

    /// Cuts the [requested bytes](Self::offsets) out of a file that is in memory.
    pub fn slice(&self, content: &Bytes) -> Result<FileBytes> {
        let size = content.len() as u64;
        let offsets = self.offsets(size)?;
        // Both ends are at most `content.len()`, so they fit a usize.
        let data = content.slice(offsets.start as usize..offsets.end as usize);
        Ok(FileBytes { data, size })
    }
}

/// Bytes read from a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct FileBytes {
    /// The requested bytes.
    pub data: Bytes,
    /// The size of the whole file.
    pub size: u64,
}

impl FileBytes {
    /// Creates a result for `data` from a file of `size` bytes.
    pub fn new(data: Bytes, size: u64) -> Self {
        Self { data, size }
    }
}

/// Options of `read_text`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct TextOptions {
    /// Treatment of symbolic links.
    pub links: Links,
    /// The first line, counted from 0.
    pub offset: u64,
    /// Most lines to return. Zero is `InvalidInput`.
    pub limit: usize,
    /// Width in bytes at which a line is cut.
    pub max_line_bytes: usize,
    /// Most bytes of text to return; a line end between two lines counts as one. The
    /// window ends before the line that would exceed it, but holds at least one line.
    pub max_bytes: usize,
    /// Whether to count all lines, even if that means reading on to the end.
    pub count_total: bool,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            links: Links::default(),
            offset: 0,
            limit: WINDOW_LINES,
            max_line_bytes: LINE_BYTES,
            max_bytes: WINDOW_BYTES,
            count_total: false,
        }
    }
}

impl TextOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the first line, counted from 0.
        offset: u64,
        /// Sets the most lines to return.
        limit: usize,
        /// Sets the width in bytes at which a line is cut.
        max_line_bytes: usize,
        /// Sets the most bytes of text to return.
        max_bytes: usize,
        /// Sets whether to count the lines of the whole file.
        count_total: bool,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn ranges_clamp_or_fail() {
        let within = |range: ByteRange| range.within(10).map_err(|e| e.kind());
        assert_eq!(within((2..5).into()), Ok(2..5));
        assert_eq!(within((2..50).into()), Ok(2..10));
        assert_eq!(within((10..).into()), Ok(10..10));
        assert_eq!(within((11..).into()), Err(ErrorKind::InvalidInput));
        assert_eq!(within((11..12).into()), Err(ErrorKind::InvalidInput));
        let turned = ByteRange {
            start: 5,
            end: Some(2),
        };
        assert_eq!(within(turned), Err(ErrorKind::InvalidInput));
    }

    #[test]
    fn too_much_is_an_error_not_a_prefix() {
        let content = Bytes::from_static(b"0123456789");
        let options = ReadOptions::default().max_bytes(4);
        assert_eq!(
            options.slice(&content).unwrap_err().kind(),
            ErrorKind::TooLarge
        );
        let part = options.range(3..7).slice(&content).unwrap();
        assert_eq!((&part.data[..], part.size), (&b"3456"[..], 10));
    }
}
