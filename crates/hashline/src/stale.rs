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

/// Checks a line of `edit`, and its anchor if it has one. Returns the mismatch, if there is one.
pub(crate) fn check<'a>(
    edit: usize,
    line: usize,
    anchor: Option<&'a Anchor>,
    lines: &Lines<'_>,
) -> Option<StaleAnchor<'a>> {
    let mut found = None;
    if let Some((text, _)) = line.checked_sub(1).and_then(|at| lines.get(at)) {
        let anchor = anchor?;
        let tag = Tag::of(text, anchor.tag.width());
        if tag == anchor.tag && anchor.full_text().is_none_or(|full| full == text) {
            return None;
        }
        found = Some(tag);
    }
    let mismatch = Mismatch {
        edit,
        line,
        expected: anchor.map(|anchor| anchor.tag),
        found,
        moved_to: None,
    };
    Some(StaleAnchor { mismatch, anchor })
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
    by_text: HashMap<&'a str, Found>,
    by_tag: HashMap<Tag, Found>,
}

/// How often a line was found, and where last.
#[derive(Default)]
struct Found {
    times: usize,
    line: usize,
}

impl<'a> MovedLines<'a> {
    fn find(stale: &[StaleAnchor<'a>], text: &str) -> Self {
        let mut moved = Self::default();
        for anchor in stale.iter().filter_map(|stale| stale.anchor) {
            if let Some(full) = anchor.full_text() {
                moved.by_text.insert(full, Found::default());
            } else if anchor.tag.width() == TagWidth::Four {
                // Two digits alone match some line of most texts.
                moved.by_tag.insert(anchor.tag, Found::default());
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
                found.times += 1;
                found.line = line.number;
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
        found
            .filter(|found| found.times == 1)
            .map(|found| found.line)
    }
}
