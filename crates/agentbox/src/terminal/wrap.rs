//! Wraps lines at words; a terminal would break them anywhere.

use textwrap::Options;

use crate::system::{self, Stream};

/// Default number of columns, for a terminal that does not report them.
const DEFAULT_COLUMNS: usize = 80;

/// Minimum number of columns for an explanation beside its subject, not beneath.
const MIN_BESIDE_COLUMNS: usize = 24;

/// Its indentation there.
const BENEATH_INDENT: usize = 6;

/// Marks the continuation of a broken line. No line of a question begins like this.
const CONTINUATION: &str = "↪ ";

/// Returns the number of columns of standard output.
pub(crate) fn columns() -> usize {
    columns_of(std::io::stdout())
}

/// Returns the number of columns of a terminal.
pub(crate) fn columns_of(terminal: impl Stream) -> usize {
    system::columns_of(terminal).unwrap_or(DEFAULT_COLUMNS)
}

/// Wraps every line longer than `width`, and indents the continuation like the line.
pub(crate) fn lines(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let broken = text.split('\n').map(|line| {
        let words = line.trim_start();
        let indent = line.get(..line.len() - words.len()).unwrap_or_default();
        let item = if words.starts_with("- ") { "  " } else { "" };
        filled(words, indent, &format!("{indent}{item}"), width)
    });
    broken.collect::<Vec<String>>().join("\n")
}

/// Breaks every line longer than `width` at exactly that column, and marks the
/// continuation. A terminal would break it without a mark, and the continuation could
/// pass for a separate line.
pub(crate) fn hard(text: &str, width: Option<usize>) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    // At least one character has to fit after the mark.
    let width = width.max(8);
    let mut out = String::with_capacity(text.len());
    let mut column = 0;
    for c in text.chars() {
        let next = match c {
            '\n' => 0,
            '\t' => column / 8 * 8 + 8,
            ' '..='~' => column + 1,
            // Terminals disagree about its width; it is at most two.
            _ => column + 2,
        };
        if next > width {
            out.push('\n');
            out.push_str(CONTINUATION);
            // A tab would fill the line again.
            column = 3 + if c.is_ascii() { 1 } else { 2 };
            out.push(if c == '\t' { ' ' } else { c });
            continue;
        }
        column = next;
        out.push(c);
    }
    out
}

/// Cuts a text after a number of characters, and marks the cut.
pub(crate) fn shortened(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Returns the indentation of explanations in this column, or beneath for lack of room.
pub(crate) fn indent(column: usize, width: Option<usize>) -> usize {
    match width {
        Some(width) if width < column + MIN_BESIDE_COLUMNS => BENEATH_INDENT,
        _ => column,
    }
}

/// Places `about` beside `left`, which takes `column` columns, or beneath it if that
/// leaves too little room. Colour sequences count as zero columns.
pub(crate) fn beside(left: &str, column: usize, about: &str, width: Option<usize>) -> String {
    let left = left.trim_end();
    let padding = " ".repeat(column.saturating_sub(textwrap::core::display_width(left)));
    let Some(width) = width else {
        return format!("{left}{padding}{about}\n");
    };
    let columns = indent(column, Some(width));
    let indent = " ".repeat(columns);
    let about = filled(about, &indent, &indent, width);
    if columns == column {
        format!("{left}{padding}{}\n", about.trim_start())
    } else {
        format!("{left}\n{about}\n")
    }
}

fn filled(text: &str, first: &str, others: &str, width: usize) -> String {
    let options = Options::new(width.max(1))
        .initial_indent(first)
        .subsequent_indent(others)
        // A broken path or name could not be copied.
        .break_words(false)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .word_separator(textwrap::WordSeparator::AsciiSpace);
    textwrap::wrap(text, options).join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_words() {
        let text = "one two three\n  - four five six\n\nseven-eight-nine-ten";
        let broken = "one two\nthree\n  - four\n    five\n    six\n\nseven-eight-nine-ten";
        assert_eq!(lines(text, Some(9)), broken);
        assert_eq!(lines(text, None), text);
        assert_eq!(lines("", Some(9)), "");
        // Colours take no columns.
        assert_eq!(
            lines("\x1b[1mone two\x1b[0m", Some(7)),
            "\x1b[1mone two\x1b[0m"
        );
    }

    #[test]
    fn no_part_of_a_long_line_passes_for_a_line() {
        let forged = format!("+{}Allow it? [y]es", " ".repeat(9));
        assert_eq!(
            hard(&forged, Some(10)),
            "+         \n↪ Allow i\n↪ t? [y]e\n↪ s"
        );
        assert_eq!(hard("0123456789\nshort", Some(10)), "0123456789\nshort");
        assert_eq!(hard("0123456789x", None), "0123456789x");
        for text in [
            "\t\t\t\ta",
            "ééééééééééé",
            "日本語日本語日本語",
            &"x".repeat(500),
        ] {
            for width in [0, 8, 9, 20] {
                let shown = hard(text, Some(width));
                let limit = width.max(8);
                for line in shown.lines().filter(|line| !line.contains('\t')) {
                    assert!(textwrap::core::display_width(line) <= limit, "{line:?}");
                }
                let whole: String = shown.split("\n↪ ").collect();
                assert_eq!(whole.replace('\t', " "), text.replace('\t', " "));
            }
        }
    }

    #[test]
    fn columns_stay_aligned() {
        let about = "what it is for, in some words";
        assert_eq!(
            beside("  name", 10, about, Some(34)),
            "  name    what it is for, in some\n          words\n"
        );
        assert_eq!(
            beside("  name", 10, about, Some(20)),
            "  name\n      what it is\n      for, in some\n      words\n"
        );
        assert_eq!(
            beside("  name", 10, about, None),
            format!("  name    {about}\n")
        );
        // Colours take no columns.
        let painted = beside("  \x1b[1mname\x1b[0m", 10, about, None);
        assert_eq!(painted, format!("  \x1b[1mname\x1b[0m    {about}\n"));
    }
}
