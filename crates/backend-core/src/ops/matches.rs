//! Results of grep. The lines of one file share one buffer.

#[cfg(feature = "serde")]
mod serial;

use std::borrow::Cow;
use std::fmt;

use bytes::Bytes;

use crate::ops::list::Skipped;
use crate::path::VPath;

/// The result of `grep`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GrepResult {
    /// Files with matches, in byte order of their paths.
    pub files: Vec<FileMatches>,
    /// Number of matching lines in `files`.
    pub matches: usize,
    /// Whether there are more matches than were returned.
    pub truncated: bool,
    /// Counts of what the search skipped.
    pub skipped: Skipped,
}

/// The role of a returned line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum LineKind {
    /// It matches, or is part of a match that spans lines.
    Match,
    /// It is shown before or after a matching line.
    Context,
}

/// One line of a [`FileMatches`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct GrepLine<'a> {
    /// The line's number, counted from 1.
    pub number: u64,
    /// Its role: match or context.
    pub kind: LineKind,
    /// The line without its line end, cut at the requested width.
    pub bytes: &'a [u8],
    /// Number of bytes cut off.
    pub cut_bytes: u64,
}

impl<'a> GrepLine<'a> {
    /// Returns the line as text; bytes that are not UTF-8 become U+FFFD.
    pub fn text(&self) -> Cow<'a, str> {
        String::from_utf8_lossy(self.bytes)
    }
}

/// The lines found in one file.
///
/// The lines share one buffer, which may be the content of the file itself: a
/// search that finds every line of a file in memory copies none of them. Two values
/// are equal if their paths and lines are, whatever else the buffers hold.
#[derive(Clone)]
#[non_exhaustive]
pub struct FileMatches {
    /// The file.
    pub path: VPath,
    /// Number of matching lines.
    pub matches: usize,
    text: Bytes,
    lines: Vec<RawLine>,
    /// Index of each cut line and the number of bytes it lost; few, in order.
    cuts: Vec<(usize, u64)>,
}

/// A line by its position in the buffer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawLine {
    pub(crate) number: u64,
    pub(crate) start: usize,
    pub(crate) length: u32,
    pub(crate) kind: LineKind,
}

impl FileMatches {
    /// Creates a value without lines; lines added later refer to `text`.
    pub(crate) fn new(path: VPath, text: Bytes) -> Self {
        Self {
            path,
            matches: 0,
            text,
            lines: Vec::new(),
            cuts: Vec::new(),
        }
    }

    /// Adds the line at `start..start + length` of the buffer.
    pub(crate) fn push(
        &mut self,
        number: u64,
        kind: LineKind,
        start: usize,
        length: u32,
        cut_bytes: u64,
    ) {
        if cut_bytes > 0 {
            self.cut(self.lines.len(), cut_bytes);
        }
        self.matches += usize::from(kind == LineKind::Match);
        self.lines.push(RawLine {
            number,
            start,
            length,
            kind,
        });
    }

    /// Records that line `index` lost so many bytes.
    pub(crate) fn cut(&mut self, index: usize, bytes: u64) {
        self.cuts.push((index, bytes));
    }

    /// Replaces the lines, which must all match, and the buffer they refer to.
    pub(crate) fn set_lines(&mut self, lines: Vec<RawLine>, text: Bytes) {
        self.matches = lines.len();
        self.lines = lines;
        self.text = text;
    }

    pub(crate) fn set_text(&mut self, text: Bytes) {
        self.text = text;
    }

    /// Keeps the lines before line `index`.
    pub(crate) fn truncate(&mut self, index: usize) {
        let dropped = &self.lines[index.min(self.lines.len())..];
        self.matches -= dropped
            .iter()
            .filter(|line| line.kind == LineKind::Match)
            .count();
        self.lines.truncate(index);
        self.cuts.retain(|(line, _)| *line < index);
    }

    /// Builds a file's matches from lines, for a backend that gets them as text.
    ///
    /// ```
    /// use backend_core::{VPath, ops::{FileMatches, LineKind}};
    /// let file = FileMatches::from_lines(VPath::parse("/a")?, [(3, LineKind::Match, "found")]);
    /// assert_eq!(file.lines().next().unwrap().text(), "found");
    /// # Ok::<(), backend_core::PathError>(())
    /// ```
    pub fn from_lines<T: AsRef<[u8]>>(
        path: VPath,
        lines: impl IntoIterator<Item = (u64, LineKind, T)>,
    ) -> Self {
        let mut text = Vec::new();
        let mut this = Self::new(path, Bytes::new());
        for (number, kind, line) in lines {
            let line = line.as_ref();
            let shown = u32::try_from(line.len()).unwrap_or(u32::MAX);
            let start = text.len();
            text.extend_from_slice(&line[..shown as usize]);
            let cut = line.len() as u64 - u64::from(shown);
            this.push(number, kind, start, shown, cut);
        }
        this.text = text.into();
        this
    }

    /// Returns the total length of the lines in bytes.
    pub fn shown_bytes(&self) -> usize {
        self.lines.iter().map(|line| line.length as usize).sum()
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the lines in order, matches and context.
    pub fn lines(&self) -> impl ExactSizeIterator<Item = GrepLine<'_>> + Clone {
        let mut cuts = self.cuts.iter().peekable();
        self.lines.iter().enumerate().map(move |(at, line)| {
            let cut = cuts.next_if(|(index, _)| *index == at);
            GrepLine {
                number: line.number,
                kind: line.kind,
                bytes: &self.text[line.start..line.start + line.length as usize],
                cut_bytes: cut.map_or(0, |(_, bytes)| *bytes),
            }
        })
    }
}

impl PartialEq for FileMatches {
    fn eq(&self, other: &Self) -> bool {
        self.path == other.path && self.lines().eq(other.lines())
    }
}

impl Eq for FileMatches {}

impl fmt::Debug for FileMatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines().map(|line| (line.number, line.text()));
        f.debug_struct("FileMatches")
            .field("path", &self.path)
            .field("lines", &lines.collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_lines_are_equal_in_any_buffer() {
        let path = || VPath::parse("/a").unwrap();
        let copied = FileMatches::from_lines(path(), [(2, LineKind::Match, "found")]);
        let mut shared = FileMatches::new(path(), Bytes::from("first\nfound\nlast"));
        shared.push(2, LineKind::Match, 6, 5, 0);
        assert_eq!(copied, shared);
        assert!(!format!("{shared:?}").contains("last"));

        let mut cut = FileMatches::new(path(), Bytes::from("found"));
        cut.push(2, LineKind::Match, 0, 5, 1);
        assert_ne!(copied, cut);
        let mut elsewhere = copied.clone();
        elsewhere.path = VPath::root();
        assert_ne!(copied, elsewhere);
    }
}
