//! Receives the lines of one file from the searcher.

use std::io;

use bytes::Bytes;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};

use super::Grep;
use crate::ops::{FileMatches, LineKind};
use crate::path::VPath;

/// Collects the lines of one file.
pub(super) struct LineSink {
    file: FileMatches,
    /// Buffer that lines are copied to, unless they share the file's content.
    copied: Option<Vec<u8>>,
    max_line_bytes: usize,
    max_matches: usize,
    /// Bytes of lines that the query can still show. `None` once they exceed the maximum.
    bytes_left: Option<usize>,
    multi_line: bool,
}

impl LineSink {
    pub(super) fn new(grep: &Grep, path: &VPath, shared: bool) -> Self {
        Self {
            file: FileMatches::new(path.clone(), Bytes::new()),
            copied: (!shared).then(Vec::new),
            max_line_bytes: grep.max_line_bytes.min(u32::MAX as usize),
            max_matches: grep.max_matches,
            bytes_left: Some(grep.max_bytes),
            multi_line: grep.multi_line,
        }
    }

    /// Whether another line could be part of the result.
    fn has_room(&self) -> bool {
        self.file.matches <= self.max_matches && self.bytes_left.is_some()
    }

    fn add(&mut self, number: u64, kind: LineKind, offset: u64, line: &[u8]) {
        let line = without_line_end(line);
        let shown = cut_at(line, self.max_line_bytes);
        let start = match &mut self.copied {
            // A slice's offsets fit a usize.
            None => offset as usize,
            Some(copied) => {
                let start = copied.len();
                copied.extend_from_slice(&line[..shown]);
                start
            }
        };
        self.bytes_left = self.bytes_left.and_then(|left| left.checked_sub(shown));
        let cut = (line.len() - shown) as u64;
        // `shown` is at most `max_line_bytes`, which is at most u32::MAX.
        self.file.push(number, kind, start, shown as u32, cut);
    }

    pub(super) fn finish(mut self, shared: Option<&Bytes>) -> FileMatches {
        match (shared, self.copied) {
            _ if self.file.is_empty() => {}
            (Some(content), _) => self.file.set_text(content.clone()),
            (None, copied) => self.file.set_text(copied.unwrap_or_default().into()),
        }
        self.file
    }
}

impl Sink for LineSink {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let first = found.line_number().unwrap_or(1);
        let mut offset = found.absolute_byte_offset();
        if !self.multi_line {
            self.add(first, LineKind::Match, offset, found.bytes());
            return Ok(self.has_room());
        }
        for (number, line) in (first..).zip(found.lines()) {
            if !self.has_room() {
                break;
            }
            self.add(number, LineKind::Match, offset, line);
            offset += line.len() as u64;
        }
        Ok(self.has_room())
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> io::Result<bool> {
        let number = context.line_number().unwrap_or(1);
        let offset = context.absolute_byte_offset();
        self.add(number, LineKind::Context, offset, context.bytes());
        Ok(self.has_room())
    }
}

fn without_line_end(line: &[u8]) -> &[u8] {
    match line {
        [line @ .., b'\r', b'\n'] | [line @ .., b'\n'] => line,
        line => line,
    }
}

/// Returns the length to cut a line to, so that no UTF-8 character is split.
pub(super) fn cut_at(line: &[u8], width: usize) -> usize {
    if line.len() <= width {
        return line.len();
    }
    let is_continuation = |at: usize| line[at] & 0b1100_0000 == 0b1000_0000;
    (width.saturating_sub(3)..=width)
        .rev()
        .find(|at| !is_continuation(*at))
        .unwrap_or(width)
}
