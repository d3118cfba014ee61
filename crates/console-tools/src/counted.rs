//! Formats counts.

/// Formats a count with its noun.
pub(crate) fn counted(count: u64, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Formats a count that may be a lower bound.
pub(crate) fn counted_at_least(
    count: usize,
    is_minimum: bool,
    (one, many): (&str, &str),
) -> String {
    match (count, is_minimum) {
        (1, false) => format!("1 {one}"),
        (count, false) => format!("{count} {many}"),
        (count, true) => format!("{count}+ {many}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_no_plural() {
        assert_eq!(counted(0, "line"), "0 lines");
        assert_eq!(counted(1, "line"), "1 line");
        assert_eq!(counted(2, "line"), "2 lines");
        let matches = |count, is_minimum| counted_at_least(count, is_minimum, ("match", "matches"));
        assert_eq!(matches(1, false), "1 match");
        assert_eq!(matches(1, true), "1+ matches");
        assert_eq!(matches(0, false), "0 matches");
    }
}
