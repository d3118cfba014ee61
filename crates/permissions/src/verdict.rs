//! [`Verdict`]: the combined decision of all layers about an access, with reasons.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::action::names;
use crate::{Action, Op, Refusal};

/// A part of the policy that votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layer {
    /// The mount that contains the path: mode, suffixes, size, approvals.
    Mount,
    /// A scope derived from the mounts.
    Scope,
    /// The ordered rules.
    Rules,
    /// The judgement of a command line.
    Command,
    /// The settings of the tool that was called.
    Tool,
    /// The files that define the policy.
    Protected,
}

names!(Layer::as_str {
    Mount = "mount",
    Scope = "scope",
    Rules = "rules",
    Command = "command",
    Tool = "tool",
    Protected = "protected",
});

/// A rule that matched.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedRule {
    /// The operation whose section contains the rule.
    pub op: Op,
    /// The rule's index in that section, from 0.
    pub index: usize,
    /// The pattern, as written.
    pub pattern: String,
    /// The rule's action.
    pub action: Action,
    /// The rule's description; may be empty.
    pub description: String,
}

/// The word that a vote about a dangerous command begins with.
pub(crate) const DANGEROUS: &str = "dangerous";

/// Patterns of rules that are written in place of a default.
const EVERYTHING: [&str; 3] = ["*", "**", "/**"];

/// The reason for a vote. Cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// The first rule that matches.
    Rule(Arc<MatchedRule>),
    /// The default of the operation, because no rule matches.
    Default(Op),
    /// None given. With an allow, it means that there is no objection.
    Unspecified,
    /// A refusal, with its typed reason.
    Refused(Arc<Refusal>),
    /// A reason in words: a lowercase fragment.
    Text(Cow<'static, str>),
}

/// The decision of one layer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vote {
    /// The layer that votes.
    pub layer: Layer,
    /// The layer's decision.
    pub action: Action,
    /// The reason for it.
    pub reason: Reason,
}

impl Vote {
    /// Creates a vote.
    pub fn new(layer: Layer, action: Action, reason: Reason) -> Self {
        Self {
            layer,
            action,
            reason,
        }
    }

    /// Creates a vote of a layer that has no objection.
    pub fn abstain(layer: Layer) -> Self {
        Self::new(layer, Action::Allow, Reason::Unspecified)
    }

    /// Returns whether the vote is about this target, and not about everything.
    fn is_specific(&self) -> bool {
        match &self.reason {
            Reason::Rule(rule) => !EVERYTHING.contains(&rule.pattern.as_str()),
            Reason::Text(text) => text.starts_with(DANGEROUS) || self.layer == Layer::Protected,
            Reason::Default(_) | Reason::Unspecified | Reason::Refused(_) => false,
        }
    }
}

impl fmt::Display for Vote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.layer, self.action)?;
        match &self.reason {
            Reason::Rule(rule) => {
                let number = rule.index + 1;
                write!(f, ", by rule {number} of {} ('{}')", rule.op, rule.pattern)?;
                if rule.description.is_empty() {
                    Ok(())
                } else {
                    write!(f, ": {}", rule.description)
                }
            }
            Reason::Default(op) => write!(f, ", the default of {op}"),
            Reason::Unspecified => Ok(()),
            Reason::Refused(refusal) => write!(f, ", {refusal}"),
            Reason::Text(text) => write!(f, ", {text}"),
        }
    }
}

/// The combined decision of all layers: the strongest vote and the others.
///
/// `Display` prints one vote per line, the strongest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    decisive: Vote,
    others: Vec<Vote>,
}

impl Verdict {
    /// Returns the action of the strongest vote.
    pub fn action(&self) -> Action {
        self.decisive.action
    }

    /// Returns the strongest vote. Among equals, the first one wins.
    pub fn decisive(&self) -> &Vote {
        &self.decisive
    }

    /// Returns whether a rule asks about this target, and not only a default, a mount or a
    /// tool's setting.
    pub fn is_asked_by_rule(&self) -> bool {
        self.votes()
            .any(|vote| vote.action == Action::Ask && vote.is_specific())
    }

    /// Returns every vote, the strongest first.
    pub fn votes(&self) -> impl Iterator<Item = &Vote> {
        std::iter::once(&self.decisive).chain(&self.others)
    }

    /// Adds a vote.
    #[must_use]
    pub fn and(mut self, vote: Vote) -> Self {
        if vote.action > self.decisive.action {
            self.others
                .push(std::mem::replace(&mut self.decisive, vote));
        } else if vote.action > Action::Allow || vote.reason != Reason::Unspecified {
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
        let votes: Vec<String> = self.votes().map(ToString::to_string).collect();
        f.write_str(&votes.join("\n"))
    }
}
