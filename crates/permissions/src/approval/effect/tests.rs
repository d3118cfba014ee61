//! Tests of the effect of a call as shown to the approver.

use proptest::prelude::*;

use super::*;
use crate::approval::limits::DIFF_BYTES;

fn text_of(effect: &Effect) -> &str {
    match effect {
        Effect::Diff { text, .. } | Effect::Write { text, .. } => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_kind_has_its_description() {
    for (effect, description) in [
        (Effect::None, ""),
        (Effect::read("/a"), "Read from /a"),
        (
            Effect::list("/a", "*.rs"),
            "List file paths in /a matching *.rs",
        ),
        (
            Effect::write("/a", None, "héllo".as_bytes()),
            "Write 5 chars to /a",
        ),
        (
            Effect::write("/a", None, b"\xff\xfe"),
            "Write 2 bytes to /a",
        ),
        (Effect::write("/a", None, b""), "Write 0 chars to /a"),
        (
            Effect::diff("/a", b"let x = 1;\n", b"let x = 234;\n"),
            "Edit /a: replace 1 char with 3 chars",
        ),
        (
            Effect::diff("/a", b"let x = 1;\n", b"let x = 234;\n").replacing(10, 12),
            "Edit /a: replace 10 chars with 12 chars",
        ),
        (
            Effect::diff("/a", b"\xff1", b"\xfe1"),
            "Edit /a: replace 1 byte with 1 byte",
        ),
        (Effect::delete("/a"), "Delete /a"),
        (Effect::rename("/a", "/b"), "Move /a to /b"),
        (Effect::copy("/a", "/b"), "Copy /a to /b"),
        (Effect::command("ls -l"), "Run ls -l"),
    ] {
        assert_eq!(effect.description(), description);
    }
}

#[test]
fn an_edit_shows_a_unified_diff() {
    let old: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let new = old.replace("line 10\n", "line ten\n");
    assert_eq!(
        text_of(&Effect::diff("/f", old.as_bytes(), new.as_bytes())),
        "--- /f\n+++ /f\n@@ -7,7 +7,7 @@\n line 7\n line 8\n line 9\n-line 10\n+line ten\n \
         line 11\n line 12\n line 13\n"
    );
}

#[test]
fn a_write_shows_what_it_writes_or_changes() {
    assert_eq!(
        text_of(&Effect::write("/f", None, b"a\nb")),
        "--- /dev/null\n+++ /f\n@@ -0,0 +1,2 @@\n+a\n+b\n\\ No newline at end of file\n"
    );
    assert_eq!(
        text_of(&Effect::write("/f", Some(b"a\n"), b"a\nb\n")),
        "--- /f\n+++ /f\n@@ -1 +1,2 @@\n a\n+b\n"
    );
    assert_eq!(
        text_of(&Effect::write("/f", Some(b"a"), b"a")),
        "nothing changes"
    );
}

#[test]
fn a_change_that_is_no_text_is_told_by_sizes_and_hashes() {
    let effect = Effect::diff("/f", b"a\0b", b"a\0c");
    let hash = ContentHash::of(b"a\0c");
    assert!(text_of(&effect).starts_with("3 bytes (sha256 "), "{effect}");
    assert!(text_of(&effect).contains(&hash.to_string()), "{effect}");
    let effect = Effect::write("/f", None, b"\xff");
    assert!(
        text_of(&effect).starts_with("a new file of 1 byte "),
        "{effect}"
    );
    let large = vec![b'x'; DIFF_BYTES + 1];
    let effect = Effect::write("/f", None, &large);
    assert!(text_of(&effect).contains("cannot be shown"), "{effect}");
}

#[test]
fn a_small_change_in_a_large_file_is_shown() {
    let mut old = "a line of text\n".repeat(DIFF_BYTES / 5).into_bytes();
    let middle = old.len() / 2;
    let new = old.clone();
    old[middle] = b'#';
    let effect = Effect::diff("/f", &old, &new);
    let text = text_of(&effect);
    assert!(text.contains("@@") && text.len() < 300, "{text}");
}

#[test]
fn a_long_diff_is_cut_in_the_middle_and_says_so() {
    let new: String = (0..100_000).map(|n| format!("{n}\n")).collect();
    let effect = Effect::write("/f", None, new.as_bytes());
    let text = text_of(&effect);
    assert!(text.len() < EFFECT_BYTES + 100, "{}", text.len());
    assert!(text.contains("+0\n") && text.contains("+99999\n"));
    assert!(text.contains(" lines, are not shown …]\n"));
    let shown = effect.to_string();
    assert!(shown.contains("\n[… "), "our line stands apart");
}

#[test]
fn both_ends_of_a_long_line_are_shown() {
    let line = format!("begin{}end", "x".repeat(2 * EFFECT_BYTES));
    let effect = Effect::write("/f", None, line.as_bytes());
    let text = text_of(&effect);
    assert!(text.contains("\n+begin") && text.contains("\n…xx") && text.contains("xxend\n"));
}

#[test]
fn hostile_text_is_shown_harmless() {
    let hostile = b"a\rb\x1b[2J\n--- /x\n\xe2\x80\xaeevil\n";
    let shown = Effect::write("/f\n+++ /g", None, hostile).to_string();
    assert!(!shown.contains(['\r', '\u{1b}', '\u{202e}']), "{shown}");
    assert_eq!(shown.lines().count(), 6, "{shown}");
    assert!(shown.contains(r"+++ /f\n+++ /g"), "{shown}");
    assert!(shown.contains(r"+a\rb\u{1b}[2J"), "{shown}");

    let shown = Effect::command("ls\n[… 3 bytes, 0 lines, are not shown …]").to_string();
    assert_eq!(shown, "$ ls\n> [… 3 bytes, 0 lines, are not shown …]");
    let shown = Effect::command(format!("ls {}; rm x", "y".repeat(EFFECT_BYTES))).to_string();
    assert!(
        shown.contains("\n[… ") && shown.ends_with("; rm x"),
        "both ends"
    );
}

#[test]
fn slow_diffs_end() {
    // Nothing in common and many lines: the worst case for the algorithm.
    let lines = |step: u64| -> String {
        (0..20_000_u64)
            .map(|n| format!("{}\n", (n * step) % 19_999))
            .collect()
    };
    let effect = Effect::diff("/f", lines(7).as_bytes(), lines(11).as_bytes());
    assert!(text_of(&effect).len() < EFFECT_BYTES + 100);
}

proptest! {
    #[test]
    fn a_diff_applied_to_the_old_gives_the_new(
        old in "([ab]{0,2}(\n|\r\n|\r)?){0,12}",
        new in "([ab]{0,2}(\n|\r\n|\r)?){0,12}",
    ) {
        prop_assume!(old != new);
        let effect = Effect::diff("/f", old.as_bytes(), new.as_bytes());
        prop_assert_eq!(apply(&old, text_of(&effect)), new);
    }

    #[test]
    fn any_bytes_have_an_effect(
        old in proptest::collection::vec(any::<u8>(), 0..40),
        new in proptest::collection::vec(any::<u8>(), 0..40),
    ) {
        let effect = Effect::diff("/f", &old, &new);
        prop_assert!(!effect.to_string().is_empty());
        prop_assert!(!effect.description().is_empty());
    }
}

/// Applies a diff naively, by its line numbers.
fn apply(old: &str, diff: &str) -> String {
    let old: Vec<&str> = old.split_inclusive('\n').collect();
    let mut new = String::new();
    let mut at = 0;
    for line in diff.split_inclusive('\n').skip(2) {
        let (sign, text) = line.split_at(1);
        match sign {
            "@" => {
                let (start, len) = old_range(text);
                let start = if len == 0 { start } else { start - 1 };
                new.extend(old[at..start].iter().copied());
                at = start;
            }
            "\\" => {
                if new.ends_with('\n') && !text.is_empty() {
                    // It applies to an added or a kept line if that was the last one.
                    new = trim_if_last(new, diff, line);
                }
            }
            "-" => at += 1,
            "+" => new.push_str(text),
            _ => {
                new.push_str(text);
                at += 1;
            }
        }
    }
    new.extend(old[at..].iter().copied());
    new
}

fn old_range(head: &str) -> (usize, usize) {
    let old = head.split(' ').nth(1).unwrap().trim_start_matches('-');
    let (start, len) = old.split_once(',').unwrap_or((old, "1"));
    (start.parse().unwrap(), len.parse().unwrap())
}

fn trim_if_last(mut new: String, diff: &str, marker: &str) -> String {
    let at = marker.as_ptr() as usize - diff.as_ptr() as usize;
    let line = diff[..at].lines().next_back().unwrap();
    if !line.starts_with('-') {
        new.pop();
    }
    new
}
