//! Renders the lines around some places of a text.

use std::ops::Range;

use crate::lines::Lines;
use crate::tag::Tag;
use crate::view::{Format, Line};

/// Most lines of an excerpt: enough for twenty places, few enough to read.
const MAX_LINES: usize = 100;

/// Renders the lines in `places`, counted from 0, and `context` lines around each.
///
/// Places may overlap and reach beyond the end. A line of dots marks lines left out between
/// two places.
pub(crate) fn excerpt(
    lines: &Lines<'_>,
    places: impl Iterator<Item = Range<usize>>,
    context: usize,
    format: Format,
) -> String {
    let mut places: Vec<_> = places
        .map(|place| {
            let start = place.start.saturating_sub(context);
            let end = place.end.saturating_add(context).min(lines.count());
            // A place beyond the end shows the last lines.
            start.min(end.saturating_sub(1))..end
        })
        .collect();
    places.sort_unstable_by_key(|place| place.start);

    let mut out = String::new();
    let mut left = MAX_LINES;
    let mut left_out = 0;
    let mut next = 0;
    for place in places {
        let start = place.start.max(next);
        let shown = place.end.saturating_sub(start).min(left);
        if shown > 0 && !out.is_empty() && start > next {
            out.push_str("\n...");
        }
        for index in start..start + shown {
            push_line(&mut out, lines, index, format);
        }
        left -= shown;
        left_out += place.end.saturating_sub(start + shown);
        next = place.end.max(next);
    }
    if left_out > 0 {
        out.push_str(&format!("\n... ({left_out} more lines)"));
    }
    out
}

fn push_line(out: &mut String, lines: &Lines<'_>, index: usize, format: Format) {
    let Some((text, _)) = lines.get(index) else {
        return;
    };
    if !out.is_empty() {
        out.push('\n');
    }
    let tag = Tag::of(text, format.tag_width);
    Line::new(index + 1, text, tag, format).render_into(out);
}

#[cfg(test)]
mod tests {
    use super::excerpt;
    use crate::lines::Lines;
    use crate::view::Format;

    fn shown(count: usize, places: &[(usize, usize)], context: usize) -> Vec<String> {
        let text = "\n".repeat(count);
        let lines = Lines::new(&text);
        let places = places.iter().map(|(start, end)| *start..*end);
        let out = excerpt(&lines, places, context, Format::default());
        out.lines().map(|line| line.replace(":d4|", "")).collect()
    }

    #[test]
    fn places_are_merged_and_gaps_marked() {
        assert_eq!(shown(9, &[(1, 2)], 0), ["2"]);
        assert_eq!(shown(9, &[(0, 1), (8, 9)], 1), ["1", "2", "...", "8", "9"]);
        assert_eq!(
            shown(9, &[(5, 6), (2, 3)], 1),
            ["2", "3", "4", "5", "6", "7"]
        );
        assert_eq!(
            shown(9, &[(1, 8), (2, 3), (4, 5)], 0),
            ["2", "3", "4", "5", "6", "7", "8"]
        );
        assert_eq!(shown(9, &[(4, 4)], 1), ["4", "5"]);
        assert_eq!(shown(3, &[(70, 71)], 1), ["3"]);
        assert_eq!(shown(3, &[(0, 0)], 0), Vec::<String>::new());
        assert_eq!(shown(3, &[(0, usize::MAX)], usize::MAX), ["1", "2", "3"]);
    }

    #[test]
    fn an_excerpt_has_an_end() {
        let lines = shown(1_000, &[(0, 500), (400, 600)], 0);
        assert_eq!(lines.len(), 101);
        assert_eq!(lines[100], "... (500 more lines)");
    }
}
