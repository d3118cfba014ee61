//! Handles one command, by what is known about its program.

use super::{Stdin, Walk};
use crate::danger;
use crate::findings::{NoteKind, Role, SimpleCommand};
use crate::named_path::PathUse;
use crate::options::{self, has_option, is_bundle};
use crate::sed;
use crate::tables::{self, base_name};
use crate::word::{Word, WordPart};

/// The maximum number of programs that run one another. Each copies the words.
const MAX_WRAPPED: usize = 16;

/// The cost of a command, besides its words, for searching the tables.
const COMMAND_STEPS: usize = 32;

impl Walk<'_> {
    /// Handles a command with its arguments.
    pub(super) fn run(&mut self, words: Vec<Word>, stdin: Stdin, role: Role) {
        if self.nesting >= super::MAX_NESTING || self.wrapped >= MAX_WRAPPED {
            return self.not_understood("commands are nested too deep in it");
        }
        let length: usize = words.iter().map(Word::len).sum();
        if !self.budget.charge(COMMAND_STEPS + length) {
            return;
        }
        self.nesting += 1;
        self.wrapped += 1;
        let mut simple = SimpleCommand {
            words,
            role,
            opaque: None,
        };
        let words = std::mem::take(&mut simple.words);
        match words.first() {
            None => {}
            Some(program) => match program.literal() {
                Some(name) => self.named_program(name, &words, stdin, &mut simple),
                None => self.unnamed_program(program, &mut simple),
            },
        }
        simple.words = words;
        let program = simple.words.first().and_then(Word::literal).map(base_name);
        let fetches = program.is_some_and(|program| {
            tables::DOWNLOADERS.contains(&program) || tables::DECODERS.contains(&program)
        });
        self.findings.fetchers += usize::from(fetches);
        self.findings.push_command(simple);
        self.wrapped -= 1;
        self.nesting -= 1;
    }

    fn unnamed_program(&mut self, program: &Word, simple: &mut SimpleCommand) {
        if program.is_computed() {
            self.computed_code(program, "the name of a program is computed");
        } else if program.is_glob() {
            self.computed(format!(
                "the program '{}' is found by a glob",
                program.shown()
            ));
        } else {
            simple.opaque = Some(format!("it runs '{}' by its path", program.shown()));
        }
    }

    fn named_program(
        &mut self,
        name: &str,
        words: &[Word],
        stdin: Stdin,
        simple: &mut SimpleCommand,
    ) {
        self.functions.calls(name);
        self.call(name, stdin);
        let base = base_name(name).to_ascii_lowercase();
        if let Some((directory, _)) = name.rsplit_once('/') {
            if !tables::BIN_DIRS.contains(&directory) {
                simple.opaque = Some(format!("it runs '{name}' by its path"));
                self.runs_file(name);
            }
            self.named(&Word::text(name), PathUse::Run);
        }
        self.dangerous(danger::check(&base, words, &self.dirs));
        let own = self.special(&base, words, stdin, simple);
        // A program that only has the name of a wrapper needs a rule like any other.
        if simple.opaque.is_some() || base != base_name(name) {
            simple.role = Role::Plain;
        }
        if !own {
            if simple.opaque.is_none() {
                simple.opaque = opaque(&base, words);
            }
            self.code_from_input(&base, words, stdin);
            self.operands(&base, words);
            self.unknown_launcher(&base, words, stdin, simple);
            self.devices(&base, words);
            self.hooks(&base, words);
        }
        self.destructive(&base, words);
    }

    /// Handles programs that need code of their own. Returns `false` for ordinary ones.
    fn special(
        &mut self,
        base: &str,
        words: &[Word],
        stdin: Stdin,
        simple: &mut SimpleCommand,
    ) -> bool {
        match base {
            "eval" => {
                simple.role = Role::Wrapper;
                self.eval(words);
            }
            "trap" => self.trap(words, stdin),
            "set" => {
                self.set(words);
                self.operands(base, words);
                for word in words.iter().skip(1) {
                    self.value(word);
                }
            }
            "source" | "." => self.source(words, stdin, simple),
            "cd" | "chdir" | "pushd" | "popd" => self.change_directory(base, words),
            "xargs" | "gxargs" => self.xargs(words, stdin),
            "find" | "gfind" => self.find(words),
            "git" => {
                self.git(words);
                self.operands(base, words);
            }
            "su" | "runuser" => self.su(base, words, stdin),
            _ if tables::SHELLS.contains(&base) => self.shell(base, words, stdin, simple),
            _ if tables::REBINDERS.contains(&base) => self.rebinds(base, words),
            "crontab" if words.iter().any(|word| word.is("-l")) => {}
            _ if tables::SCHEDULERS.contains(&base) => {
                self.computed(format!("'{base}' runs something later"));
            }
            _ => {
                if let Some(row) = tables::launcher(base) {
                    let inner = self.launcher(row, words, stdin);
                    if inner && !row.counts {
                        simple.role = Role::Wrapper;
                    }
                    return true;
                }
                if let Some(row) = tables::program(base) {
                    self.program_options(row, words, stdin);
                }
                if matches!(base, "sed" | "gsed") && sed::runs_or_writes(words) {
                    let text = format!("a script of '{base}' may run or write something");
                    self.findings.note(NoteKind::Opaque, text);
                    for program in sed::Script::of(words).runs {
                        self.apart(&program, Stdin::None);
                    }
                }
                if matches!(base, "test" | "[") {
                    let computed = |word: &Word| word.parts() == [WordPart::Computed];
                    let operator = |pair: &[Word]| pair.iter().all(computed);
                    self.numbers |=
                        words.iter().any(|word| word.is("-v")) || words.windows(2).any(operator);
                }
                if base == "wait" {
                    self.numbers |= words.iter().any(|word| has_option(word, &["-p"]));
                }
                if tables::SETTERS.contains(&base) {
                    self.sets(base, words);
                }
                if let Some(options) = tables::words_of(tables::RUNS, base) {
                    self.option_commands(options, words, base.starts_with("fd"));
                }
                return false;
            }
        }
        true
    }

    /// Handles a program in no table that has another one among its arguments.
    fn unknown_launcher(
        &mut self,
        base: &str,
        words: &[Word],
        stdin: Stdin,
        simple: &mut SimpleCommand,
    ) {
        let also = tables::ALSO_RUN.contains(&base);
        if words.len() < 2 || !also && super::functions::is_known_program(base) {
            return;
        }
        for at in 1..words.len().min(32) {
            let rest = words.get(at..).unwrap_or_default();
            let Some(name) = rest.first().and_then(Word::literal) else {
                continue;
            };
            self.string_in_word(name);
            let inner = base_name(name).to_ascii_lowercase();
            let plain = version_less(&inner);
            let shell = tables::SHELLS.contains(&plain);
            let fed = shell && stdin != Stdin::None;
            if rest.len() < 2 && !fed || !shell && !is_launched(plain) {
                continue;
            }
            if simple.opaque.is_none() && !also {
                simple.opaque = Some(format!("'{base}' is given '{name}', and may run it"));
            }
            // `useradd --shell /bin/bash --create-home me`.
            let names = words.get(at - 1).and_then(Word::literal);
            let names = matches!(names, Some("--shell" | "-s"));
            let long = rest.get(1).is_some_and(|word| word.starts_with("--"));
            if shell && !(names && long) {
                return self.run(rest.to_vec(), stdin, Role::Wrapper);
            }
            self.dangerous(danger::check(&inner, rest, &self.dirs));
        }
    }

    /// Checks a word, or the value in it, that looks like a whole command.
    fn string_in_word(&mut self, text: &str) {
        let value = text.rsplit_once('=').map_or(text, |(_, value)| value);
        let inner: Vec<Word> = value.split_ascii_whitespace().map(Word::text).collect();
        let name = inner.first().and_then(Word::literal).map(base_name);
        let Some(name) = name.filter(|name| inner.len() > 1 && is_launched(name)) else {
            return;
        };
        self.dangerous(danger::check(name, &inner, &self.dirs));
    }

    /// Notes words that make a program run something that is not analyzed.
    fn hooks(&mut self, base: &str, words: &[Word]) {
        let Some(hooks) = tables::words_of(tables::HOOKS, base) else {
            return;
        };
        for word in words.iter().skip(1) {
            let text = word.shown().to_ascii_lowercase();
            let typed = base == "less" && types_a_command(&text);
            if typed || hooks.iter().any(|hook| text.contains(hook)) {
                self.computed(format!(
                    "'{}' can make '{base}' run something",
                    word.shown()
                ));
            }
        }
        // `-qc file`; anything after `-o` or `-t` is a value.
        let config = |word: &Word| {
            let flags = word.literal().and_then(|text| text.strip_prefix('-'));
            flags.is_some_and(|flags| {
                let mut letters = flags.chars().take_while(|c| !matches!(c, '-' | 'o' | 't'));
                letters.any(|c| c == 'c')
            })
        };
        if base.starts_with("apt") && words.iter().skip(1).any(config) {
            self.computed(format!(
                "a configuration of '{base}' can make it run something"
            ));
        }
    }

    /// Notes a device among the words of a program that does not only read.
    fn devices(&mut self, base: &str, words: &[Word]) {
        let others = [
            tables::READERS,
            tables::NON_PATH_OPERANDS,
            tables::DEVICE_READERS,
            tables::PARTITIONERS,
        ];
        if others.iter().any(|programs| programs.contains(&base)) {
            return;
        }
        for word in words.iter().skip(1) {
            let value = word.split_equals().map(|(_, value)| value);
            let glued = word.literal().filter(|text| text.starts_with('-'));
            let glued = glued.and_then(|text| Some(Word::text(text.get(text.find('/')?..)?)));
            let named = [Some(word), value.as_ref(), glued.as_ref()];
            let mut named = named.into_iter().flatten();
            if named.any(|word| danger::names_device(word, &self.dirs)) {
                self.computed(format!(
                    "what '{base}' does to '{}' is not known",
                    word.shown()
                ));
            }
        }
    }

    /// Joins words to a program that runs in a separate shell.
    pub(super) fn join(&mut self, words: &[Word]) {
        if let Some(word) = words.iter().find(|word| word.literal().is_none()) {
            return self.computed_code(&word.clone(), "a command in an argument is computed");
        }
        let text: Vec<&str> = words.iter().filter_map(Word::literal).collect();
        self.apart(&text.join(" "), Stdin::None);
    }

    /// Notes a destructive program whose effect depends on something computed.
    fn destructive(&mut self, base: &str, words: &[Word]) {
        let verb = || {
            let parsed = options::parse(&tables::GIT, words);
            parsed.operands(words).next()?.literal()
        };
        let (table, name) = match base {
            "git" => (tables::GIT_DESTRUCTIVE, verb()),
            _ => (tables::DESTRUCTIVE, Some(base)),
        };
        let Some(options) = name.and_then(|name| tables::words_of(table, name)) else {
            if base.starts_with("mkfs") && words.iter().any(Word::is_computed) {
                self.computed(format!("an argument of '{base}' is computed"));
            }
            return;
        };
        if !options.is_empty() && !words.iter().any(|word| has_option(word, options)) {
            return;
        }
        if base != "find" && words.iter().skip(1).any(Word::is_computed) {
            self.computed(format!("an argument of '{base}' is computed"));
        }
        let relative = |word: &Word| {
            !word.starts_with("-")
                && !word.starts_with("/")
                && word.parts().first() != Some(&WordPart::Home)
        };
        if self.dirs.unknown && base != "git" && words.iter().skip(1).any(relative) {
            self.computed(format!("the directory in which '{base}' runs is computed"));
        }
    }

    /// Checks code that an interpreter gets from its input or from a substitution.
    fn code_from_input(&mut self, base: &str, words: &[Word], stdin: Stdin) {
        if !tables::OPAQUE.contains(&version_less(base)) {
            return;
        }
        let code = |word: &Word| word.is_any(&["-c", "-e", "-E", "-r", "--eval", "--execute"]);
        for (flag, word) in words.iter().zip(words.iter().skip(1)) {
            if code(flag) && word.fetches {
                self.computed_code(&word.clone(), "");
            }
        }
        let reads_code = tables::READ_INPUT.contains(&version_less(base));
        // There are only options, and none of them is code.
        let bare = words.iter().skip(1).all(|word| {
            word.literal().is_some_and(|text| {
                let code = is_bundle(text) && text.contains(['c', 'e', 'E', 'm', 'r', 'p', 'n']);
                let long = ["--eval", "--print", "--execute"].iter();
                let long = long.clone().any(|known| text.starts_with(known));
                matches!(text, "run" | "/dev/stdin") || text.starts_with('-') && !code && !long
            })
        });
        let fetched = words.iter().skip(1).take(1).any(|word| word.fetches);
        if reads_code && (bare && stdin == Stdin::Pipe(true) || fetched) {
            self.dangerous(format!("it hands what it downloads or decodes to '{base}'"));
        }
    }
}

/// Whether `less` is told to do more at the start than move to a position: `+|a id`.
fn types_a_command(word: &str) -> bool {
    let Some(typed) = word.strip_prefix('+') else {
        return false;
    };
    let typed = typed.trim_start_matches('+');
    let place = typed.trim_start_matches(|c: char| c.is_ascii_digit());
    let searches = place.starts_with(['/', '?']) && !place.contains(char::is_control);
    !searches && !matches!(place, "" | "f" | "g" | "p" | "%")
}

/// Whether `name` likely starts a command among the arguments of another program.
fn is_launched(name: &str) -> bool {
    tables::LAUNCHED.contains(&name) || name.starts_with("mkfs")
}

/// Strips the version: `python3.12` becomes `python`.
fn version_less(base: &str) -> &str {
    base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Returns the reason why the code that a program runs cannot be seen, if so.
fn opaque(base: &str, words: &[Word]) -> Option<String> {
    let plain = version_less(base);
    if tables::OPAQUE.contains(&base) || !plain.is_empty() && tables::OPAQUE.contains(&plain) {
        return Some(format!("'{base}' runs code that is not shell"));
    }
    let verbs = tables::words_of(tables::OPAQUE_SUBCOMMANDS, base)?;
    let verb = words.iter().skip(1).find(|word| word.is_any(verbs))?;
    Some(format!("'{base} {}' runs commands elsewhere", verb.shown()))
}

/// Whether a program of this name reads file names or code from its input.
pub(super) fn takes_list(program: &str) -> bool {
    let base = base_name(program);
    let lists = ["bsdtar", "cpio", "rsync", "tar", "xargs"];
    lists.contains(&base) || tables::OPAQUE.contains(&version_less(base))
}
