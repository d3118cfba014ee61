//! Quotes text as Python's `repr` does, to show what was searched for.

/// Maximum number of characters shown of a text.
const SHOWN: usize = 100;

/// Quotes the beginning of `text`. A line break shows as two backslashes and an `n`.
pub(super) fn preview(text: &str) -> String {
    let mut cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() {
        cut.push_str("...");
    }
    quoted(&cut.replace('\n', "\\n"))
}

fn quoted(text: &str) -> String {
    let mark = match (text.contains('\''), text.contains('"')) {
        (true, false) => '"',
        _ => '\'',
    };
    let mut out = String::with_capacity(text.len() + 2);
    out.push(mark);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == mark => out.extend(['\\', c]),
            c if c.is_ascii_graphic() || c == ' ' => out.push(c),
            c => push_other(&mut out, c),
        }
    }
    out.push(mark);
    out
}

/// Appends a character outside ASCII, escaped unless it is printable.
fn push_other(out: &mut String, c: char) {
    let code = u32::from(c);
    let is_printable = !c.is_control() && c.escape_debug().count() == 1 && !c.is_whitespace();
    match code {
        _ if is_printable => out.push(c),
        0..=0xff => out.push_str(&format!("\\x{code:02x}")),
        0x100..=0xffff => out.push_str(&format!("\\u{code:04x}")),
        _ => out.push_str(&format!("\\U{code:08x}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_pythons_repr() {
        for (text, shown) in [
            ("", "''"),
            ("abc", "'abc'"),
            ("a'b", "\"a'b\""),
            ("a\"b", "'a\"b'"),
            ("a'b\"c", "'a\\'b\"c'"),
            ("a\tb\r", "'a\\tb\\r'"),
            ("a\nb", "'a\\\\nb'"),
            ("a\\b", "'a\\\\b'"),
            ("é€😀", "'é€😀'"),
            (
                "\u{0}\u{7f}\u{a0}\u{2028}\u{e000}",
                "'\\x00\\x7f\\xa0\\u2028\\ue000'",
            ),
        ] {
            assert_eq!(preview(text), shown, "{text:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_by_characters() {
        let long = "é".repeat(101);
        assert_eq!(preview(&long), format!("'{}...'", "é".repeat(100)));
        assert_eq!(preview(&"é".repeat(100)), format!("'{}'", "é".repeat(100)));
    }
}
