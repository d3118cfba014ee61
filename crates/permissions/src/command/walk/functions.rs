//! Functions that a line defines, and the detection of fork bombs among them.

use std::collections::{HashMap, HashSet};

use crate::command::tables;
use crate::command::work::Work;

#[derive(Debug)]
struct Function {
    name: String,
    calls: Vec<String>,
    /// Whether it starts another process.
    forks: bool,
}

/// The functions of a line.
#[derive(Debug, Default)]
pub(super) struct Functions {
    all: Vec<Function>,
    /// Indexes of those whose bodies are being walked.
    within: Vec<usize>,
}

/// The maximum number of functions and calls that are checked. A fork bomb needs few.
const MAX: usize = 256;

impl Functions {
    pub(super) fn enter(&mut self, name: &str) {
        self.within.push(self.all.len());
        self.all.push(Function {
            name: name.to_owned(),
            calls: Vec::new(),
            forks: false,
        });
    }

    pub(super) fn leave(&mut self) {
        self.within.pop();
    }

    pub(super) fn calls(&mut self, program: &str) {
        for at in &self.within {
            if let Some(function) = self.all.get_mut(*at)
                && function.calls.len() < MAX
            {
                function.calls.push(program.to_owned());
            }
        }
    }

    pub(super) fn forks(&mut self) {
        for at in &self.within {
            if let Some(function) = self.all.get_mut(*at) {
                function.forks = true;
            }
        }
    }

    /// Whether a function starts processes and calls itself again, directly or through
    /// others.
    pub(super) fn explode(&self, work: &Work<'_>) -> bool {
        let mut named: HashMap<&str, Vec<&Function>> = HashMap::new();
        for function in &self.all {
            named.entry(&function.name).or_default().push(function);
        }
        self.all.iter().take(MAX).any(|start| {
            let mut reached: Vec<&str> = vec![&start.name];
            let mut known: HashSet<&str> = reached.iter().copied().collect();
            let mut forks = false;
            let mut at = 0;
            while let Some(name) = reached.get(at).copied() {
                at += 1;
                for function in named.get(name).into_iter().flatten() {
                    forks |= function.forks;
                    if !work.charge(1 + function.calls.len()) {
                        return false;
                    }
                    for call in &function.calls {
                        if forks && *call == start.name {
                            return true;
                        }
                        if named.contains_key(call.as_str()) && known.insert(call) {
                            reached.push(call);
                        }
                    }
                }
            }
            false
        })
    }
}

/// Whether a text that does not parse looks like a fork bomb: `:(){:|:&};:` lacks a
/// blank, but is meant as one.
pub(super) fn looks_like_a_bomb(text: &str) -> bool {
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    dense.match_indices("(){").any(|(at, _)| {
        let before = dense.get(..at).unwrap_or_default();
        let name = before
            .rsplit([';', '&', '|', '\n'])
            .next()
            .unwrap_or_default();
        let name = name.strip_prefix("function").unwrap_or(name);
        let body = dense.get(at + 3..).unwrap_or_default();
        !name.is_empty() && body.starts_with(&format!("{name}|{name}"))
    })
}

/// Whether `name` is a program that the tables know.
pub(super) fn is_known_program(name: &str) -> bool {
    let lists = [
        tables::SHELLS,
        tables::OPAQUE,
        tables::DOWNLOADERS,
        tables::DECODERS,
        tables::SETTERS,
        tables::REBINDERS,
        tables::READERS,
        tables::WRITERS,
        tables::COPIERS,
        tables::MODE_CHANGERS,
        tables::SEARCHERS,
        tables::WORDY,
        tables::FORMATTERS,
        tables::STOPPERS,
    ];
    lists.iter().any(|list| list.contains(&name) && name != ":")
        || tables::launcher(name).is_some()
        || tables::program(name).is_some()
        || tables::RUNS.iter().any(|(known, _)| *known == name)
        || tables::OPAQUE_SUBCOMMANDS
            .iter()
            .any(|(known, _)| *known == name)
        || tables::DESTRUCTIVE.iter().any(|(known, _)| *known == name)
        || matches!(
            name,
            "git" | "cd" | "find" | "gfind" | "xargs" | "gxargs" | "eval" | "su" | "runuser"
        )
}
