//! [`Verdict`]: what the layers say about an access, and why.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::{Action, Op, Refusal};

/// Who votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// The mount that the path lies in: mode, suffixes, size, approvals.
    Mount,
    /// What a derived scope left of the mounts.
    Scope,
    /// The ordered rules.
    Rules,
    /// What a command line would run.
    Command,
    /// The settings of the tool that was called.
    Tool,
    /// The files that the policy came from.
    Protected,
}

impl fmt::Display for Layer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mount => "mount",
            Self::Scope => "scope",
            Self::Rules => "rules",
            Self::Command => "command",
            Self::Tool => "tool",
            Self::Protected => "protected",
        })
    }
}

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedRule {
    /// The section it stands in.
    pub op: Op,
    /// Its place there, counted from 0.
    pub index: usize,
    /// Its pattern, as written.
    pub pattern: String,
    /// What it says.
    pub action: Action,
    /// Its description; may be empty.
    pub description: String,
}

impl MatchedRule {
    /// Describes a rule.
    pub fn new(
        op: Op,
        index: usize,
        pattern: impl Into<String>,
        action: Action,
        description: impl Into<String>,
    ) -> Self {
        Self {
            op,
            index,
            pattern: pattern.into(),
            action,
            description: description.into(),
        }
    }
}

/// Why a layer votes as it does. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
    /// This rule is the first that matches.
    Rule(Arc<MatchedRule>),
    /// No rule matches, and this is the operation's default.
    Default(Op),
    /// The layer has nothing against it.
    Nothing,
    /// The layer refuses, for a reason with a type of its own.
    Refused(Arc<Refusal>),
    /// In words: a lowercase fragment.
    Because(Cow<'static, str>),
}

/// What one layer says.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vote {
    /// Who says it.
    pub layer: Layer,
    /// What it says.
    pub action: Action,
    /// Why.
    pub why: Why,
}

impl Vote {
    /// A vote.
    pub fn new(layer: Layer, action: Action, why: Why) -> Self {
        Self { layer, action, why }
    }

    /// A layer that has nothing against it.
    pub fn neutral(layer: Layer) -> Self {
        Self::new(layer, Action::Allow, Why::Nothing)
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.layer, self.action)?;
        match &self.why {
            Why::Rule(rule) => {
                let number = rule.index + 1;
                write!(f, ", by rule {number} of {} ('{}')", rule.op, rule.pattern)?;
                if rule.description.is_empty() {
                    Ok(())
                } else {
                    write!(f, ": {}", rule.description)
                }
            }
            Why::Default(op) => write!(f, ", the default of {op}"),
            Why::Nothing => Ok(()),
            Why::Refused(refusal) => write!(f, ", {refusal}"),
            Why::Because(reason) => write!(f, ", {reason}"),
        }
    }
}

/// What all layers say together: the strongest vote, and the others.
///
/// `Display` explains it, one vote a line, the strongest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    decisive: Vote,
    others: Vec<Vote>,
}

impl Verdict {
    /// The strongest vote's action.
    pub fn action(&self) -> Action {
        self.decisive.action
    }

    /// The strongest vote; of equal ones the first.
    pub fn decisive(&self) -> &Vote {
        &self.decisive
    }

    /// Every vote, the strongest first.
    pub fn votes(&self) -> impl Iterator<Item = &Vote> {
        std::iter::once(&self.decisive).chain(&self.others)
    }

    /// Adds a vote.
    #[must_use]
    pub fn and(mut self, vote: Vote) -> Self {
        if vote.action > self.decisive.action {
            self.others
                .push(std::mem::replace(&mut self.decisive, vote));
        } else if vote.action > Action::Allow || vote.why != Why::Nothing {
            self.others.push(vote);
        }
        self
    }

    /// Adds every vote of another verdict.
    #[must_use]
    pub fn and_all(mut self, other: Self) -> Self {
        self = self.and(other.decisive);
        for vote in other.others {
            self = self.and(vote);
        }
        self
    }
}

impl From<Vote> for Verdict {
    fn from(vote: Vote) -> Self {
        Self {
            decisive: vote,
            others: Vec::new(),
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, vote) in self.votes().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{vote}")?;
        }
        Ok(())
    }
}
