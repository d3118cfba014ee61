//! Functions that a line defines, and the detection of fork bombs among them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::rc::Rc;

use super::rounds::State;
use crate::budget::StepBudget;
use crate::directory::Directories;
use crate::findings::Mark;
use crate::shell::ast::Definition;
use crate::tables;

/// A function that a line defines. One name may have several definitions.
#[derive(Debug)]
struct Function<'a> {
    name: String,
    definition: Rc<Definition>,
    calls: Vec<String>,
    /// Whether it starts another process.
    forks: bool,
    /// The findings of the first walk of its body.
    found: Option<Range<Mark>>,
    walked: Option<Walked<'a>>,
}

/// The walks of a body so far.
#[derive(Debug)]
struct Walked<'a> {
    /// The state before the last one, with the directories before all of them.
    before: State<'a>,
    /// The directories after them.
    after: Directories<'a>,
    /// Whether its input was downloaded or decoded in one of them.
    fed: bool,
    /// Whether it calls itself.
    recursive: bool,
    /// Whether it changes the directory.
    moves: bool,
}

/// A function whose body is being walked.
#[derive(Debug)]
struct Active<'a> {
    function: usize,
    /// The directories in which it was called first.
    before: Directories<'a>,
    /// Those in which it calls itself, if it does.
    again: Option<Directories<'a>>,
}

/// The functions of a line.
#[derive(Debug, Default)]
pub(super) struct Functions<'a> {
    all: Vec<Function<'a>>,
    /// Indexes of the definitions of a name.
    named: HashMap<String, Vec<usize>>,
    /// The directories in which a name was called, also if no function had it then.
    called: HashMap<String, Directories<'a>>,
    /// Indexes of those whose definitions are being walked. Empty during a call, since
    /// what the called function does is known from its own definition.
    pub(super) within: Vec<usize>,
    active: Vec<Active<'a>>,
    /// How often a name that was called before came to change the directory.
    pub(super) changes: usize,
    /// Whether the line may define any.
    possible: bool,
}

/// The maximum number of functions and calls that are checked. A fork bomb needs few.
const MAX: usize = 256;

/// The maximum number of definitions of one name.
const MAX_DEFINITIONS: usize = 64;

/// The maximum nesting of calls.
const MAX_CALLS: usize = 16;

impl<'a> Functions<'a> {
    pub(super) fn new(line: &str) -> Self {
        Self {
            possible: line.contains('(') || line.contains("$'"),
            ..Self::default()
        }
    }

    /// Adds a new definition and returns its index; `None` if the name has too many.
    pub(super) fn add(&mut self, name: &str, definition: &Rc<Definition>) -> Option<usize> {
        let named = self.named.entry(name.to_owned()).or_default();
        let is_same = |at: &usize| {
            let known = self.all.get(*at);
            known.is_some_and(|known| Rc::ptr_eq(&known.definition, definition))
        };
        if let Some(at) = named.iter().copied().find(is_same) {
            return Some(at);
        }
        if named.len() >= MAX_DEFINITIONS {
            return None;
        }
        let at = self.all.len();
        named.push(at);
        self.all.push(Function {
            name: name.to_owned(),
            definition: Rc::clone(definition),
            calls: Vec::new(),
            forks: false,
            found: None,
            walked: None,
        });
        Some(at)
    }

    /// Returns the directories in which `name` was called so far.
    pub(super) fn called(&self, name: &str) -> Option<Directories<'a>> {
        self.called.get(name).cloned()
    }

    /// Returns the functions that a call of `name` may run.
    pub(super) fn call(
        &mut self,
        name: &str,
        dirs: &Directories<'a>,
    ) -> Vec<(usize, Rc<Definition>)> {
        if !self.possible {
            return Vec::new();
        }
        match self.called.get_mut(name) {
            Some(called) => called.merge(dirs.clone()),
            None => {
                self.called.insert(name.to_owned(), dirs.clone());
            }
        }
        let known = self.named.get(name).into_iter().flatten();
        let definition = |at: &usize| Some((*at, Rc::clone(&self.all.get(*at)?.definition)));
        known.filter_map(definition).collect()
    }

    /// Returns the directories after a body, if it is being walked, or if a walk of it
    /// covers this one.
    pub(super) fn repeats(
        &mut self,
        function: usize,
        before: &State<'a>,
        fed: bool,
    ) -> Option<Directories<'a>> {
        let mut dirs = before.dirs.clone();
        let mut active = self.active.iter_mut();
        if let Some(active) = active.find(|active| active.function == function) {
            dirs.merge(active.before.clone());
            match &mut active.again {
                None => active.again = Some(dirs.clone()),
                Some(again) => again.merge(dirs.clone()),
            }
            return Some(dirs);
        }
        let walked = self.all.get(function)?.walked.as_ref()?;
        let nested = !self.active.is_empty();
        if fed && !walked.fed || !walked.before.covers(before, nested) {
            return None;
        }
        if !walked.moves {
            return Some(dirs);
        }
        dirs.merge(walked.after.clone());
        // A recursive call may come back from where the others were called.
        for active in self.active.iter().filter(|_| walked.recursive) {
            dirs.merge(active.before.clone());
        }
        Some(dirs)
    }

    /// Notes that the walk of a body begins. Returns `false` if calls are too deep.
    pub(super) fn begin(&mut self, function: usize, before: Directories<'a>) -> bool {
        self.active.push(Active {
            function,
            before,
            again: None,
        });
        self.active.len() <= MAX_CALLS
    }

    /// Notes the end of the walk. Returns the directories in which the body calls itself.
    pub(super) fn end(&mut self) -> Option<Directories<'a>> {
        self.active.pop()?.again
    }

    /// Records a walk of a body that had `found`. Returns the findings of the first walk.
    pub(super) fn walked(
        &mut self,
        function: usize,
        before: State<'a>,
        after: Directories<'a>,
        fed: bool,
        recursive: bool,
        found: Range<Mark>,
    ) -> Range<Mark> {
        let Some(function) = self.all.get_mut(function) else {
            return found;
        };
        let moves = !before.dirs.includes(&after);
        match &mut function.walked {
            None => {
                function.walked = Some(Walked {
                    before,
                    after,
                    fed,
                    recursive,
                    moves,
                });
            }
            Some(walked) => {
                walked.moves |= moves;
                walked.before.merge(before);
                walked.after.merge(after);
                walked.fed |= fed;
                walked.recursive |= recursive;
            }
        }
        function.found.get_or_insert(found).clone()
    }

    pub(super) fn calls(&mut self, program: &str) {
        for at in &self.within {
            if let Some(function) = self.all.get_mut(*at)
                && function.calls.len() < MAX
                && !function.calls.iter().any(|call| call == program)
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

    /// Whether a function starts processes and calls itself, perhaps through others.
    pub(super) fn explode(&self, budget: &StepBudget<'_>) -> bool {
        let mut named: HashMap<&str, Vec<&Function<'_>>> = HashMap::new();
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
                    if !budget.charge(1 + function.calls.len()) {
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

/// Whether a text that does not parse is meant as a fork bomb: `:(){:|:&};:`.
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
        tables::NON_PATH_OPERANDS,
        tables::FORMATTERS,
        tables::STOPPERS,
    ];
    lists.iter().any(|list| list.contains(&name) && name != ":")
        || tables::launcher(name).is_some()
        || tables::program(name).is_some()
        || [
            tables::RUNS,
            tables::OPAQUE_SUBCOMMANDS,
            tables::DESTRUCTIVE,
        ]
        .iter()
        .any(|table| tables::words_of(table, name).is_some())
        || matches!(
            name,
            "git" | "cd" | "find" | "gfind" | "xargs" | "gxargs" | "eval" | "su" | "runuser"
        )
}
