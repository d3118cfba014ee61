//! Shells and `source`: the strings, scripts and inputs that they run.

use super::{Stdin, Walk};
use crate::findings::{Role, SimpleCommand};
use crate::named_path::PathUse;
use crate::options::{self, Row};
use crate::tables::{self, base_name};
use crate::word::Word;

impl Walk<'_> {
    /// Walks the program of a shell: in an argument, in a script, or in its input.
    pub(super) fn shell(
        &mut self,
        base: &str,
        words: &[Word],
        stdin: Stdin,
        simple: &mut SimpleCommand,
    ) {
        let Options { string, input, at } = self.shell_options(words, simple);
        if !tables::READ_SHELLS.contains(&base) {
            simple.opaque = Some(format!("'{base}' does not read as other shells do"));
        }
        let script = words.get(at);
        // The arguments of the program, `$1` and so on.
        for word in words.iter().skip(at + usize::from(!input)) {
            self.named(word, PathUse::Named);
        }
        let from_input = |word: &Word| word.literal().is_some_and(is_input);
        match script {
            Some(program) if string => {
                simple.role = Role::Wrapper;
                match program.literal() {
                    Some(text) => self.apart(text, stdin),
                    None => self.computed_code(&program.clone(), "what a shell runs is computed"),
                }
            }
            Some(script) if !input && !from_input(script) => self.script(script, simple),
            _ => match self.input(stdin) {
                Stdin::None if script.is_some() && !input => {
                    simple.opaque = Some("a shell runs its input".to_owned());
                }
                Stdin::None => {}
                Stdin::Read => simple.role = Role::Wrapper,
                Stdin::File { written: false } => {
                    simple.opaque = Some("a shell runs a file".to_owned());
                }
                Stdin::File { written: true } => {
                    self.computed("a shell runs a file that the line writes first");
                }
                Stdin::Pipe(true) => {
                    self.dangerous("it hands what it downloads or decodes to a shell".to_owned());
                }
                Stdin::Pipe(false) => {
                    self.computed("a shell runs what another command prints");
                }
            },
        }
    }

    /// Parses the options of a shell: `+x` undoes one, and long ones may have one dash.
    fn shell_options(&mut self, words: &[Word], simple: &mut SimpleCommand) -> Options {
        let mut options = Options {
            string: false,
            input: false,
            at: 1,
        };
        while let Some(word) = words.get(options.at) {
            let Some(text) = word.literal() else {
                if word.starts_with("-") {
                    self.computed("an option of a shell is computed");
                }
                break;
            };
            let Some(flags) = text.strip_prefix(['-', '+']) else {
                break;
            };
            options.at += 1;
            if matches!(flags, "" | "-") && text.starts_with('-') {
                break;
            }
            let long = flags.strip_prefix('-').unwrap_or(flags);
            if matches!(long, "rcfile" | "init-file") {
                simple.opaque = Some("it runs a start file".to_owned());
                match words.get(options.at).cloned() {
                    Some(file) if file.is_computed() => {
                        self.computed_code(&file, "the start file of a shell is computed");
                    }
                    Some(file) => self.named(&file, PathUse::Read),
                    None => {}
                }
                options.at += 1;
            } else if tables::SHELL_LONG.contains(&long) {
            } else if flags.chars().all(|c| tables::SHELL_SHORT.contains(c)) {
                options.string |= text.starts_with('-') && flags.contains('c');
                options.input |= flags.contains('s');
                for flag in flags.chars().filter(|c| matches!(c, 'o' | 'O')) {
                    let value = words.get(options.at).and_then(Word::literal);
                    let known = |text| tables::SHOPT.contains(&text);
                    if flag == 'O' && !value.is_some_and(known) {
                        self.computed("an option of a shell changes what names stand for");
                    }
                    options.at += 1;
                }
            } else {
                self.computed(format!("unknown option '{text}' of a shell"));
            }
        }
        options
    }

    /// Handles a script that a shell runs.
    fn script(&mut self, script: &Word, simple: &mut SimpleCommand) {
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

    pub(super) fn source(&mut self, words: &[Word], stdin: Stdin, simple: &mut SimpleCommand) {
        let parsed = options::parse(&Row::new("source", "+p:", ""), words);
        self.options("source", &parsed, words, stdin);
        let Some(script) = parsed.operands(words).next() else {
            return;
        };
        let stdin = self.input(stdin);
        if script.literal().is_some_and(is_input) && stdin != Stdin::None {
            return self.code_from(stdin, "it runs what another command prints");
        }
        self.script(script, simple);
    }

    /// Returns the source of a command's input. If it has none of its own, that is the
    /// input of the shell, which `exec` may have redirected.
    pub(super) fn input(&self, stdin: Stdin) -> Stdin {
        match stdin {
            Stdin::None => self.moved,
            given => given,
        }
    }

    /// Notes the run of a file that the line itself writes, so its contents are unknown.
    pub(super) fn runs_file(&mut self, name: &str) {
        if self.written.contains(base_name(name)) {
            self.computed(format!("it runs '{name}', which it writes first"));
        }
    }
}

/// The parsed options of a shell.
struct Options {
    /// Whether the first operand is a program (`-c`).
    string: bool,
    /// Whether it reads its input (`-s`).
    input: bool,
    /// Index of the first operand.
    at: usize,
}

/// Whether a file is the standard input, or a file descriptor.
fn is_input(name: &str) -> bool {
    let fd = |name: &str| name.starts_with("/dev/fd/") || name.contains("/fd/");
    name == "/dev/stdin" || fd(name) && (name.starts_with("/dev/") || name.starts_with("/proc/"))
}
