//! The paths that a ruleset leaves out of listings and searches, or keeps from commands.

use std::borrow::Cow;

use backend_core::VPath;
use backend_core::search::{Exclude, ExcludeAction, Glob};

use super::preset::is_system_rule;
use super::section::{Reach, parts};
use super::{PathRule, PathRules, Ruleset};
use crate::{Action, Op};

/// The globs of one layer. Paths beneath a match have their own globs, so nothing depends
/// on how an [`Exclude`] treats them.
type Layer = Vec<(Glob, ExcludeAction)>;

/// Returns the entries that `op` leaves out of its results; none if it has no results.
pub(super) fn exclude(ruleset: &Ruleset, op: Op, working_dir: &VPath) -> Exclude {
    let layer = |op, decide| layer(&section(ruleset, op), working_dir, decide);
    let layers = match op {
        Op::Ls | Op::Glob => vec![layer(op, denied), layer(Op::Read, unnamed)],
        Op::Grep => vec![layer(op, denied), layer(Op::Read, unshown)],
        _ => Vec::new(),
    };
    Exclude::from_globs(layers)
}

/// Returns the paths for which any of `ops` is denied. Preset rules about system files do
/// not count `inside` a directory that only the backend calls its root.
pub(super) fn denied_by_any(
    ruleset: &Ruleset,
    ops: &[Op],
    working_dir: &VPath,
    inside: bool,
) -> Exclude {
    let mut layers: Vec<Layer> = Vec::new();
    for op in ops {
        let mut section = section(ruleset, *op);
        if inside {
            section.to_mut().rules.retain(|rule| !is_system_rule(rule));
        }
        let layer = layer(&section, working_dir, denied);
        if !layers.contains(&layer) {
            layers.push(layer);
        }
    }
    Exclude::from_globs(layers)
}

/// Returns the section that judges `op`: one without rules if there is none.
fn section(ruleset: &Ruleset, op: Op) -> Cow<'_, PathRules> {
    let own = match op {
        Op::Delete => ruleset.delete.as_ref().or(ruleset.write.as_ref()),
        op => ruleset.section(op),
    };
    let default = match op {
        // They add nothing to the operations they consist of.
        Op::Move | Op::Copy => Action::Allow,
        _ => ruleset.default,
    };
    own.map_or_else(
        || {
            Cow::Owned(PathRules {
                default,
                rules: Vec::new(),
            })
        },
        Cow::Borrowed,
    )
}

/// Decides whether paths that a rule reaches are left out. `None` leaves the decision to
/// a later rule. Without a rule, it decides for the section's default.
type Decide = fn(Action, Option<(&PathRule, Reach)>) -> Option<ExcludeAction>;

/// Leaves out paths that are denied.
fn denied(action: Action, by: Option<(&PathRule, Reach)>) -> Option<ExcludeAction> {
    match (action, by) {
        (Action::Deny, _) => Some(ExcludeAction::Hide),
        (_, Some((_, Reach::Inside))) => None,
        _ => Some(ExcludeAction::Keep),
    }
}

/// Leaves out paths that a rule denies and hides. Other denials leave it to later rules.
fn unnamed(action: Action, by: Option<(&PathRule, Reach)>) -> Option<ExcludeAction> {
    match (action, by) {
        (Action::Deny, Some((rule, _))) => rule.hide.then_some(ExcludeAction::Hide),
        (_, Some((_, Reach::Inside))) => None,
        _ => Some(ExcludeAction::Keep),
    }
}

/// Leaves out content that may not be shown, or not without an approval that is missing.
/// If the default is to ask, the question comes before the search.
fn unshown(action: Action, by: Option<(&PathRule, Reach)>) -> Option<ExcludeAction> {
    match (action, by) {
        (Action::Deny, _) | (Action::Ask, Some(_)) => Some(ExcludeAction::Hide),
        _ => Some(ExcludeAction::Keep),
    }
}

fn layer(section: &PathRules, working_dir: &VPath, decide: Decide) -> Layer {
    let mut layer = Vec::new();
    for part in parts(section, working_dir) {
        if let Some(rule) = section.rules.get(part.rule)
            && let Some(action) = decide(rule.action, Some((rule, part.reach)))
        {
            layer.push((part.glob, action));
        }
    }
    if decide(section.default, None) == Some(ExcludeAction::Hide) {
        layer.push((Glob::everything(), ExcludeAction::Hide));
    }
    // Paths are kept by default, so trailing rules that keep are not needed.
    let needed = layer
        .iter()
        .rposition(|(_, action)| *action == ExcludeAction::Hide)
        .map_or(0, |last| last + 1);
    layer.truncate(needed);
    layer
}
