//! The findings about a command line.

use std::fmt;
use std::ops::Range;

use crate::error::ParseError;
use crate::named_path::NamedPath;
use crate::word::Word;

/// Limits of the commands, paths and notes that are kept.
const MAX_COMMANDS: usize = 10_000;
const MAX_PATHS: usize = 4096;
const MAX_NOTES: usize = 64;

/// The kind of a [`Note`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NoteKind {
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
#[non_exhaustive]
pub struct Note {
    /// The kind of the reason.
    pub kind: NoteKind,
    /// The reason in words. The line is "it".
    pub text: String,
}

/// The role of a command: whether it needs a rule that allows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Needs a rule that allows it.
    Plain,
    /// Only the command it runs needs one. A rule can still deny it or ask about it.
    Wrapper,
}

/// One command with its arguments. Prints as its words, separated by blanks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SimpleCommand {
    /// The program and its arguments. Empty if only redirects are given.
    pub words: Vec<Word>,
    /// Whether the command needs a rule of its own.
    pub role: Role,
    /// The reason why the code it runs cannot be seen, if so.
    pub opaque: Option<String>,
}

impl fmt::Display for SimpleCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<_> = self.words.iter().map(Word::shown).collect();
        f.write_str(&words.join(" "))
    }
}

/// A point of the walk: the number of commands and paths found up to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark {
    commands: usize,
    paths: usize,
}

/// Everything found in a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Findings {
    /// The commands it would run. One that another command runs comes before it.
    pub commands: Vec<SimpleCommand>,
    /// The reasons not to allow it.
    pub notes: Vec<Note>,
    /// The paths it names.
    pub paths: Vec<NamedPath>,
    /// Number of commands that download or decode something.
    pub(crate) fetchers: usize,
    /// Whether the analysis was given up.
    pub(crate) exhausted: bool,
    /// Whether a list has reached its limit.
    full: bool,
}

impl Findings {
    /// Creates empty findings. No public `Default`: they say that a line does nothing.
    pub(crate) fn new() -> Self {
        Self {
            commands: Vec::new(),
            notes: Vec::new(),
            paths: Vec::new(),
            fetchers: 0,
            exhausted: false,
            full: false,
        }
    }

    /// Creates the findings about a line that is not understood.
    pub fn unreadable(reason: &str) -> Self {
        let mut findings = Self::new();
        findings.note(NoteKind::NotUnderstood, reason);
        findings
    }

    /// Returns whether the whole line was understood. If not, it may run commands and use
    /// paths that are not listed.
    pub fn is_understood(&self) -> bool {
        let is_about_reading = |note: &Note| note.kind == NoteKind::NotUnderstood;
        !self.exhausted && !self.notes.iter().any(is_about_reading)
    }

    pub(crate) fn not_understood(&mut self, error: ParseError) {
        self.note(NoteKind::NotUnderstood, error.0);
    }

    pub(crate) fn note(&mut self, kind: NoteKind, text: impl Into<String>) {
        let text = text.into();
        let note = Note { kind, text };
        // The first note of a kind is always kept, so a danger is never left out.
        let room =
            self.notes.len() < MAX_NOTES || !self.notes.iter().any(|other| other.kind == kind);
        if room && !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    pub(crate) fn push_command(&mut self, command: SimpleCommand) {
        if self.commands.len() < MAX_COMMANDS {
            self.commands.push(command);
        } else {
            self.overflow();
        }
    }

    pub(crate) fn push_path(&mut self, path: NamedPath) {
        if self.paths.len() >= MAX_PATHS {
            self.overflow();
        } else if self.paths.last() != Some(&path) {
            self.paths.push(path);
        }
    }

    /// Returns the number of commands and paths so far.
    pub(crate) fn mark(&self) -> Mark {
        Mark {
            commands: self.commands.len(),
            paths: self.paths.len(),
        }
    }

    /// Drops what was found since `from` if it is what was found before, in the range
    /// `first`. Something that is walked twice is then listed once.
    pub(crate) fn forget_repeated(&mut self, first: &Range<Mark>, from: Mark) {
        let (start, end) = (first.start, first.end);
        let known = self.commands.get(start.commands..end.commands);
        if from.commands >= end.commands && known == self.commands.get(from.commands..) {
            self.commands.truncate(from.commands);
        }
        let known = self.paths.get(start.paths..end.paths);
        if from.paths >= end.paths && known == self.paths.get(from.paths..) {
            self.paths.truncate(from.paths);
        }
    }

    fn overflow(&mut self) {
        if !std::mem::replace(&mut self.full, true) {
            self.not_understood(ParseError("it runs or names too many things to look at"));
        }
    }
}
