//! A window of lines out of bytes that arrive in chunks.
//!
//! This module owns the request, the answer and the scanner that turns one into the other.
//! Invariants: memory is bounded by the window, never by the file; the answer is the same for
//! every way of cutting the file into chunks; nothing is answered before the first
//! [`SNIFF_BYTES`] bytes (or all there are) have shown that the file is text.
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

/// Which lines to show, and how much of them.
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
    /// Lines to pass over before the first one shown.
    pub offset: u64,
    /// The most lines to show; at least 1.
    pub limit: usize,
    /// The most bytes of decoded text to keep of one line; the line is cut between characters.
    pub max_line_bytes: usize,
    /// The most bytes of text to keep in total, a line end between two lines counted as one.
    ///
    /// The window ends before the line that would pass it, but always holds one line.
    pub max_bytes: usize,
    /// Whether to read on after the window to learn how many lines the file has.
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

/// Why there is no window.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WindowError {
    /// The request asks for no lines at all.
    #[error("the limit is 0 lines; ask for at least 1")]
    ZeroLimit,
    /// The first line asked for is not in the file.
    #[error("offset {offset} is past the end: {}", length_and_advice(*lines))]
    PastEnd {
        /// The offset asked for.
        offset: u64,
        /// How many lines the file has.
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

/// Whether a [`WindowScanner`] can use more bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Progress {
    /// More bytes may change the answer.
    NeedMore,
    /// No byte can change the answer; the caller may stop reading.
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
    /// The first bytes, as long as they are too few to decide what the file is.
    head: Option<Vec<u8>>,
    source: Source,
    encoding: Encoding,
    collector: Collector,
}

/// What the bytes have to go through before they are lines.
#[derive(Debug)]
enum Source {
    Utf8,
    Utf16(Utf16Stream),
    Binary,
}

impl WindowScanner {
    /// A scanner that has seen nothing yet.
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

    /// Takes so many bytes of zero, which cost next to nothing once they cannot be seen: a hole
    /// in a file may be larger than any disk.
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
            // The first ones end whatever was begun before them.
            let some = usize::try_from(count).map_or(ZEROS.len(), |count| count.min(ZEROS.len()));
            if self.push(ZEROS.get(..some).unwrap_or_default()) == Progress::Done {
                return Progress::Done;
            }
            count -= some as u64;
            let (passed, decoded) = match self.source {
                _ if self.head.is_some() => continue,
                Source::Utf8 | Source::Binary => (count, count),
                // A character is not taken apart.
                Source::Utf16(_) => (count & !1, count / 2),
            };
            if self.collector.pass_zeros(decoded) {
                count -= passed;
            }
        }
        self.collector.progress()
    }

    /// Gives the window; to be called at the end of the file or after [`Progress::Done`].
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

    /// Decides what the file is from `bytes`, its first ones, and takes them.
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
/// Those of [`WindowScanner::new`] and [`WindowScanner::finish`].
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
    /// Where in `text` each line ends.
    pub(super) ends: Vec<usize>,
    /// The lines that were cut, in order; most windows have none.
    pub(super) cuts: Vec<Cut>,
    /// The first line, counted from 0.
    pub offset: u64,
    /// Whether lines follow the window.
    pub more: bool,
    /// How many lines the file has: known if none follow the window, or if the request asked.
    pub total_lines: Option<u64>,
    /// How the file spells its characters.
    pub encoding: Encoding,
}

/// A line that was too wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// The line's position in the window.
    pub(super) line: usize,
    /// How much of it is missing.
    pub(super) bytes: u64,
}

impl TextWindow {
    /// The lines in order, from either end.
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

    /// How many lines the window holds.
    #[must_use]
    pub fn line_count(&self) -> usize {
        self.ends.len()
    }

    /// Whether the window holds no line, which is so only for a file without lines.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The number of the first line, counted from 1.
    #[must_use]
    pub fn first_line(&self) -> u64 {
        self.offset + 1
    }

    /// The [offset](WindowRequest::offset) at which the next window begins, if lines follow.
    #[must_use]
    pub fn next_offset(&self) -> Option<u64> {
        self.more.then(|| self.offset + self.ends.len() as u64)
    }

    /// The lines with `\n` between them, cut lines without their marker.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// One line of a [`TextWindow`]. It displays as its text, with a marker after it if it was cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line<'a> {
    /// The line's number in the file, counted from 1.
    pub number: u64,
    /// The text without its line end.
    pub text: &'a str,
    /// How many bytes of the decoded line were cut off after `text`.
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
