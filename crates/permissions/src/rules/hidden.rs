//! What a ruleset leaves out of listings and searches.

use backend_core::VPath;
use backend_core::search::{Exclude, ExcludeAction, Glob};

use super::section::{Reach, parts};
use super::{PathRule, PathRules, Ruleset};
use crate::{Action, Op};

/// The paths of one layer. The rules' own words about what lies beneath are
/// spelled out, so nothing depends on what an [`Exclude`] makes of it.
type Layer = Vec<(Glob, ExcludeAction)>;

/// What `op` leaves out of its results; nothing if it has none.
pub(super) fn exclude(ruleset: &Ruleset, op: Op, working_dir: &VPath) -> Exclude {
    let layer = |op, decide| layer(ruleset, op, working_dir, decide);
    let layers = match op {
        Op::Ls | Op::Glob => vec![layer(op, denied), layer(Op::Read, unnamed)],
        Op::Grep => vec![layer(op, denied), layer(Op::Read, unshown)],
        _ => Vec::new(),
    };
    Exclude::from_globs(layers)
}

/// Decides whether what a rule reaches is left out; `None` if a later rule says.
/// Without a rule it is about the section's default.
type Decide = fn(Action, Option<(&PathRule, Reach)>) -> Option<ExcludeAction>;

/// Leaves out what is denied.
fn denied(action: Action, by: Option<(&PathRule, Reach)>) -> Option<ExcludeAction> {
    match (action, by) {
        (Action::Deny, _) => Some(ExcludeAction::Hide),
        (_, Some((_, Reach::Inside))) => None,
        _ => Some(ExcludeAction::Keep),
    }
}

/// Leaves out what a rule denies and hides. Another denial does not show it.
fn unnamed(action: Action, by: Option<(&PathRule, Reach)>) -> Option<ExcludeAction> {
    match (action, by) {
        (Action::Deny, Some((rule, _))) => rule.hide.then_some(ExcludeAction::Hide),
        (_, Some((_, Reach::Inside))) => None,
        _ => Some(ExcludeAction::Keep),
    }
}

/// Leaves out content that may not be shown, or not without a yes that nobody
/// gave. A question about everything by default is asked before the search.
fn unshown(action: Action, by: Option<(&PathRule, Reach)>) -> Option<ExcludeAction> {
    match (action, by) {
        (Action::Deny, _) | (Action::Ask, Some(_)) => Some(ExcludeAction::Hide),
        _ => Some(ExcludeAction::Keep),
    }
}

fn layer(ruleset: &Ruleset, op: Op, working_dir: &VPath, decide: Decide) -> Layer {
    let without = PathRules {
        default: ruleset.default,
        rules: Vec::new(),
    };
    let section = ruleset.section(op).unwrap_or(&without);
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
    // What is kept anyhow needs no rule.
    let needed = layer
        .iter()
        .rposition(|(_, action)| *action == ExcludeAction::Hide)
        .map_or(0, |last| last + 1);
    layer.truncate(needed);
    layer
}
