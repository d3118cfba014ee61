//! Makes untrusted text safe to show: nothing in it can move the cursor, hide text or
//! change its direction, and its length is limited.

use std::borrow::Cow;
use std::fmt::{self, Write as _};

use serde::Serialize;

/// Returns `text` as one line. Invisible characters, including line ends, are escaped,
/// and the middle is left out if it is longer than `max` bytes.
pub(crate) fn line(text: &str, max: usize) -> String {
    let mut shown = String::with_capacity(text.len().min(max));
    for c in cut(text, max).chars() {
        push_visible(&mut shown, c);
    }
    shown
}

/// Returns `text` with all but line ends and tabs made visible. `first` precedes its first
/// line and `other` the others, so that none can imitate one of ours.
pub(crate) fn block(text: &str, first: &str, other: &str) -> String {
    let mut shown = String::with_capacity(text.len() + first.len());
    for (number, line) in text.split('\n').enumerate() {
        if number > 0 {
            shown.push('\n');
        }
        shown.push_str(if number == 0 { first } else { other });
        for c in line.chars() {
            match c {
                '\t' => shown.push(c),
                c => push_visible(&mut shown, c),
            }
        }
    }
    shown
}

/// Returns both ends of `text`, with the number of missing bytes in between.
pub(crate) fn cut(text: &str, max: usize) -> Cow<'_, str> {
    let Some((head, tail)) = halves(text, max) else {
        return Cow::Borrowed(text);
    };
    let missing = text.len() - head.len() - tail.len();
    Cow::Owned(format!("{head}[… {missing} bytes …]{tail}"))
}

/// Returns the beginning and the end of `text`, in whole lines unless they are long, with
/// a line in between that says how much is missing. Also returns that amount.
pub(crate) fn cut_lines(text: &str, max: usize) -> (Cow<'_, str>, Option<Unseen>) {
    let Some((mut head, mut tail)) = halves(text, max) else {
        return (Cow::Borrowed(text), None);
    };
    // A line that takes up much of the limit is shown in part.
    let short = max / 4;
    if let Some(end) = head.rfind('\n').filter(|end| head.len() - end <= short) {
        head = &head[..=end];
    }
    // The rest of a line is marked, so that it does not look like a whole line.
    let mut mark = "…";
    if let Some(end) = tail.find('\n').filter(|end| *end < short) {
        tail = &tail[end + 1..];
        mark = "";
    }
    let missing = &text[head.len()..text.len() - tail.len()];
    let lines = missing.matches('\n').count();
    let bytes = missing.len();
    let end = if head.ends_with('\n') { "" } else { "\n" };
    let shown =
        format!("{head}{end}[… {bytes} bytes, {lines} lines, are not shown …]\n{mark}{tail}");
    let unseen = Unseen {
        lines: lines as u64,
        bytes: bytes as u64,
    };
    (Cow::Owned(shown), Some(unseen))
}

fn halves(text: &str, max: usize) -> Option<(&str, &str)> {
    if text.len() <= max {
        return None;
    }
    let head = text.floor_char_boundary(max / 2);
    let tail = text.ceil_char_boundary(text.len() - max / 2);
    Some((&text[..head], &text[tail..]))
}

fn push_visible(to: &mut String, c: char) {
    if is_visible(c) {
        to.push(c);
    } else {
        // Writing to a string cannot fail.
        let _ = write!(to, "{}", c.escape_default());
    }
}

/// Returns whether `c` is visible and shown unchanged.
fn is_visible(c: char) -> bool {
    // Combining marks after a letter are visible. The standard library escapes them only
    // if no letter precedes them, so one is put in front.
    let mut buffer = [b'a'; 5];
    let length = c.encode_utf8(&mut buffer[1..]).len();
    let text = std::str::from_utf8(&buffer[..=length]).unwrap_or_default();
    let plain = matches!(c, '\\' | '\'' | '"') || text.escape_debug().eq(['a', c]);
    plain && !is_blank(c)
}

/// Returns whether `c` is blank although the Unicode tables call it printable.
fn is_blank(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The amount of an effect that is not shown. Approval covers it nevertheless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each name is the unit")]
pub struct Unseen {
    pub lines: u64,
    pub bytes: u64,
}

impl fmt::Display for Unseen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            0 => write!(f, "{} bytes are not shown", self.bytes),
            1 => write!(f, "1 more line is not shown"),
            lines => write!(f, "{lines} more lines are not shown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hides_or_turns_is_escaped() {
        for (text, shown) in [
            ("\u{1b}[2J", r"\u{1b}[2J"),
            ("a\nb\rc\0\u{7f}\u{9b}", r"a\nb\rc\u{0}\u{7f}\u{9b}"),
            (
                "a\u{202e}b\u{2066}c\u{200f}",
                r"a\u{202e}b\u{2066}c\u{200f}",
            ),
            ("a\u{200b}b\u{feff}\u{ad}", r"a\u{200b}b\u{feff}\u{ad}"),
            ("\u{2028}\u{3000}\u{a0}", r"\u{2028}\u{3000}\u{a0}"),
            ("\u{3164}\u{fe0f}\u{e0041}", r"\u{3164}\u{fe0f}\u{e0041}"),
            (r#"it's "C:\x""#, r#"it's "C:\x""#),
            ("naïve e\u{301} नमस्ते 日本", "naïve e\u{301} नमस्ते 日本"),
        ] {
            assert_eq!(line(text, 1000), shown);
        }
    }

    #[test]
    fn no_line_of_a_block_can_pass_for_ours() {
        assert_eq!(block("a\n\tb\n\n", "$ ", "> "), "$ a\n> \tb\n> \n> ");
        assert_eq!(block("a\r\n+b", "", ""), "a\\r\n+b");
    }

    #[test]
    fn cutting_keeps_both_ends_and_says_how_much_is_missing() {
        let text = "é".repeat(100);
        let shown = line(&text, 21);
        assert_eq!(
            shown,
            format!("{}[… 180 bytes …]{}", "é".repeat(5), "é".repeat(5))
        );
        assert_eq!(cut("short", 5), "short");

        let text: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let (shown, unseen) = cut_lines(&text, 40);
        let missing = Unseen {
            lines: 96,
            bytes: 760,
        };
        assert_eq!(unseen, Some(missing));
        assert_eq!(
            shown,
            "line 0\nline 1\n[… 760 bytes, 96 lines, are not shown …]\nline 98\nline 99\n"
        );
        assert_eq!(
            cut_lines("xxxxxxxx", 4).0,
            "xx\n[… 4 bytes, 0 lines, are not shown …]\n…xx"
        );
        for max in 0..10 {
            // Nothing can panic, whatever the limit.
            let _ = (cut("日本語", max), cut_lines("日\n本\n語", max));
        }
    }
}
