//! Unified diffs in bounded time and space.

use std::fmt::Write as _;
use std::ops::Range;
use std::time::Instant;

use backend_core::ops::ContentHash;

use super::Amount;
use crate::approval::limits::{DIFF_BYTES, DIFF_TIME, EFFECT_BYTES, LINE_BYTES};
use crate::approval::text::{self, Unseen};
use crate::line_diff::{Effort, hunks};

/// Number of context lines on either side of a change.
const CONTEXT: usize = 3;

/// Returns how many characters differ between the common beginning and the common end.
/// Counts bytes if one side is not text.
pub(super) fn changed(old: &[u8], new: &[u8]) -> (Amount, Amount) {
    let mut start = common_prefix(old, new);
    let (old_rest, new_rest) = (&old[start..], &new[start..]);
    let mut end = common_suffix(old_rest, new_rest);
    // A character that differs only in its last byte differs as a whole.
    while start > 0 && (is_inner(old, start) || is_inner(new, start)) {
        start -= 1;
    }
    while end > 0 && (is_inner(old, old.len() - end) || is_inner(new, new.len() - end)) {
        end -= 1;
    }
    let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    match (Amount::of(old), Amount::of(new)) {
        both @ (Amount::Chars(_), Amount::Chars(_)) => both,
        _ => (
            Amount::Bytes(old.len() as u64),
            Amount::Bytes(new.len() as u64),
        ),
    }
}

/// Returns whether the byte at `at` continues a character.
fn is_inner(bytes: &[u8], at: usize) -> bool {
    bytes
        .get(at)
        .is_some_and(|byte| byte & 0b1100_0000 == 0b1000_0000)
}

fn common_prefix(one: &[u8], two: &[u8]) -> usize {
    one.iter().zip(two).take_while(|(a, b)| a == b).count()
}

fn common_suffix(one: &[u8], two: &[u8]) -> usize {
    let pairs = one.iter().rev().zip(two.iter().rev());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Returns the change from `old` to `new` as a unified diff of at most [`EFFECT_BYTES`],
/// or in words if it is too large or not text. Also returns the amount that is missing.
pub(super) fn unified(path: &str, old: Option<&[u8]>, new: &[u8]) -> (String, Option<Unseen>) {
    let before = old.unwrap_or_default();
    if old == Some(new) {
        return ("nothing changes".to_owned(), None);
    }
    let window = Window::new(before, new);
    let (Some(old_text), Some(new_text)) = (
        shown(&before[window.old.clone()]),
        shown(&new[window.new.clone()]),
    ) else {
        let unseen = Unseen {
            lines: new.iter().filter(|byte| **byte == b'\n').count() as u64,
            bytes: new.len() as u64,
        };
        return (in_words(old, new), Some(unseen));
    };
    let name = text::line(path, LINE_BYTES);
    let from = if old.is_some() { &name } else { "/dev/null" };
    let mut diff = format!("--- {from}\n+++ {name}\n");
    write_hunks(&mut diff, old_text, new_text, window.lines_before);
    let (shown, unseen) = text::cut_lines(&diff, EFFECT_BYTES);
    (shown.into_owned(), unseen)
}

/// Returns the text, if it can be shown.
fn shown(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > DIFF_BYTES || bytes.contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

fn in_words(old: Option<&[u8]>, new: &[u8]) -> String {
    let described = |content: &[u8]| {
        let size = Amount::Bytes(content.len() as u64);
        format!("{size} (sha256 {})", ContentHash::of(content))
    };
    let after = described(new);
    match old {
        None => format!("a new file of {after}, which cannot be shown as text"),
        Some(old) => format!(
            "{} become {after}; the change cannot be shown as text",
            described(old)
        ),
    }
}

/// The part of two contents that differs, in whole lines, with context. It is found in
/// linear time, so a small change in a large file can still be shown.
struct Window {
    old: Range<usize>,
    new: Range<usize>,
    lines_before: usize,
}

impl Window {
    fn new(old: &[u8], new: &[u8]) -> Self {
        let prefix = common_prefix(old, new);
        let suffix = common_suffix(&old[prefix..], &new[prefix..]);
        // Common text has the same length in both.
        let start = line_start(old, prefix, CONTEXT);
        let end = old.len() - suffix;
        let suffix = old.len() - line_end(old, end, CONTEXT);
        Self {
            old: start..old.len() - suffix,
            new: start..new.len() - suffix,
            lines_before: old[..start].iter().filter(|byte| **byte == b'\n').count(),
        }
    }
}

/// Returns the start of the line that is `lines` before the one containing `at`.
fn line_start(bytes: &[u8], at: usize, lines: usize) -> usize {
    let mut ends = (0..at).rev().filter(|at| bytes[*at] == b'\n');
    ends.nth(lines).map_or(0, |end| end + 1)
}

/// Returns the end of the line that is `lines` after the one containing `at`.
fn line_end(bytes: &[u8], at: usize, lines: usize) -> usize {
    let mut ends = (at..bytes.len()).filter(|at| bytes[*at] == b'\n');
    ends.nth(lines).map_or(bytes.len(), |end| end + 1)
}

fn write_hunks(to: &mut String, old: &str, new: &str, lines_before: usize) {
    let effort = Effort::Until(Instant::now() + DIFF_TIME);
    for hunk in hunks(old, new, CONTEXT, effort) {
        // Writing to a string cannot fail.
        let _ = writeln!(to, "{}", hunk.header(lines_before));
        for (sign, line) in hunk.lines {
            to.push(sign);
            to.push_str(line);
            if !line.ends_with('\n') {
                to.push_str("\n\\ No newline at end of file\n");
            }
        }
    }
}
