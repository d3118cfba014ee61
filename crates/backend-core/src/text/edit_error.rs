//! Errors of edits, with messages that help to write a better edit.
//!
//! This module owns the errors of [`apply`](crate::text::apply) and their messages. Invariant: a
//! message ends with what to do next, and nothing it quotes can disturb a terminal.

use std::fmt::Write as _;

use thiserror::Error;

use crate::limits::EDIT_BYTES;
#[cfg(feature = "serde")]
use crate::limits::{EDIT_CANDIDATES, QUOTED_BYTES};
use crate::text::hint::Candidate;

/// Most line numbers that an [`EditError::MultipleMatches`] lists.
pub(super) const MAX_LISTED_LINES: usize = 5;

/// The reason why no edit was applied.
///
/// `index` is the position of the failed edit in the list of edits, counted from 0, and `of` the
/// length of that list. Messages count from 1 and omit the number if there is only one edit.
/// Line numbers count from 1 in the text that the edit was applied to, which includes the
/// earlier edits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum EditError {
    /// The list of edits is empty.
    #[error("there are no edits; give at least one")]
    NoEdits,
    /// The text to replace is empty.
    #[error("{}the text to replace is empty; copy it from the file", label(*index, *of))]
    EmptyOld {
        /// The failed edit.
        index: usize,
        /// Number of edits.
        of: usize,
    },
    /// The edit would change nothing.
    #[error(
        "{}the new text is the same as the text to replace; change it or leave the edit out",
        label(*index, *of)
    )]
    NoChange {
        /// The failed edit.
        index: usize,
        /// Number of edits.
        of: usize,
    },
    /// The text to replace does not occur.
    #[error(
        "{}the text to replace was not found; {}read the file again and copy the text exactly",
        label(*index, *of),
        nearest(candidates)
    )]
    NoMatch {
        /// The failed edit.
        index: usize,
        /// Number of edits.
        of: usize,
        /// The places most similar to the text, best first; at most three.
        candidates: Vec<Candidate>,
    },
    /// The text to replace occurs more than once and the edit is not for all occurrences.
    #[error(
        "{}the text to replace occurs {count} times, {}; \
         add lines around it to name one place, or replace all",
        label(*index, *of),
        places(*count, lines)
    )]
    MultipleMatches {
        /// The failed edit.
        index: usize,
        /// Number of edits.
        of: usize,
        /// Number of occurrences that do not overlap, or 2 if they all do.
        count: usize,
        /// The first lines on which an occurrence starts; at most five.
        lines: Vec<u64>,
    },
    /// The text would grow beyond the limit for edited files.
    #[error(
        "{}the text would have {bytes} bytes, more than the {EDIT_BYTES} that edit writes; \
         replace less of it, or put less in its place",
        label(*index, *of)
    )]
    TooLarge {
        /// The failed edit.
        index: usize,
        /// Number of edits.
        of: usize,
        /// Size in bytes that the text would have.
        bytes: u64,
    },
}

#[cfg(feature = "serde")]
impl EditError {
    /// Bounds an error received from another process to what [`apply`](crate::text::apply) can
    /// produce, and passes its texts through `plain`.
    pub(crate) fn bounded(mut self, plain: impl Fn(&str) -> String) -> Self {
        match &mut self {
            Self::NoMatch { candidates, .. } => {
                candidates.truncate(EDIT_CANDIDATES);
                for candidate in candidates {
                    let end = candidate.text.floor_char_boundary(QUOTED_BYTES);
                    candidate.text = plain(&candidate.text[..end]);
                }
            }
            Self::MultipleMatches { lines, .. } => lines.truncate(MAX_LISTED_LINES),
            _ => {}
        }
        self
    }
}

fn label(index: usize, of: usize) -> String {
    if of > 1 {
        format!("edit {}: ", index + 1)
    } else {
        String::new()
    }
}

fn nearest(candidates: &[Candidate]) -> String {
    let mut out = String::new();
    for (nth, candidate) in candidates.iter().enumerate() {
        let before = if nth == 0 { "nearest: " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(out, "{before}{candidate}; ");
    }
    out
}

fn places(count: usize, lines: &[u64]) -> String {
    let first = if count > lines.len() && lines.len() == MAX_LISTED_LINES {
        "first "
    } else {
        ""
    };
    let noun = if lines.len() == 1 { "line" } else { "lines" };
    let numbers: Vec<String> = lines.iter().map(u64::to_string).collect();
    format!("{first}on {noun} {}", numbers.join(", "))
}
