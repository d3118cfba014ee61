//! [`View`]: lines with their numbers and tags, as data and as text.

mod options;

use std::fmt;

use memchr::memchr_iter;
use thiserror::Error;

use crate::counted;
use crate::lines::{count, split_mark, take_line};
use crate::md5;
use crate::tag::{Tag, TagWidth};
pub use options::{Format, ViewOptions};

/// Number of lines hashed at a time: enough to keep every lane of the hash busy.
const CHUNK: usize = 64;

/// The reason why a view cannot be created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ViewError {
    /// No lines were requested.
    #[error("the limit is 0 lines; ask for at least 1")]
    ZeroLimit,
    /// The text has no line at the requested offset.
    #[error(
        "offset {offset} is past the end: the text has {}; use an offset below {lines}",
        counted::lines(*.lines)
    )]
    #[non_exhaustive]
    PastEnd {
        /// The requested offset.
        offset: usize,
        /// Number of lines in the text.
        lines: usize,
    },
}

/// Consecutive lines of a text with their tags.
///
/// It borrows the text and hashes lines on demand. It displays as one `N:HH|line` per line, and
/// after the last one the number of lines that follow:
///
/// ```
/// use hashline::{View, ViewOptions};
///
/// let view = View::new("a\nb\nc\nd\n", ViewOptions::default().offset(1).limit(2))?;
/// assert_eq!(view.to_string(), "2:92|b\n3:4a|c\n\n... (1 more lines)");
/// assert_eq!(view.next_offset(), Some(3));
/// let numbers: Vec<usize> = view.lines().map(|line| line.number).collect();
/// assert_eq!(numbers, [2, 3]);
/// # Ok::<(), hashline::ViewError>(())
/// ```
///
/// An empty text is shown as one empty line, which can be replaced or inserted at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// The lines shown, with their ends.
    text: &'a str,
    offset: usize,
    count: usize,
    total: usize,
    format: Format,
}

impl<'a> View<'a> {
    /// Creates a view of the requested lines.
    ///
    /// # Errors
    ///
    /// [`ViewError::ZeroLimit`] if no lines are requested, [`ViewError::PastEnd`] if the text has
    /// no line at the offset.
    pub fn new(text: &'a str, options: ViewOptions) -> Result<Self, ViewError> {
        let ViewOptions { offset, limit, .. } = options;
        let (_, body) = split_mark(text);
        let total = count(body);
        if limit == 0 {
            return Err(ViewError::ZeroLimit);
        }
        if offset >= total {
            let lines = total;
            return Err(ViewError::PastEnd { offset, lines });
        }
        let start = match offset.checked_sub(1) {
            None => 0,
            Some(before) => memchr_iter(b'\n', body.as_bytes())
                .nth(before)
                .map_or(body.len(), |at| at + 1),
        };
        let text = body.get(start..).unwrap_or_default();
        let (text, count) = window(text, total - offset, options);
        Ok(Self {
            text,
            offset,
            count,
            total,
            format: options.format,
        })
    }

    /// Returns the lines in order.
    pub fn lines(&self) -> ViewLines<'a> {
        ViewLines {
            rest: self.text,
            left: self.count,
            number: self.offset,
            format: self.format,
            texts: [""; CHUNK],
            bytes: [0; CHUNK],
            at: 0,
            filled: 0,
        }
    }

    /// Returns the number of lines shown; at least one.
    pub const fn line_count(&self) -> usize {
        self.count
    }

    /// Returns the number of the first line, counted from 1.
    pub const fn first_line(&self) -> usize {
        self.offset + 1
    }

    /// Returns the number of lines in the text. An empty text counts as one empty line.
    pub const fn total_lines(&self) -> usize {
        self.total
    }

    /// Returns the number of lines after the last one shown.
    pub const fn more(&self) -> usize {
        self.total - self.offset - self.count
    }

    /// Returns the [offset](ViewOptions::offset) of the next view, if lines follow.
    pub const fn next_offset(&self) -> Option<usize> {
        match self.more() {
            0 => None,
            _ => Some(self.offset + self.count),
        }
    }

    /// Appends the view as text, without a line end after the last line.
    pub fn render_into(&self, out: &mut String) {
        // A wrong estimate only costs a copy.
        let header = self.format.tag_width.digits() + 8;
        out.reserve(
            self.text
                .len()
                .saturating_add(self.count.saturating_mul(header)),
        );
        for (index, line) in self.lines().enumerate() {
            if index > 0 {
                out.push('\n');
            }
            line.render_into(out);
        }
        let more = self.more();
        if more > 0 {
            out.push_str("\n\n... (");
            out.push_str(&more.to_string());
            out.push_str(" more lines)");
        }
    }
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.render_into(&mut text);
        f.write_str(&text)
    }
}

/// Returns the first lines of `text`, which has `lines` lines, that fit the limits of `options`.
fn window(text: &str, lines: usize, options: ViewOptions) -> (&str, usize) {
    let limit = options.limit.min(lines);
    // Everything fits, so there is no need to look at each line.
    if limit == lines && text.len() < options.max_bytes {
        return (text, limit);
    }
    let mut rest = text;
    let mut shown = 0_usize;
    for taken in 0..limit {
        let before = rest;
        let (line, _) = take_line(&mut rest);
        shown = shown.saturating_add(cut(line, options.format).len() + 1);
        if shown > options.max_bytes && taken > 0 {
            let length = text.len() - before.len();
            return (text.get(..length).unwrap_or(text), taken);
        }
    }
    let length = text.len() - rest.len();
    (text.get(..length).unwrap_or(text), limit)
}

fn cut(line: &str, format: Format) -> &str {
    let end = line.floor_char_boundary(format.max_line_bytes);
    line.get(..end).unwrap_or(line)
}

/// A line of a [`View`]. It displays as `N:HH|line`, followed by a marker if it was cut.
///
/// ```
/// use hashline::{Format, View, ViewOptions};
///
/// let options = ViewOptions::default().format(Format::default().max_line_bytes(5));
/// let view = View::new("rather long\n", options)?;
/// let shown: Vec<String> = view.lines().map(|line| line.to_string()).collect();
/// assert_eq!(shown, ["1:4a|rathe [... 6 more bytes]"]);
/// # Ok::<(), hashline::ViewError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line<'a> {
    /// The line's number, counted from 1.
    pub number: usize,
    /// The tag of the whole line.
    pub tag: Tag,
    /// The shown part of the line, without its end.
    pub text: &'a str,
    /// Number of bytes cut off after `text`.
    pub cut_bytes: usize,
}

impl<'a> Line<'a> {
    pub(crate) fn new(number: usize, line: &'a str, tag: Tag, format: Format) -> Self {
        let text = cut(line, format);
        let cut_bytes = line.len() - text.len();
        Self {
            number,
            tag,
            text,
            cut_bytes,
        }
    }

    /// Appends the line as text.
    pub fn render_into(&self, out: &mut String) {
        push_header(out, self.number, self.tag);
        out.push_str(self.text);
        if self.cut_bytes > 0 {
            out.push_str(" [... ");
            out.push_str(&self.cut_bytes.to_string());
            out.push_str(" more bytes]");
        }
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.render_into(&mut text);
        f.write_str(&text)
    }
}

/// Appends `N:HH|`. It is written backwards, since the length of the number is known last.
fn push_header(out: &mut String, number: usize, tag: Tag) {
    let mut buffer = [b'|'; 32];
    let mut start = buffer.len() - 1;
    let mut put = |byte| {
        start -= 1;
        buffer[start] = byte;
    };
    let [first, second, third, fourth] = tag.digits();
    if tag.width() == TagWidth::Four {
        put(fourth);
        put(third);
    }
    put(second);
    put(first);
    put(b':');
    let mut rest = number;
    loop {
        // A number has at most twenty digits.
        put(b'0' + (rest % 10) as u8);
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let header = buffer.get(start..).unwrap_or_default();
    out.push_str(str::from_utf8(header).unwrap_or_default());
}

/// Iterator over the lines of a [`View`].
#[derive(Debug, Clone)]
pub struct ViewLines<'a> {
    /// The text that is not split into lines yet.
    rest: &'a str,
    /// Number of lines in `rest`.
    left: usize,
    /// The number of the last line returned.
    number: usize,
    format: Format,
    /// Lines that are already hashed, and the start of their hashes.
    texts: [&'a str; CHUNK],
    bytes: [u16; CHUNK],
    /// Index of the next of them, and their number.
    at: usize,
    filled: usize,
}

impl ViewLines<'_> {
    /// Splits off and hashes the next lines.
    fn refill(&mut self) {
        self.at = 0;
        self.filled = self.left.min(CHUNK);
        self.left -= self.filled;
        for text in self.texts.iter_mut().take(self.filled) {
            (*text, _) = take_line(&mut self.rest);
        }
        let texts = self.texts.iter().take(self.filled).copied();
        md5::first_bytes(texts, &mut self.bytes);
    }
}

impl<'a> Iterator for ViewLines<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        if self.at == self.filled {
            if self.left == 0 {
                return None;
            }
            self.refill();
        }
        let text = self.texts.get(self.at)?;
        let tag = Tag::new(*self.bytes.get(self.at)?, self.format.tag_width);
        self.at += 1;
        self.number += 1;
        Some(Line::new(self.number, text, tag, self.format))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.left + self.filled - self.at;
        (left, Some(left))
    }
}

impl ExactSizeIterator for ViewLines<'_> {}

/// Renders all of `text` in the common format, each line whole and with two digits.
///
/// ```
/// assert_eq!(hashline::render("a\n\n b"), "1:0c|a\n2:d4|\n3:f6|\u{20}b");
/// ```
pub fn render(text: &str) -> String {
    let mut out = String::new();
    // There is always a first line, and the limit is not zero.
    if let Ok(view) = View::new(text, ViewOptions::everything()) {
        view.render_into(&mut out);
    }
    out
}

#[cfg(test)]
mod tests;
