//! One section of a ruleset, compiled.

use std::sync::Arc;

use backend_core::VPath;
use backend_core::search::{Glob, GlobSet};

use super::PathRules;
use super::pattern::EVERYTHING;
use super::preset::is_about_system;
use crate::verdict::MatchedRule;
use crate::{Action, Layer, Op, Reason, Vote};

/// The way a rule applies to a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// The pattern covers the path.
    Path,
    /// The pattern covers a directory above the path, and the rule protects its contents.
    Inside,
}

/// A glob and the rule it comes from.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) glob: Glob,
    pub(super) reach: Reach,
    /// The rule's index in its section.
    pub(super) rule: usize,
}

/// Returns the globs of `rules`, from the root, in the order of the rules.
///
/// A rule that denies or asks also reaches everything beneath a match. A rule that allows
/// reaches only the paths that its pattern covers.
pub(super) fn parts(rules: &PathRules, working_dir: &VPath) -> Vec<Part> {
    let mut parts = Vec::new();
    for (rule, written) in rules.rules.iter().enumerate() {
        let part = |glob, reach| Part { glob, reach, rule };
        let covered = written.pattern.covered(working_dir);
        let mut inside: Vec<_> = covered.iter().map(Glob::beneath).collect();
        inside.retain(|glob| written.action != Action::Allow && !covered.contains(glob));
        parts.extend(covered.into_iter().map(|glob| part(glob, Reach::Path)));
        parts.extend(inside.into_iter().map(|glob| part(glob, Reach::Inside)));
    }
    parts
}

/// The rules of one operation.
#[derive(Debug)]
pub(super) struct Section {
    /// The section that contains the rules.
    op: Op,
    default: Action,
    set: GlobSet,
    /// For each glob of the set, how its rule reaches a match, and the rule.
    reached: Vec<(Reach, Arc<MatchedRule>)>,
    /// The first rule that covers every path.
    last: Option<Arc<MatchedRule>>,
    /// The most lenient action for any path.
    pub(super) most_lenient: Action,
}

impl Section {
    /// Creates a section without rules.
    pub(super) fn empty(op: Op, default: Action) -> Self {
        Self {
            op,
            default,
            set: GlobSet::new([]),
            reached: Vec::new(),
            last: None,
            most_lenient: default,
        }
    }

    /// Compiles the section `rules` of `op`.
    pub(super) fn new(op: Op, rules: &PathRules, working_dir: &VPath) -> Self {
        let mut section = Self::empty(op, rules.default);
        let matched: Vec<_> = rules
            .rules
            .iter()
            .enumerate()
            .map(|(index, rule)| {
                Arc::new(MatchedRule {
                    op,
                    index,
                    pattern: rule.pattern.to_string(),
                    action: rule.action,
                    description: rule.description.clone(),
                })
            })
            .collect();
        let mut globs = Vec::new();
        for part in parts(rules, working_dir) {
            let Some(rule) = matched.get(part.rule) else {
                continue;
            };
            if section.last.is_none() && part.glob.as_str() == EVERYTHING {
                section.last = Some(Arc::clone(rule));
            }
            section.reached.push((part.reach, Arc::clone(rule)));
            globs.push(part.glob);
        }
        section.set = GlobSet::new(globs);
        let end = section.last.as_ref().map(|rule| rule.index);
        let counted = matched.iter().take(end.map_or(usize::MAX, |end| end + 1));
        let default = end.is_none().then_some(rules.default);
        let actions = counted.map(|rule| rule.action).chain(default);
        section.most_lenient = actions.min().unwrap_or(rules.default);
        section
    }

    /// Returns the vote of the rules about `path`.
    ///
    /// The first rule that reaches the path decides. The exception is a question about a
    /// directory above it: a later rule may still deny, but none can allow without the
    /// question.
    ///
    /// `inside` has the meaning it has in [`Rules::judge_as`](super::Rules::judge_as).
    pub(super) fn judge(&self, path: &VPath, inside: bool) -> Vote {
        let mut question = None;
        let mut decisive = None;
        if path.is_root() {
            decisive = self.last.as_ref();
        }
        let relative = path.as_str().strip_prefix('/').unwrap_or_default();
        for at in self.set.matches(relative) {
            match self.reached.get(at) {
                Some((_, rule)) if inside && is_about_system(rule) => {}
                Some((Reach::Inside, rule)) if rule.action == Action::Ask => {
                    question.get_or_insert(rule);
                }
                found => {
                    decisive = found.map(|(_, rule)| rule);
                    break;
                }
            }
        }
        let action = decisive.map_or(self.default, |rule| rule.action);
        match question.filter(|_| action < Action::Deny).or(decisive) {
            Some(rule) => Vote::new(Layer::Rules, rule.action, Reason::Rule(Arc::clone(rule))),
            None => Vote::new(Layer::Rules, self.default, Reason::Default(self.op)),
        }
    }

    /// Returns the strongest action that an entry beneath `directory` could get.
    pub(super) fn strongest_beneath(&self, directory: &VPath) -> Action {
        let root = VPath::root();
        let mut strongest = Action::Allow;
        for (glob, (reach, rule)) in self.set.globs().iter().zip(&self.reached) {
            if strongest == Action::Deny {
                break;
            }
            if !glob.may_match_beneath(&root, directory) {
                continue;
            }
            strongest = strongest.max(rule.action);
            let goes_on = *reach == Reach::Inside && rule.action == Action::Ask;
            if !goes_on && glob.matches_all_beneath(&root, directory) {
                return strongest;
            }
        }
        strongest.max(self.default)
    }
}
