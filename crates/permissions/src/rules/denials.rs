//! [`Denials`]: checks whether a shell glob could name a path that rules deny.
//!
//! The expansion of a glob is not known, so each denial is tried with a sample name that
//! it matches. Denials are looked up by the literal text that they share with the glob,
//! so a glob costs little more with ten thousand of them than with ten.

use std::collections::BTreeMap;
use std::ops::Bound;

use backend_core::VPath;
use command_line::StepBudget;
use command_line::glob::{BracketKind, bracket, name_matches};

use super::PathRules;
use crate::Action;

/// Steps charged for trying one denial, in addition to the names it is compared with.
const STEPS: usize = 8;

/// The patterns of a section that deny, or that ask.
#[derive(Debug, Default)]
pub(super) struct Denials {
    /// The components of each pattern.
    patterns: Vec<Vec<String>>,
    /// Patterns that begin at the root, by the text before their first wildcard.
    anchored: BTreeMap<String, Vec<usize>>,
    /// Patterns for any depth, by a name that they match, and by that name reversed.
    by_start: BTreeMap<String, Vec<usize>>,
    by_end: BTreeMap<String, Vec<usize>>,
}

/// The component that stands for everything beneath a directory.
const BENEATH: &str = "**";

impl Denials {
    /// Collects the patterns of the rules with the given `action`.
    pub(super) fn new(rules: &PathRules, action: Action, working_dir: &VPath) -> Self {
        let mut denials = Self::default();
        for rule in rules.rules.iter().filter(|rule| rule.action == action) {
            for glob in rule.pattern.glob().from_root(working_dir) {
                denials.add(glob.as_str());
            }
        }
        denials
    }

    fn add(&mut self, glob: &str) {
        let number = self.patterns.len();
        let names = glob.split('/').filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        if names.first().is_some_and(|first| first == BENEATH) {
            names.remove(0);
            let Some(first) = names.first().map(|name| sample(name)) else {
                return;
            };
            let reversed = first.chars().rev().collect();
            self.by_end.entry(reversed).or_default().push(number);
            self.by_start.entry(first).or_default().push(number);
        } else {
            let literal = glob.split(WILD).next().unwrap_or_default();
            let literal = literal.replace('\\', "");
            self.anchored.entry(literal).or_default().push(number);
        }
        self.patterns.push(names);
    }

    /// Returns the first result of `judge` for a path that the absolute `glob` could
    /// expand to and that a pattern matches.
    pub(super) fn first<T>(
        &self,
        glob: &str,
        budget: &StepBudget<'_>,
        mut judge: impl FnMut(&VPath) -> Option<T>,
    ) -> Option<T> {
        let names: Vec<&str> = glob.split('/').filter(|name| !name.is_empty()).collect();
        let mut judge = |names: &[String]| {
            if !budget.charge(STEPS) {
                return None;
            }
            judge(&VPath::parse(&format!("/{}", names.join("/"))).ok()?)
        };
        // Try the glob's own literal text.
        if names.last().is_some_and(|last| spells(last)) {
            let sampled: Vec<String> = names.iter().map(|name| sample(name)).collect();
            if let Some(found) = judge(&sampled) {
                return Some(found);
            }
        }
        let mut attempt = |number: &usize, from: usize| {
            if !budget.charge(STEPS + names.len()) {
                return None;
            }
            let path = fit(self.patterns.get(*number)?, &names, from)?;
            judge(&path)
        };
        let literal = glob.split(WILD).next().unwrap_or_default();
        let shorter = (1..literal.len()).filter_map(|end| self.anchored.get(literal.get(..end)?));
        let longer = beginning(&self.anchored, literal);
        for number in shorter.flatten().chain(longer) {
            if let Some(found) = attempt(number, 0) {
                return Some(found);
            }
        }
        for (from, name) in names.iter().enumerate() {
            if !name.contains(WILD) || !spells(name) {
                continue;
            }
            let start = name.split(WILD).next().unwrap_or_default();
            let end: String = name
                .rsplit(ENDS)
                .next()
                .unwrap_or_default()
                .chars()
                .rev()
                .collect();
            let found = if start.is_empty() && !end.is_empty() {
                beginning(&self.by_end, &end).find_map(|number| attempt(number, from))
            } else {
                beginning(&self.by_start, start).find_map(|number| attempt(number, from))
            };
            if found.is_some() {
                return found;
            }
        }
        None
    }
}

/// Characters that start a wildcard in a pattern or glob.
const WILD: [char; 3] = ['*', '?', '['];

/// Characters that end a wildcard.
const ENDS: [char; 3] = ['*', '?', ']'];

/// Returns the values whose keys begin with `start`.
fn beginning<'m>(
    map: &'m BTreeMap<String, Vec<usize>>,
    start: &str,
) -> impl Iterator<Item = &'m usize> {
    let range = map.range::<str, _>((Bound::Included(start), Bound::Unbounded));
    let start = start.to_owned();
    range
        .take_while(move |(key, _)| key.starts_with(&start))
        .flat_map(|(_, numbers)| numbers)
}

/// Returns whether a name with wildcards contains literal text.
fn spells(name: &str) -> bool {
    name.contains(|c: char| !"*?[]!:".contains(c))
}

/// Returns a path that matches both the glob and the pattern, with the pattern starting at
/// the component `from`.
fn fit(pattern: &[String], glob: &[&str], from: usize) -> Option<Vec<String>> {
    let mut path: Vec<String> = glob.iter().map(|name| sample(name)).collect();
    for (number, name) in pattern.iter().enumerate() {
        let at = from + number;
        if name == BENEATH {
            // Naming the directory itself counts only if the glob spells part of its name.
            // A bare `*` names it no more than `.` names the one above.
            let directory = at == glob.len();
            let last = at.checked_sub(1).and_then(|at| glob.get(at));
            return (!directory || last.is_some_and(|last| spells(last))).then_some(path);
        }
        let (written, slot) = (glob.get(at)?, path.get_mut(at)?);
        if written.contains(WILD) {
            let known = sample(name);
            if !name_matches(written, &known) {
                return None;
            }
            *slot = known;
        } else if name != written && !(name.contains(WILD) && name_matches(name, written)) {
            return None;
        }
    }
    Some(path)
}

/// Returns a name that matches a pattern of one component, except for unusual patterns.
fn sample(pattern: &str) -> String {
    let mut name = String::new();
    let chars: Vec<char> = pattern.chars().collect();
    let mut at = 0;
    while let Some(c) = chars.get(at) {
        let rest = chars.get(at..).unwrap_or_default();
        at += 1;
        match (c, bracket(|at| Some((*rest.get(at)?, false)))) {
            ('*', _) => {}
            ('?', _) => name.push('x'),
            ('\\', _) => {
                name.extend(chars.get(at));
                at += 1;
            }
            (_, Some((len, reading))) => {
                at += len - 1;
                let first = rest.get(1).filter(|c| !matches!(c, '!' | '^' | ':'));
                let first = first.filter(|_| reading == BracketKind::Exact);
                name.push(*first.unwrap_or(&'x'));
            }
            (c, None) => name.push(*c),
        }
    }
    match name {
        name if name.is_empty() => "x".to_owned(),
        // A suffix alone would be a hidden file.
        name if name.starts_with('.') && pattern.starts_with('*') => format!("x{name}"),
        name if name.ends_with('.') => format!("{name}x"),
        name => name,
    }
}
