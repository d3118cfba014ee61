//! Requests larger than any model should send: they work, and messages stay short.
use hashline::{Anchor, ApplyOptions, Edit, EditError, Tag, TagWidth, apply};

const LINES: usize = 3_000;

fn numbered() -> String {
    (1..=LINES).map(|line| format!("line {line}\n")).collect()
}

/// Creates an edit that replaces the line with this number if it is `text`.
fn replace(line: usize, text: &str) -> Edit {
    let mut start = Anchor::new(line, Tag::of(text, TagWidth::Four));
    start.text = Some(text.to_owned());
    Edit::Replace {
        start,
        end: None,
        content: format!("new {line}\nand more"),
    }
}

#[test]
fn thousands_of_edits_apply_in_any_order() {
    let edits: Vec<_> = (1..=LINES)
        .rev()
        .map(|line| replace(line, &format!("line {line}")))
        .collect();
    let applied = apply(&numbered(), &edits, ApplyOptions::default()).unwrap();
    let expected: String = (1..=LINES)
        .map(|line| format!("new {line}\nand more\n"))
        .collect();
    assert_eq!(applied.text, expected);
    assert_eq!(applied.changed[0].new, 2 * LINES - 1..2 * LINES + 1);
    assert!(applied.summary.ends_with("; and 2980 more edits"));
    assert!(applied.summary.len() < 2_000, "{}", applied.summary.len());
    let shown = applied.excerpt(3, ApplyOptions::default().format);
    assert_eq!(shown.lines().count(), 101);
}

#[test]
fn thousands_of_stale_edits_have_a_short_message() {
    let edits: Vec<_> = (1..=LINES)
        .map(|line| replace(line, &format!("line {}", line + 1)))
        .collect();
    let Err(EditError::Stale(stale)) = apply(&numbered(), &edits, ApplyOptions::default()) else {
        panic!("not refused as stale");
    };
    assert_eq!(stale.mismatches.len(), LINES);
    assert_eq!(stale.mismatches[7].moved_to, Some(9));
    assert_eq!(stale.mismatches[LINES - 1].moved_to, None);
    let message = stale.to_string();
    assert!(message.contains("\n- and 2980 more\n"), "{message}");
    assert!(message.contains("\n... (2900 more lines)\n"), "{message}");
    assert!(message.lines().count() < 130);
}
