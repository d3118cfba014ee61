//! Finds the text of an edit in a file whose line endings the model was not shown.

use backend_core::text::{Candidate, Edit, EditError, apply};

pub(super) enum Step {
    /// There is nothing to change.
    Done,
    /// The file is empty: write the new text.
    Fill,
    /// Repeat the edit with the line endings of the file.
    Retry(Edit),
    /// Report the reason and the nearest text.
    Fail(String, Vec<Candidate>),
}

/// Decides how to go on after the backend could not apply an edit of `text`.
pub(super) fn next_step(text: &str, old: &str, new: &str) -> Step {
    let found = |count| Step::Fail(format!("text found {count} times (must be unique)"), vec![]);
    if old.is_empty() {
        return match text.chars().count() {
            0 if new.is_empty() => Step::Done,
            0 => Step::Fill,
            // An empty text occurs before each character and at the end.
            count => found(count + 1),
        };
    }
    // Only tests whether the text occurs once, with any replacement that differs.
    let probe = Edit::new(old, format!("{old}."));
    match apply(text, std::slice::from_ref(&probe)) {
        Err(EditError::MultipleMatches { count, .. }) => found(count),
        Ok(_) if old == new => Step::Done,
        // The file has changed since the edit failed.
        Ok(_) => Step::Retry(Edit::new(old, new)),
        Err(EditError::NoMatch { candidates, .. }) => match in_its_line_ends(text, old) {
            Ok(_) if old == new => Step::Done,
            Ok(actual) => Step::Retry(Edit::new(actual, with_ends_of(actual, new))),
            Err(0) => Step::Fail("text not found in file".to_owned(), candidates),
            Err(count) => found(count),
        },
        Err(error) => Step::Fail(error.to_string(), vec![]),
    }
}

/// Returns the only part of `text` that equals `old` after all line endings are
/// normalized to `\n`, or the number of such parts. The model was shown the normalized
/// file.
fn in_its_line_ends<'a>(text: &'a str, old: &str) -> Result<&'a str, usize> {
    if !text.contains('\r') {
        return Err(0);
    }
    let old = normal(old);
    let whole = normal(text);
    // Counted without a list, which could be many times as large as the file.
    let mut starts = whole.match_indices(&old).map(|(start, _)| start);
    let start = starts.next().ok_or(0_usize)?;
    let more = starts.count();
    if more > 0 {
        return Err(more + 1);
    }
    let (from, to) = (original(text, start), original(text, start + old.len()));
    text.get(from..to).ok_or(0)
}

fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Maps byte `at` of the normalized text to its position in `text`.
fn original(text: &str, at: usize) -> usize {
    let mut seen = 0;
    let mut before = ' ';
    for (here, c) in text.char_indices() {
        // A pair counts at its `\r`.
        let is_second = before == '\r' && c == '\n';
        if seen == at && !is_second {
            return here;
        }
        if !is_second {
            seen += c.len_utf8();
        }
        before = c;
    }
    text.len()
}

fn with_ends_of(actual: &str, new: &str) -> String {
    let new = normal(new);
    if actual.contains("\r\n") {
        new.replace('\n', "\r\n")
    } else if actual.contains('\r') {
        new.replace('\n', "\r")
    } else {
        new
    }
}
