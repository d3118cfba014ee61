//! Adapts the crate `hashline`, which only this module uses.

use std::fmt::Write as _;

use backend_core::limits::EDITS;
use hashline::{
    ApplyOptions, Edit, EditError, EditFields, Format, Stale, TagWidth, View, ViewError,
    ViewOptions,
};

use super::numbered_lines::{Budget, ShownLines};
use crate::args::console::LineEdit;
use crate::counted::counted;
use crate::number_bounds::at_least;
use crate::tracker::count_lines;

/// Target size of the lines in a refusal, in bytes, beside [`LEAST_LINE_BYTES`].
const REFUSAL_BYTES: usize = 4_000;

/// Maximum number of lines in a refusal for one edit: five around either end.
const LINES_SHOWN: usize = 10;

/// Minimum number of bytes shown of a long line in a refusal.
const LEAST_LINE_BYTES: usize = 60;

/// Maximum number of mismatches listed in a refusal.
const MISMATCHES: usize = 20;

/// Formats lines as `N:HH|line`. For an offset past the end, the error is their number.
pub(super) fn render(
    text: &str,
    offset: u64,
    limit: usize,
    budget: Budget,
) -> Result<ShownLines, u64> {
    let options = ViewOptions::default()
        .offset(usize::try_from(offset).unwrap_or(usize::MAX))
        .limit(limit)
        .max_bytes(budget.bytes)
        .format(format(text, budget.line_bytes));
    let view = View::new(text, options).map_err(|error| match error {
        ViewError::PastEnd { lines, .. } => lines as u64,
        _ => 0,
    })?;
    let (shown, count) = budget.join(view.lines().map(|line| {
        let length = line.text.len();
        (line, length)
    }));
    let kept = usize::try_from(count).unwrap_or(usize::MAX);
    let cut = view.lines().take(kept).filter(|line| line.cut_bytes > 0);
    let total = view.total_lines() as u64;
    let end = offset + count;
    Ok(ShownLines {
        text: shown,
        lines: count,
        cut: cut.count() as u64,
        total: Some(total),
        next: (end < total).then_some(end),
    })
}

/// Returns the format for a text. A long text gets longer tags, because in many lines
/// short tags would collide by chance and hide a change.
fn format(text: &str, line_bytes: usize) -> Format {
    let lines = usize::try_from(count_lines(text.as_bytes())).unwrap_or(usize::MAX);
    Format::default()
        .tag_width(TagWidth::recommended(lines))
        .max_line_bytes(line_bytes)
}

#[derive(Debug)]
pub(super) struct Applied {
    pub(super) text: String,
    pub(super) summary: String,
    /// Number of lines that each edit wrote or, if it wrote none, deleted.
    pub(super) lines: Vec<u64>,
    /// The first changed line, counted from 1.
    pub(super) first_line: Option<u64>,
}

/// Applies all edits or none. An error names the fields, which may be `listed`.
pub(super) fn apply(text: &str, edits: &[LineEdit], listed: bool) -> Result<Applied, String> {
    if edits.len() > EDITS {
        let count = edits.len();
        return Err(format!(
            "{count} edits are more than the {EDITS} of one call; split them"
        ));
    }
    let parsed = edits.iter().enumerate().map(|(index, edit)| {
        parse(edit).map_err(|error| format!("{}{error}", name(index, listed)))
    });
    let parsed = parsed.collect::<Result<Vec<_>, _>>()?;
    let lines_shown = LINES_SHOWN.saturating_mul(edits.len()).max(1);
    let line_bytes = (REFUSAL_BYTES / lines_shown).max(LEAST_LINE_BYTES);
    let options = ApplyOptions::default().format(format(text, line_bytes));
    let applied = hashline::apply(text, &parsed, options);
    let applied = applied.map_err(|error| explained(&error, listed))?;
    let changed = applied.changed.iter();
    Ok(Applied {
        lines: changed
            .clone()
            .map(|changed| match changed.new.len() {
                0 => changed.old.len() as u64,
                new => new as u64,
            })
            .collect(),
        first_line: changed.map(|changed| changed.new.start as u64).min(),
        text: applied.text,
        summary: applied.summary,
    })
}

fn name(index: usize, listed: bool) -> String {
    let name = listed.then(|| format!("edits[{index}]: "));
    name.unwrap_or_default()
}

/// Explains why edits are refused, in terms of the tool's fields.
fn explained(error: &EditError, listed: bool) -> String {
    match error {
        EditError::Stale(stale) => stale_text(stale, listed),
        EditError::EndBeforeStart {
            edit, start, end, ..
        } => format!(
            "{}end_line is {end}, before start_line {start}; give the first line as start_line \
             and the last as end_line",
            name(*edit, listed)
        ),
        EditError::NothingToInsert { edit, .. } => format!(
            "{}new_content is empty, there is nothing to insert; give the lines, a blank line is \
             \"\\n\"",
            name(*edit, listed)
        ),
        EditError::Overlap { first, second, .. } => format!(
            "edits[{}] and edits[{}] change the same lines; make one edit of them",
            first.edit, second.edit
        ),
        other => other.to_string(),
    }
}

/// Lists every line that does not match its hash, and the current lines.
fn stale_text(stale: &Stale, listed: bool) -> String {
    let mut text = "nothing was edited; these lines do not match their hashes:".to_owned();
    for wrong in stale.mismatches.iter().take(MISMATCHES) {
        // Writing to a string cannot fail.
        let name = name(wrong.edit, listed);
        let _ = write!(text, "\n- {name}line {}: ", wrong.line);
        let _ = match (wrong.expected, wrong.found) {
            (_, None) => write!(
                text,
                "there are only {}",
                counted(stale.lines as u64, "line")
            ),
            (Some(given), Some(found)) if given != found => {
                write!(text, "the hash given is {given}, the line's is {found}")
            }
            _ => write!(
                text,
                "the hash matches, but the line differs from the text given"
            ),
        };
        if let Some(line) = wrong.moved_to {
            let _ = write!(text, "; the intended line may be line {line} now");
        }
    }
    let left_out = stale.mismatches.len().saturating_sub(MISMATCHES);
    if left_out > 0 {
        let _ = write!(text, "\n- and {left_out} more");
    }
    let current = &stale.current;
    let _ = write!(
        text,
        "\nThe current lines:\n{current}\nEdit again with these numbers and hashes, \
         or read the file again."
    );
    text
}

fn parse(edit: &LineEdit) -> Result<Edit, String> {
    let line = |field: &str, number: i64, least: i64| {
        at_least(field, number, least)
            .map_err(|error| error.to_string())
            .map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    let fields = EditFields {
        start_line: line("start_line", edit.start_line, 0)?,
        start_hash: &edit.start_hash,
        new_content: &edit.new_content,
        end_line: edit
            .end_line
            .map(|number| line("end_line", number, 1))
            .transpose()?,
        end_hash: edit.end_hash.as_deref(),
        insert_after: edit.insert_after,
    };
    Edit::try_from(fields).map_err(|error| error.to_string())
}
