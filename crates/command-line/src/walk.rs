//! Walks a shell program and finds every simple command that it would run.

use std::collections::HashSet;
use std::rc::Rc;

use self::argv::Argv;
use self::run::takes_list;
use crate::budget::StepBudget;
use crate::context::CommandContext;
use crate::directory::Directories;
use crate::error::ParseError;
use crate::findings::{Findings, NoteKind, Role, SimpleCommand};
use crate::named_path::PathUse;
use crate::shell;
use crate::shell::ast::{Command, Compound, Definition, Item, Join, List, Pipeline, Redirect};
use crate::tables::{self, base_name};
use crate::word::{self, Mode, Word};

mod argv;
mod builtins;
mod find;
mod functions;
mod git;
mod paths;
mod redirect;
mod rounds;
mod run;
mod shells;
mod url;
mod wrappers;
mod writes;

/// The maximum nesting of programs.
const MAX_DEPTH: usize = 12;

/// The maximum number of bytes of programs read for one line. Nested ones count again.
const MAX_BYTES: usize = 1024 * 1024;

/// The maximum nesting of commands within one program.
const MAX_NESTING: usize = 64;

/// The cost of a command in a list, besides its words, and of a word, besides its text.
const ITEM_STEPS: usize = 8;
const WORD_STEPS: usize = 4;

/// Operators of `[[` whose operands are calculations.
const CALCULATES: &[&str] = &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-v"];

/// The source of a command's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stdin {
    /// No input.
    None,
    /// A file. `written` is `true` if the line wrote it before.
    File { written: bool },
    /// A here-document that was already walked as a program.
    Read,
    /// Another command. `true` if that downloads or decodes something.
    Pipe(bool),
}

/// The state of a walk through one command line.
pub(crate) struct Walk<'a> {
    context: CommandContext<'a>,
    budget: &'a StepBudget<'a>,
    findings: Findings,
    dirs: Directories<'a>,
    functions: functions::Functions<'a>,
    /// Programs of `trap`, which may run wherever the shell goes.
    traps: Vec<rounds::Trap<'a>>,
    /// Names of files that the line writes. Their contents are not known in advance.
    written: HashSet<String>,
    /// Names of links that the line creates.
    made_links: HashSet<String>,
    /// Values that the line assigns to variables.
    values: Vec<Word>,
    /// Whether output is passed on as arguments, to `xargs` for example.
    feeds: bool,
    /// The input that `exec` gave the shell itself.
    moved: Stdin,
    depth: usize,
    nesting: usize,
    wrapped: usize,
    bytes: usize,
    /// Whether the line evaluates a variable as a number.
    numbers: bool,
    /// Whether the line declares an array.
    arrays: bool,
    /// Whether the line contains text that such an evaluation would run.
    hidden: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(context: CommandContext<'a>, budget: &'a StepBudget<'a>) -> Self {
        Self {
            context,
            budget,
            findings: Findings::new(),
            dirs: Directories::new(context.directory, context.names, budget),
            functions: functions::Functions::new(context.line),
            traps: Vec::new(),
            written: HashSet::new(),
            made_links: HashSet::new(),
            values: Vec::new(),
            feeds: false,
            moved: Stdin::None,
            depth: 0,
            nesting: 0,
            wrapped: 0,
            bytes: MAX_BYTES,
            numbers: false,
            arrays: false,
            hidden: false,
        }
    }

    /// Walks the whole line and returns the findings.
    pub(crate) fn all(mut self) -> Findings {
        for (name, value) in self.context.environment {
            self.variable(name, false);
            self.variable_writes(name, &Word::text(value));
        }
        self.program(self.context.line, Stdin::None);
        if self.functions.explode(self.budget) {
            self.dangerous("a function starts itself over and over".to_owned());
        }
        if self.numbers && self.hidden {
            self.computed("text in it may run when it is read as a number");
        }
        self.findings
    }

    fn not_understood(&mut self, why: &'static str) {
        self.findings.not_understood(ParseError(why));
    }

    /// Notes an effect that is known only when the line runs.
    fn computed(&mut self, text: impl Into<String>) {
        self.findings.note(NoteKind::Computed, text);
    }

    /// Notes a danger, if there is one.
    fn dangerous(&mut self, text: impl Into<Option<String>>) {
        if let Some(text) = text.into() {
            self.findings.note(NoteKind::Dangerous, text);
        }
    }

    /// Notes code from the input, which is dangerous if it is downloaded or decoded.
    fn code_from(&mut self, stdin: Stdin, text: impl Into<String>) {
        let fetched = stdin == Stdin::Pipe(true);
        let kind = if fetched {
            NoteKind::Dangerous
        } else {
            NoteKind::Computed
        };
        self.findings.note(kind, text);
    }

    /// Walks a program: the line itself, that in `$(...)`, that of `sh -c` and so on.
    fn program(&mut self, text: &str, stdin: Stdin) {
        if self.depth >= MAX_DEPTH || self.bytes < text.len() {
            return self.not_understood("programs are nested too deep in it");
        }
        self.bytes -= text.len();
        match shell::read(text, self.budget) {
            Err(error) => {
                self.findings.not_understood(error);
                if functions::looks_like_a_bomb(text) {
                    self.dangerous(
                        "it looks like a function that starts itself over and over".to_owned(),
                    );
                }
            }
            Ok(program) => {
                self.depth += 1;
                for doubt in program.doubts {
                    self.findings.not_understood(doubt);
                }
                self.list(&program.list, stdin);
                self.depth -= 1;
            }
        }
    }

    /// Walks a program that runs in a separate shell.
    fn apart(&mut self, text: &str, stdin: Stdin) {
        self.subshell(|walk| walk.program(text, stdin));
    }

    /// Walks what runs in a separate shell, whose directory and traps are its own.
    fn subshell(&mut self, walk: impl FnOnce(&mut Self)) {
        let (dirs, traps) = (self.dirs.clone(), self.traps.len());
        walk(self);
        self.dirs = dirs;
        self.traps.truncate(traps);
    }

    fn list(&mut self, list: &List, stdin: Stdin) {
        for item in list {
            if !self.budget.charge(ITEM_STEPS) {
                return;
            }
            // Where the shell is if the last command failed. That may have changed the
            // directory all the same, and any of them may fail.
            let mut failed = self.dirs.clone();
            if item.background {
                self.functions.forks();
            }
            self.pipeline(&item.first, stdin);
            failed.merge(self.dirs.clone());
            for (join, pipeline) in &item.rest {
                match join {
                    Join::And => self.pipeline(pipeline, stdin),
                    Join::Or => {
                        let succeeded = std::mem::replace(&mut self.dirs, failed.clone());
                        self.pipeline(pipeline, stdin);
                        self.dirs.merge(succeeded);
                    }
                }
                failed.merge(self.dirs.clone());
            }
            self.dirs.merge(failed);
        }
        self.run_traps();
    }

    fn pipeline(&mut self, pipeline: &Pipeline, stdin: Stdin) {
        let from = self.findings.fetchers;
        if pipeline.stages.len() > 1 {
            self.functions.forks();
        }
        let fed = pipeline.stages.iter().skip(1).any(takes_names);
        let feeds = self.feeds;
        self.feeds |= fed;
        for (stage, command) in pipeline.stages.iter().enumerate() {
            let stdin = if stage == 0 {
                stdin
            } else {
                Stdin::Pipe(stdin == Stdin::Pipe(true) || self.findings.fetchers > from)
            };
            let timed = pipeline.timed && stage == 0;
            match pipeline.stages.len() {
                1 => self.command(command, stdin, timed),
                _ => self.subshell(|walk| walk.command(command, stdin, timed)),
            }
        }
        self.feeds = feeds;
    }

    fn command(&mut self, command: &Command, stdin: Stdin, timed: bool) {
        if self.nesting >= MAX_NESTING {
            return self.not_understood("commands are nested too deep in it");
        }
        self.nesting += 1;
        match command {
            Command::Simple(items) => self.simple(items, stdin, timed),
            Command::Compound(compound, redirects) => {
                self.listed(redirects.iter());
                let stdin = self.redirects(redirects.iter(), stdin, false);
                self.compound(compound, stdin);
            }
            Command::Function { name, definition } => self.function(name, definition),
            Command::Test(words, redirects) => {
                for word in words {
                    self.words(word, Mode::Word);
                }
                if words.iter().any(|word| CALCULATES.contains(&word.as_str())) {
                    for name in words.iter().flat_map(|word| word::assigned(word)) {
                        self.variable(&name, true);
                    }
                }
                // Operators may evaluate a word as a number or a variable.
                self.numbers |= words.iter().filter(|word| *word != "!").count() > 1;
                self.redirects(redirects.iter(), stdin, false);
                self.findings.push_command(SimpleCommand {
                    words: vec![Word::text("[[")],
                    role: Role::Plain,
                    opaque: None,
                });
            }
        }
        self.nesting -= 1;
    }

    fn compound(&mut self, compound: &Compound, stdin: Stdin) {
        let before = self.dirs.clone();
        match compound {
            Compound::Group(list) => return self.list(list, stdin),
            Compound::Subshell(list) => {
                return self.subshell(|walk| walk.list(list, stdin));
            }
            Compound::For { name, words, body } => {
                self.variable(name, true);
                for value in words {
                    let expanded = self.words(value, Mode::Word);
                    for word in expanded.words.iter().chain(&expanded.plain) {
                        self.named(word, PathUse::Named);
                        self.value(word);
                    }
                }
                self.rounds(|walk| {
                    walk.list(body, stdin);
                    true
                });
            }
            Compound::Loop { condition, body } => self.rounds(|walk| {
                walk.list(condition, stdin);
                walk.list(body, stdin);
                true
            }),
            Compound::Case { word, arms } => {
                self.words(word, Mode::Word);
                for arm in arms {
                    for pattern in &arm.patterns {
                        self.words(pattern, Mode::Word);
                    }
                    self.list(&arm.body, stdin);
                }
            }
            Compound::Branches(lists) => {
                for list in lists {
                    self.list(list, stdin);
                }
            }
        }
        // The body may not run at all, and then the shell stays where it was.
        self.dirs.merge(before);
    }

    fn function(&mut self, name: &str, definition: &Rc<Definition>) {
        let name = self.words(name, Mode::Word);
        let name = match name.words.as_slice() {
            [word] => word.literal().map(str::to_owned),
            _ => None,
        };
        let Some(name) = name else {
            return self.not_understood("the name of a function in it is not plain");
        };
        if functions::is_known_program(&name) {
            self.computed(format!("it gives the name '{name}' another meaning"));
        }
        let dirs = self.dirs.clone();
        self.define(&name, definition);
        self.dirs.merge(dirs);
    }

    /// Expands a word, and walks the programs in it.
    fn words(&mut self, text: &str, mode: Mode) -> word::Expanded {
        if !self.budget.charge(WORD_STEPS + text.len()) {
            return word::Expanded::one(Word::computed());
        }
        let scanned = match word::scan(text, mode) {
            Ok(scanned) => scanned,
            Err(error) => {
                self.findings.not_understood(error);
                return word::Expanded::one(Word::computed());
            }
        };
        self.numbers |= scanned.numbers;
        for name in &scanned.sets {
            self.variable(name, true);
        }
        let from = self.findings.fetchers;
        // Text that `echo` prints in a substitution becomes part of a word.
        let feeds = self.feeds;
        self.feeds |= !scanned.programs.is_empty();
        for program in &scanned.programs {
            self.apart(program, Stdin::None);
        }
        self.feeds = feeds;
        let fetches = self.findings.fetchers > from;
        let mut expanded = word::expand(&scanned, self.budget);
        if let Some(defaults) = &scanned.defaults {
            let default = Word::from_atoms(defaults);
            self.named(&default, PathUse::Named);
            self.value(&default);
        }
        if expanded.cut {
            self.computed("the words that braces in it stand for are not all known");
        }
        for word in expanded.words.iter_mut().chain(&mut expanded.plain) {
            word.fetches = fetches;
            self.hidden |= word
                .parts()
                .iter()
                .any(|part| matches!(part, word::WordPart::Text(text) if runs_as_number(text)));
        }
        expanded
    }

    /// Expands the single word of a redirect or an assignment.
    fn word(&mut self, text: &str, mode: Mode) -> Word {
        let expanded = self.words(text, mode);
        // No shell expands braces here.
        let first = expanded.plain.or_else(|| expanded.words.into_iter().next());
        first.unwrap_or_else(Word::computed)
    }

    /// Walks `<(program)`, which expands to the name of a pipe.
    fn substitution(&mut self, list: &List) -> word::Expanded {
        let from = self.findings.fetchers;
        self.subshell(|walk| walk.list(list, Stdin::None));
        let mut word = Word::computed();
        word.fetches = self.findings.fetchers > from;
        word::Expanded::one(word)
    }

    fn simple(&mut self, items: &[Item], stdin: Stdin, timed: bool) {
        let name = items.iter().find_map(word_of);
        let mut argv = Argv::default();
        // `time -f x rm` runs `rm` where `time` is a program.
        if timed && name.is_some_and(|name| name.starts_with('-')) {
            argv.push(word::Expanded::one(Word::text("time")));
        }
        let mut redirects = Vec::new();
        // The start of another command, for shells that do not know `&>`.
        let mut second = None;
        for item in items {
            match item {
                Item::Redirect(redirect) => {
                    if matches!(redirect, Redirect::Both(_)) {
                        second.get_or_insert(argv.dash.len());
                    }
                    redirects.push(redirect);
                }
                Item::Word(word) => argv.push(self.words(word, Mode::Word)),
                Item::Assignment(assignment) => {
                    let stays = name.is_none() || !argv.bash.is_empty();
                    self.assignment(assignment, stays, name == Some("read"));
                }
                Item::Substitution(list) => argv.push(self.substitution(list)),
            }
        }
        let for_shell = argv
            .program()
            .is_some_and(|name| tables::SHELLS.contains(&base_name(name)));
        if self.feeds || argv.program().is_some_and(takes_list) {
            self.listed(redirects.iter().copied());
        }
        if matches!(argv.program(), Some("read" | "mapfile" | "readarray")) {
            let mut texts = redirects.iter().filter_map(|redirect| redirect.document());
            self.hidden |= texts.any(runs_as_number);
        }
        let redirected = !redirects.is_empty();
        let moves = redirected && argv.program() == Some("exec") && argv.bash.len() == 1;
        let stdin = self.redirects(redirects.into_iter(), stdin, for_shell);
        if moves {
            self.moved = stdin;
        }
        let Argv { bash, dash, differ } = argv;
        let before = self.dirs.clone();
        let mut elsewhere = Vec::new();
        let second = second.and_then(|at| dash.get(at..));
        if let Some(words) = second.filter(|words| !words.is_empty()) {
            self.run(words.to_vec(), Stdin::None, Role::Plain);
            elsewhere.push(std::mem::replace(&mut self.dirs, before.clone()));
        }
        if differ {
            self.run(dash, stdin, Role::Plain);
            elsewhere.push(std::mem::replace(&mut self.dirs, before));
        }
        // Setting variables runs nothing, but a redirect writes a file.
        if !bash.is_empty() || redirected {
            self.run(bash, stdin, Role::Plain);
        }
        for dirs in elsewhere {
            self.dirs.merge(dirs);
        }
    }
}

/// Whether `bash` may run a part of `text` if it is evaluated as a number.
fn runs_as_number(text: &str) -> bool {
    text.contains("$(") || text.contains('`')
}

/// Whether a command reads file names from its input.
fn takes_names(command: &Command) -> bool {
    let Command::Simple(items) = command else {
        return false;
    };
    let mut words = items.iter().filter_map(word_of);
    words.any(|word| base_name(word).contains("xargs") || word == "parallel")
}

fn word_of(item: &Item) -> Option<&str> {
    match item {
        Item::Word(word) => Some(word),
        _ => None,
    }
}
