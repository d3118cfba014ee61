//! Compares texts line by line, for the diffs that approvers and models see.

use std::ops::Range;
use std::time::Instant;

use similar::algorithms::{Capture, Compact, Replace, myers};
use similar::{DiffOp, group_diff_ops};

/// Bounds the time of a comparison. Lines that are not compared count as replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// Compares until this time.
    Until(Instant),
    /// Compares if there are at most this many lines between the first and the last
    /// change, of both texts together.
    Lines(usize),
}

/// Changes that are close together, with the unchanged lines around them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hunk<'a> {
    /// The lines with their line ends, each after its sign: a space, `-` or `+`.
    pub lines: Vec<(char, &'a str)>,
    old: Range<usize>,
    new: Range<usize>,
}

impl<'a> Hunk<'a> {
    fn new(old: &[&'a str], new: &[&'a str], ops: &[DiffOp]) -> Option<Self> {
        let (first, last) = (ops.first()?, ops.last()?);
        let mut lines = Vec::new();
        let mut push = |sign: char, all: &[&'a str], range: Range<usize>| {
            let part: &[&'a str] = all.get(range).unwrap_or_default();
            lines.extend(part.iter().map(|line| (sign, *line)));
        };
        for op in ops {
            if let DiffOp::Equal { .. } = op {
                push(' ', old, op.old_range());
            } else {
                push('-', old, op.old_range());
                push('+', new, op.new_range());
            }
        }
        Some(Self {
            lines,
            old: first.old_range().start..last.old_range().end,
            new: first.new_range().start..last.new_range().end,
        })
    }

    /// Returns the header, as in `@@ -1,3 +1,4 @@`, if `lines_before` precede the texts.
    pub fn header(&self, lines_before: usize) -> String {
        let range = |lines: &Range<usize>| match (lines_before + lines.start, lines.len()) {
            // An empty range begins at the line before it.
            (start, 0) => format!("{start},0"),
            (start, 1) => format!("{}", start + 1),
            (start, len) => format!("{},{len}", start + 1),
        };
        format!("@@ -{} +{} @@", range(&self.old), range(&self.new))
    }
}

/// Returns the changes from `old` to `new`, with `context` unchanged lines around each.
///
/// ```
/// use permissions::line_diff::{Effort, hunks};
/// let hunks = hunks("a\nb\n", "a\nc\n", 1, Effort::Lines(100));
/// assert_eq!(hunks[0].header(0), "@@ -1,2 +1,2 @@");
/// assert_eq!(hunks[0].lines, [(' ', "a\n"), ('-', "b\n"), ('+', "c\n")]);
/// ```
pub fn hunks<'a>(old: &'a str, new: &'a str, context: usize, effort: Effort) -> Vec<Hunk<'a>> {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let new: Vec<&str> = new.split_inclusive('\n').collect();
    let ops = match effort {
        Effort::Until(time) => compare(&old, 0..old.len(), &new, 0..new.len(), Some(time)),
        Effort::Lines(most) => compare_at_most(&old, &new, most),
    };
    let groups = group_diff_ops(ops, context).into_iter();
    groups
        .filter_map(|ops| Hunk::new(&old, &new, &ops))
        .collect()
}

/// Calls the algorithm itself, since the crate's text interface brings in all of them.
fn compare(
    old: &[&str],
    old_range: Range<usize>,
    new: &[&str],
    new_range: Range<usize>,
    deadline: Option<Instant>,
) -> Vec<DiffOp> {
    let mut ops = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff_deadline(&mut ops, old, old_range, new, new_range, deadline);
    ops.into_inner().into_inner().into_ops()
}

/// Compares only from the first to the last differing line, and only if that is at most
/// `most` lines of both texts together.
fn compare_at_most(old: &[&str], new: &[&str], most: usize) -> Vec<DiffOp> {
    let same = |(old, new): &(&&str, &&str)| old == new;
    let before = old.iter().zip(new).take_while(same).count();
    let rest = old.iter().skip(before).rev();
    let after = rest
        .zip(new.iter().skip(before).rev())
        .take_while(same)
        .count();
    let old_end = old.len() - after;
    let new_end = new.len() - after;
    let equal = |old_index, new_index, len| DiffOp::Equal {
        old_index,
        new_index,
        len,
    };
    let mut ops = vec![equal(0, 0, before)];
    if old_end + new_end - 2 * before <= most {
        ops.extend(compare(old, before..old_end, new, before..new_end, None));
    } else {
        ops.push(DiffOp::Replace {
            old_index: before,
            old_len: old_end - before,
            new_index: before,
            new_len: new_end - before,
        });
    }
    ops.push(equal(old_end, new_end, after));
    ops.retain(|op| !op.old_range().is_empty() || !op.new_range().is_empty());
    ops
}
