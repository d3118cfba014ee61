//! One table format for the terminal and for Markdown files.

use std::fmt::Write as _;

/// Renders an aligned Markdown table. Every row has as many cells as the header.
pub(crate) fn render<const N: usize>(header: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = header.map(width);
    for row in rows {
        for (max, cell) in widths.iter_mut().zip(row) {
            *max = (*max).max(width(cell));
        }
    }
    let mut text = String::new();
    push_row(&mut text, &header, &widths);
    push_row(&mut text, &widths.map(|width| "-".repeat(width)), &widths);
    for row in rows {
        push_row(&mut text, row, &widths);
    }
    text
}

fn push_row<S: AsRef<str>>(text: &mut String, cells: &[S], widths: &[usize]) {
    for (cell, width) in cells.iter().zip(widths) {
        // Writing to a string cannot fail.
        let _ = write!(text, "| {:<width$} ", cell.as_ref());
    }
    text.push_str("|\n");
}

/// Counts characters, not bytes, because cells contain `µs`.
fn width(cell: &str) -> usize {
    cell.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [
            ["fmt".to_owned(), "1 s".to_owned()],
            ["µ".to_owned(), String::new()],
        ];
        let expected = "\
| stage | time |
| ----- | ---- |
| fmt   | 1 s  |
| µ     |      |
";
        assert_eq!(render(["stage", "time"], &rows), expected);
    }

    #[test]
    fn a_table_without_rows_is_its_header() {
        assert_eq!(render(["a"], &[]), "| a |\n| - |\n");
    }
}
