//! Properties of any text and any edits.
use hashline::{
    Anchor, ApplyOptions, Edit, EditError, RangeEnd, Tag, TagWidth, View, ViewOptions, apply,
    render,
};
use proptest::prelude::*;

/// Texts with few kinds of lines, so that lines are often equal, and all kinds of line ends.
fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a",
        "b",
        "é",
        "|",
        ":",
        " ",
        "\r",
        "\n",
        "\n",
        "\r\n",
        "\u{2028}",
        "x\n",
        "long line\n",
    ]);
    let mark = prop::sample::select(vec!["", "", "\u{feff}"]);
    (mark, prop::collection::vec(piece, 0..30))
        .prop_map(|(mark, pieces)| mark.to_owned() + &pieces.concat())
}

/// The content of an edit: `text()` without a mark.
fn content() -> impl Strategy<Value = String> {
    text().prop_map(|text| text.replace('\u{feff}', ""))
}

/// Splits a text into lines without their ends. It is the reference for the crate's own code, so
/// it shares none with it.
fn lines_of(text: &str) -> Vec<String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines: Vec<_> = text.split('\n').map(str::to_owned).collect();
    let last = lines.pop().unwrap();
    for line in &mut lines {
        if line.ends_with('\r') {
            line.pop();
        }
    }
    if !last.is_empty() {
        lines.push(last);
    }
    lines
}

/// Returns the lines of an edit's content, of which the last may lack its `\n`.
fn content_lines(content: &str) -> Vec<String> {
    if content.ends_with('\r') {
        lines_of(&format!("{content}\n"))
    } else {
        lines_of(content)
    }
}

/// A planned edit: which line, how many lines, what kind, and the content.
type Plan = (prop::sample::Index, usize, u8, String);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let plan = (any::<prop::sample::Index>(), 1..4_usize, 0..5_u8, content());
    prop::collection::vec(plan, 0..4)
}

/// Turns `plans` into edits of a text with these shown lines.
fn edits(shown: &[String], plans: &[Plan]) -> Vec<Edit> {
    let anchor = |line: usize| {
        let width = if line.is_multiple_of(2) {
            TagWidth::Two
        } else {
            TagWidth::Four
        };
        Anchor::new(line, Tag::of(&shown[line - 1], width))
    };
    let edit = |(place, length, kind, content): &Plan| {
        let line = place.index(shown.len()) + 1;
        let last = (line + length - 1).min(shown.len());
        let end = match length {
            1 => None,
            2 => Some(RangeEnd::Line(last)),
            _ => Some(anchor(last).into()),
        };
        let start = anchor(line);
        let content = content.clone();
        match kind {
            0 => Edit::Replace {
                start,
                end,
                content,
            },
            1 => Edit::Delete { start, end },
            2 => Edit::InsertAfter {
                anchor: start,
                content,
            },
            3 => Edit::InsertBefore {
                anchor: start,
                content,
            },
            _ => Edit::InsertFirst { content },
        }
    };
    plans.iter().map(edit).collect()
}

/// Returns the lines that an edit removes, counted from 0, and those it adds.
fn effect(edit: &Edit) -> (std::ops::Range<usize>, Vec<String>) {
    let last = |start: &Anchor, end: &Option<RangeEnd>| match end {
        Some(RangeEnd::Line(line)) => *line,
        Some(RangeEnd::Anchor(anchor)) => anchor.line,
        _ => start.line,
    };
    match edit {
        Edit::Replace {
            start,
            end,
            content,
        } => (start.line - 1..last(start, end), content_lines(content)),
        Edit::Delete { start, end } => (start.line - 1..last(start, end), Vec::new()),
        Edit::InsertAfter { anchor, content } => (anchor.line..anchor.line, content_lines(content)),
        Edit::InsertBefore { anchor, content } => {
            (anchor.line - 1..anchor.line - 1, content_lines(content))
        }
        Edit::InsertFirst { content } => (0..0, content_lines(content)),
        _ => unreachable!("no other edits are made here"),
    }
}

/// Returns the lines after `edits`. They are applied from the last place to the first, and at one
/// place from the last edit to the first, so that no edit moves the lines of another.
fn expected(mut lines: Vec<String>, edits: &[Edit]) -> Vec<String> {
    let mut effects: Vec<_> = edits.iter().map(effect).collect();
    effects.reverse();
    effects
        .sort_by_key(|(range, _)| (std::cmp::Reverse(range.start), std::cmp::Reverse(range.end)));
    let count = lines.len();
    for (range, new) in effects {
        // An empty text has no line, but shows one.
        lines.splice(range.start.min(count)..range.end.min(count), new);
    }
    lines
}

fn overlaps(edits: &[Edit]) -> bool {
    let ranges: Vec<_> = edits.iter().map(|edit| effect(edit).0).collect();
    let is_inside = |one: &std::ops::Range<usize>, other: &std::ops::Range<usize>| {
        if one.is_empty() {
            other.start < one.start && one.start < other.end
        } else {
            !other.is_empty() && one.start < other.end && other.start < one.end
        }
    };
    (0..ranges.len()).any(|one| {
        (0..ranges.len()).any(|other| one != other && is_inside(&ranges[one], &ranges[other]))
    })
}

fn shown_lines(text: &str) -> Vec<String> {
    let mut shown = lines_of(text);
    if shown.is_empty() {
        shown.push(String::new());
    }
    shown
}

/// Returns lines with their ends, for comparing bytes.
fn with_ends(text: &str) -> Vec<&str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.split_inclusive('\n').collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn editing_nothing_is_the_identity(text in text()) {
        let applied = apply(&text, &[], ApplyOptions::default()).unwrap();
        prop_assert_eq!(applied.text, text);
    }

    #[test]
    fn what_is_shown_can_be_parsed_and_applied(text in text(), four in any::<bool>()) {
        let mut options = ViewOptions::everything();
        options.format.tag_width = if four { TagWidth::Four } else { TagWidth::Two };
        let view = View::new(&text, options).unwrap();
        let rendered = view.to_string();
        if !four {
            prop_assert_eq!(&rendered, &render(&text));
        }
        let mut edits = Vec::new();
        for (line, shown) in rendered.split('\n').zip(shown_lines(&text)) {
            let start: Anchor = line.parse().unwrap();
            prop_assert_eq!(start.line, edits.len() + 1);
            prop_assert_eq!(start.tag, Tag::of(&shown, options.format.tag_width));
            prop_assert_eq!(start.text.as_deref(), Some(shown.as_str()));
            // With only `\n`, a line that ends with `\r` would change.
            let content = format!("{shown}\r\n");
            edits.push(Edit::Replace { start, end: None, content });
        }
        prop_assert_eq!(edits.len(), view.total_lines());
        let applied = apply(&text, &edits, ApplyOptions::default()).unwrap();
        let mark = text.strip_prefix('\u{feff}').map_or("", |_| "\u{feff}");
        if text != mark {
            prop_assert_eq!(&applied.text, &text);
        }
    }

    #[test]
    fn edits_do_what_they_do_to_a_list_of_lines(text in text(), plans in plans()) {
        let edits = edits(&shown_lines(&text), &plans);
        let is_nothing = |edit: &Edit| match edit {
            Edit::InsertAfter { content, .. }
            | Edit::InsertBefore { content, .. }
            | Edit::InsertFirst { content } => content.is_empty(),
            _ => false,
        };
        match apply(&text, &edits, ApplyOptions::default()) {
            Err(EditError::NothingToInsert { edit, .. }) => prop_assert!(is_nothing(&edits[edit])),
            Err(EditError::Overlap { .. }) => prop_assert!(overlaps(&edits)),
            Err(error) => prop_assert!(false, "refused: {}", error),
            Ok(applied) => {
                prop_assert!(!overlaps(&edits) && !edits.iter().any(is_nothing));
                let after = lines_of(&applied.text);
                prop_assert_eq!(&after, &expected(lines_of(&text), &edits));
                prop_assert_eq!(applied.text.starts_with('\u{feff}'), text.starts_with('\u{feff}'));
                for (edit, changed) in edits.iter().zip(&applied.changed) {
                    let (old, new) = effect(edit);
                    prop_assert_eq!(&changed.old, &(old.start + 1..old.end + 1));
                    let now = &after[changed.new.start - 1..changed.new.end - 1];
                    prop_assert_eq!(now, &new[..]);
                }
            }
        }
    }

    #[test]
    fn what_is_not_edited_keeps_its_bytes(text in text(), plans in plans()) {
        let edits = edits(&shown_lines(&text), &plans);
        let Ok(applied) = apply(&text, &edits, ApplyOptions::default()) else {
            return Ok(());
        };
        let (before, after) = (with_ends(&text), with_ends(&applied.text));
        let mut changed: Vec<_> = applied.changed.iter().collect();
        changed.sort_by_key(|changed| (changed.old.start, changed.old.end, changed.new.start));
        let (mut old, mut new) = (0, 0);
        let mut kept = Vec::new();
        for change in changed {
            kept.extend((old..change.old.start - 1).zip(new..change.new.start - 1));
            (old, new) = (change.old.end - 1, change.new.end - 1);
        }
        kept.extend((old..before.len()).zip(new..after.len()));
        for (old, new) in kept {
            let is_last = old + 1 == before.len() || new + 1 == after.len();
            if is_last {
                // Only a line end may have been added or removed.
                let (mut long, mut short) = (before[old], after[new]);
                if long.len() <= short.len() {
                    std::mem::swap(&mut long, &mut short);
                }
                prop_assert!(matches!(long.strip_prefix(short), Some("" | "\n" | "\r\n")));
            } else {
                prop_assert_eq!(before[old], after[new]);
            }
        }
        // If both texts have lines, both or neither end with a line end.
        let last_is_empty = lines_of(&applied.text).last().is_some_and(String::is_empty);
        if !before.is_empty() && !after.is_empty() && !last_is_empty {
            prop_assert_eq!(applied.text.ends_with('\n'), text.ends_with('\n'));
        }
    }

    #[test]
    fn a_stale_edit_can_be_made_with_what_the_error_shows(
        text in text(), other in text(), place in any::<prop::sample::Index>(),
    ) {
        // Lines are compared by tag, as for an anchor without text: two lines may share one.
        let tags = |text: &str| -> Vec<Tag> {
            let lines = shown_lines(text);
            lines.iter().map(|line| Tag::of(line, TagWidth::Four)).collect()
        };
        let (shown, current) = (tags(&other), tags(&text));
        let line = place.index(shown.len()) + 1;
        let tag = shown[line - 1];
        let edit = |start| Edit::Delete { start, end: None };
        let options = ApplyOptions::default();
        match apply(&text, &[edit(Anchor::new(line, tag))], options) {
            Ok(_) => prop_assert_eq!(current[line - 1], tag),
            Err(EditError::Stale(stale)) => {
                prop_assert_ne!(current.get(line - 1), Some(&tag));
                let same: Vec<_> = (1..=current.len()).filter(|n| current[n - 1] == tag).collect();
                let unique = if let [one] = same[..] { Some(one) } else { None };
                prop_assert_eq!(stale.mismatches[0].moved_to, unique);
                for fresh in stale.current.split('\n').filter(|line| *line != "...") {
                    let fresh: Anchor = fresh.parse().unwrap();
                    prop_assert!(apply(&text, &[edit(fresh)], options).is_ok());
                }
            }
            Err(error) => prop_assert!(false, "refused: {}", error),
        }
    }

    #[test]
    fn nothing_panics(
        text in any::<String>(),
        anchors in prop::collection::vec((any::<String>(), any::<usize>(), any::<String>()), 0..4),
        offset in any::<usize>(), limit in any::<usize>(), width in any::<usize>(), context in any::<usize>(),
    ) {
        let format = hashline::Format::default().max_line_bytes(width);
        let options = ViewOptions::default().offset(offset).limit(limit).max_bytes(width).format(format);
        if let Ok(view) = View::new(&text, options) {
            prop_assert!(view.to_string().starts_with(&view.first_line().to_string()));
        }
        let mut edits = Vec::new();
        for (anchor, line, content) in anchors {
            prop_assert!(anchor.parse::<Tag>().is_err() || anchor.len() <= 4);
            let _ = anchor.parse::<Anchor>();
            let start = Anchor::new(line, Tag::of(&content, TagWidth::Four));
            edits.push(Edit::Replace { start, end: Some(usize::MAX.into()), content });
        }
        let options = ApplyOptions::default().context(context).format(format);
        if let Err(error) = apply(&text, &edits, options) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
