//! Formats counts.

/// Formats a number of lines.
pub(crate) fn lines(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} line{plural}")
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_is_no_plural() {
        for (count, text) in [(0, "0 lines"), (1, "1 line"), (2, "2 lines")] {
            assert_eq!(super::lines(count), text);
        }
    }
}
