//! Exact replacement of text, with failures that say what to do.
//!
//! This module owns the rules of an edit. Invariants: text is replaced only where it matches
//! character for character (except for line ends, see [`apply`]); an ambiguous match is never
//! resolved by guessing; a list of edits is applied completely or not at all; the time is linear
//! in the text for each edit, whatever the text is.

use std::borrow::Cow;

use memchr::memmem::Finder;

use crate::limits::EDIT_BYTES;
use crate::text::edit_error::{EditError, MAX_LISTED_LINES};
use crate::text::hint::candidates;

/// A replacement of `old` by `new`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Edit {
    /// The text to replace. It must occur, and only once unless `replace_all` is set.
    pub old: String,
    /// The text to put in its place.
    pub new: String,
    /// Whether to replace every occurrence.
    pub replace_all: bool,
}

impl Edit {
    /// Creates an edit of the only occurrence of `old`.
    pub fn new(old: impl Into<String>, new: impl Into<String>) -> Self {
        Self {
            old: old.into(),
            new: new.into(),
            replace_all: false,
        }
    }

    /// Makes the edit replace every occurrence.
    #[must_use]
    pub fn all(self) -> Self {
        Self {
            replace_all: true,
            ..self
        }
    }
}

/// The result of a list of edits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The text after all edits.
    pub text: String,
    /// Number of occurrences that each edit replaced.
    pub replacements: Vec<usize>,
    /// The line of `text`, counted from 1, on which the first edit's first replacement starts.
    pub first_line: u64,
}

/// Applies `edits` in order, each to the result of the previous one; all of them or none.
///
/// The text to replace must occur exactly once, and an overlapping occurrence counts as a second
/// one. With [`Edit::all`] every occurrence is replaced, from the first on, except those that
/// overlap an earlier one.
///
/// One difference is tolerated: if text with `\n` does not occur in a file whose line ends are
/// all `\r\n`, it is searched for again with `\r\n`, and then the new text gets `\r\n` as well.
/// Text that occurs as given is replaced by exactly the new text.
///
/// ```
/// use backend_core::text::{Edit, apply};
///
/// let edits = [Edit::new("b = 1", "b = 2"), Edit::new("let", "const").all()];
/// let done = apply("let a = 1;\nlet b = 1;\n", &edits)?;
/// assert_eq!(done.text, "const a = 1;\nconst b = 2;\n");
/// assert_eq!(done.replacements, [1, 2]);
/// assert_eq!(done.first_line, 2);
/// # Ok::<(), backend_core::text::EditError>(())
/// ```
///
/// A failure says what to do next:
///
/// ```
/// use backend_core::text::{Edit, apply};
///
/// let error = apply("if x {\n\treturn;\n}\n", &[Edit::new("    return;", "")]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the text to replace was not found; \
///      nearest: line 2 (differs in white space): \"\\treturn;\"; \
///      read the file again and copy the text exactly"
/// );
/// ```
///
/// # Errors
///
/// The error of the first edit that cannot be applied; see [`EditError`].
pub fn apply(content: &str, edits: &[Edit]) -> Result<Applied, EditError> {
    let mut text = Cow::Borrowed(content);
    let mut replacements = Vec::with_capacity(edits.len());
    let mut first_change = None;
    for (index, edit) in edits.iter().enumerate() {
        let step = Step {
            text: &text,
            index,
            of: edits.len(),
            replace_all: edit.replace_all,
        };
        let done = step.apply(&edit.old, &edit.new, first_change)?;
        replacements.push(done.count);
        first_change = Some(done.mark);
        text = Cow::Owned(done.text);
    }
    let first_change = first_change.ok_or(EditError::NoEdits)?;
    let first_line = line_of(&text, first_change);
    Ok(Applied {
        text: text.into_owned(),
        replacements,
        first_line,
    })
}

/// Returns the number of the line that contains the byte at `byte`, counted from 1.
///
/// A `\n` belongs to the line it ends. A position past the end is on the last line.
///
/// ```
/// use backend_core::text::line_of;
///
/// assert_eq!(line_of("a\nb\n", 0), 1);
/// assert_eq!(line_of("a\nb\n", 2), 2);
/// ```
pub fn line_of(content: &str, byte: usize) -> u64 {
    let bytes = content.as_bytes();
    1 + count_newlines(bytes.get(..byte).unwrap_or(bytes))
}

/// One edit and the text it applies to.
struct Step<'a> {
    text: &'a str,
    index: usize,
    of: usize,
    replace_all: bool,
}

/// The text after one edit.
struct Replaced {
    text: String,
    count: usize,
    /// The new position of the mark that was tracked through the edit.
    mark: usize,
}

impl Step<'_> {
    /// Replaces `old`, as it is or with the line ends of the text, and tracks `mark`.
    fn apply(&self, old: &str, new: &str, mark: Option<usize>) -> Result<Replaced, EditError> {
        self.check(old, new)?;
        if let Some(done) = self.replace(old, new, mark)? {
            return Ok(done);
        }
        if has_bare_newline(old) && has_only_crlf(self.text) {
            let (old, new) = (with_crlf(old), with_crlf(new));
            self.check(&old, &new)?;
            if let Some(done) = self.replace(&old, &new, mark)? {
                return Ok(done);
            }
        }
        let candidates = candidates(self.text, old);
        Err(EditError::NoMatch {
            index: self.index,
            of: self.of,
            candidates,
        })
    }

    fn check(&self, old: &str, new: &str) -> Result<(), EditError> {
        let &Self { index, of, .. } = self;
        if old.is_empty() {
            Err(EditError::EmptyOld { index, of })
        } else if old == new {
            Err(EditError::NoChange { index, of })
        } else {
            Ok(())
        }
    }

    /// Replaces `old` if it occurs. Without a `mark` to track, marks the first replacement.
    fn replace(
        &self,
        old: &str,
        new: &str,
        mark: Option<usize>,
    ) -> Result<Option<Replaced>, EditError> {
        let bytes = self.text.as_bytes();
        let finder = Finder::new(old);
        let Some(first) = finder.find(bytes) else {
            return Ok(None);
        };
        let mark = mark.unwrap_or(first);
        self.check_growth(&finder, new)?;
        // Searches one byte after the first match, because the second may overlap it.
        if !self.replace_all && finder.find(&bytes[first + 1..]).is_some() {
            return Err(self.ambiguous(&finder));
        }
        // Without `replace_all`, there is only one.
        let starts = finder.find_iter(bytes);
        Ok(Some(splice(self.text, starts, old.len(), new, mark)))
    }

    /// Rejects a result that is too large before building it: short text that occurs often, or
    /// text that doubles with each edit, could ask for any amount of memory.
    fn check_growth(&self, finder: &Finder<'_>, new: &str) -> Result<(), EditError> {
        let growth = new.len().saturating_sub(finder.needle().len());
        if growth == 0 {
            return Ok(());
        }
        let count = if self.replace_all {
            self.count(finder)
        } else {
            1
        };
        let bytes =
            (self.text.len() as u64).saturating_add((growth as u64).saturating_mul(count as u64));
        if bytes <= EDIT_BYTES {
            return Ok(());
        }
        Err(EditError::TooLarge {
            index: self.index,
            of: self.of,
            bytes,
        })
    }

    /// Counts the occurrences that do not overlap.
    fn count(&self, finder: &Finder<'_>) -> usize {
        let bytes = self.text.as_bytes();
        match finder.needle() {
            // Much faster where a byte is frequent.
            [byte] => memchr::memchr_iter(*byte, bytes).count(),
            _ => finder.find_iter(bytes).count(),
        }
    }

    fn ambiguous(&self, finder: &Finder<'_>) -> EditError {
        let bytes = self.text.as_bytes();
        EditError::MultipleMatches {
            index: self.index,
            of: self.of,
            count: self.count(finder).max(2),
            lines: starting_lines(bytes, finder),
        }
    }
}

/// Replaces the `old_len` bytes at each of `starts` by `new`, and tracks `mark`.
///
/// A mark inside replaced text moves to the start of its replacement.
fn splice(
    text: &str,
    starts: impl Iterator<Item = usize>,
    old_len: usize,
    new: &str,
    mark: usize,
) -> Replaced {
    let mut out = String::with_capacity(text.len() + new.len());
    let mut count = 0;
    let mut from = 0;
    let mut moved = None;
    for start in starts {
        out.push_str(&text[from..start]);
        from = start + old_len;
        if moved.is_none() && mark < from {
            moved = Some(out.len() - start.saturating_sub(mark));
        }
        out.push_str(new);
        count += 1;
    }
    let tail = &text[from..];
    let mark = moved.unwrap_or_else(|| out.len() + (mark - from));
    out.push_str(tail);
    Replaced {
        text: out,
        count,
        mark,
    }
}

/// Returns the first lines on which an occurrence starts.
fn starting_lines(bytes: &[u8], finder: &Finder<'_>) -> Vec<u64> {
    let mut lines = Vec::new();
    let mut line = 1;
    let mut rest = bytes;
    while lines.len() < MAX_LISTED_LINES
        && let Some(at) = finder.find(rest)
    {
        let (before, found) = rest.split_at(at);
        line += count_newlines(before);
        lines.push(line);
        let Some(end) = memchr::memchr(b'\n', found) else {
            break;
        };
        line += 1;
        rest = &found[end + 1..];
    }
    lines
}

fn count_newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// Yields for each `\n` of `text` whether it is part of a `\r\n`.
fn newlines_after_return(text: &str) -> impl Iterator<Item = bool> {
    let bytes = text.as_bytes();
    memchr::memchr_iter(b'\n', bytes).map(|at| bytes[..at].ends_with(b"\r"))
}

fn has_bare_newline(text: &str) -> bool {
    newlines_after_return(text).any(|is_crlf| !is_crlf)
}

fn has_only_crlf(text: &str) -> bool {
    text.contains('\n') && !has_bare_newline(text)
}

/// Turns each `\n` without a preceding `\r` into `\r\n`.
fn with_crlf(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.split_inclusive('\n') {
        match line.strip_suffix('\n') {
            Some(body) if !body.ends_with('\r') => {
                out.push_str(body);
                out.push_str("\r\n");
            }
            _ => out.push_str(line),
        }
    }
    out
}

#[cfg(test)]
mod tests;
