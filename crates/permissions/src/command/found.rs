//! The findings about a command line.

use std::ops::Range;

use super::word::Word;
use super::work::Work;
use super::{CommandContext, NamedPath, Trouble};

/// Limits of the commands, paths and notes that are kept.
const MAX_COMMANDS: usize = 10_000;
const MAX_PATHS: usize = 4096;
const MAX_NOTES: usize = 64;

/// The kind of a note, which decides the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// Destroys a system, or gives control of it away.
    Dangerous,
    /// Runs code that no rule can see.
    Opaque,
    /// Its effect is known only when it runs.
    Computed,
    /// Could not be understood.
    NotUnderstood,
}

/// A reason not to allow a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) class: Class,
    pub(crate) text: String,
}

/// The role of a command: whether it needs a rule that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Needs a rule that allows it.
    Plain,
    /// Only the command it runs needs such a rule. A rule can still deny the wrapper or
    /// ask about it.
    Wrapper,
}

/// One command with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
    pub(crate) role: Role,
    /// The reason why the code it runs cannot be seen, if so.
    pub(crate) opaque: Option<String>,
}

impl Simple {
    pub(crate) fn shown(&self) -> String {
        let words: Vec<_> = self.words.iter().map(Word::shown).collect();
        words.join(" ")
    }
}

/// A point of the walk: the number of commands and paths found up to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    simples: usize,
    paths: usize,
}

/// Everything found in a command line.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) simples: Vec<Simple>,
    /// Number of commands that download or decode something.
    pub(crate) fetchers: usize,
    pub(crate) notes: Vec<Note>,
    pub(crate) paths: Vec<NamedPath>,
    /// Whether a list has reached its limit.
    full: bool,
}

impl Found {
    pub(crate) fn trouble(&mut self, trouble: Trouble) {
        self.note(Class::NotUnderstood, trouble.0.to_owned());
    }

    pub(crate) fn note(&mut self, class: Class, text: String) {
        let note = Note { class, text };
        // The first note of a class is always kept, so a danger is never left out.
        let room =
            self.notes.len() < MAX_NOTES || !self.notes.iter().any(|other| other.class == class);
        if room && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn simple(&mut self, simple: Simple) {
        if self.simples.len() < MAX_COMMANDS {
            self.simples.push(simple);
        } else {
            self.overflow();
        }
    }

    pub(crate) fn path(&mut self, path: NamedPath) {
        if self.paths.len() >= MAX_PATHS {
            self.overflow();
        } else if self.paths.last() != Some(&path) {
            self.paths.push(path);
        }
    }

    /// Returns the number of commands and paths so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            simples: self.simples.len(),
            paths: self.paths.len(),
        }
    }

    /// Drops what was found since `from` if it is what was found before, in the range
    /// `first`. Something that is walked twice is then listed once.
    pub(crate) fn forget_repeated(&mut self, first: &Range<Mark>, from: Mark) {
        let (start, end) = (first.start, first.end);
        let known = self.simples.get(start.simples..end.simples);
        if from.simples >= end.simples && known == self.simples.get(from.simples..) {
            self.simples.truncate(from.simples);
        }
        let known = self.paths.get(start.paths..end.paths);
        if from.paths >= end.paths && known == self.paths.get(from.paths..) {
            self.paths.truncate(from.paths);
        }
    }

    fn overflow(&mut self) {
        if !std::mem::replace(&mut self.full, true) {
            self.trouble(Trouble("it runs or names too many things to look at"));
        }
    }
}

/// Analyzes a command line.
#[cfg(feature = "shell")]
pub(crate) fn find(context: CommandContext<'_>, work: &Work<'_>) -> Found {
    super::walk::Walk::new(context, work).all()
}

/// Without the `shell` feature there is no parser, so nothing is understood.
#[cfg(not(feature = "shell"))]
pub(crate) fn find(_: CommandContext<'_>, _: &Work<'_>) -> Found {
    let mut found = Found::default();
    found.trouble(Trouble("this build cannot read commands"));
    found
}
