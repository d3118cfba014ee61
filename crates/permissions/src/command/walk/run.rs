//! What one command does, by what is known of its program.

use super::{Stdin, Walk, base_name, wrappers::abbreviates};
use crate::command::found::{Class, Role, Simple};
use crate::command::word::{Part, Word};
use crate::command::{PathUse, Trouble, danger, shell, tables};

/// How many programs may run one another. Each takes a copy of the words.
const MAX_WRAPPED: usize = 16;

impl Walk<'_> {
    /// A command with its arguments.
    pub(super) fn run(&mut self, words: Vec<Word>, stdin: Stdin, role: Role) {
        if self.nesting >= super::MAX_NESTING || self.wrapped >= MAX_WRAPPED {
            return self
                .found
                .trouble(Trouble("commands are nested too deep in it"));
        }
        self.nesting += 1;
        self.wrapped += 1;
        let mut simple = Simple {
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
        self.found.simple(simple);
        self.wrapped -= 1;
        self.nesting -= 1;
    }

    fn unnamed_program(&mut self, program: &Word, simple: &mut Simple) {
        if program.is_computed() {
            self.computed_code(program, "the name of a program is computed");
        } else if program.is_glob() {
            let text = format!("the program '{}' is found by a glob", program.shown());
            self.found.note(Class::Computed, text);
        } else {
            simple.opaque = Some(format!("it runs '{}' by its path", program.shown()));
        }
    }

    fn named_program(&mut self, name: &str, words: &[Word], stdin: Stdin, simple: &mut Simple) {
        self.functions.calls(name);
        let base = base_name(name).to_ascii_lowercase();
        if let Some((directory, _)) = name.rsplit_once('/') {
            if !tables::BIN_DIRS.contains(&directory) {
                simple.opaque = Some(format!("it runs '{name}' by its path"));
                self.runs_file(name);
            }
            self.named(&Word::text(name), PathUse::Run);
        }
        if let Some(text) = danger::check(&base, words, &self.dirs) {
            self.found.note(Class::Dangerous, text);
        }
        let own = self.special(&base, words, stdin, simple);
        // What only bears the name of a wrapper needs a rule like any other.
        if simple.opaque.is_some() || base != base_name(name) {
            simple.role = Role::Plain;
        }
        if !own {
            if simple.opaque.is_none() {
                simple.opaque = opaque(&base, words);
            }
            self.code_from_input(&base, words, stdin);
            self.operands(&base, words);
        }
        self.destructive(&base, words);
    }

    /// Programs that need looking at one by one. `false` if it is an ordinary one.
    fn special(&mut self, base: &str, words: &[Word], stdin: Stdin, simple: &mut Simple) -> bool {
        match base {
            "eval" => {
                simple.role = Role::Wrapper;
                self.eval(words);
            }
            "trap" => match words.get(1) {
                Some(word) if word.literal().is_none_or(|text| !text.starts_with('-')) => {
                    self.string_command(&word.clone());
                }
                _ => {}
            },
            "source" | "." => self.source(words, stdin, simple),
            "cd" | "chdir" | "pushd" | "popd" => self.change_directory(base, words),
            "xargs" | "gxargs" => self.xargs(words, stdin),
            "find" | "gfind" => self.find(words),
            "git" => {
                self.git(words);
                self.operands(base, words);
            }
            "watch" => {
                let mut at = 1;
                while let Some(word) = words.get(at).filter(|word| word.starts_with("-")) {
                    let value = matches!(word.literal(), Some("-n" | "--interval" | "-q" | "-s"));
                    at += 1 + usize::from(value);
                }
                self.join(words.get(at..).unwrap_or_default());
            }
            "su" | "runuser" | "flock" | "script" => self.option_or_rest(base, words, stdin),
            _ if tables::SHELLS.contains(&base) => self.shell(words, stdin, simple),
            _ if tables::REBINDERS.contains(&base) => self.rebinds(base, words),
            "crontab" if words.iter().any(|word| word.literal() == Some("-l")) => {}
            _ if tables::LATER.contains(&base) => {
                let text = format!("'{base}' runs something later");
                self.found.note(Class::Computed, text);
            }
            _ => {
                if let Some(wrapper) = tables::WRAPPERS.iter().find(|wrapper| wrapper.name == base)
                {
                    let inner = self.wrapper(wrapper, words, stdin);
                    if inner && !wrapper.counts {
                        simple.role = Role::Wrapper;
                    }
                    return true;
                }
                if tables::SETTERS.contains(&base) {
                    self.sets(base, words);
                }
                if let Some((_, options)) = tables::RUNS.iter().find(|(name, _)| *name == base) {
                    self.option_commands(options, words, base.starts_with("fd"));
                }
                return false;
            }
        }
        true
    }

    /// `eval`: the words, joined, are a program.
    fn eval(&mut self, words: &[Word]) {
        let words: Vec<&Word> = words
            .iter()
            .skip(1)
            .filter(|word| word.literal() != Some("--"))
            .collect();
        if let Some(word) = words.iter().find(|word| word.literal().is_none()) {
            return self.computed_code(word, "what 'eval' runs is computed");
        }
        let text: Vec<&str> = words.iter().filter_map(|word| word.literal()).collect();
        self.program(&text.join(" "), Stdin::None);
    }

    /// Words that are joined to a program which runs apart.
    fn join(&mut self, words: &[Word]) {
        if let Some(word) = words.iter().find(|word| word.literal().is_none()) {
            return self.computed_code(&word.clone(), "a command in an argument is computed");
        }
        let text: Vec<&str> = words.iter().filter_map(Word::literal).collect();
        self.apart(&text.join(" "), Stdin::None);
    }

    /// `su -c 'program'`, or `flock file program`.
    fn option_or_rest(&mut self, base: &str, words: &[Word], stdin: Stdin) {
        let options = tables::RUNS
            .iter()
            .find(|(name, _)| *name == base)
            .map(|(_, options)| *options);
        let before = self.found.simples.len();
        self.option_commands(options.unwrap_or_default(), words, false);
        if self.found.simples.len() > before {
            return;
        }
        if base == "su" && stdin != Stdin::None {
            let text = format!("'{base}' hands its input to a shell");
            self.found.note(Class::Computed, text);
        }
        if let Some(wrapper) = tables::WRAPPERS.iter().find(|wrapper| wrapper.name == base) {
            self.wrapper(wrapper, words, stdin);
        }
    }

    /// A shell: a program in an argument, a script, or its input.
    fn shell(&mut self, words: &[Word], stdin: Stdin, simple: &mut Simple) {
        let mut at = 1;
        let (mut string, mut input) = (false, false);
        while let Some(word) = words.get(at) {
            let Some(text) = word.literal() else {
                if word.starts_with("-") {
                    self.found.note(
                        Class::Computed,
                        "an option of a shell is computed".to_owned(),
                    );
                }
                break;
            };
            if text == "--" || text == "-" {
                at += 1;
                break;
            }
            if let Some(long) = text.strip_prefix("--") {
                if matches!(long, "rcfile" | "init-file") {
                    simple.opaque = Some("it runs a start file".to_owned());
                    at += 1;
                }
                at += 1;
            } else if let Some(flags) = text.strip_prefix(['-', '+']) {
                string |= text.starts_with('-') && flags.contains('c');
                input |= flags.contains('s');
                at += 1 + flags.chars().filter(|c| matches!(c, 'o' | 'O')).count();
            } else {
                break;
            }
        }
        match words.get(at) {
            Some(program) if string => {
                simple.role = Role::Wrapper;
                match program.literal() {
                    Some(text) => self.apart(text, stdin),
                    None => self.computed_code(&program.clone(), "what a shell runs is computed"),
                }
            }
            Some(script) if !input && script.literal() != Some("/dev/stdin") => {
                self.script(script, simple);
            }
            _ => match stdin {
                Stdin::None => {}
                Stdin::Read => simple.role = Role::Wrapper,
                Stdin::File => simple.opaque = Some("a shell runs a file".to_owned()),
                Stdin::Pipe(true) => {
                    let text = "it hands what it downloads or decodes to a shell";
                    self.found.note(Class::Dangerous, text.to_owned());
                }
                Stdin::Pipe(false) => {
                    let text = "a shell runs what another command prints";
                    self.found.note(Class::Computed, text.to_owned());
                }
            },
        }
    }

    /// A script that a shell is given.
    fn script(&mut self, script: &Word, simple: &mut Simple) {
        match script.literal() {
            None if script.is_computed() => {
                self.computed_code(&script.clone(), "the script that a shell runs is computed");
            }
            _ => {
                simple.opaque = Some(format!("it runs the script '{}'", script.shown()));
                self.runs_file(&script.shown());
                self.named(&script.clone(), PathUse::Read);
            }
        }
    }

    fn source(&mut self, words: &[Word], stdin: Stdin, simple: &mut Simple) {
        let Some(script) = words.get(1).cloned() else {
            return;
        };
        if script.literal() == Some("/dev/stdin") && stdin != Stdin::None {
            let fetched = stdin == Stdin::Pipe(true);
            let class = if fetched {
                Class::Dangerous
            } else {
                Class::Computed
            };
            return self
                .found
                .note(class, "it runs what another command prints".to_owned());
        }
        self.script(&script, simple);
    }

    /// A file runs that the line itself wrote: then what is in it is not what
    /// anybody has seen.
    fn runs_file(&mut self, name: &str) {
        let base = base_name(name);
        if self
            .written
            .iter()
            .any(|written| base_name(written) == base)
        {
            let text = format!("it runs '{name}', which it writes first");
            self.found.note(Class::Computed, text);
        }
    }

    fn change_directory(&mut self, base: &str, words: &[Word]) {
        let operand = words
            .iter()
            .skip(1)
            .find(|word| !matches!(word.literal(), Some("-P" | "-L" | "-e" | "-@" | "--")));
        match operand {
            _ if base == "popd" => self.dirs.lose(),
            None if base == "pushd" => self.dirs.lose(),
            None => self.dirs.go_home(),
            Some(word) => {
                self.named(word, PathUse::Read);
                self.dirs.go(word);
            }
        }
    }

    /// Built-ins that change what names stand for.
    fn rebinds(&mut self, base: &str, words: &[Word]) {
        let args = words.iter().skip(1);
        let has = |flag: &str| words.iter().any(|word| word.starts_with(flag));
        let bad = match base {
            "alias" => args
                .clone()
                .any(|word| word.shown().contains('=') || word.is_computed()),
            "enable" => has("-f") || has("-n"),
            "hash" => has("-p"),
            "complete" | "compgen" => has("-C") || has("-F"),
            "shopt" => args.clone().any(|word| {
                word.is_computed() || matches!(word.literal(), Some("expand_aliases" | "extglob"))
            }),
            _ => true,
        };
        if bad {
            let text = format!("'{base}' changes what names stand for");
            self.found.note(Class::Computed, text);
        }
    }

    /// Built-ins that set variables.
    fn sets(&mut self, base: &str, words: &[Word]) {
        let by_option = base == "printf";
        let mut set_next = false;
        for word in words.iter().skip(1) {
            let text = word.literal().map(str::to_owned);
            let name = word.split_equals().map(|(name, _)| name).or(text);
            let Some(name) = name else {
                if word.is_computed() && !by_option && !matches!(base, "let" | "read") {
                    let text = format!("'{base}' sets variables whose names are computed");
                    self.found.note(Class::Opaque, text);
                }
                continue;
            };
            let evaluates = name.contains('[') || base == "let";
            if evaluates && word.shown().contains(['`', '$']) {
                let text = format!("'{base}' runs what stands in an argument");
                self.found.note(Class::Computed, text);
            }
            let is_option = name.starts_with('-');
            if !is_option && (!by_option || set_next) {
                let bare = name
                    .split(['[', '+', '-', '*', '/'])
                    .next()
                    .unwrap_or_default();
                if shell::is_name(bare) && (base != "export" || word.split_equals().is_some()) {
                    self.variable(bare, true);
                }
            }
            set_next = name == "-v";
        }
    }

    /// Whether a program's damage depends on something that is computed.
    fn destructive(&mut self, base: &str, words: &[Word]) {
        let table: &[(&str, &[&str])] = if base == "git" {
            tables::GIT_DESTRUCTIVE
        } else {
            tables::DESTRUCTIVE
        };
        let name = if base == "git" {
            words
                .iter()
                .skip(1)
                .find_map(|word| word.literal().filter(|text| !text.starts_with('-')))
        } else {
            Some(base)
        };
        let Some((_, options)) = table.iter().find(|(known, _)| Some(*known) == name) else {
            if base.starts_with("mkfs") && words.iter().any(Word::is_computed) {
                self.found.note(
                    Class::Computed,
                    format!("an argument of '{base}' is computed"),
                );
            }
            return;
        };
        if !options.is_empty() && !words.iter().any(|word| has_option(word, options)) {
            return;
        }
        if base != "find" && words.iter().skip(1).any(Word::is_computed) {
            self.found.note(
                Class::Computed,
                format!("an argument of '{base}' is computed"),
            );
        }
        let relative = |word: &Word| {
            !word.starts_with("-")
                && !word.starts_with("/")
                && word.parts().first() != Some(&Part::Home)
        };
        if self.dirs.unknown && base != "git" && words.iter().skip(1).any(relative) {
            let text = format!("the directory in which '{base}' runs is computed");
            self.found.note(Class::Computed, text);
        }
    }

    /// Code that an interpreter is given by its input or by a substitution.
    fn code_from_input(&mut self, base: &str, words: &[Word], stdin: Stdin) {
        if !tables::OPAQUE.contains(&version_less(base)) {
            return;
        }
        let code = |word: &Word| {
            matches!(
                word.literal(),
                Some("-c" | "-e" | "-E" | "-r" | "--eval" | "--execute")
            )
        };
        for (flag, word) in words.iter().zip(words.iter().skip(1)) {
            if code(flag) && word.fetches {
                self.computed_code(&word.clone(), "");
            }
        }
        let reads_code = matches!(
            version_less(base),
            "python"
                | "pypy"
                | "perl"
                | "ruby"
                | "node"
                | "nodejs"
                | "php"
                | "lua"
                | "deno"
                | "bun"
                | "fish"
                | "csh"
                | "tcsh"
                | "pwsh"
                | "tclsh"
                | "osascript"
        );
        let bare = words.iter().skip(1).all(|word| {
            word.literal().is_some_and(|text| {
                matches!(
                    text,
                    "-" | "run" | "-u" | "-s" | "-i" | "-B" | "-E" | "/dev/stdin"
                )
            })
        });
        let fetched = words.iter().skip(1).take(1).any(|word| word.fetches);
        if reads_code && (bare && stdin == Stdin::Pipe(true) || fetched) {
            let text = format!("it hands what it downloads or decodes to '{base}'");
            self.found.note(Class::Dangerous, text);
        }
    }
}

/// `python3.12` is a `python`.
fn version_less(base: &str) -> &str {
    base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.')
}

/// Why the code that a program runs cannot be seen.
fn opaque(base: &str, words: &[Word]) -> Option<String> {
    let plain = version_less(base);
    if tables::OPAQUE.contains(&base) || !plain.is_empty() && tables::OPAQUE.contains(&plain) {
        return Some(format!("'{base}' runs code that is not shell"));
    }
    let literal = |word: &Word| word.literal().map(str::to_owned);
    if let Some((_, verbs)) = tables::OPAQUE_SUBCOMMANDS
        .iter()
        .find(|(name, _)| *name == base)
    {
        let verb = words
            .iter()
            .skip(1)
            .filter_map(literal)
            .find(|text| verbs.contains(&text.as_str()));
        return verb.map(|verb| format!("'{base} {verb}' runs commands elsewhere"));
    }
    if matches!(base, "sed" | "gsed") {
        return super::super::sed::runs_or_writes(words)
            .then(|| format!("a script of '{base}' may run or write something"));
    }
    None
}

/// Whether the word is one of `options`, bundled with others or cut short.
pub(crate) fn has_option(word: &Word, options: &[&str]) -> bool {
    let text = word.literal().unwrap_or_default();
    options.iter().any(|option| {
        text == *option
            || abbreviates(text.split('=').next().unwrap_or_default(), option)
            || option.strip_prefix('-').is_some_and(|letter| {
                letter.len() == 1
                    && !text.starts_with("--")
                    && text.starts_with('-')
                    && text.contains(letter)
            })
    })
}
