//! [`Writer`]: writes lines one after another and adds line ends where needed.

use std::ops::Range;

use crate::lines::{Lines, take_line};

/// Builds a new text from lines of the old one and new lines.
pub(crate) struct Writer<'a> {
    old: &'a Lines<'a>,
    out: String,
    count: usize,
    /// Length in bytes of the last line's end.
    last_end: usize,
    /// Whether the last line is empty except for its end.
    is_last_empty: bool,
}

impl<'a> Writer<'a> {
    /// Starts a text with `mark` and reserves room for the `old` lines and `added` bytes.
    pub(crate) fn new(mark: &str, old: &'a Lines<'a>, added: usize) -> Self {
        let length = old.slice(0..old.count()).len();
        let mut out = String::with_capacity(mark.len() + length + added);
        out.push_str(mark);
        Self {
            old,
            out,
            count: 0,
            last_end: 0,
            is_last_empty: false,
        }
    }

    /// Returns the number of lines so far.
    pub(crate) const fn line_count(&self) -> usize {
        self.count
    }

    /// Appends lines of the old text unchanged.
    pub(crate) fn copy(&mut self, range: Range<usize>) {
        // The placeholder line of an empty text must not be copied.
        if range.is_empty() || self.old.is_empty() {
            return;
        }
        if let Some((line, end)) = self.old.get(range.end - 1) {
            self.end_last_line("\n");
            self.count += range.len();
            self.last_end = end.len();
            self.is_last_empty = line.is_empty();
            self.out.push_str(self.old.slice(range));
        }
    }

    /// Appends the lines of `content` with `end` after each; without `end`, with their own ends.
    pub(crate) fn insert(&mut self, content: &str, end: Option<&str>) {
        let mut rest = content;
        while !rest.is_empty() {
            let (mut line, mut own_end) = take_line(&mut rest);
            if own_end.is_empty()
                && let Some(cut) = line.strip_suffix('\r')
            {
                // The final `\n` of the content may be omitted, even that of a `\r\n`.
                (line, own_end) = (cut, "\r\n");
            }
            let end = end.unwrap_or(own_end);
            self.end_last_line(if end.is_empty() { "\n" } else { end });
            self.count += 1;
            self.is_last_empty = line.is_empty();
            self.out.push_str(line);
            self.last_end = 0;
            if !end.is_empty() {
                self.end_last_line(end);
            }
        }
    }

    /// Appends `end` to the last line if it has none.
    fn end_last_line(&mut self, end: &str) {
        if self.count == 0 || self.last_end > 0 {
            return;
        }
        // A `\r` that is content must not become part of the end.
        let end = match end {
            "\n" if self.out.ends_with('\r') && !self.is_last_empty => "\r\n",
            _ => end,
        };
        self.out.push_str(end);
        self.last_end = end.len();
    }

    /// Returns the text. Its last line has an end if that of the old text had one.
    pub(crate) fn finish(mut self) -> String {
        let old_last = self.old.get(self.old.count() - 1);
        let had_end = old_last.is_some_and(|(_, end)| !end.is_empty());
        // An empty line without an end would disappear.
        if !had_end && !self.old.is_empty() && !self.is_last_empty {
            self.out.truncate(self.out.len() - self.last_end);
        }
        self.out
    }
}
