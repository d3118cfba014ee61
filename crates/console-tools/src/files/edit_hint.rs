//! Explains a failed edit by showing the lines that were probably meant.

use std::fmt::Write as _;

use backend_core::Edit;
use backend_core::text::{Candidate, EditError, apply};

use super::model_path::ModelPath;
use super::numbered_lines::push_line;
use crate::reply::ToolError;

/// Maximum number of lines shown of one match.
const MATCH_LINES: usize = 20;

/// Approximate maximum size of one match, in bytes. The last line may exceed it.
const MATCH_BYTES: usize = 1_000;

/// Number of lines shown around a match.
const CONTEXT: u64 = 2;

/// Explains why `edits`, which may be `listed`, cannot be applied. `None` if they can.
pub(super) fn failed_edit(
    file: &ModelPath,
    text: &str,
    edits: &[Edit],
    listed: bool,
) -> Option<ToolError> {
    let error = apply(text, edits).err()?;
    let shown = &file.shown;
    let field = |index: usize, name: &str| {
        if listed {
            format!("edits[{index}].{name}")
        } else {
            name.to_owned()
        }
    };
    let old = |index: usize| edits.get(index).map_or("", |edit| edit.old.as_str());
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
            let name = field(*index, "old_string");
            let text = before(text, edits, *index);
            not_found(&name, shown, &text, old(*index), candidates)
        }
        EditError::MultipleMatches {
            index,
            count,
            lines,
            ..
        } => {
            let name = field(*index, "old_string");
            let mut message = format!("{name} occurs {count} times in '{shown}':");
            let text = before(text, edits, *index);
            let height = old(*index).lines().count() as u64;
            push_matches(&mut message, &text, lines, height);
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

/// Returns the text that the edit at `index` applies to, after the earlier edits.
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
        push_lines(&mut message, text, candidate.line, height);
    }
    message.push_str("\nCopy the text exactly, without the line numbers.");
    message
}

/// Appends the lines around each match of `height` lines, none of them twice.
fn push_matches(out: &mut String, text: &str, lines: &[u64], height: u64) {
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
            push_lines(out, text, first, end - first);
        }
        next = next.max(end);
    }
}

/// Appends `height` lines from line `first` on, in the format of `read_file`.
fn push_lines(out: &mut String, text: &str, first: u64, height: u64) {
    let skip = usize::try_from(first - 1).unwrap_or(usize::MAX);
    let height = usize::try_from(height).unwrap_or(usize::MAX);
    let lines = text.lines().skip(skip).take(height.min(MATCH_LINES));
    let start = out.len();
    for (number, line) in (first..).zip(lines) {
        if number > first {
            out.push('\n');
        }
        if out.len() - start > MATCH_BYTES {
            out.push_str("   ...");
            return;
        }
        push_line(out, number, line);
    }
}
