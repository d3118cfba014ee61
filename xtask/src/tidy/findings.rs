//! The findings of the rules, and their display.

use std::fmt;

/// A violation, or a near violation, of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1.
    line: Option<usize>,
    message: String,
    is_warning: bool,
}

impl Finding {
    pub(super) fn error(path: &str, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            message: message.into(),
            is_warning: false,
        }
    }

    pub(super) fn warning(path: &str, message: impl Into<String>) -> Self {
        Self {
            is_warning: true,
            ..Self::error(path, message)
        }
    }

    /// Sets the line of the finding by its index, counted from 0.
    pub(super) fn at(self, index: usize) -> Self {
        Self {
            line: Some(index + 1),
            ..self
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        let level = if self.is_warning { "warning" } else { "error" };
        write!(f, ": {level}: {}", self.message)
    }
}

/// The findings of all rules. Warnings are not failures.
#[derive(Debug)]
pub(crate) struct Findings(Vec<Finding>);

impl Findings {
    pub(super) fn new(mut found: Vec<Finding>) -> Self {
        found.sort_by(|a, b| (&a.path, a.line).cmp(&(&b.path, b.line)));
        Self(found)
    }

    pub(crate) fn is_success(&self) -> bool {
        self.n_errors() == 0
    }

    /// Returns the counts, as in `2 errors, 1 warning`.
    pub(crate) fn summary(&self) -> String {
        let n_errors = self.n_errors();
        let n_warnings = self.0.len() - n_errors;
        let plural = |n| if n == 1 { "" } else { "s" };
        let (e, w) = (plural(n_errors), plural(n_warnings));
        format!("{n_errors} error{e}, {n_warnings} warning{w}")
    }

    fn n_errors(&self) -> usize {
        self.0.iter().filter(|finding| !finding.is_warning).count()
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for finding in &self.0 {
            writeln!(f, "{finding}")?;
        }
        write!(f, "tidy: {}", self.summary())
    }
}

/// Returns the text of each finding, for tests of the rules.
#[cfg(test)]
pub(super) fn shown(found: &[Finding]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_in_order_with_counts() {
        let findings = Findings::new(vec![
            Finding::error("b.rs", "bad").at(4),
            Finding::warning("b.rs", "long").at(1),
            Finding::error("a.rs", "worse"),
        ]);
        let expected = "\
a.rs: error: worse
b.rs:2: warning: long
b.rs:5: error: bad
tidy: 2 errors, 1 warning";
        assert_eq!(findings.to_string(), expected);
        assert!(!findings.is_success());
    }

    #[test]
    fn warnings_alone_are_a_success() {
        let findings = Findings::new(vec![Finding::warning("a.rs", "long")]);
        assert!(findings.is_success());
        assert_eq!(findings.summary(), "0 errors, 1 warning");
    }
}
