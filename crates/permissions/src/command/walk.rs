//! Walks through a program and finds every simple command that it would run.

use std::collections::HashSet;

use brush_parser::ast::{
    AndOr, AssignmentValue, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList,
    ExtendedTestExpr, FunctionDefinition, IoRedirect, Pipeline, SeparatorOperator, SimpleCommand,
};

use super::directory::Directories;
use super::found::{Class, Found, Role, Simple};
use super::shell;
use super::tables;
use super::word::{self, Mode, Word};
use super::work::Work;
use super::{CommandContext, PathUse, Trouble};

mod builtins;
mod find;
mod functions;
mod git;
mod redirect;
mod run;
mod shells;
mod wrappers;

/// How often a program may stand within another.
const MAX_DEPTH: usize = 12;

/// How many bytes of programs are read for one line, those within others again.
const MAX_BYTES: usize = 1024 * 1024;

/// How deep commands may stand in one another within one program.
const MAX_NESTING: usize = 64;

/// What a command of a list costs beside its words, and a word beside its text.
const ITEM_STEPS: usize = 8;
const WORD_STEPS: usize = 4;

/// Where the input of a command comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stdin {
    /// From nowhere.
    None,
    /// From a file; `written` if the line wrote it before.
    File { written: bool },
    /// From a here-document that was read as a program.
    Read,
    /// From another command; `true` if that downloads or decodes something.
    Pipe(bool),
}

/// A line, on the way through it.
pub(crate) struct Walk<'a> {
    pub(crate) context: CommandContext<'a>,
    pub(crate) work: &'a Work<'a>,
    pub(crate) found: Found,
    pub(crate) dirs: Directories<'a>,
    functions: functions::Functions,
    /// The names of files that the line writes: what is in them is not known before.
    pub(crate) written: HashSet<String>,
    /// The names of links that it makes.
    pub(crate) made_links: HashSet<String>,
    /// Values that it gives to variables.
    pub(crate) values: Vec<Word>,
    /// Whether what is printed is handed to `xargs`.
    pub(crate) feeds: bool,
    /// Where `exec` moved the input of the shell itself.
    moved: Stdin,
    /// How many brackets the stack can bear.
    openers: usize,
    depth: usize,
    nesting: usize,
    wrapped: usize,
    bytes: usize,
    /// Whether the line reads a variable as a number, and whether it holds text
    /// that such a reading would run.
    numbers: bool,
    hidden: bool,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(context: CommandContext<'a>, openers: usize, work: &'a Work<'a>) -> Self {
        Self {
            context,
            work,
            openers,
            found: Found::default(),
            dirs: Directories::new(context.directory, context.names, work),
            functions: functions::Functions::default(),
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
            hidden: false,
        }
    }

    /// Everything that the line would do.
    pub(crate) fn all(mut self) -> Found {
        for (name, value) in self.context.environment {
            self.variable(name, false);
            self.variable_writes(name, &Word::text(value));
        }
        self.program(self.context.line, Stdin::None);
        if self.functions.explode(self.work) {
            self.found.note(
                Class::Dangerous,
                "a function starts itself over and over".to_owned(),
            );
        }
        if self.numbers && self.hidden {
            self.found.note(
                Class::Computed,
                "text in it may run when it is read as a number".to_owned(),
            );
        }
        self.found
    }

    /// A program: the line, or what stands in `$(...)`, after `sh -c` and so on.
    pub(crate) fn program(&mut self, text: &str, stdin: Stdin) {
        if self.depth >= MAX_DEPTH || self.bytes < text.len() {
            return self
                .found
                .trouble(Trouble("programs are nested too deep in it"));
        }
        self.bytes -= text.len();
        // Quotes can hide brackets from the count for the whole line.
        if shell::openers(text) > self.openers {
            return self.found.trouble(Trouble("it opens too many brackets"));
        }
        match shell::read(text, self.work) {
            Err(trouble) => {
                self.found.trouble(trouble);
                if functions::looks_like_a_bomb(text) {
                    let text = "it looks like a function that starts itself over and over";
                    self.found.note(Class::Dangerous, text.to_owned());
                }
            }
            Ok(program) => {
                self.depth += 1;
                for list in &program.complete_commands {
                    self.list(list, stdin);
                }
                self.depth -= 1;
            }
        }
    }

    /// A program that runs in a shell of its own.
    fn apart(&mut self, text: &str, stdin: Stdin) {
        let dirs = self.dirs.clone();
        self.program(text, stdin);
        self.dirs = dirs;
    }

    fn list(&mut self, list: &CompoundList, stdin: Stdin) {
        for item in &list.0 {
            if !self.work.charge(ITEM_STEPS) {
                return;
            }
            let before = self.dirs.clone();
            if matches!(item.1, SeparatorOperator::Async) {
                self.functions.forks();
            }
            self.pipeline(&item.0.first, stdin);
            for next in &item.0.additional {
                match next {
                    AndOr::And(pipeline) => self.pipeline(pipeline, stdin),
                    AndOr::Or(pipeline) => {
                        let dirs = self.dirs.clone();
                        self.pipeline(pipeline, stdin);
                        self.dirs.or(dirs);
                    }
                }
            }
            // Any of them may fail, and then the shell is where it was.
            self.dirs.or(before);
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, stdin: Stdin) {
        let from = self.found.fetchers;
        if pipeline.seq.len() > 1 {
            self.functions.forks();
        }
        let fed = pipeline.seq.iter().skip(1).any(takes_names);
        let feeds = self.feeds;
        self.feeds |= fed;
        for (stage, command) in pipeline.seq.iter().enumerate() {
            let stdin = if stage == 0 {
                stdin
            } else {
                Stdin::Pipe(stdin == Stdin::Pipe(true) || self.found.fetchers > from)
            };
            let dirs = (pipeline.seq.len() > 1).then(|| self.dirs.clone());
            self.command(command, stdin, pipeline.timed.is_some() && stage == 0);
            if let Some(dirs) = dirs {
                self.dirs = dirs;
            }
        }
        self.feeds = feeds;
    }

    fn command(&mut self, command: &Command, stdin: Stdin, timed: bool) {
        if self.nesting >= MAX_NESTING {
            return self
                .found
                .trouble(Trouble("commands are nested too deep in it"));
        }
        self.nesting += 1;
        match command {
            Command::Simple(simple) => self.simple(simple, stdin, timed),
            Command::Compound(compound, redirects) => {
                let redirects = redirects.iter().flat_map(|list| &list.0);
                self.listed(redirects.clone());
                let stdin = self.redirects(redirects, stdin, false);
                self.compound(compound, stdin);
            }
            Command::Function(function) => self.function(function, stdin),
            Command::ExtendedTest(test, redirects) => {
                self.test(&test.expr);
                let redirects = redirects.iter().flat_map(|list| &list.0);
                self.redirects(redirects, stdin, false);
                self.found.simple(Simple {
                    words: vec![Word::text("[[")],
                    role: Role::Plain,
                    opaque: None,
                });
            }
        }
        self.nesting -= 1;
    }

    fn compound(&mut self, compound: &CompoundCommand, stdin: Stdin) {
        let before = self.dirs.clone();
        match compound {
            CompoundCommand::BraceGroup(group) => return self.list(&group.list, stdin),
            CompoundCommand::Subshell(subshell) => {
                self.list(&subshell.list, stdin);
                self.dirs = before;
                return;
            }
            CompoundCommand::ForClause(clause) => {
                self.variable(&clause.variable_name, true);
                for value in clause.values.iter().flatten() {
                    let expanded = self.words(&value.value, Mode::Word);
                    for word in expanded.words.iter().chain(&expanded.plain) {
                        self.named(word, PathUse::Named);
                        self.value(word);
                    }
                }
                self.list(&clause.body.list, stdin);
            }
            CompoundCommand::CaseClause(clause) => {
                self.words(&clause.value.value, Mode::Word);
                for case in &clause.cases {
                    for pattern in &case.patterns {
                        self.words(&pattern.value, Mode::Word);
                    }
                    if let Some(list) = &case.cmd {
                        self.list(list, stdin);
                    }
                }
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, stdin);
                self.list(&clause.then, stdin);
                for other in clause.elses.iter().flatten() {
                    if let Some(condition) = &other.condition {
                        self.list(condition, stdin);
                    }
                    self.list(&other.body, stdin);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, stdin);
                self.list(&clause.1.list, stdin);
            }
            CompoundCommand::Arithmetic(_)
            | CompoundCommand::ArithmeticForClause(_)
            | CompoundCommand::Coprocess(_) => {
                self.found
                    .trouble(Trouble("it is not written for every shell"));
            }
        }
        // What was judged once in a loop may run again from where it led.
        self.dirs.or(before);
    }

    fn function(&mut self, function: &FunctionDefinition, stdin: Stdin) {
        let name = self.words(&function.fname.value, Mode::Word);
        let name = match name.words.as_slice() {
            [word] => word.literal().map(str::to_owned),
            _ => None,
        };
        let Some(name) = name else {
            return self
                .found
                .trouble(Trouble("the name of a function in it is not plain"));
        };
        if functions::is_known_program(&name) {
            let text = format!("it gives the name '{name}' another meaning");
            self.found.note(Class::Computed, text);
        }
        let dirs = self.dirs.clone();
        self.functions.enter(&name);
        let redirects = function.body.1.iter().flat_map(|list| &list.0);
        self.redirects(redirects, stdin, false);
        // Where it is called, its input may be anything.
        self.compound(&function.body.0, Stdin::Pipe(false));
        self.functions.leave();
        self.dirs.or(dirs);
    }

    fn test(&mut self, test: &ExtendedTestExpr) {
        match test {
            ExtendedTestExpr::Not(inner) => self.test(inner),
            ExtendedTestExpr::UnaryTest(_, word) => {
                self.words(&word.value, Mode::Word);
            }
            ExtendedTestExpr::BinaryTest(_, left, right) => {
                self.words(&left.value, Mode::Word);
                self.words(&right.value, Mode::Word);
                self.numbers = true;
            }
            ExtendedTestExpr::And(..)
            | ExtendedTestExpr::Or(..)
            | ExtendedTestExpr::Parenthesized(_) => {
                self.found
                    .trouble(Trouble("'[[' is read differently by different shells"));
            }
        }
    }

    /// Reads a word, and walks through the programs in it.
    fn words(&mut self, text: &str, mode: Mode) -> word::Expanded {
        if !self.work.charge(WORD_STEPS + text.len()) {
            return word::Expanded {
                words: vec![Word::computed()],
                plain: None,
                cut: false,
            };
        }
        let scanned = match word::scan(text, mode) {
            Ok(scanned) => scanned,
            Err(trouble) => {
                self.found.trouble(trouble);
                return word::Expanded {
                    words: vec![Word::computed()],
                    plain: None,
                    cut: false,
                };
            }
        };
        self.numbers |= scanned.numbers;
        for name in &scanned.sets {
            self.variable(name, true);
        }
        let from = self.found.fetchers;
        // What `echo` says there becomes part of a word.
        let feeds = self.feeds;
        self.feeds |= !scanned.programs.is_empty();
        for program in &scanned.programs {
            self.apart(program, Stdin::None);
        }
        self.feeds = feeds;
        let fetches = self.found.fetchers > from;
        let mut expanded = word::expand(&scanned, self.work);
        if let Some(defaults) = &scanned.defaults {
            let default = Word::from_atoms(defaults);
            self.named(&default, PathUse::Named);
            self.value(&default);
        }
        if expanded.cut {
            let text = "braces in it stand for too many words";
            self.found.note(Class::Computed, text.to_owned());
        }
        for word in expanded.words.iter_mut().chain(&mut expanded.plain) {
            word.fetches = fetches;
            self.hidden |= word.parts().iter().any(|part| {
                matches!(part, word::Part::Text(text) if text.contains("$(") || text.contains('`'))
            });
        }
        expanded
    }

    /// The first word that a redirect or an assignment expands to.
    fn word(&mut self, text: &str, mode: Mode) -> Word {
        let expanded = self.words(text, mode);
        // Braces are not expanded here by any shell.
        let first = expanded.plain.or_else(|| expanded.words.into_iter().next());
        first.unwrap_or_else(Word::computed)
    }

    /// `<(program)`: the name of a pipe.
    fn substitution(&mut self, list: &CompoundList) -> word::Expanded {
        let from = self.found.fetchers;
        let dirs = self.dirs.clone();
        self.list(list, Stdin::None);
        self.dirs = dirs;
        let mut word = Word::computed();
        word.fetches = self.found.fetchers > from;
        word::Expanded {
            words: vec![word],
            plain: None,
            cut: false,
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, stdin: Stdin, timed: bool) {
        let prefix = simple.prefix.iter().flat_map(|prefix| &prefix.0);
        let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
        let mut argv = Argv::default();
        if timed {
            // `time -f x rm` runs `rm` where `time` is a program.
            let option = simple.word_or_name.as_ref();
            if option.is_some_and(|word| word.value.starts_with('-')) {
                argv.push(word::Expanded {
                    words: vec![Word::text("time")],
                    plain: None,
                    cut: false,
                });
            }
        }
        if let Some(name) = &simple.word_or_name {
            argv.push(self.words(&name.value, Mode::Word));
        }
        let mut redirects = Vec::new();
        // Where another command begins for shells that do not know `&>`.
        let mut second = None;
        for (is_prefix, item) in prefix
            .map(|item| (true, item))
            .chain(suffix.map(|item| (false, item)))
        {
            match item {
                CommandPrefixOrSuffixItem::IoRedirect(redirect) => {
                    if matches!(redirect, IoRedirect::OutputAndError(..)) {
                        second.get_or_insert(argv.dash.len());
                    }
                    redirects.push(redirect);
                }
                CommandPrefixOrSuffixItem::Word(word) => {
                    argv.push(self.words(&word.value, Mode::Word));
                }
                CommandPrefixOrSuffixItem::AssignmentWord(assignment, word) => {
                    if is_prefix {
                        let alone = simple.word_or_name.is_none();
                        let reads = simple
                            .word_or_name
                            .as_ref()
                            .is_some_and(|word| word.value == "read");
                        self.assignment(assignment, alone, reads);
                    } else if matches!(assignment.value, AssignmentValue::Array(_)) {
                        self.assignment(assignment, true, false);
                    } else {
                        argv.push(self.words(&word.value, Mode::Word));
                    }
                }
                CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                    argv.push(self.substitution(&subshell.list));
                }
            }
        }
        let for_shell = argv
            .program()
            .is_some_and(|name| tables::SHELLS.contains(&base_name(name)));
        if self.feeds || argv.program().is_some_and(takes_list) {
            self.listed(redirects.iter().copied());
        }
        let redirected = !redirects.is_empty();
        let moves = redirected && argv.program() == Some("exec") && argv.bash.len() == 1;
        let stdin = self.redirects(redirects.into_iter(), stdin, for_shell);
        if moves {
            self.moved = stdin;
        }
        let Argv { bash, dash, differ } = argv;
        let second = second.and_then(|at| dash.get(at..));
        if let Some(words) = second.filter(|words| !words.is_empty()) {
            self.run(words.to_vec(), Stdin::None, Role::Plain);
        }
        if differ {
            self.run(dash, stdin, Role::Plain);
        }
        // Setting variables runs nothing; a redirect writes a file.
        if bash.is_empty() && !redirected {
            return;
        }
        self.run(bash, stdin, Role::Plain);
    }
}

/// The words of a command, as `bash` and as `dash` expand them.
#[derive(Default)]
struct Argv {
    bash: Vec<Word>,
    dash: Vec<Word>,
    differ: bool,
}

impl Argv {
    fn push(&mut self, expanded: word::Expanded) {
        match expanded.plain {
            Some(plain) => {
                self.differ = true;
                self.dash.push(plain);
            }
            None => self.dash.extend(expanded.words.iter().cloned()),
        }
        self.bash.extend(expanded.words);
    }

    fn program(&self) -> Option<&str> {
        self.bash.first()?.literal()
    }
}

/// Whether a program of this name takes names of files, or code, from its input.
fn takes_list(program: &str) -> bool {
    let base = base_name(program);
    let lists = ["bsdtar", "cpio", "rsync", "tar", "xargs"];
    lists.contains(&base) || tables::OPAQUE.contains(&run::version_less(base))
}

/// Whether a command takes names of files from its input.
fn takes_names(command: &Command) -> bool {
    let Command::Simple(simple) = command else {
        return false;
    };
    let suffix = simple.suffix.iter().flat_map(|suffix| &suffix.0);
    let words = suffix.filter_map(|item| match item {
        CommandPrefixOrSuffixItem::Word(word) => Some(word),
        _ => None,
    });
    let mut words = simple.word_or_name.iter().chain(words);
    words.any(|word| base_name(&word.value).contains("xargs") || word.value == "parallel")
}

/// What a program is called without its directory.
pub(crate) fn base_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}
