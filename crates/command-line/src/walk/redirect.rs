//! Redirects and assignments.

use super::paths::CODE_MARKS;
use super::{Stdin, Walk};
use crate::findings::NoteKind;
use crate::named_path::PathUse;
use crate::shell::ast::{Assignment, Kind, Redirect, Target, Value};
use crate::tables::{self, base_name};
use crate::word::{self, Mode, Word};

impl Walk<'_> {
    pub(super) fn assignment(&mut self, assignment: &Assignment, alone: bool, reads: bool) {
        if assignment.append {
            self.not_understood("'+=' is not known to every shell");
        }
        let name = &assignment.name;
        if let Some(index) = &assignment.index {
            self.index(index);
        }
        // Only `read` itself sees this value.
        if !(reads && name == "IFS") {
            self.variable(name, alone);
        }
        match &assignment.value {
            Value::Scalar(value) => {
                let value = self.word(value, Mode::Assignment);
                self.named(&value, PathUse::Named);
                self.variable_writes(name, &value);
                self.value(&value);
            }
            Value::Array(members) => {
                for (index, value) in members {
                    if let Some(index) = index {
                        self.index(index);
                    }
                    for word in self.words(value, Mode::Word).words {
                        self.named(&word, PathUse::Named);
                    }
                }
            }
        }
    }

    /// Handles the index of an array, which may be a calculation.
    fn index(&mut self, index: &str) {
        self.words(index, Mode::Assignment);
        self.numbers = true;
        for name in word::assigned(index) {
            self.variable(&name, true);
        }
    }

    /// Checks a variable that is set; if `alone`, for the rest of the line.
    pub(super) fn variable(&mut self, name: &str, alone: bool) {
        self.numbers |= tables::NUMBER_VARIABLES.contains(&name);
        let among = |names| tables::has_variable(names, name);
        if among(tables::READING_VARIABLES) || alone && matches!(name, "HOME" | "PWD" | "OLDPWD") {
            self.computed(format!(
                "it sets {name}, which changes what the rest of the line means"
            ));
        } else if among(tables::CODE_VARIABLES) || name.starts_with("GIT_CONFIG")
            // npm ignores case.
            || name.to_ascii_lowercase().starts_with("npm_config_")
        {
            let text = format!("it sets {name}, which decides what code runs");
            self.findings.note(NoteKind::Opaque, text);
        }
    }

    /// Handles redirects, and returns the source of the input after them.
    pub(super) fn redirects<'r>(
        &mut self,
        redirects: impl Iterator<Item = &'r Redirect>,
        mut stdin: Stdin,
        for_shell: bool,
    ) -> Stdin {
        for redirect in redirects {
            match redirect {
                Redirect::File { fd, kind, target } => {
                    let input = self.file_redirect(*kind, target);
                    if input && fd.is_none() || *fd == Some(0) {
                        stdin = match (kind, target) {
                            (_, Target::Substitution(_)) => Stdin::Pipe(true),
                            // Descriptors are not tracked.
                            (Kind::CopyInput | Kind::CopyOutput, _) => Stdin::Pipe(false),
                            (_, Target::Word(word)) => Stdin::File {
                                written: self.writes(word),
                            },
                        };
                    }
                }
                Redirect::Document { fd, expands, body } => {
                    let text = body.get().map_or("", String::as_str);
                    if *expands {
                        self.words(text, Mode::HereDoc);
                    }
                    if matches!(fd, None | Some(0)) {
                        stdin = Stdin::Pipe(false);
                        if for_shell && !(*expands && text.contains(['$', '`', '\\'])) {
                            self.apart(text, Stdin::None);
                            stdin = Stdin::Read;
                        }
                    }
                }
                Redirect::Both(word) => {
                    let target = self.word(word, Mode::Word);
                    self.write_target(&target);
                    self.not_understood("'&>' ends a command in some shells; write '>file 2>&1'");
                }
            }
        }
        stdin
    }

    /// Whether the line has written a file of this name.
    fn writes(&self, name: &str) -> bool {
        self.written.contains(base_name(name))
    }

    /// Records paths in a here-document of file names or code.
    pub(super) fn listed<'r>(&mut self, redirects: impl Iterator<Item = &'r Redirect>) {
        for redirect in redirects {
            let Redirect::Document { body, .. } = redirect else {
                continue;
            };
            let ends = |c: char| c.is_whitespace() || CODE_MARKS.contains(c);
            for name in body.get().map_or("", String::as_str).split(ends) {
                if name.len() > 1 && !self.budget.is_spent() {
                    self.named(&Word::text(name), PathUse::Named);
                }
            }
        }
    }

    /// Handles a redirect to or from a file, and returns whether it redirects input.
    fn file_redirect(&mut self, kind: Kind, target: &Target) -> bool {
        let input = matches!(kind, Kind::Read | Kind::ReadWrite | Kind::CopyInput);
        match target {
            Target::Word(word) => {
                let word = self.word(word, Mode::Word);
                if matches!(kind, Kind::Read | Kind::ReadWrite) {
                    self.named(&word, PathUse::Read);
                }
                let copies = matches!(kind, Kind::CopyInput | Kind::CopyOutput)
                    && word.literal().is_some_and(is_descriptor);
                if kind != Kind::Read && !copies {
                    self.write_target(&word);
                }
            }
            Target::Substitution(list) => {
                self.subshell(|walk| walk.list(list, Stdin::None));
            }
        }
        input
    }
}

/// Whether `>&word` names a file descriptor: `2`, `2-` or `-`.
fn is_descriptor(word: &str) -> bool {
    let digits = word.trim_end_matches('-');
    digits.bytes().all(|b| b.is_ascii_digit())
}
