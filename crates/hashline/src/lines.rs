//! The definition of a line.
//!
//! A line ends with `\n` or `\r\n`. A `\r` anywhere else, U+2028 and similar characters are
//! content. A line end at the end of the text does not begin another line. An empty text is shown
//! as one empty line, so that an edit can refer to it. A byte-order mark at the start is not part
//! of any line.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

/// U+FEFF at the very start of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Splits off the byte-order mark, which may be missing.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split_at_checked(text.len() - body.len())
        .unwrap_or(("", text))
}

/// Returns the number of lines shown for `body`, a text without its mark; at least one.
pub(crate) fn count(body: &str) -> usize {
    let ends = memchr_iter(b'\n', body.as_bytes()).count();
    let is_open = !body.ends_with('\n');
    ends + usize::from(is_open)
}

/// Splits the first line off `rest` and returns the line and its end.
pub(crate) fn take_line<'a>(rest: &mut &'a str) -> (&'a str, &'a str) {
    let length = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
    let (line, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
    *rest = after;
    split_end(line)
}

/// Splits a line from its end, which may be missing.
fn split_end(line: &str) -> (&str, &str) {
    let text = line
        .strip_suffix('\n')
        .map_or(line, |text| text.strip_suffix('\r').unwrap_or(text));
    line.split_at_checked(text.len()).unwrap_or((line, ""))
}

/// A text with an index of its lines. Lines are counted from 0 here.
#[derive(Debug)]
pub(crate) struct Lines<'a> {
    body: &'a str,
    /// The start of each line, and the end of the last.
    starts: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Indexes `body`, a text without its mark.
    pub(crate) fn new(body: &'a str) -> Self {
        let mut starts = vec![0];
        starts.extend(memchr_iter(b'\n', body.as_bytes()).map(|at| at + 1));
        if !body.ends_with('\n') {
            starts.push(body.len());
        }
        Self { body, starts }
    }

    /// Returns the number of lines; at least one.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether the text is empty, so that its only line is a placeholder.
    pub(crate) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Returns the lines of `range` with their ends.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'a str {
        let start = self.starts.get(range.start);
        let end = self.starts.get(range.end);
        start
            .zip(end)
            .and_then(|(start, end)| self.body.get(*start..*end))
            .unwrap_or_default()
    }

    /// Returns a line and its end, if there is such a line.
    pub(crate) fn get(&self, index: usize) -> Option<(&'a str, &'a str)> {
        (index < self.count()).then(|| split_end(self.slice(index..index + 1)))
    }

    /// Returns the line end for text that replaces `range`, or is inserted before it if it is
    /// empty.
    ///
    /// It is that of the first line replaced, or of the line inserted after. If that line has
    /// none, it is that of the line before. `None` if neither has one.
    pub(crate) fn end_near(&self, range: Range<usize>) -> Option<&'a str> {
        let line = if range.is_empty() {
            range.start.saturating_sub(1)
        } else {
            range.start
        };
        // Only the last line may lack an end.
        [Some(line), line.checked_sub(1)]
            .into_iter()
            .flatten()
            .filter_map(|line| self.get(line))
            .map(|(_, end)| end)
            .find(|end| !end.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::{Lines, count, split_mark, take_line};

    /// Splits `text` into lines and their ends.
    fn split(text: &str) -> Vec<(&str, &str)> {
        let lines = Lines::new(text);
        let all: Vec<_> = (0..lines.count())
            .map(|at| lines.get(at).unwrap())
            .collect();
        let mut rest = text;
        let taken: Vec<_> = all.iter().map(|_| take_line(&mut rest)).collect();
        assert_eq!((&taken, rest), (&all, ""), "{text:?}");
        assert_eq!(count(text), all.len(), "{text:?}");
        assert_eq!(lines.get(all.len()), None);
        all
    }

    #[test]
    fn line_ends() {
        assert_eq!(split(""), [("", "")]);
        assert_eq!(split("\n"), [("", "\n")]);
        assert_eq!(split("\r\n"), [("", "\r\n")]);
        assert_eq!(split("\r"), [("\r", "")]);
        assert_eq!(split("a"), [("a", "")]);
        assert_eq!(split("a\n\nb"), [("a", "\n"), ("", "\n"), ("b", "")]);
        assert_eq!(split("a\r\nb\r\r\n"), [("a", "\r\n"), ("b\r", "\r\n")]);
        let odd = "a\rb\u{2028}c\u{85}d\x0be\x0cf\u{2029}\n";
        assert_eq!(split(odd), [(odd.trim_end_matches('\n'), "\n")]);
    }

    #[test]
    fn only_the_first_mark_is_a_mark() {
        assert_eq!(split_mark(""), ("", ""));
        assert_eq!(split_mark("a\u{feff}"), ("", "a\u{feff}"));
        assert_eq!(split_mark("\u{feff}\u{feff}a"), ("\u{feff}", "\u{feff}a"));
    }
}
