//! What the rules say about what was found.

use std::borrow::Cow;
use std::sync::Arc;

use super::CommandReport;
use super::found::{Class, Found, Role, Simple};
use super::pattern::Form;
use crate::rules::{CommandRule, CommandRules};
use crate::verdict::MatchedRule;
use crate::{Action, Layer, Op, Verdict, Vote, Why};

/// More reasons than this are not told.
const MAX_OPAQUE: usize = 64;

/// Judges what was found.
pub(crate) fn report(rules: &CommandRules, found: Found) -> CommandReport {
    let mut votes = Votes::default();
    let mut matched = vec![false; rules.rules.len()];
    let mut by_default = found.simples.is_empty();
    let mut opaque: Vec<&str> = Vec::new();
    for simple in &found.simples {
        let rule = first_match(rules, simple);
        match rule {
            Some((index, _)) => {
                if let Some(slot) = matched.get_mut(index) {
                    *slot = true;
                }
            }
            None => by_default |= simple.role == Role::Plain,
        }
        let named = rule.is_some_and(|(_, rule)| names_program(rule, simple));
        if let Some(text) = simple.opaque.as_deref().filter(|_| !named)
            && opaque.len() < MAX_OPAQUE
            && !opaque.contains(&text)
        {
            opaque.push(text);
        }
    }
    for (index, rule) in rules.rules.iter().enumerate() {
        if matched.get(index) == Some(&true) {
            let rule = MatchedRule::new(
                Op::Execute,
                index,
                rule.pattern.as_str(),
                rule.action,
                &*rule.description,
            );
            votes.add(Vote::new(
                Layer::Rules,
                rule.action,
                Why::Rule(Arc::new(rule)),
            ));
        }
    }
    if by_default {
        let why = Why::Default(Op::Execute);
        votes.add(Vote::new(Layer::Rules, rules.default, why));
    }
    for note in &found.notes {
        votes.add(because(rules, note.class, &note.text));
    }
    for text in opaque {
        votes.add(because(rules, Class::Opaque, text));
    }
    CommandReport {
        verdict: votes.verdict(rules.default),
        understood: !found
            .notes
            .iter()
            .any(|note| note.class == Class::NotUnderstood),
        commands: found.simples.iter().map(Simple::shown).collect(),
        paths: found.paths,
    }
}

fn because(rules: &CommandRules, class: Class, text: &str) -> Vote {
    let (action, word) = match class {
        Class::Dangerous => (rules.dangerous, "dangerous"),
        Class::Opaque => (rules.opaque, "opaque"),
        Class::Computed => (Action::Ask, "computed"),
        // Asking must not loosen a default that denies.
        Class::NotUnderstood => (rules.default.max(Action::Ask), "not understood"),
    };
    let text = Cow::Owned(format!("{word}: {text}"));
    Vote::new(Layer::Command, action, Why::Because(text))
}

/// The first rule that matches a command. A denial or a question matches if the
/// command could be meant, a permission only if nothing else can be.
fn first_match<'r>(rules: &'r CommandRules, simple: &Simple) -> Option<(usize, &'r CommandRule)> {
    let form = Form::new(&simple.words);
    rules
        .rules
        .iter()
        .enumerate()
        .find(|(_, rule)| match rule.action {
            Action::Allow => rule.pattern.compiled().is_all_of(&form),
            Action::Ask | Action::Deny => rule.pattern.compiled().could_be(&form),
        })
}

/// Whether the rule allows the program of `simple` by its name.
fn names_program(rule: &CommandRule, simple: &Simple) -> bool {
    let program = simple.words.first().and_then(|word| word.literal());
    rule.action == Action::Allow
        && program.is_some()
        && rule.pattern.compiled().program() == program
}

#[derive(Default)]
struct Votes(Option<Verdict>);

impl Votes {
    fn add(&mut self, vote: Vote) {
        self.0 = Some(match self.0.take() {
            None => vote.into(),
            Some(verdict) => verdict.and(vote),
        });
    }

    fn verdict(self, default: Action) -> Verdict {
        self.0
            .unwrap_or_else(|| Vote::new(Layer::Rules, default, Why::Default(Op::Execute)).into())
    }
}
