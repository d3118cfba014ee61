//! Formats the changes between two texts as a short unified diff.
//!
//! Invariants: the time is bounded by the length of the texts plus a constant, and the
//! diff is never longer than the caller allows, whatever the texts are.

use std::fmt::Write as _;

use permissions::line_diff::{Effort, hunks};

use crate::counted::counted;

/// Number of unchanged lines around a change.
const CONTEXT: usize = 2;

/// Maximum number of lines between the first and the last change, of both texts
/// together, that are compared line by line. Longer ranges are shown as replaced.
const COMPARED_LINES: usize = 3_000;

/// Maximum number of bytes shown of a line.
const LINE_BYTES: usize = 300;

/// Compares two texts line by line. The diff consists of hunks with `@@` headers, and
/// lines that begin with a space, `-` or `+`. It has at most `max_bytes`, plus a note if
/// it was truncated.
pub(super) fn diff(old: &str, new: &str, max_bytes: usize) -> String {
    let mut out = Writer {
        text: String::new(),
        max_bytes,
        left_out: 0,
    };
    for hunk in hunks(old, new, CONTEXT, Effort::Lines(COMPARED_LINES)) {
        if out.left_out == 0 {
            let _ = writeln!(out.text, "{}", hunk.header(0));
        }
        for (sign, line) in hunk.lines {
            out.line(sign, line);
        }
    }
    out.finish()
}

struct Writer {
    text: String,
    max_bytes: usize,
    /// Number of lines that did not fit.
    left_out: usize,
}

impl Writer {
    fn line(&mut self, sign: char, line: &str) {
        if self.text.len() >= self.max_bytes {
            self.left_out += 1;
            return;
        }
        let body = line.strip_suffix('\n').unwrap_or(line);
        let shown = &body[..body.floor_char_boundary(LINE_BYTES)];
        self.text.push(sign);
        self.text
            .push_str(shown.strip_suffix('\r').unwrap_or(shown));
        if shown.len() < body.len() {
            let _ = write!(
                self.text,
                " [... {}]",
                counted((body.len() - shown.len()) as u64, "more byte")
            );
        }
        self.text.push('\n');
        if body.len() == line.len() {
            self.text.push_str("\\ No newline at end of file\n");
        }
    }

    fn finish(mut self) -> String {
        if self.left_out > 0 {
            let _ = writeln!(
                self.text,
                "... ({} of the diff)",
                counted(self.left_out as u64, "more line")
            );
        }
        self.text.truncate(self.text.trim_end_matches('\n').len());
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(old: &str, new: &str) -> String {
        diff(old, new, 10_000)
    }

    #[test]
    fn hunks_have_line_numbers_of_both_texts() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let new = "1\n2\n3\nfour\n5\n6\n7\n8\n9\n10\n";
        assert_eq!(
            of(old, new),
            "@@ -2,5 +2,5 @@\n 2\n 3\n-4\n+four\n 5\n 6\n@@ -8,2 +8,3 @@\n 8\n 9\n+10"
        );
        assert_eq!(of("", "a\n"), "@@ -0,0 +1 @@\n+a");
        assert_eq!(of("a\n", ""), "@@ -1 +0,0 @@\n-a");
        assert_eq!(of("a\n", "a\n"), "");
    }

    #[test]
    fn a_missing_final_newline_is_a_change() {
        assert_eq!(
            of("a\n", "a"),
            "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file"
        );
    }

    #[test]
    fn what_is_too_long_is_cut_and_says_so() {
        let old = "x".repeat(1_000);
        let text = of(&old, "");
        assert!(text.contains("[... 700 more bytes]"), "{text}");
        let new = "line\n".repeat(100_000);
        let cut = diff("", &new, 1_000);
        assert!(cut.len() < 1_100, "{}", cut.len());
        assert!(cut.starts_with("@@ -0,0 +1,100000 @@\n"), "{cut}");
        assert!(cut.ends_with(" more lines of the diff)"), "{cut}");
    }

    #[test]
    fn texts_without_anything_in_common_take_no_longer() {
        let old: String = (0..200_000).map(|n| format!("a{n}\n")).collect();
        let new: String = (0..200_000).map(|n| format!("b{n}\n")).collect();
        let cut = diff(&old, &new, 500);
        assert!(cut.starts_with("@@ -1,200000 +1,200000 @@\n"), "{cut}");
    }

    proptest! {
        #[test]
        fn the_counts_add_up(old in "[ab\n]{0,60}", new in "[ab\n\r]{0,60}") {
            let found = diff(&old, &new, usize::MAX);
            let lines = |text: &str| text.split_inclusive('\n').count();
            let signed = |sign| found.lines().filter(|line| line.starts_with(sign)).count();
            prop_assert_eq!(lines(&old) + signed('+'), lines(&new) + signed('-'));
            prop_assert_eq!(found.is_empty(), old == new);
        }
    }
}
