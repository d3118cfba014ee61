//! What a line is.
//!
//! A line ends with `\n` or `\r\n`. A `\r` anywhere else, U+2028 and their like are
//! content. A line end at the end of the text begins no further line. An empty text
//! is shown as one empty line, so that there is something to name. A byte-order
//! mark at the start belongs to no line.

use std::ops::Range;

use memchr::{memchr, memchr_iter};

/// U+FEFF at the very start of a text.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// The byte-order mark, which may be missing, and all the rest.
pub(crate) fn split_mark(text: &str) -> (&str, &str) {
    let body = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    text.split_at_checked(text.len() - body.len())
        .unwrap_or(("", text))
}

/// How many lines `body`, a text without its mark, is shown as; at least one.
pub(crate) fn count(body: &str) -> usize {
    let ends = memchr_iter(b'\n', body.as_bytes()).count();
    let is_open = !body.ends_with('\n');
    ends + usize::from(is_open)
}

/// Takes the first line off `rest`: the line and its end.
pub(crate) fn take_line<'a>(rest: &mut &'a str) -> (&'a str, &'a str) {
    let length = memchr(b'\n', rest.as_bytes()).map_or(rest.len(), |at| at + 1);
    let (line, after) = rest.split_at_checked(length).unwrap_or((rest, ""));
    *rest = after;
    split_end(line)
}

/// A line and its end, which may be missing.
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
    /// Where each line starts, and the end of the last.
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

    /// How many lines there are; at least one.
    pub(crate) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no line but the one that stands for the empty text.
    pub(crate) fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// The lines of `range` with their ends.
    pub(crate) fn slice(&self, range: Range<usize>) -> &'a str {
        let start = self.starts.get(range.start);
        let end = self.starts.get(range.end);
        start
            .zip(end)
            .and_then(|(start, end)| self.body.get(*start..*end))
            .unwrap_or_default()
    }

    /// A line and its end, if there is such a line.
    pub(crate) fn get(&self, index: usize) -> Option<(&'a str, &'a str)> {
        (index < self.count()).then(|| split_end(self.slice(index..index + 1)))
    }

    /// The line end for what comes in the place of `range`, or before it if it is empty.
    ///
    /// It is that of the first line replaced, or of the line inserted after; where that has none,
    /// of the line before it. `None` if there is no such line end.
    pub(crate) fn end_near(&self, range: Range<usize>) -> Option<&'a str> {
        let line = if range.is_empty() {
            range.start.saturating_sub(1)
        } else {
            range.start
        };
        // Only the last line may be without an end.
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

    /// Every line of `text` with its end.
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
