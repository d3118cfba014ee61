//! A window of lines from bytes that arrive in chunks.
//!
//! This module owns the request, the result and the scanner between them. Invariants: memory is
//! bounded by the window, never by the file; the result is the same for every way of splitting
//! the file into chunks; nothing is returned before the first [`SNIFF_BYTES`] bytes (or all there
//! are) have shown that the file is text.
//!
//! A line ends with `\n`. One `\r` directly before it belongs to the line end and is not shown; a
//! `\r` anywhere else is content. A line end at the end of the file does not begin another line.

#[cfg(feature = "serde")]
mod serial;

use std::fmt;

use thiserror::Error;

use crate::limits::{LINE_BYTES, WINDOW_BYTES, WINDOW_LINES};
use crate::text::collect::Collector;
use crate::text::decode::{Encoding, SNIFF_BYTES, Utf16Stream, detect, is_text};

/// A request for a window: which lines to show, and how much of them.
///
/// The [`Default`] is the first 2,000 lines, 2,000 bytes of each, 1 MiB in total, without
/// counting the lines after the window.
///
/// ```
/// use backend_core::text::WindowRequest;
///
/// let second_page = WindowRequest { offset: 2_000, ..WindowRequest::default() };
/// assert_eq!(second_page.limit, 2_000);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct WindowRequest {
    /// Number of lines to skip before the first one shown.
    pub offset: u64,
    /// Most lines to show; at least 1.
    pub limit: usize,
    /// Most bytes of decoded text to keep of one line; the line is cut between characters.
    pub max_line_bytes: usize,
    /// Most bytes of text to keep in total. A line end between two lines counts as one byte.
    ///
    /// The window ends before the line that would exceed it, but always holds one line.
    pub max_bytes: usize,
    /// Whether to read on after the window to count all lines of the file.
    pub count_total: bool,
}

impl Default for WindowRequest {
    fn default() -> Self {
        Self {
            offset: 0,
            limit: WINDOW_LINES,
            max_line_bytes: LINE_BYTES,
            max_bytes: WINDOW_BYTES,
            count_total: false,
        }
    }
}

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
    /// The bytes are not text; see [`is_text`].
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

/// The state of a [`WindowScanner`]: whether it can use more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// More bytes may change the result.
    NeedMore,
    /// No further byte can change the result; the caller may stop reading.
    Done,
}

/// Builds a [`TextWindow`] from a file's bytes, chunk by chunk.
///
/// ```
/// use backend_core::text::{Progress, WindowRequest, WindowScanner};
///
/// let request = WindowRequest { offset: 1, limit: 1, ..WindowRequest::default() };
/// let mut scanner = WindowScanner::new(request)?;
/// for chunk in [&b"one\r"[..], b"\ntwo\r\nth", b"ree\r\n"] {
///     if scanner.push(chunk) == Progress::Done {
///         break;
///     }
/// }
/// let window = scanner.finish()?;
/// assert_eq!(window.text(), "two");
/// assert_eq!(window.next_offset(), Some(2));
/// # Ok::<(), backend_core::text::WindowError>(())
/// ```
#[derive(Debug)]
pub struct WindowScanner {
    /// The first bytes, while they are too few to classify the file.
    head: Option<Vec<u8>>,
    source: Source,
    encoding: Encoding,
    collector: Collector,
}

/// The decoding step between bytes and lines.
#[derive(Debug)]
enum Source {
    Utf8,
    Utf16(Utf16Stream),
    Binary,
}

impl WindowScanner {
    /// Creates a scanner for a file of which nothing has been read.
    ///
    /// # Errors
    ///
    /// [`WindowError::ZeroLimit`] if the request asks for no lines.
    pub fn new(request: WindowRequest) -> Result<Self, WindowError> {
        if request.limit == 0 {
            return Err(WindowError::ZeroLimit);
        }
        Ok(Self {
            head: Some(Vec::new()),
            source: Source::Utf8,
            encoding: Encoding::Utf8,
            collector: Collector::new(request),
        })
    }

    /// Takes the next bytes of the file. After [`Progress::Done`] they are ignored.
    pub fn push(&mut self, chunk: &[u8]) -> Progress {
        let Some(head) = &mut self.head else {
            return self.feed(chunk);
        };
        if head.is_empty() && chunk.len() >= SNIFF_BYTES {
            return self.start(chunk);
        }
        let missing = SNIFF_BYTES - head.len();
        let (now, later) = chunk.split_at(missing.min(chunk.len()));
        head.extend_from_slice(now);
        if head.len() < SNIFF_BYTES {
            return Progress::NeedMore;
        }
        let head = std::mem::take(head);
        self.start(&head);
        self.feed(later)
    }

    /// Takes `count` zero bytes. A hole in a file may be larger than any disk, so zeros that are
    /// not visible in the window cost almost nothing.
    ///
    /// ```
    /// use backend_core::text::{WindowRequest, WindowScanner};
    ///
    /// let mut scanner = WindowScanner::new(WindowRequest::default())?;
    /// scanner.push(&b"line\n".repeat(2_000)[..9_999]);
    /// scanner.push_zeros(1 << 40);
    /// scanner.push(b"\nlast\n");
    /// assert_eq!(scanner.finish()?.lines().count(), 2_000);
    /// # Ok::<(), backend_core::text::WindowError>(())
    /// ```
    pub fn push_zeros(&mut self, mut count: u64) -> Progress {
        const ZEROS: [u8; 1024] = [0; 1024];
        while count > 0 {
            // The first zeros complete a character or line begun before them.
            let some = usize::try_from(count).map_or(ZEROS.len(), |count| count.min(ZEROS.len()));
            if self.push(ZEROS.get(..some).unwrap_or_default()) == Progress::Done {
                return Progress::Done;
            }
            count -= some as u64;
            let (passed, decoded) = match self.source {
                _ if self.head.is_some() => continue,
                Source::Utf8 | Source::Binary => (count, count),
                // Whole UTF-16 units only.
                Source::Utf16(_) => (count & !1, count / 2),
            };
            if self.collector.pass_zeros(decoded) {
                count -= passed;
            }
        }
        self.collector.progress()
    }

    /// Returns the window. Call this at the end of the file or after [`Progress::Done`].
    ///
    /// # Errors
    ///
    /// [`WindowError::NotText`] if the file is binary, [`WindowError::PastEnd`] if it has no line
    /// at the requested offset. A file without lines has an empty window at offset 0.
    pub fn finish(mut self) -> Result<TextWindow, WindowError> {
        if let Some(head) = self.head.take() {
            self.start(&head);
        }
        let Self {
            source,
            encoding,
            mut collector,
            ..
        } = self;
        match source {
            Source::Utf8 => {}
            Source::Utf16(mut stream) => {
                stream.decode(&[], true, |text| collector.feed(text) == Progress::NeedMore);
            }
            Source::Binary => return Err(WindowError::NotText),
        }
        collector.end(encoding)
    }

    /// Classifies the file by `bytes`, its first ones, and processes them.
    fn start(&mut self, bytes: &[u8]) -> Progress {
        self.head = None;
        self.encoding = detect(bytes);
        self.source = match Utf16Stream::new(self.encoding) {
            Some(stream) => Source::Utf16(stream),
            None if is_text(bytes) => Source::Utf8,
            None => Source::Binary,
        };
        self.feed(bytes.get(self.encoding.mark_len()..).unwrap_or_default())
    }

    fn feed(&mut self, bytes: &[u8]) -> Progress {
        let Self {
            source, collector, ..
        } = self;
        match source {
            Source::Utf8 => collector.feed(bytes),
            Source::Utf16(stream) => {
                stream.decode(bytes, false, |text| {
                    collector.feed(text) == Progress::NeedMore
                });
                collector.progress()
            }
            Source::Binary => Progress::Done,
        }
    }
}

/// Cuts a window out of a file that is in memory, without copying it.
///
/// ```
/// use backend_core::text::{WindowRequest, window};
///
/// let request = WindowRequest { max_line_bytes: 5, ..WindowRequest::default() };
/// let window = window(b"short\nrather long\n", request)?;
/// let shown: Vec<String> = window.lines().map(|line| line.to_string()).collect();
/// assert_eq!(shown, ["short", "rathe [... 6 more bytes]"]);
/// assert_eq!(window.total_lines, Some(2));
/// # Ok::<(), backend_core::text::WindowError>(())
/// ```
///
/// # Errors
///
/// As [`WindowScanner::new`] and [`WindowScanner::finish`].
pub fn window(bytes: &[u8], request: WindowRequest) -> Result<TextWindow, WindowError> {
    let mut scanner = WindowScanner::new(request)?;
    scanner.start(bytes);
    scanner.finish()
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
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.ends.len()
    }

    /// Whether the window holds no line. This happens only for a file without lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the number of the first line, counted from 1.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.offset + 1
    }

    /// Returns the [offset](WindowRequest::offset) of the next window, if lines follow.
    #[must_use]
    pub fn next_offset(&self) -> Option<u64> {
        self.more.then(|| self.offset + self.ends.len() as u64)
    }

    /// Returns the lines with `\n` between them, without the marker of cut lines.
    #[must_use]
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
