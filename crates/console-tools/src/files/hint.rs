//! What a failed edit is answered with: the lines that were probably meant.

use std::fmt::Write as _;

use backend_core::Edit;
use backend_core::text::{Candidate, EditError, apply};

use super::Target;
use super::text::push_line;
use crate::ToolError;

/// Most lines shown of one place.
const PLACE_LINES: usize = 20;

/// Most bytes shown of one place, give or take a line.
const PLACE_BYTES: usize = 1_000;

/// Lines shown around a place where the text occurs.
const CONTEXT: u64 = 2;

/// Why `edits` cannot be applied to `text`; `None` if they can. `listed` says
/// whether they were given as a list.
pub(super) fn failed_edit(
    file: &Target,
    text: &str,
    edits: &[Edit],
    listed: bool,
) -> Option<ToolError> {
    let error = apply(text, edits).err()?;
    let shown = &file.shown;
    let field = |index: usize, name: &str| match listed {
        true => format!("edits[{index}].{name}"),
        false => name.to_owned(),
    };
    let message = match &error {
        EditError::EmptyOld { index, .. } => format!(
            "{} is empty; copy the text to replace from '{shown}'",
            field(*index, "old_string")
        ),
        EditError::NoChange { index, .. } => format!(
            "{} is the same as {}; change it or leave the edit out",
            field(*index, "new_string"),
            field(*index, "old_string")
        ),
        EditError::NoMatch {
            index, candidates, ..
        } => {
            let old = edits.get(*index).map_or("", |edit| edit.old.as_str());
            let name = field(*index, "old_string");
            not_found(&name, shown, &before(text, edits, *index), old, candidates)
        }
        EditError::MultipleMatches {
            index,
            count,
            lines,
            ..
        } => {
            let old = edits.get(*index).map_or("", |edit| edit.old.as_str());
            let mut message = format!(
                "{} occurs {count} times in '{shown}':",
                field(*index, "old_string")
            );
            let text = before(text, edits, *index);
            places(&mut message, &text, lines, old.lines().count() as u64);
            if lines.len() < *count {
                message.push_str("\n...");
            }
            message.push_str("\nAdd lines around it until it occurs once, or set replace_all.");
            message
        }
        other => format!("'{shown}': {other}"),
    };
    Some(ToolError::fixable(message))
}

/// The text that the edit at `index` met: with the edits before it.
fn before(text: &str, edits: &[Edit], index: usize) -> String {
    match edits.get(..index) {
        None | Some([]) => text.to_owned(),
        Some(earlier) => apply(text, earlier).map_or_else(|_| text.to_owned(), |done| done.text),
    }
}

fn not_found(name: &str, shown: &str, text: &str, old: &str, candidates: &[Candidate]) -> String {
    if candidates.is_empty() {
        return format!(
            "{name} was not found in '{shown}', nor anything like it; read the file again and \
             copy the text exactly"
        );
    }
    let mut message = format!("{name} was not found in '{shown}'. Nearest lines:");
    let height = old.trim_matches('\n').lines().count().max(1) as u64;
    for candidate in candidates {
        // Writing to a string cannot fail.
        let _ = write!(message, "\n({})\n", candidate.why);
        place(&mut message, text, candidate.line, height);
    }
    message.push_str("\nCopy the text exactly, without the line numbers.");
    message
}

/// Appends the lines around each place where a text of `height` lines occurs, none
/// of them twice, with a mark where some between them are left out.
fn places(out: &mut String, text: &str, lines: &[u64], height: u64) {
    let past_end = text.lines().count() as u64 + 1;
    let mut next = 1;
    for line in lines {
        let first = line.saturating_sub(CONTEXT).max(next);
        let end = (line + height + CONTEXT).min(past_end);
        if next > 1 && first > next {
            out.push_str("\n   ...");
        }
        if end > first {
            out.push('\n');
            place(out, text, first, end - first);
        }
        next = next.max(end);
    }
}

/// Appends `height` lines from line `first` on, as read_file shows them.
fn place(out: &mut String, text: &str, first: u64, height: u64) {
    let skip = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let height = usize::try_from(height).unwrap_or(usize::MAX);
    let lines = text.lines().skip(skip).take(height.min(PLACE_LINES));
    let start = out.len();
    for (number, line) in (first..).zip(lines) {
        if number > first {
            out.push('\n');
        }
        if out.len() - start > PLACE_BYTES {
            out.push_str("   ...");
            return;
        }
        push_line(out, number, line);
    }
}
