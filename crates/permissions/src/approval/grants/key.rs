//! [`GrantKey`]: the accesses that a grant covers.

use std::collections::BTreeSet;

use backend_core::VPath;
use backend_core::search::Glob;
use serde::{Deserialize, Serialize};

use crate::approval::limits::{GRANT_TARGETS, GRANT_TEXT_BYTES};
use crate::approval::{Answer, Asked, Fingerprint, Remember};
use crate::rules::{PathPattern, PatternError};
use crate::{Op, Target};

/// The accesses that a grant covers in its session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "scope", rename_all = "lowercase", deny_unknown_fields)]
#[non_exhaustive]
pub enum GrantKey {
    /// One call, and those of its items that were answered.
    #[non_exhaustive]
    Call {
        /// The fingerprint of the call.
        fingerprint: Fingerprint,
        /// Indices of the items in the call's question.
        items: Vec<usize>,
    },
    /// These pairs of operations with paths or command lines.
    #[non_exhaustive]
    Path {
        /// The pairs.
        asked: Vec<Asked>,
    },
    /// These operations at a path and beneath it.
    #[non_exhaustive]
    Prefix {
        /// The operations.
        ops: Vec<Op>,
        /// Those of them that are covered where rules ask, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_rule: Vec<Op>,
        /// The path.
        #[serde(with = "crate::access::path_text")]
        prefix: VPath,
    },
    /// These operations on targets that match a pattern.
    #[non_exhaustive]
    Pattern {
        /// The operations.
        ops: Vec<Op>,
        /// Those of them that are covered where rules ask, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_rule: Vec<Op>,
        /// The pattern, as [`Remember::Pattern`] describes it.
        pattern: String,
        /// The kind of target it is matched against.
        of: PatternKind,
    },
    /// These operations on anything.
    #[non_exhaustive]
    Session {
        /// The operations.
        ops: Vec<Op>,
        /// Those of them that are covered where rules ask, too.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_rule: Vec<Op>,
    },
}

/// The kind of target that a pattern is matched against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PatternKind {
    /// Paths.
    Path,
    /// Command lines.
    Command,
}

/// The reason why an answer is not remembered. It still applies to its own call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NotRemembered {
    /// The scope does not cover everything that was asked.
    #[error("the scope does not cover everything that was asked; choose one that does")]
    TooNarrow,
    /// The question was about a tool without operations known here.
    #[error("the question names no operation; remember the call itself")]
    NoOperation,
    /// The pattern is not valid.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// There are too many targets.
    #[error("more than {GRANT_TARGETS} targets are not remembered; choose a directory")]
    TooMany,
    /// A command line or a pattern is too long.
    #[error("text of more than {GRANT_TEXT_BYTES} bytes is not remembered; remember the call")]
    TooLong,
}

impl GrantKey {
    /// Creates the key for an answer to a question about `asked`.
    pub(super) fn new(
        answer: &Answer,
        fingerprint: Fingerprint,
        items: Vec<usize>,
        asked: &[Asked],
    ) -> Result<Self, NotRemembered> {
        let remember = &answer.remember;
        if asked.is_empty() && *remember != Remember::Call {
            return Err(NotRemembered::NoOperation);
        }
        let ops_where = |counts: &dyn Fn(&Asked) -> bool| {
            let asked = asked.iter().filter(|asked| counts(asked));
            let ops: BTreeSet<Op> = asked.map(|asked| asked.op).collect();
            Vec::from_iter(ops)
        };
        let ops = ops_where(&|_| true);
        let by_rule = ops_where(&|asked| asked.by_rule || !answer.approved);
        Ok(match remember {
            Remember::Call => Self::Call { fingerprint, items },
            Remember::Path => Self::Path {
                asked: asked.to_vec(),
            },
            Remember::Prefix(prefix) => Self::Prefix {
                ops,
                by_rule,
                prefix: prefix.clone(),
            },
            Remember::Pattern(pattern) => Self::Pattern {
                ops,
                by_rule,
                pattern: pattern.clone(),
                of: match asked.first().map(|asked| &asked.target) {
                    Some(Target::Command(_)) => PatternKind::Command,
                    _ => PatternKind::Path,
                },
            },
            Remember::Session => Self::Session { ops, by_rule },
            Remember::No => return Err(NotRemembered::TooNarrow),
        })
    }

    /// Returns whether this is for the call with this fingerprint and for that item of
    /// it, or for the whole call if it has no items.
    pub(super) fn is_call(&self, of: Fingerprint, item: Option<usize>) -> bool {
        let Self::Call { fingerprint, items } = self else {
            return false;
        };
        *fingerprint == of
            && match item {
                Some(item) => items.contains(&item),
                None => items.is_empty(),
            }
    }
}

/// The compiled form of a key.
pub(super) struct Matcher(Option<Glob>);

impl Matcher {
    /// Validates a key and compiles its pattern.
    pub(super) fn new(key: &GrantKey) -> Result<Self, NotRemembered> {
        match key {
            GrantKey::Path { asked } => {
                if asked.len() > GRANT_TARGETS {
                    return Err(NotRemembered::TooMany);
                }
                let long = |asked: &Asked| match &asked.target {
                    Target::Command(line) => line.len() > GRANT_TEXT_BYTES,
                    Target::Path(_) | Target::Port(_) => false,
                };
                if asked.iter().any(long) {
                    return Err(NotRemembered::TooLong);
                }
                Ok(Self(None))
            }
            GrantKey::Pattern { pattern, .. } if pattern.len() > GRANT_TEXT_BYTES => {
                Err(NotRemembered::TooLong)
            }
            GrantKey::Pattern {
                pattern,
                of: PatternKind::Path,
                ..
            } => Ok(Self(Some(PathPattern::new(pattern)?.glob().clone()))),
            _ => Ok(Self(None)),
        }
    }

    /// Returns whether the key covers `asked`, if a key for one call is for this call.
    pub(super) fn covers(&self, key: &GrantKey, asked: &Asked) -> bool {
        matches!(key, GrantKey::Call { .. }) || self.covers_alone(key, asked)
    }

    /// Returns whether the key covers `asked` in any call.
    pub(super) fn covers_alone(&self, key: &GrantKey, asked: &Asked) -> bool {
        match (key, &asked.target) {
            (GrantKey::Call { .. }, _) => false,
            (GrantKey::Path { asked: pairs }, _) => pairs
                .iter()
                .any(|pair| pair.op == asked.op && pair.target == asked.target),
            (
                GrantKey::Prefix {
                    ops,
                    by_rule,
                    prefix,
                },
                Target::Path(path),
            ) => includes(ops, by_rule, asked) && path.starts_with(prefix),
            (
                GrantKey::Pattern {
                    ops,
                    by_rule,
                    pattern,
                    of,
                },
                target,
            ) => {
                includes(ops, by_rule, asked)
                    && match (of, target) {
                        (PatternKind::Path, Target::Path(path)) => {
                            let glob = self.0.as_ref();
                            glob.is_some_and(|glob| glob.matches(&VPath::root(), path))
                        }
                        (PatternKind::Command, Target::Command(line)) => {
                            covers_command(pattern, line)
                        }
                        _ => false,
                    }
            }
            (GrantKey::Session { ops, by_rule }, _) => includes(ops, by_rule, asked),
            (GrantKey::Prefix { .. }, Target::Command(_) | Target::Port(_)) => false,
        }
    }
}

/// Returns whether a grant is for the operation and, if a rule asks, for those of rules.
fn includes(ops: &[Op], by_rule: &[Op], asked: &Asked) -> bool {
    let ops = if asked.by_rule { by_rule } else { ops };
    ops.contains(&asked.op)
}

/// Returns whether a [`Remember::Pattern`] for commands covers a whole line.
fn covers_command(pattern: &str, line: &str) -> bool {
    let Some(words) = pattern.strip_suffix(" *") else {
        // Any other use of a star could cover more than intended.
        return !pattern.is_empty() && !pattern.contains('*') && pattern == line;
    };
    // After an operator or an assignment, the next word would be another program.
    let names_program = words
        .split_whitespace()
        .next()
        .is_some_and(|word| !word.contains('='));
    if !names_program || words.contains('*') || words.contains(has_meaning) {
        return false;
    }
    match line.strip_prefix(words) {
        Some("") => true,
        Some(rest) => rest.starts_with([' ', '\t']) && !rest.contains(has_meaning),
        None => false,
    }
}

/// Returns whether a shell may do more at `c` than continue the words of one command.
fn has_meaning(c: char) -> bool {
    matches!(c, ';' | '&' | '|' | '<' | '>' | '$' | '(' | ')' | '`')
        || (c.is_control() && c != '\t')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_pattern_covers_one_program_and_its_words() {
        for line in [
            "git log",
            "git log -3",
            "git log\t-3",
            "git log --format='%h %s'",
            "git log -- a*.rs ~/x {a,b}",
        ] {
            assert!(covers_command("git log *", line), "{line}");
        }
        for line in [
            "git",
            "git logs",
            "git  log",
            " git log",
            "git log; rm x",
            "git log;rm x",
            "git log\nrm x",
            "git log && rm x",
            "git log | sh",
            "git log > x",
            "git log < x",
            "git log $(rm x)",
            "git log `rm x`",
            "git log $X",
            "git log -m \"a; b\"",
            "git log & rm x",
            "git log\r\nrm x",
            "git log \u{85}x",
            "git log -3\0",
            "git logrm",
            "GIT LOG",
            "git log)",
            "(git log -3",
        ] {
            assert!(!covers_command("git log *", line), "{line:?}");
        }
    }

    #[test]
    fn a_pattern_that_could_mean_any_program_covers_nothing() {
        for (pattern, line) in [
            ("*", "rm x"),
            (" *", "rm x"),
            (" *", " rm x"),
            ("  *", "  rm x"),
            ("", ""),
            ("A=1 *", "A=1 rm x"),
            ("true && *", "true && rm x"),
            ("true; *", "true; rm x"),
            ("true | *", "true | sh"),
            ("true\n *", "true\n rm x"),
            ("$X *", "$X rm"),
            ("git*", "git*"),
            ("git*", "git-evil"),
            ("git * --force", "git push --force"),
            ("g*t *", "get x"),
        ] {
            assert!(!covers_command(pattern, line), "{pattern:?} {line:?}");
        }
        assert!(
            covers_command("a && b", "a && b"),
            "the exact line is itself"
        );
    }
}
