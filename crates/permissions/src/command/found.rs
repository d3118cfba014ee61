//! What was found in a command line.

use super::word::Word;
use super::work::Work;
use super::{CommandContext, NamedPath, Trouble};

/// More commands, paths or findings than this are not told apart.
const MAX_COMMANDS: usize = 10_000;
const MAX_PATHS: usize = 4096;
const MAX_NOTES: usize = 64;

/// How a finding is to be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// It destroys a system or hands it over.
    Dangerous,
    /// It runs code that no rule can see.
    Opaque,
    /// What it does is known only when it runs.
    Computed,
    /// It was not understood.
    NotUnderstood,
}

/// Something that speaks against a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    pub(crate) class: Class,
    pub(crate) text: String,
}

/// Whether a command needs a rule that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It does.
    Plain,
    /// Only what it runs does: a rule can speak against it, but not for it.
    Wrapper,
}

/// One command with its arguments.
#[derive(Debug, Clone)]
pub(crate) struct Simple {
    pub(crate) words: Vec<Word>,
    pub(crate) role: Role,
    /// Why the code it runs cannot be seen.
    pub(crate) opaque: Option<String>,
}

impl Simple {
    pub(crate) fn shown(&self) -> String {
        let words: Vec<_> = self.words.iter().map(Word::shown).collect();
        words.join(" ")
    }
}

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) simples: Vec<Simple>,
    /// How many of them download or decode something.
    pub(crate) fetchers: usize,
    pub(crate) notes: Vec<Note>,
    pub(crate) paths: Vec<NamedPath>,
    /// Whether a list is longer than its maximum.
    full: bool,
}

impl Found {
    pub(crate) fn trouble(&mut self, trouble: Trouble) {
        self.note(Class::NotUnderstood, trouble.0.to_owned());
    }

    pub(crate) fn note(&mut self, class: Class, text: String) {
        let note = Note { class, text };
        // A danger is never left out, however many other findings there are.
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

    fn overflow(&mut self) {
        if !std::mem::replace(&mut self.full, true) {
            self.trouble(Trouble("it runs or names too many things to look at"));
        }
    }
}

/// Takes a line apart.
#[cfg(feature = "shell")]
pub(crate) fn find(context: CommandContext<'_>, work: &Work<'_>) -> Found {
    super::walk::Walk::new(context, work).all()
}

/// Without a grammar nothing is understood.
#[cfg(not(feature = "shell"))]
pub(crate) fn find(_: CommandContext<'_>, _: &Work<'_>) -> Found {
    let mut found = Found::default();
    found.trouble(Trouble("this build cannot read commands"));
    found
}
