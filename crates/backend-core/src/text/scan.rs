//! [`WindowScanner`]: a window of lines from bytes that arrive in chunks.
//!
//! Invariants: memory is bounded by the window, never by the file; the result is the same for
//! every way of splitting the file into chunks; nothing is returned before the first
//! [`SNIFF_BYTES`] bytes (or all there are) have shown that the file is text.
//!
//! A line ends with `\n`. One `\r` directly before it belongs to the line end and is not shown; a
//! `\r` anywhere else is content. A line end at the end of the file does not begin another line.

use crate::ops::TextOptions;
use crate::text::collect::Collector;
use crate::text::decode::{Encoding, SNIFF_BYTES, Utf16Stream, detect, is_text};
use crate::text::window::{Progress, TextWindow, WindowError};

/// Builds a [`TextWindow`] from a file's bytes, chunk by chunk.
///
/// ```
/// use backend_core::ops::TextOptions;
/// use backend_core::text::{Progress, WindowScanner};
///
/// let mut scanner = WindowScanner::new(TextOptions::default().offset(1).limit(1))?;
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
    pub fn new(request: TextOptions) -> Result<Self, WindowError> {
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
    /// use backend_core::ops::TextOptions;
    /// use backend_core::text::WindowScanner;
    ///
    /// let mut scanner = WindowScanner::new(TextOptions::default())?;
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
/// use backend_core::ops::TextOptions;
/// use backend_core::text::window;
///
/// let options = TextOptions::default().max_line_bytes(5);
/// let window = window(b"short\nrather long\n", options)?;
/// let shown: Vec<String> = window.lines().map(|line| line.to_string()).collect();
/// assert_eq!(shown, ["short", "rathe [... 6 more bytes]"]);
/// assert_eq!(window.total_lines, Some(2));
/// # Ok::<(), backend_core::text::WindowError>(())
/// ```
pub fn window(bytes: &[u8], request: TextOptions) -> Result<TextWindow, WindowError> {
    let mut scanner = WindowScanner::new(request)?;
    scanner.start(bytes);
    scanner.finish()
}

#[cfg(test)]
mod tests;
