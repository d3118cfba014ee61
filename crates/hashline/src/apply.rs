//! [`apply`]: applies edits to a text.
//!
//! All edits are checked against the current text and then written in one pass. So line numbers
//! mean the same in each edit, and either all edits are applied or none.

use std::ops::Range;

use crate::counted;
use crate::edit::{Edit, RangeEnd};
use crate::error::{EditError, EditRange, MAX_LISTED};
use crate::excerpt::excerpt;
use crate::lines::{Lines, split_mark};
use crate::setters::setters;
use crate::stale::{StaleAnchor, check, stale_error};
use crate::view::Format;
use crate::writer::Writer;

/// Options for showing the current lines when edits are refused.
///
/// ```
/// use hashline::ApplyOptions;
///
/// assert_eq!(ApplyOptions::default().context(5).context, 5);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ApplyOptions {
    /// The format of a line.
    pub format: Format,
    /// Number of lines to show around each. The default is 2.
    pub context: usize,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self {
            format: Format::default(),
            context: 2,
        }
    }
}

impl ApplyOptions {
    setters! {
        /// Sets the format of a line.
        format(format: Format),
        /// Sets the number of lines to show around each.
        context(lines: usize),
    }
}

/// The result of applying edits.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Applied {
    /// The new text.
    pub text: String,
    /// The changes of each edit, in the order of the edits.
    pub changed: Vec<Changed>,
    /// A summary in words. Line numbers are those before the edits.
    pub summary: String,
}

/// The change made by an edit. Lines are counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Changed {
    /// The removed lines, by their old numbers; empty for an insertion.
    pub old: Range<usize>,
    /// The new lines, by their new numbers; empty for a deletion.
    pub new: Range<usize>,
}

impl Applied {
    /// Renders the new lines and `context` lines around them as `N:HH|line`, at most a hundred, for
    /// further edits.
    ///
    /// ```
    /// use hashline::{ApplyOptions, Edit, Format, apply};
    ///
    /// let edit = Edit::InsertAfter { anchor: "2:92".parse()?, content: "new".to_owned() };
    /// let applied = apply("a\nb\nc\nd\n", &[edit], ApplyOptions::default())?;
    /// assert_eq!(applied.excerpt(1, Format::default()), "2:92|b\n3:22|new\n4:4a|c");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn excerpt(&self, context: usize, format: Format) -> String {
        let (_, body) = split_mark(&self.text);
        let places = self
            .changed
            .iter()
            .map(|changed| changed.new.start - 1..changed.new.end - 1);
        excerpt(&Lines::new(body), places, context, format)
    }
}

/// A checked edit.
#[derive(Clone, Copy)]
struct Span<'a> {
    edit: usize,
    /// The lines to remove, counted from 0.
    from: usize,
    to: usize,
    content: &'a str,
}

/// Applies `edits` to `text`, all or none.
///
/// Line numbers are those of `text` in every edit, whatever the other edits do. Several insertions
/// at one place keep the order of the edits. Lines that are not edited keep every byte. For the
/// others, these rules hold:
///
/// - New lines get the line end of the line they replace or are next to.
/// - If the last line has no line end, the last line of the new text has none either, unless it is
///   empty and would be lost. A line that is no longer the last one gets a line end.
/// - An empty text becomes the content as given. A text can become empty.
/// - A byte-order mark stays where it is, before the first line.
///
/// ```
/// use hashline::{Anchor, ApplyOptions, Edit, apply};
///
/// let edits = [
///     Edit::Replace {
///         start: "1:0c".parse()?,
///         end: None,
///         content: "A\nAA".to_owned(),
///     },
///     Edit::Delete { start: "3:4a|c".parse()?, end: None },
/// ];
/// let applied = apply("a\r\nb\r\nc\r\n", &edits, ApplyOptions::default())?;
/// assert_eq!(applied.text, "A\r\nAA\r\nb\r\n");
/// assert_eq!(applied.changed[1].old, 3..4);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// [`EditError::EndBeforeStart`] and [`EditError::NothingToInsert`] for the first edit that is
/// invalid by itself; otherwise [`EditError::Stale`] with every line that differs from what the
/// edits expect; otherwise [`EditError::Overlap`] for the first two edits of the same lines.
pub fn apply(text: &str, edits: &[Edit], options: ApplyOptions) -> Result<Applied, EditError> {
    let (mark, body) = split_mark(text);
    let lines = Lines::new(body);
    let mut stale = Vec::new();
    let mut spans = Vec::with_capacity(edits.len());
    for (index, edit) in edits.iter().enumerate() {
        spans.push(check_edit(index, edit, &lines, &mut stale)?);
    }
    if !stale.is_empty() {
        let ApplyOptions { format, context } = options;
        let error = stale_error(&stale, text, &lines, context, format);
        return Err(EditError::Stale(error));
    }
    // The sort is stable, so insertions at one place keep their order.
    spans.sort_by_key(|span| (span.from, span.to));
    check_overlap(&spans)?;
    let (text, changed) = write(mark, &lines, &spans);
    Ok(Applied {
        text,
        summary: summary(edits, &changed),
        changed,
    })
}

/// Returns the lines that `edit` changes. Mismatches are added to `stale`.
fn check_edit<'a>(
    index: usize,
    edit: &'a Edit,
    lines: &Lines<'_>,
    stale: &mut Vec<StaleAnchor<'a>>,
) -> Result<Span<'a>, EditError> {
    let (anchor, content) = match edit {
        Edit::Replace { start, content, .. } => (Some(start), content.as_str()),
        Edit::Delete { start, .. } => (Some(start), ""),
        Edit::InsertAfter { anchor, content } | Edit::InsertBefore { anchor, content } => {
            (Some(anchor), content.as_str())
        }
        Edit::InsertFirst { content } => (None, content.as_str()),
    };
    stale.extend(anchor.and_then(|anchor| check(index, anchor.line, Some(anchor), lines)));
    let line = anchor.map_or(0, |anchor| anchor.line);
    let (from, to) = match edit {
        Edit::Replace { start, end, .. } | Edit::Delete { start, end } => {
            let end = check_end(index, start.line, end.as_ref(), lines, stale)?;
            (line.saturating_sub(1), end)
        }
        _ if content.is_empty() => return Err(EditError::NothingToInsert { edit: index }),
        Edit::InsertBefore { .. } => (line.saturating_sub(1), line.saturating_sub(1)),
        Edit::InsertAfter { .. } | Edit::InsertFirst { .. } => (line, line),
    };
    Ok(Span {
        edit: index,
        from,
        to,
        content,
    })
}

/// Checks the end of a range and returns its last line, counted from 1.
fn check_end<'a>(
    edit: usize,
    start: usize,
    end: Option<&'a RangeEnd>,
    lines: &Lines<'_>,
    stale: &mut Vec<StaleAnchor<'a>>,
) -> Result<usize, EditError> {
    let Some(last) = end else {
        return Ok(start);
    };
    let (end, anchor) = match last {
        RangeEnd::Line(line) => (*line, None),
        RangeEnd::Anchor(anchor) => (anchor.line, Some(anchor)),
    };
    if end < start {
        return Err(EditError::EndBeforeStart { edit, start, end });
    }
    stale.extend(check(edit, end, anchor, lines));
    Ok(end)
}

/// Checks that no span begins inside the previous one.
fn check_overlap(spans: &[Span<'_>]) -> Result<(), EditError> {
    let range = |span: &Span<'_>| EditRange {
        edit: span.edit,
        lines: span.from + 1..span.to + 1,
    };
    let clash = spans
        .iter()
        .zip(spans.iter().skip(1))
        .find(|(first, second)| second.from < first.to);
    match clash {
        None => Ok(()),
        Some((first, second)) => Err(EditError::Overlap {
            first: range(first),
            second: range(second),
        }),
    }
}

/// Writes the text with `spans`, which are in order, replaced.
fn write(mark: &str, lines: &Lines<'_>, spans: &[Span<'_>]) -> (String, Vec<Changed>) {
    let added: usize = spans.iter().map(|span| span.content.len()).sum();
    let mut writer = Writer::new(mark, lines, added);
    let mut changed = Vec::with_capacity(spans.len());
    let mut next = 0;
    for span in spans {
        writer.copy(next..span.from);
        let start = writer.line_count() + 1;
        writer.insert(span.content, lines.end_near(span.from..span.to));
        let end = writer.line_count() + 1;
        let old = span.from + 1..span.to + 1;
        changed.push((
            span.edit,
            Changed {
                old,
                new: start..end,
            },
        ));
        next = span.to;
    }
    writer.copy(next..lines.count());
    changed.sort_unstable_by_key(|(edit, _)| *edit);
    let changed = changed.into_iter().map(|(_, changed)| changed);
    (writer.finish(), changed.collect())
}

/// Describes the changes in words.
fn summary(edits: &[Edit], changed: &[Changed]) -> String {
    let mut parts: Vec<_> = edits
        .iter()
        .zip(changed)
        .take(MAX_LISTED)
        .map(|(edit, changed)| describe(edit, changed))
        .collect();
    let left_out = edits.len().saturating_sub(MAX_LISTED);
    match (left_out, edits.is_empty()) {
        (0, true) => "Nothing to do".to_owned(),
        (0, false) => parts.join("; "),
        _ => {
            parts.push(format!("and {left_out} more edits"));
            parts.join("; ")
        }
    }
}

fn describe(edit: &Edit, changed: &Changed) -> String {
    let line = changed.old.start;
    let [old, new] = [&changed.old, &changed.new].map(|range| counted::lines(range.len()));
    match edit {
        Edit::InsertAfter { .. } => format!("Inserted {new} after line {}", line - 1),
        Edit::InsertBefore { .. } | Edit::InsertFirst { .. } => {
            format!("Inserted {new} before line {line}")
        }
        _ if changed.new.is_empty() => format!("Deleted {old} at line {line}"),
        _ if old == new => format!("Replaced {old} at line {line}"),
        _ => format!("Replaced {old} with {new} at line {line}"),
    }
}
