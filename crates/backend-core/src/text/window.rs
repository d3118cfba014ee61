//! A window of lines, and the reasons why there is none.

#[cfg(feature = "serde")]
mod serial;

use std::fmt;

use thiserror::Error;

use crate::text::decode::Encoding;

/// The reason why there is no window.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowError {
    /// The request asks for no lines at all.
    #[error("the limit is 0 lines; ask for at least 1")]
    ZeroLimit,
    /// The file has no line at the requested offset.
    #[error("offset {offset} is past the end: {}", length_and_advice(*lines))]
    PastEnd {
        /// The requested offset.
        offset: u64,
        /// Number of lines in the file.
        lines: u64,
    },
    /// The bytes are not text; see [`is_text`](crate::text::is_text).
    #[error("the file is not text; read its bytes instead")]
    NotText,
}

fn length_and_advice(lines: u64) -> String {
    match lines {
        0 => "the file is empty; use offset 0".to_owned(),
        1 => "the file has 1 line; use offset 0".to_owned(),
        _ => format!("the file has {lines} lines; use an offset below {lines}"),
    }
}

/// The state of a [`WindowScanner`](crate::text::WindowScanner): whether it can use more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// More bytes may change the result.
    NeedMore,
    /// No further byte can change the result; the caller may stop reading.
    Done,
}

/// Consecutive lines of a text file.
///
/// The lines are one string with an index into it, so a window of many short lines costs little
/// more than its text.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextWindow {
    /// The lines, with `\n` between them.
    pub(super) text: String,
    /// The position in `text` at which each line ends.
    pub(super) ends: Vec<usize>,
    /// The lines that were cut, in order; most windows have none.
    pub(super) cuts: Vec<Cut>,
    /// The first line, counted from 0.
    pub offset: u64,
    /// Whether lines follow the window.
    pub more: bool,
    /// Number of lines in the file; known if none follow the window, or if requested.
    pub total_lines: Option<u64>,
    /// The character encoding of the file.
    pub encoding: Encoding,
}

/// A line that was too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The line's position in the window.
    pub(super) line: usize,
    /// Number of missing bytes.
    pub(super) bytes: u64,
}

impl TextWindow {
    /// Returns the lines in order, from either end.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = Line<'_>> + DoubleEndedIterator + Clone {
        (0..self.ends.len()).map(|index| self.line(index))
    }

    fn line(&self, index: usize) -> Line<'_> {
        let end = self.ends.get(index).copied().unwrap_or_default();
        let before = index
            .checked_sub(1)
            .and_then(|before| self.ends.get(before));
        let start = before.map_or(0, |end| end + 1);
        let cut = self.cuts.binary_search_by_key(&index, |cut| cut.line).ok();
        Line {
            number: self.first_line() + index as u64,
            text: self.text.get(start..end).unwrap_or_default(),
            cut_bytes: cut
                .and_then(|at| self.cuts.get(at))
                .map_or(0, |cut| cut.bytes),
        }
    }

    /// Returns the number of lines in the window.
    pub fn line_count(&self) -> usize {
        self.ends.len()
    }

    /// Whether the window holds no line. This happens only for a file without lines.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of the first line, counted from 1.
    pub fn first_line(&self) -> u64 {
        self.offset + 1
    }

    /// Returns the [offset](crate::ops::TextOptions::offset) of the next window, if lines follow.
    pub fn next_offset(&self) -> Option<u64> {
        self.more.then(|| self.offset + self.ends.len() as u64)
    }

    /// Returns the lines with `\n` between them, without the marker of cut lines.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One line of a [`TextWindow`]. It displays as its text, followed by a marker if it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line<'a> {
    /// The line's number in the file, counted from 1.
    pub number: u64,
    /// The text without its line end.
    pub text: &'a str,
    /// Number of bytes of the decoded line that were cut off after `text`.
    pub cut_bytes: u64,
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text)?;
        match self.cut_bytes {
            0 => Ok(()),
            cut => write!(f, " [... {cut} more bytes]"),
        }
    }
}
