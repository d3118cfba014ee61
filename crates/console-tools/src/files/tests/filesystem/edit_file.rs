//! `edit_file`: results and texts, pinned.

use serde_json::{Value, json};

use super::{EditFileTool, content, files, fixable, ok};

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "/a", "old_text": old, "new_text": new})
}

#[test]
fn one_place_is_replaced() {
    let context = files(&[("/a", "x = 1\ny = \u{20ac}\n".as_bytes())]);
    assert_eq!(
        ok::<EditFileTool>(&context, edit("\u{20ac}\n", "2\n3\n")),
        "Edited /a: replaced 2 chars with 4 chars"
    );
    assert_eq!(content(&context, "/a"), "x = 1\ny = 2\n3\n");
}

#[test]
fn text_that_is_not_there_is_said_with_what_is_near() {
    let context = files(&[("/a", b"if x {\n\treturn;\n}\n")]);
    assert_eq!(
        fixable::<EditFileTool>(&context, edit("    return;\n", "")),
        "Cannot edit '/a': text not found in file.\n\
         Searched for: '    return;\\\\n'\n\
         Nearest: line 2 (differs in white space): \"\\treturn;\""
    );
    assert_eq!(
        fixable::<EditFileTool>(&context, edit("qqqqqq'", "")),
        "Cannot edit '/a': text not found in file.\nSearched for: \"qqqqqq'\""
    );
}

#[test]
fn text_that_is_there_twice_is_not_replaced() {
    let context = files(&[("/a", b"ab ab ab aaa")]);
    assert_eq!(
        fixable::<EditFileTool>(&context, edit("ab", "x")),
        "Cannot edit '/a': text found 3 times (must be unique).\nSearched for: 'ab'"
    );
    // Overlapping occurrences count as two.
    assert_eq!(
        fixable::<EditFileTool>(&context, edit("aa", "x")),
        "Cannot edit '/a': text found 2 times (must be unique).\nSearched for: 'aa'"
    );
    assert_eq!(content(&context, "/a"), "ab ab ab aaa");
}

#[test]
fn nothing_to_search_for_fills_an_empty_file_and_no_other() {
    let context = files(&[("/a", b""), ("/b", "\u{20ac}b".as_bytes())]);
    assert_eq!(
        ok::<EditFileTool>(&context, edit("", "new")),
        "Edited /a: replaced 0 chars with 3 chars"
    );
    assert_eq!(content(&context, "/a"), "new");
    assert_eq!(
        fixable::<EditFileTool>(
            &context,
            json!({"path": "/b", "old_text": "", "new_text": "x"})
        ),
        "Cannot edit '/b': text found 3 times (must be unique).\nSearched for: ''"
    );
}

#[test]
fn the_same_text_again_is_a_success_if_it_is_there() {
    let context = files(&[("/a", b"one two\r\nthree")]);
    assert_eq!(
        ok::<EditFileTool>(&context, edit("two\n", "two\n")),
        "Edited /a: replaced 4 chars with 4 chars"
    );
    assert_eq!(content(&context, "/a"), "one two\r\nthree");
    let told = fixable::<EditFileTool>(&context, edit("four", "four"));
    assert!(
        told.starts_with("Cannot edit '/a': text not found in file.\n"),
        "{told}"
    );
}

#[test]
fn line_ends_that_reading_hides_are_found_and_kept() {
    for (before, old, new, after) in [
        ("a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", "x\r\ny\r\nz\r\nc\r\n"),
        // Mixed line endings: the replaced text keeps its own.
        ("a\nb\r\nc\r\nd\n", "b\nc\n", "B\nC\n", "a\nB\r\nC\r\nd\n"),
        ("a\nb\rc\rd\n", "b\nc", "B\nC", "a\nB\rC\rd\n"),
        ("\u{20ac}\n\r\nb\rc", "\u{20ac}\n\nb", "x", "x\rc"),
        ("a\nb\r\n", "b\n", "c\n", "a\nc\r\n"),
    ] {
        let context = files(&[("/a", before.as_bytes())]);
        ok::<EditFileTool>(&context, edit(old, new));
        assert_eq!(content(&context, "/a"), after, "{before:?}");
    }
    let context = files(&[("/a", b"b\rc b\r\nc\n")]);
    assert_eq!(
        fixable::<EditFileTool>(&context, edit("b\nc", "")),
        "Cannot edit '/a': text found 2 times (must be unique).\nSearched for: 'b\\\\nc'",
    );
}

#[test]
fn what_cannot_be_edited_is_said() {
    let context = files(&[("/d/a", b"x"), ("/a", b"\xff\xfea"), ("/b", b"a\x80")]);
    assert_eq!(
        fixable::<EditFileTool>(&context, edit("a", "b")),
        "Cannot edit '/a': file appears to be binary or not UTF-8 encoded.\n\
         This tool only edits text files. For binary files, pass them as attachments."
    );
    let told = |path: &str| {
        fixable::<EditFileTool>(
            &context,
            json!({"path": path, "old_text": "a", "new_text": "b"}),
        )
    };
    assert_eq!(told("/x"), "File not found: /x");
    assert_eq!(told("/d/a/x"), "File not found: /d/a/x");
    assert_eq!(told("d"), "Not a file: d");
}

#[test]
fn what_was_searched_for_is_cut() {
    let context = files(&[("/a", b"x")]);
    let told = fixable::<EditFileTool>(&context, edit(&"q".repeat(5_000_000), ""));
    assert_eq!(
        told,
        format!(
            "Cannot edit '/a': text not found in file.\nSearched for: '{}...'",
            "q".repeat(100)
        )
    );
}
