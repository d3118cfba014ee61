//! Reasons for refusing edits, with the information needed to correct them.

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use crate::counted;
use crate::tag::Tag;

/// Most entries of a list in a message.
pub(crate) const MAX_LISTED: usize = 20;

/// The reason why edits were refused. The text is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EditError {
    /// Lines are not, or no longer, what the edits expect.
    #[error(transparent)]
    Stale(Stale),
    /// A range ends before it starts.
    #[error(
        "edit {}: the range ends at line {end}, before its start at line {start}; \
         give the first line as the start and the last as the end",
        edit + 1
    )]
    #[non_exhaustive]
    EndBeforeStart {
        /// Index of the edit, counted from 0.
        edit: usize,
        /// The first line of the range, counted from 1.
        start: usize,
        /// Its last line.
        end: usize,
    },
    /// An insertion has no content.
    #[error(
        "edit {}: there is nothing to insert; give the lines, a blank line is \"\\n\"",
        edit + 1
    )]
    #[non_exhaustive]
    NothingToInsert {
        /// Index of the edit, counted from 0.
        edit: usize,
    },
    /// Two edits change the same lines.
    #[error("{first} and {second} overlap; make one edit of them")]
    #[non_exhaustive]
    Overlap {
        /// The edit that begins first.
        first: EditRange,
        /// The edit that begins inside it.
        second: EditRange,
    },
}

/// The lines that an edit changes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EditRange {
    /// Index of the edit, counted from 0.
    pub edit: usize,
    /// The lines, counted from 1. For an insertion, the empty range before the line it inserts at.
    pub lines: Range<usize>,
}

impl fmt::Display for EditRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { start, end } = self.lines;
        write!(f, "edit {} ", self.edit + 1)?;
        match end.saturating_sub(start) {
            0 => write!(f, "(before line {start})"),
            1 => write!(f, "(line {start})"),
            _ => write!(f, "(lines {start} to {})", end - 1),
        }
    }
}

/// Every line that differs from what an edit expects, and the current lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stale {
    /// The lines, in the order of the edits.
    pub mismatches: Vec<Mismatch>,
    /// Number of lines in the text. An empty text counts as one empty line.
    pub lines: usize,
    /// The current lines around them as `N:HH|line`, at most a hundred.
    pub current: String,
}

/// A line that differs from what an edit expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mismatch {
    /// Index of the edit, counted from 0.
    pub edit: usize,
    /// The line it names, counted from 1.
    pub line: usize,
    /// The tag it gives; `None` for the end of a range that was given without one.
    pub expected: Option<Tag>,
    /// The tag of the line; `None` if the text has no such line. It equals the expected one if
    /// only the copied text shows that the line is different.
    pub found: Option<Tag>,
    /// The line to which the expected line has moved, if exactly one matches. It is known only
    /// if the edit gives the whole line or a tag of four digits.
    pub moved_to: Option<usize>,
}

impl std::error::Error for Stale {}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "nothing was edited, because lines differ from what the edits expect:"
        )?;
        for mismatch in self.mismatches.iter().take(MAX_LISTED) {
            mismatch.write(f, self.lines)?;
        }
        let left_out = self.mismatches.len().saturating_sub(MAX_LISTED);
        if left_out > 0 {
            writeln!(f, "- and {left_out} more")?;
        }
        writeln!(f, "the current lines:\n{}", self.current)?;
        f.write_str("edit again with these numbers and tags, or read the text again")
    }
}

impl Mismatch {
    fn write(&self, f: &mut fmt::Formatter<'_>, lines: usize) -> fmt::Result {
        write!(f, "- edit {}, line {}: ", self.edit + 1, self.line)?;
        match (self.expected, self.found) {
            (_, None) => {
                let lines = counted::lines(lines);
                write!(f, "there is no such line, the text has {lines}")?;
            }
            (Some(expected), Some(found)) if expected != found => {
                write!(f, "the tag given is {expected}, the line's is {found}")?;
            }
            _ => f.write_str("the tag matches, but the line differs from the text given")?,
        }
        match self.moved_to {
            None => writeln!(f),
            Some(line) => writeln!(f, "; the intended line may be line {line} now"),
        }
    }
}
