//! Collects one window of lines from decoded bytes and counts the lines around it.
//!
//! This module owns the line rules: where a line ends, which `\r` belongs to a line end, how wide
//! a kept line may be and when the window is full. Invariants: the result does not depend on how
//! the bytes were split into pieces, and no more text is held than the window may show.

use crate::ops::TextOptions;
use crate::text::decode::{Encoding, LossyStream};
use crate::text::window::{Cut, Progress, TextWindow, WindowError};

/// Bytes whose line ends are counted at once while skipping to the window.
const SKIP_BLOCK: usize = 32 * 1024;

/// The role of the next byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It belongs to a line before the window.
    Skip,
    /// It belongs to a line the window may show.
    Keep,
    /// It shows that there are lines after the window.
    Rest,
    /// It changes nothing.
    Done,
}

/// A partial window, fed with bytes that are UTF-8 or nearly so.
#[derive(Debug)]
pub(super) struct Collector {
    request: TextOptions,
    phase: Phase,
    /// Line ends seen so far.
    newlines: u64,
    /// Whether bytes followed the last line end.
    open: bool,
    /// Whether something follows the window.
    more: bool,
    /// A `\r` whose next byte has not arrived.
    held_return: bool,
    lossy: LossyStream,
    kept: WindowText,
}

impl Collector {
    pub(super) fn new(request: TextOptions) -> Self {
        Self {
            request,
            phase: if request.offset == 0 {
                Phase::Keep
            } else {
                Phase::Skip
            },
            newlines: 0,
            open: false,
            more: false,
            held_return: false,
            lossy: LossyStream::default(),
            kept: WindowText::new(&request),
        }
    }

    /// Creates a collector that starts after `newlines` line ends, fewer than the request skips.
    pub(super) fn resume(request: TextOptions, newlines: u64) -> Self {
        Self {
            newlines,
            ..Self::new(request)
        }
    }

    /// Processes the next bytes.
    pub(super) fn feed(&mut self, mut bytes: &[u8]) -> Progress {
        while !bytes.is_empty() {
            bytes = match self.phase {
                Phase::Skip => self.skip(bytes),
                Phase::Keep => self.keep(bytes),
                Phase::Rest => self.count_rest(bytes),
                Phase::Done => return Progress::Done,
            };
        }
        self.progress()
    }

    pub(super) fn progress(&self) -> Progress {
        if self.phase == Phase::Done {
            Progress::Done
        } else {
            Progress::NeedMore
        }
    }

    /// Adds `count` more zeros to a line that already ends with some, if they are not visible in
    /// the window. Returns `false` if they are.
    pub(super) fn pass_zeros(&mut self, count: u64) -> bool {
        match self.phase {
            Phase::Keep if self.kept.full => self.kept.decoded += count,
            Phase::Keep => return false,
            Phase::Skip | Phase::Rest | Phase::Done => {}
        }
        true
    }

    /// Ends the input (or the part that can matter) and returns the window.
    pub(super) fn end(mut self, encoding: Encoding) -> Result<TextWindow, WindowError> {
        if self.phase == Phase::Keep && self.open {
            self.end_open_line();
        }
        let lines = self.newlines + u64::from(self.open);
        let offset = self.request.offset;
        if self.kept.ends.is_empty() && offset > 0 {
            return Err(WindowError::PastEnd { offset, lines });
        }
        Ok(TextWindow {
            text: self.kept.text,
            ends: self.kept.ends,
            cuts: self.kept.cuts,
            offset,
            more: self.more,
            total_lines: (self.request.count_total || !self.more).then_some(lines),
            encoding,
        })
    }

    /// Skips lines before the window. Returns the bytes after the block it looked at.
    fn skip<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let (block, after) = bytes.split_at(bytes.len().min(SKIP_BLOCK));
        let missing = self.request.offset - self.newlines;
        let found = count_newlines(block);
        if found < missing {
            self.newlines += found;
            self.open = block.last() != Some(&b'\n');
            return after;
        }
        // `missing` is at most `found` here, so it fits and the line end is in this block.
        let nth = usize::try_from(missing - 1).unwrap_or(usize::MAX);
        let end = memchr::memchr_iter(b'\n', block)
            .nth(nth)
            .unwrap_or(block.len());
        self.newlines = self.request.offset;
        self.open = false;
        self.phase = Phase::Keep;
        bytes.get(end + 1..).unwrap_or_default()
    }

    /// Takes the bytes of one line up to its end. Returns the bytes after it.
    fn keep<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let end = memchr::memchr(b'\n', bytes);
        let (piece, after) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.take_piece(piece, end.is_some());
        if self.kept.over {
            // The line is counted with the rest, starting with the current bytes.
            self.stop_before_open_line();
            return bytes;
        }
        if end.is_none() {
            return after;
        }
        self.kept.close_line();
        self.newlines += 1;
        self.open = false;
        if self.kept.ends.len() >= self.request.limit {
            self.phase = Phase::Rest;
        }
        after.get(1..).unwrap_or_default()
    }

    /// Takes a piece of the open line. `ended` is set if the line end follows directly.
    fn take_piece(&mut self, piece: &[u8], ended: bool) {
        if !self.open {
            self.open = true;
            self.kept.open_line();
        }
        let Self { lossy, kept, .. } = self;
        let is_line_end = ended && piece.is_empty();
        if self.held_return && !is_line_end {
            lossy.push(b"\r", |text| kept.push(text));
        }
        let body = piece.strip_suffix(b"\r").unwrap_or(piece);
        self.held_return = !ended && body.len() < piece.len();
        lossy.push(body, |text| kept.push(text));
        if ended {
            lossy.finish(|text| kept.push(text));
        }
    }

    /// Closes the last line of a file that does not end with a line end.
    fn end_open_line(&mut self) {
        let Self { lossy, kept, .. } = self;
        if self.held_return {
            lossy.push(b"\r", |text| kept.push(text));
        }
        lossy.finish(|text| kept.push(text));
        if kept.over {
            self.stop_before_open_line();
        } else {
            kept.close_line();
        }
    }

    fn stop_before_open_line(&mut self) {
        self.kept.drop_open_line();
        self.more = true;
        self.phase = Phase::Rest;
    }

    /// Records that lines follow the window and, if requested, counts them.
    fn count_rest<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        self.more = true;
        if self.request.count_total {
            self.newlines += count_newlines(bytes);
            self.open = bytes.last() != Some(&b'\n');
        } else {
            self.phase = Phase::Done;
        }
        &[]
    }
}

/// The text of the window, and the state of the open line.
#[derive(Debug)]
struct WindowText {
    max_line_bytes: usize,
    max_bytes: usize,
    /// The lines, with `\n` between them; the open line is the last.
    text: String,
    /// The position in `text` at which each closed line ends.
    ends: Vec<usize>,
    cuts: Vec<Cut>,
    /// The position in `text` at which the open line starts.
    start: usize,
    /// Length of the open line, including cut bytes.
    decoded: u64,
    /// Whether the open line takes no more text.
    full: bool,
    /// Whether the open line does not fit into the window.
    over: bool,
}

impl WindowText {
    fn new(request: &TextOptions) -> Self {
        Self {
            max_line_bytes: request.max_line_bytes,
            max_bytes: request.max_bytes,
            text: String::new(),
            ends: Vec::new(),
            cuts: Vec::new(),
            start: 0,
            decoded: 0,
            full: false,
            over: false,
        }
    }

    fn open_line(&mut self) {
        if !self.ends.is_empty() {
            self.append("\n");
        }
        self.start = self.text.len();
        self.decoded = 0;
        self.full = false;
    }

    /// Adds text to the open line, up to the maximum width.
    fn push(&mut self, text: &str) {
        self.decoded += text.len() as u64;
        if self.full {
            return;
        }
        let width = self.text.len() - self.start;
        let (fits, cut) = text.split_at(text.floor_char_boundary(self.max_line_bytes - width));
        self.full = !cut.is_empty();
        self.append(fits);
    }

    /// Adds text if the window has room for it; the first line always has.
    fn append(&mut self, text: &str) {
        let room = self.max_bytes.saturating_sub(self.text.len());
        self.over |= !self.ends.is_empty() && text.len() > room;
        if !self.over {
            self.text.push_str(text);
        }
    }

    fn close_line(&mut self) {
        let cut_bytes = self.decoded - (self.text.len() - self.start) as u64;
        if cut_bytes > 0 {
            self.cuts.push(Cut {
                line: self.ends.len(),
                bytes: cut_bytes,
            });
        }
        self.ends.push(self.text.len());
    }

    fn drop_open_line(&mut self) {
        self.text
            .truncate(self.ends.last().copied().unwrap_or_default());
    }
}

pub(super) fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_bounded_by_the_window() {
        let request = TextOptions {
            offset: 1,
            limit: usize::MAX,
            max_line_bytes: 100,
            max_bytes: 1_000,
            count_total: true,
            ..TextOptions::default()
        };
        let mut collector = Collector::new(request);
        let wide = vec![b'x'; 64 * 1024];
        for _ in 0..64 {
            collector.feed(&wide);
            collector.feed(b"\n");
            collector.feed(&wide);
            collector.feed(b"\n\n\xE2");
        }
        assert!(collector.kept.text.capacity() <= 2_048);
        assert!(collector.kept.ends.capacity() <= 64);
        let window = collector.end(Encoding::Utf8).unwrap();
        assert!(window.text().len() <= 1_000);
        assert_eq!(window.total_lines, Some(3 * 64 + 1));
    }

    #[test]
    fn a_line_that_does_not_fit_is_not_copied_first() {
        let request = TextOptions {
            max_line_bytes: usize::MAX,
            max_bytes: 10,
            ..TextOptions::default()
        };
        let mut collector = Collector::new(request);
        collector.feed(b"short\n");
        assert_eq!(collector.feed(&vec![b'x'; 1024 * 1024]), Progress::Done);
        assert!(collector.kept.text.capacity() <= 64);
        assert_eq!(collector.feed(b"\n"), Progress::Done);
    }
}
