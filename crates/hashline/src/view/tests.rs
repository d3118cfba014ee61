//! Tests of views.

use super::{CHUNK, Format, View, ViewError, ViewOptions, push_header, render};
use crate::tag::{Tag, TagWidth};

fn show(text: &str, options: ViewOptions) -> String {
    View::new(text, options).unwrap().to_string()
}

#[test]
fn the_known_format() {
    for (text, expected) in [
        ("", "1:d4|"),
        ("\n", "1:d4|"),
        ("a", "1:0c|a"),
        ("a\n", "1:0c|a"),
        ("a\nb\n\n", "1:0c|a\n2:92|b\n3:d4|"),
        ("a\r\nb\r\n", "1:0c|a\n2:92|b"),
        ("a\r", "1:1a|a\r"),
        ("\u{feff}a\n", "1:0c|a"),
        ("\u{feff}", "1:d4|"),
    ] {
        assert_eq!(render(text), expected, "{text:?}");
        assert_eq!(show(text, ViewOptions::default()), expected, "{text:?}");
    }
}

#[test]
fn windows_and_what_follows() {
    let options = ViewOptions::default();
    let text = "a\nb\nc\n";
    assert_eq!(
        show(text, options.limit(2)),
        "1:0c|a\n2:92|b\n\n... (1 more lines)"
    );
    assert_eq!(
        show(text, options.offset(1).limit(1)),
        "2:92|b\n\n... (1 more lines)"
    );
    assert_eq!(show(text, options.offset(2)), "3:4a|c");
    assert_eq!(
        show(text, options.offset(1).limit(usize::MAX)),
        "2:92|b\n3:4a|c"
    );
    let view = View::new("a\nb\nc", options.offset(1).limit(1)).unwrap();
    assert_eq!((view.first_line(), view.line_count()), (2, 1));
    assert_eq!((view.total_lines(), view.more()), (3, 1));
    assert_eq!(view.next_offset(), Some(2));
    assert_eq!(View::new(text, options).unwrap().next_offset(), None);
}

#[test]
fn windows_that_show_nothing() {
    let refused = |text, options| View::new(text, options).unwrap_err();
    let options = ViewOptions::default();
    assert_eq!(refused("a", options.limit(0)), ViewError::ZeroLimit);
    for (text, offset, lines) in [("a\nb\n", 2, 2), ("", 1, 1), ("a", usize::MAX, 1)] {
        assert_eq!(
            refused(text, options.offset(offset)),
            ViewError::PastEnd { offset, lines }
        );
    }
    let said = refused("a", options.offset(1)).to_string();
    assert!(said.contains("has 1 line; use an offset below 1"), "{said}");
}

#[test]
fn a_cut_line_keeps_its_tag() {
    let options = |bytes| ViewOptions::default().format(Format::default().max_line_bytes(bytes));
    assert_eq!(show("abcdef\n", options(6)), render("abcdef"));
    let tag = Tag::of("aéb", TagWidth::Two);
    for (bytes, shown) in [
        (4, "aéb"),
        (3, "aé [... 1 more bytes]"),
        (2, "a [... 3 more bytes]"),
        (0, " [... 4 more bytes]"),
    ] {
        assert_eq!(show("aéb\r\n", options(bytes)), format!("1:{tag}|{shown}"));
    }
}

#[test]
fn a_view_ends_before_it_is_too_big() {
    let options = |bytes| ViewOptions::default().max_bytes(bytes);
    let count = |text, bytes| View::new(text, options(bytes)).unwrap().line_count();
    let text = "ab\r\ncd\nef";
    for (bytes, lines) in [(0, 1), (5, 1), (6, 2), (8, 2), (9, 3)] {
        assert_eq!(count(text, bytes), lines, "{bytes}");
    }
    // Bytes that are cut off do not count.
    let format = Format::default().max_line_bytes(1);
    let view = View::new(text, options(4).format(format)).unwrap();
    assert_eq!((view.line_count(), view.more()), (2, 1));
    assert!(view.to_string().ends_with("\n\n... (1 more lines)"));
}

#[test]
fn numbers_and_tags_of_both_widths() {
    let mut out = String::new();
    for number in [0, 9, 10, 4_096, usize::MAX] {
        for (width, tag) in [(TagWidth::Two, "d4"), (TagWidth::Four, "d41d")] {
            out.clear();
            push_header(&mut out, number, Tag::of("", width));
            assert_eq!(out, format!("{number}:{tag}|"));
        }
    }
}

#[test]
fn lines_know_how_many_are_left() {
    let text = "x\n".repeat(2 * CHUNK + 3);
    let view = View::new(&text, ViewOptions::default()).unwrap();
    let mut lines = view.lines();
    for number in 1..=2 * CHUNK + 3 {
        assert_eq!(lines.len(), 2 * CHUNK + 4 - number);
        assert_eq!(lines.next().unwrap().number, number);
    }
    assert_eq!((lines.len(), lines.next()), (0, None));
}
