//! Truncates long lines around their match.

use backend_core::limits::REGEX_BYTES;
use backend_core::ops::{Case, GrepLine, GrepQuery, LineKind};
use regex::{Regex, RegexBuilder};

/// Truncates the lines of one search to a number of characters.
pub(super) struct LineCutter<'q> {
    query: &'q GrepQuery,
    chars: usize,
    /// Compiled for the first long line, unless it does not compile.
    pattern: Option<Option<Regex>>,
}

impl<'q> LineCutter<'q> {
    pub(super) fn new(query: &'q GrepQuery, chars: usize) -> Self {
        Self {
            query,
            chars: chars.max(1),
            pattern: None,
        }
    }

    /// Returns the line, or an excerpt if it is long. The excerpt is around the match
    /// unless the match is at the beginning.
    pub(super) fn show(&mut self, line: &GrepLine<'_>) -> String {
        let text = line.text();
        let mut starts = text.char_indices().map(|(at, _)| at);
        if starts.nth(self.chars).is_none() && line.cut_bytes == 0 {
            return text.into_owned();
        }
        let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        let from = match line.kind {
            LineKind::Match => self.first_shown(&text, &starts),
            LineKind::Context => 0,
        };
        let to = from.saturating_add(self.chars);
        let at = |index: usize| starts.get(index).copied().unwrap_or(text.len());
        let shown = text.get(at(from)..at(to)).unwrap_or_default();
        let before = if from > 0 { "…" } else { "" };
        let cut = to < starts.len() || line.cut_bytes > 0;
        let after = if cut { "…" } else { "" };
        format!("{before}{shown}{after}")
    }

    /// Returns the index of the first character to show, so that the match is centered.
    fn first_shown(&mut self, text: &str, starts: &[usize]) -> usize {
        let query = self.query;
        let pattern = self.pattern.get_or_insert_with(|| compile(query));
        let found = pattern.as_ref().and_then(|pattern| pattern.find(text));
        let Some(found) = found else {
            return 0;
        };
        let begins = starts.partition_point(|at| *at < found.start());
        let ends = starts.partition_point(|at| *at < found.end());
        if ends <= self.chars {
            return 0;
        }
        let around = self.chars.saturating_sub(ends - begins) / 2;
        let last = starts.len().saturating_sub(self.chars);
        begins.saturating_sub(around).min(last)
    }
}

/// Compiles the pattern of a search that already succeeded, to locate matches in a
/// line. The start of the line is shown if compilation fails, or if there is no match
/// because the line is part of a longer match.
fn compile(query: &GrepQuery) -> Option<Regex> {
    let pattern = if query.literal {
        regex::escape(&query.pattern)
    } else {
        query.pattern.clone()
    };
    let lower = match query.case {
        Case::Sensitive => false,
        Case::Insensitive => true,
        Case::Smart => !query.pattern.contains(char::is_uppercase),
    };
    let mut builder = RegexBuilder::new(&pattern);
    builder.case_insensitive(lower).multi_line(true);
    builder.size_limit(REGEX_BYTES).build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use backend_core::VPath;
    use backend_core::ops::FileMatches;

    fn show(pattern: &str, line: &str, chars: usize) -> String {
        let query = GrepQuery::new(pattern, VPath::root());
        let file = FileMatches::from_lines(VPath::root(), [(1, LineKind::Match, line)]);
        LineCutter::new(&query, chars).show(&file.lines().next().unwrap())
    }

    #[test]
    fn a_short_line_is_shown_whole() {
        assert_eq!(show("b", "abc", 3), "abc");
        assert_eq!(show("é", "aéc", 3), "aéc");
    }

    #[test]
    fn a_long_line_is_shown_around_its_match() {
        let line = format!("{}needle{}", "x".repeat(500), "y".repeat(500));
        let shown = show("needle", &line, 20);
        assert!(shown.contains("needle"), "{shown}");
        assert!(shown.starts_with('…') && shown.ends_with('…'));
        assert_eq!(shown.chars().count(), 22);
        let shown = show("^x", &line, 20);
        assert_eq!(shown, format!("{}…", "x".repeat(20)));
        let shown = show("y$", &line, 20);
        assert!(shown.ends_with("yy"), "{shown}");
        let wide = format!("{}needle", "é".repeat(500));
        let shown = show("needle", &wide, 20);
        assert!(shown.ends_with("éneedle"), "{shown}");
        assert_eq!(shown.chars().count(), 21);
    }

    #[test]
    fn a_match_longer_than_what_is_shown_shows_its_beginning() {
        let line = format!("{}{}", "a".repeat(100), "x".repeat(100));
        assert_eq!(show("x{90}", &line, 10), format!("…{}…", "x".repeat(10)));
        assert_eq!(show("x", &line, 0), "…x…");
        // Part of a match that spans lines.
        assert_eq!(show("x\\nb", &line, 3), "aaa…");
    }

    #[test]
    fn case_and_literal_count_for_the_place_too() {
        let line = format!("{}NEEDLE()", "x".repeat(500));
        for (pattern, case, literal) in [
            ("needle", Case::Insensitive, false),
            ("needle", Case::Smart, false),
            ("NEEDLE()", Case::Smart, true),
        ] {
            let query = GrepQuery::new(pattern, VPath::root()).case(case);
            let query = query.literal(literal);
            let file = FileMatches::from_lines(VPath::root(), [(1, LineKind::Match, &line)]);
            let shown = LineCutter::new(&query, 20).show(&file.lines().next().unwrap());
            assert!(shown.ends_with("NEEDLE()"), "{shown}");
        }
    }
}
