//! Applies the rules to the findings about a line.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use command_line::{Findings, NoteKind, Role, SimpleCommand, StepBudget, Word};

use super::{CommandPolicy, CommandReport};
use crate::action::{Action, Op};
use crate::refusal::Refusal;
use crate::rules::command_pattern::Form;
use crate::rules::{CommandRule, CommandRules};
use crate::verdict::{DANGEROUS, Layer, MatchedRule, Reason, Verdict, Vote};

/// The maximum number of opaque commands that are reported.
const MAX_OPAQUE: usize = 64;

/// Finds the rules that can apply to a program, so the others need not be tried.
#[derive(Debug, Clone, Default)]
pub(crate) struct Index {
    /// Rules by the program name that their pattern spells out.
    named: HashMap<String, Vec<usize>>,
    /// Rules whose pattern spells out no program name.
    others: Vec<usize>,
    all: Vec<usize>,
}

impl Index {
    pub(crate) fn new(rules: &[CommandRule]) -> Self {
        let mut index = Self::default();
        for (at, rule) in rules.iter().enumerate() {
            index.all.push(at);
            match rule.pattern.compiled().program() {
                Some(program) => index.named.entry(program.to_owned()).or_default().push(at),
                None => index.others.push(at),
            }
        }
        index
    }

    /// Returns the rules that can apply to `program`, in order. A pattern matches the
    /// program as written, or its name in lower case.
    fn candidates(&self, program: Option<&str>) -> Vec<usize> {
        let Some(program) = program else {
            return self.all.clone();
        };
        let base = program.rsplit('/').next().unwrap_or(program);
        let base = base.to_ascii_lowercase();
        let spellings = [Some(program), Some(&*base).filter(|base| *base != program)];
        let named = spellings
            .into_iter()
            .flatten()
            .filter_map(|name| self.named.get(name))
            .flatten();
        let mut all: Vec<usize> = named.chain(&self.others).copied().collect();
        all.sort_unstable();
        all
    }
}

/// Judges the findings about a line.
pub(crate) fn report(
    policy: &CommandPolicy,
    findings: Findings,
    budget: &StepBudget<'_>,
) -> CommandReport {
    let rules = &policy.rules;
    let mut votes = Vec::new();
    let mut matched = BTreeSet::new();
    let mut by_default = findings.commands.is_empty();
    let mut opaque: Vec<&str> = Vec::new();
    for command in &findings.commands {
        let rule = first_match(policy, command, budget);
        matched.extend(rule.map(|(index, _)| index));
        by_default |= rule.is_none() && command.role == Role::Plain;
        let named = rule.is_some_and(|(_, rule)| names_program(rule, command));
        if let Some(text) = command.opaque.as_deref().filter(|_| !named)
            && opaque.len() < MAX_OPAQUE
            && !opaque.contains(&text)
        {
            opaque.push(text);
        }
    }
    for index in matched {
        if let Some(rule) = rules.rules.get(index) {
            let matched = MatchedRule {
                op: Op::Execute,
                index,
                pattern: rule.pattern.to_string(),
                action: rule.action,
                description: rule.description.clone(),
            };
            let why = Reason::Rule(Arc::new(matched));
            votes.push(Vote::new(Layer::Rules, rule.action, why));
        }
    }
    let default = Vote::new(Layer::Rules, rules.default, Reason::Default(Op::Execute));
    if by_default {
        votes.push(default.clone());
    }
    let notes = findings.notes.iter().map(|note| (note.kind, &*note.text));
    let opaque = opaque.into_iter().map(|text| (NoteKind::Opaque, text));
    votes.extend(
        notes
            .chain(opaque)
            .map(|(kind, text)| because(rules, kind, text)),
    );
    if budget.is_spent() {
        votes.push(too_complicated());
    }
    let verdicts = votes.into_iter().map(Verdict::from);
    CommandReport {
        verdict: verdicts
            .reduce(Verdict::and_all)
            .unwrap_or_else(|| default.into()),
        steps: budget.steps(),
        understood: !budget.is_spent() && findings.is_understood(),
        commands: findings.commands.iter().map(ToString::to_string).collect(),
        paths: findings.paths,
    }
}

fn because(rules: &CommandRules, kind: NoteKind, text: &str) -> Vote {
    let (action, word) = match kind {
        NoteKind::Dangerous => (rules.dangerous, DANGEROUS),
        NoteKind::Opaque => (rules.opaque, "opaque"),
        NoteKind::Computed => (Action::Ask, "computed"),
        // Asking must not relax a default that denies.
        NoteKind::NotUnderstood => (rules.default.max(Action::Ask), "not understood"),
    };
    let text = format!("{word}: {text}");
    Vote::new(Layer::Command, action, Reason::Text(text.into()))
}

/// Denies a line that takes too many steps to judge.
pub(crate) fn too_complicated() -> Vote {
    let why = Reason::Refused(Arc::new(Refusal::TooComplicated));
    Vote::new(Layer::Command, Action::Deny, why)
}

/// Finds the first rule that matches a command: one that denies or asks if the command
/// could fit its pattern, one that allows only if it must.
fn first_match<'r>(
    policy: &'r CommandPolicy,
    command: &SimpleCommand,
    budget: &StepBudget<'_>,
) -> Option<(usize, &'r CommandRule)> {
    let program = command.words.first().map(Word::literal);
    // A command without words is treated like one whose program is not known.
    let candidates = policy.index.candidates(program.flatten());
    let form = Form::new(&command.words);
    for at in candidates {
        let rule = policy.rules.rules.get(at)?;
        let pattern = rule.pattern.compiled();
        if !budget.charge(pattern.cost(&form)) {
            return None;
        }
        let matches = match rule.action {
            Action::Allow => pattern.is_all_of(&form),
            Action::Ask | Action::Deny => pattern.could_be(&form),
        };
        if matches {
            return Some((at, rule));
        }
    }
    None
}

/// Whether the rule allows the program of `command` by name.
fn names_program(rule: &CommandRule, command: &SimpleCommand) -> bool {
    let program = command.words.first().and_then(|word| word.literal());
    rule.action == Action::Allow
        && program.is_some()
        && rule.pattern.compiled().program() == program
}
