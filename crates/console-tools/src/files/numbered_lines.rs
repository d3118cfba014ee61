//! Formats lines: numbered, within a size limit, and with notes on how to read the
//! rest.

use std::fmt::{Display, Write as _};

use backend_core::text::TextWindow;

use crate::counted::counted;

/// Maximum number of bytes of a line in a hint.
const HINT_LINE_BYTES: usize = 500;

/// Bytes reserved for the notes after the lines.
const NOTE_BYTES: usize = 400;

/// Maximum size of a line besides its text: number, tag, marker and line break.
const LINE_EXTRA_BYTES: usize = 80;

/// Formatted lines, and the position where they end.
#[derive(Debug, Default)]
pub(super) struct ShownLines {
    pub(super) text: String,
    pub(super) lines: u64,
    /// Number of lines that were truncated.
    pub(super) cut: u64,
    /// Number of lines of the file, if they were counted.
    pub(super) total: Option<u64>,
    /// The offset for reading on, if more lines follow.
    pub(super) next: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Budget {
    /// Maximum size of all lines.
    pub(super) bytes: usize,
    /// Maximum size of one line.
    pub(super) line_bytes: usize,
}

impl Budget {
    pub(super) fn of(limits: &crate::options::Limits) -> Self {
        let bytes = limits.reply_bytes.saturating_sub(NOTE_BYTES).max(1);
        Self {
            bytes,
            line_bytes: limits.line_bytes.min(bytes),
        }
    }

    /// Joins `lines`, given with their lengths, while they fit, and at least one.
    pub(super) fn join<L: Display>(self, lines: impl Iterator<Item = (L, usize)>) -> (String, u64) {
        let mut text = String::new();
        let mut count = 0;
        for (line, length) in lines {
            if count > 0 {
                if text.len() + length + LINE_EXTRA_BYTES > self.bytes {
                    break;
                }
                text.push('\n');
            }
            // Writing to a string cannot fail.
            let _ = write!(text, "{line}");
            count += 1;
        }
        (text, count)
    }
}

/// Formats a window with line numbers, six columns wide and followed by a tab.
pub(super) fn numbered(window: &TextWindow, budget: Budget) -> ShownLines {
    let lines = window
        .lines()
        .map(|line| (format!("{:>6}\t{line}", line.number), line.text.len()));
    let (text, count) = budget.join(lines);
    let kept = usize::try_from(count).unwrap_or(usize::MAX);
    let cut = window.lines().take(kept).filter(|line| line.cut_bytes > 0);
    let cut = cut.count() as u64;
    let end = window.first_line() - 1 + count;
    let more = window.more || kept < window.line_count();
    ShownLines {
        text,
        lines: count,
        cut,
        total: window.total_lines,
        next: more.then_some(end),
    }
}

/// Appends a line in the format of `read_file`, truncated if it is long.
pub(super) fn push_line(out: &mut String, number: u64, line: &str) {
    let shown = &line[..line.floor_char_boundary(HINT_LINE_BYTES)];
    // Writing to a string cannot fail.
    let _ = write!(out, "{number:>6}\t{shown}");
    if shown.len() < line.len() {
        let _ = write!(
            out,
            " [... {}]",
            counted((line.len() - shown.len()) as u64, "more byte")
        );
    }
}

impl ShownLines {
    /// Returns the text with notes on what was left out and how to read it.
    pub(super) fn with_notes(self, budget: Budget) -> String {
        let mut out = self.text;
        if let Some(next) = self.next {
            let _ = match self.total {
                Some(total) => write!(
                    out,
                    "\n\n... ({}; read on with offset={next})",
                    counted(total.saturating_sub(next), "more line")
                ),
                None => write!(out, "\n\n... (more lines; read on with offset={next})"),
            };
        }
        if self.cut > 0 {
            let _ = write!(
                out,
                "\n\n... ({} cut after {} bytes; find text in the rest with `grep`)",
                counted(self.cut, "line"),
                budget.line_bytes
            );
        }
        out
    }
}
