//! Checks anchors, and searches for the lines that stale anchors refer to.

use std::collections::HashMap;

use crate::anchor::Anchor;
use crate::error::{Mismatch, Stale};
use crate::excerpt::excerpt;
use crate::lines::Lines;
use crate::tag::{Tag, TagWidth};
use crate::view::{Format, View, ViewOptions};

/// A mismatch, and the anchor to search for elsewhere.
pub(crate) struct StaleAnchor<'a> {
    mismatch: Mismatch,
    anchor: Option<&'a Anchor>,
}

/// Checks an anchor of `edit`. Returns the mismatch, if there is one.
pub(crate) fn check<'a>(
    edit: usize,
    anchor: &'a Anchor,
    lines: &Lines<'_>,
) -> Option<StaleAnchor<'a>> {
    let Some((text, _)) = anchor.line.checked_sub(1).and_then(|at| lines.get(at)) else {
        return check_exists(edit, anchor.line, Some(anchor), lines);
    };
    let found = Tag::of(text, anchor.tag.width());
    let is_same = found == anchor.tag && anchor.full_text().is_none_or(|full| full == text);
    (!is_same).then(|| StaleAnchor::new(edit, anchor.line, Some(anchor), Some(found)))
}

/// Checks a line of `edit` that was given by its number alone.
pub(crate) fn check_line(
    edit: usize,
    line: usize,
    lines: &Lines<'_>,
) -> Option<StaleAnchor<'static>> {
    check_exists(edit, line, None, lines)
}

fn check_exists<'a>(
    edit: usize,
    line: usize,
    anchor: Option<&'a Anchor>,
    lines: &Lines<'_>,
) -> Option<StaleAnchor<'a>> {
    let exists = (1..=lines.count()).contains(&line);
    (!exists).then(|| StaleAnchor::new(edit, line, anchor, None))
}

impl<'a> StaleAnchor<'a> {
    fn new(edit: usize, line: usize, anchor: Option<&'a Anchor>, found: Option<Tag>) -> Self {
        let expected = anchor.map(|anchor| anchor.tag);
        let mismatch = Mismatch {
            edit,
            line,
            expected,
            found,
            moved_to: None,
        };
        Self { mismatch, anchor }
    }
}

/// Creates the error for all `stale` lines in edits of `text`, which has these `lines`. It shows
/// `context` lines around each.
pub(crate) fn stale_error(
    stale: &[StaleAnchor<'_>],
    text: &str,
    lines: &Lines<'_>,
    context: usize,
    format: Format,
) -> Stale {
    let moved = MovedLines::find(stale, text);
    let mismatches: Vec<_> = stale
        .iter()
        .map(|stale| Mismatch {
            moved_to: stale.anchor.and_then(|anchor| moved.position_of(anchor)),
            ..stale.mismatch
        })
        .collect();
    let named = mismatches.iter().flat_map(|mismatch| {
        let line = mismatch.line.clamp(1, lines.count());
        [Some(line), mismatch.moved_to]
    });
    let places = named.flatten().map(|line| line - 1..line);
    Stale {
        current: excerpt(lines, places, context, format),
        lines: lines.count(),
        mismatches,
    }
}

/// The current positions of lines that stale anchors may refer to.
#[derive(Default)]
struct MovedLines<'a> {
    by_text: HashMap<&'a str, LinePosition>,
    by_tag: HashMap<Tag, LinePosition>,
}

#[derive(Clone, Copy)]
enum LinePosition {
    Nowhere,
    At(usize),
    ManyTimes,
}

impl<'a> MovedLines<'a> {
    fn find(stale: &[StaleAnchor<'a>], text: &str) -> Self {
        let mut moved = Self::default();
        for anchor in stale.iter().filter_map(|stale| stale.anchor) {
            if let Some(full) = anchor.full_text() {
                moved.by_text.insert(full, LinePosition::Nowhere);
            } else if anchor.tag.width() == TagWidth::Four {
                // Two digits alone match some line of most texts.
                moved.by_tag.insert(anchor.tag, LinePosition::Nowhere);
            }
        }
        if moved.by_text.is_empty() && moved.by_tag.is_empty() {
            return moved;
        }
        let mut options = ViewOptions::everything();
        options.format.tag_width = TagWidth::Four;
        let lines = View::new(text, options).map(|view| view.lines());
        for line in lines.into_iter().flatten() {
            let same_text = moved.by_text.get_mut(line.text);
            let same_tag = moved.by_tag.get_mut(&line.tag);
            for found in same_text.into_iter().chain(same_tag) {
                found.add(line.number);
            }
        }
        moved
    }

    /// Returns the current position of the line of a stale anchor.
    fn position_of(&self, anchor: &Anchor) -> Option<usize> {
        let found = match anchor.full_text() {
            Some(full) => self.by_text.get(full),
            None => self.by_tag.get(&anchor.tag),
        };
        match found {
            Some(LinePosition::At(line)) => Some(*line),
            _ => None,
        }
    }
}

impl LinePosition {
    fn add(&mut self, line: usize) {
        *self = match self {
            Self::Nowhere => Self::At(line),
            _ => Self::ManyTimes,
        };
    }
}
