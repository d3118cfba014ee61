//! Code that may run more than once: the bodies of loops and functions, and the programs
//! of `trap`. It is walked again if the line has changed what it does in the meantime.

use std::ops::Range;
use std::rc::Rc;

use super::{Stdin, Walk};
use crate::directory::Directories;
use crate::findings::Mark;
use crate::shell::ast::Definition;

/// The maximum number of rounds of a loop. There are fewer: each of them adds a
/// directory, or the name of a file or function, and few are kept.
const MAX_ROUNDS: usize = 32;

/// The maximum number of programs of `trap`.
const MAX_TRAPS: usize = 8;

/// The cost of calling a function, besides its body.
const CALL_STEPS: usize = 8;

/// The effects of the line so far that decide what its next commands do.
#[derive(Debug, Clone)]
pub(super) struct State<'a> {
    pub(super) dirs: Directories<'a>,
    counts: Counts,
}

/// The numbers of things that are only ever added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counts {
    written: usize,
    made_links: usize,
    values: usize,
    definitions: usize,
    moved: Stdin,
}

impl<'a> State<'a> {
    fn is_same(&self, other: &Self) -> bool {
        self.counts == other.counts && self.dirs.is_same(&other.dirs)
    }

    /// Whether code that was walked in this state need not be walked in `other`. If it is
    /// `nested`, only the directories count.
    pub(super) fn covers(&self, other: &Self, nested: bool) -> bool {
        let same = self.counts == other.counts
            || nested && self.counts.definitions == other.counts.definitions;
        // In an unknown directory, no more would be found.
        let unknown = self.dirs.unknown && other.dirs.unknown;
        same && (unknown || self.dirs.includes(&other.dirs))
    }

    /// Adds a later state, or replaces this if more than the directories has changed.
    pub(super) fn merge(&mut self, later: Self) {
        if self.counts == later.counts {
            self.dirs.merge(later.dirs);
        } else {
            *self = later;
        }
    }
}

/// A program of `trap`.
#[derive(Debug)]
pub(super) struct Trap<'a> {
    program: String,
    /// The state in which it was walked last.
    walked: State<'a>,
    /// The findings of its first walk.
    found: Range<Mark>,
}

impl<'a> Walk<'a> {
    fn state(&self) -> State<'a> {
        State {
            dirs: self.dirs.clone(),
            counts: Counts {
                written: self.written.len(),
                made_links: self.made_links.len(),
                values: self.values.len(),
                definitions: self.functions.changes,
                moved: self.moved,
            },
        }
    }

    /// Walks a body over and over, each time from where it may have ended before, until
    /// that adds nothing. `round` walks it once, and returns whether it may run again.
    pub(super) fn rounds(&mut self, mut round: impl FnMut(&mut Self) -> bool) {
        let mut before = self.state();
        let from = self.findings.mark();
        if !round(self) {
            return;
        }
        let first = from..self.findings.mark();
        for _ in 0..MAX_ROUNDS {
            self.dirs.merge(before.dirs.clone());
            let reached = self.state();
            let goes_on = if before.dirs.unknown {
                reached.counts != before.counts
            } else {
                reached.counts != before.counts || reached.dirs.exceeds(&before.dirs)
            };
            if !goes_on || !self.budget.charge(self.dirs.weight()) {
                return;
            }
            // If the body goes to a computed directory, that is all that is known about
            // the next round: a `cd ..` in it most likely leads back.
            if reached.dirs.unknown {
                self.dirs = before.dirs.clone();
                self.dirs.unknown = true;
            }
            let from = self.findings.mark();
            round(self);
            self.findings.forget_repeated(&first, from);
            if reached.dirs.unknown {
                return self.dirs.merge(reached.dirs);
            }
            before = reached;
        }
        self.dirs.unknown = true;
    }

    /// Registers a function, and walks its body as if it were called here, since the
    /// line may not show where it is called.
    pub(super) fn define(&mut self, name: &str, definition: &Rc<Definition>) {
        let Some(function) = self.functions.add(name, definition) else {
            return self.not_understood("a function in it is defined too often");
        };
        let before = self.dirs.clone();
        let called = self.functions.called(name);
        self.functions.within.push(function);
        // It may be called with any input.
        self.body(function, definition, Stdin::Pipe(false));
        self.functions.within.pop();
        let Some(called) = called else {
            return;
        };
        // A function that was walked before may call it.
        if !self.dirs.is_same(&before) {
            self.functions.changes += 1;
        }
        let after = std::mem::replace(&mut self.dirs, called);
        self.called(function, definition, Stdin::Pipe(false));
        self.dirs = after;
    }

    /// Walks the functions of this name from the current directories. Any of them may be
    /// the one that is called, since definitions may depend on conditions.
    pub(super) fn call(&mut self, name: &str, stdin: Stdin) {
        let stdin = match stdin {
            Stdin::Pipe(true) => stdin,
            _ => Stdin::Pipe(false),
        };
        let before = self.dirs.clone();
        let mut after: Option<Directories<'_>> = None;
        for (function, definition) in self.functions.call(name, &before) {
            if !self.budget.charge(CALL_STEPS + self.dirs.weight()) {
                return;
            }
            self.dirs = before.clone();
            self.called(function, &definition, stdin);
            if let Some(after) = after {
                self.dirs.merge(after);
            }
            after = Some(self.dirs.clone());
        }
    }

    /// Walks a body that is called. The definitions that call it do not count.
    fn called(&mut self, function: usize, definition: &Definition, stdin: Stdin) {
        let callers = std::mem::take(&mut self.functions.within);
        self.body(function, definition, stdin);
        self.functions.within = callers;
    }

    fn body(&mut self, function: usize, definition: &Definition, stdin: Stdin) {
        let before = self.state();
        let fed = stdin == Stdin::Pipe(true);
        if let Some(after) = self.functions.repeats(function, &before, fed) {
            self.dirs = after;
            return;
        }
        // The words of the call are not copied any further.
        let wrapped = std::mem::take(&mut self.wrapped);
        let from = self.findings.mark();
        let mut recursive = false;
        self.rounds(|walk| {
            if walk.functions.begin(function, walk.dirs.clone()) {
                walk.redirects(definition.redirects.iter(), stdin, false);
                walk.compound(&definition.body, stdin);
            } else {
                walk.not_understood("functions in it call one another too deep");
            }
            match walk.functions.end() {
                Some(reached) => walk.dirs.merge(reached),
                None => return false,
            }
            recursive = true;
            true
        });
        self.wrapped = wrapped;
        let found = from..self.findings.mark();
        let after = self.dirs.clone();
        let first = self
            .functions
            .walked(function, before, after, fed, recursive, found);
        self.findings.forget_repeated(&first, from);
    }

    /// Registers a program of `trap`. `from` is the point before it was walked.
    pub(super) fn set_trap(&mut self, program: &str, from: Mark) {
        if self.traps.iter().any(|trap| trap.program == program) {
            return;
        }
        if self.traps.len() >= MAX_TRAPS {
            return self.not_understood("it sets too many traps");
        }
        self.traps.push(Trap {
            program: program.to_owned(),
            walked: self.state(),
            found: from..self.findings.mark(),
        });
    }

    /// Walks the programs of `trap` in the directories that the shell may be in by now.
    pub(super) fn run_traps(&mut self) {
        let mut traps = std::mem::take(&mut self.traps);
        for trap in &mut traps {
            let state = self.state();
            if self.budget.charge(1) && !state.is_same(&trap.walked) {
                trap.walked = state;
                let from = self.findings.mark();
                self.apart(&trap.program, Stdin::None);
                self.findings.forget_repeated(&trap.found, from);
            }
        }
        self.traps = traps;
    }
}
