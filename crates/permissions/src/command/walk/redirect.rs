//! Redirects and assignments.

use brush_parser::ast::{
    Assignment, AssignmentName, AssignmentValue, IoFileRedirectKind, IoFileRedirectTarget,
    IoRedirect,
};

use super::{Stdin, Walk, base_name};
use crate::command::found::Class;
use crate::command::paths::CODE_MARKS;
use crate::command::word::{Mode, Word};
use crate::command::{PathUse, Trouble, tables};

impl Walk<'_> {
    pub(super) fn assignment(&mut self, assignment: &Assignment, alone: bool, reads: bool) {
        if assignment.append {
            self.found
                .trouble(Trouble("'+=' is not known to every shell"));
        }
        let name = match &assignment.name {
            AssignmentName::VariableName(name) => name,
            AssignmentName::ArrayElementName(name, index) => {
                self.words(index, Mode::Assignment);
                self.numbers = true;
                name
            }
        };
        // Only `read` uses it, and then it is gone.
        if !(reads && name == "IFS") {
            self.variable(name, alone);
        }
        match &assignment.value {
            AssignmentValue::Scalar(value) => {
                let value = self.word(&value.value, Mode::Assignment);
                self.named(&value, PathUse::Named);
                self.variable_writes(name, &value);
                self.value(&value);
            }
            AssignmentValue::Array(values) => {
                for (index, value) in values {
                    if let Some(index) = index {
                        self.words(&index.value, Mode::Assignment);
                        self.numbers = true;
                    }
                    for word in self.words(&value.value, Mode::Word).words {
                        self.named(&word, PathUse::Named);
                    }
                }
            }
        }
    }

    /// A variable that is set; `alone` if it stays set for what follows.
    pub(super) fn variable(&mut self, name: &str, alone: bool) {
        let among = |names: &[&str]| {
            names
                .iter()
                .any(|known| *known == name || known.ends_with('_') && name.starts_with(*known))
        };
        if among(tables::READING_VARIABLES) || alone && matches!(name, "HOME" | "PWD" | "OLDPWD") {
            let text = format!("it sets {name}, which changes what the rest of the line means");
            self.found.note(Class::Computed, text);
        } else if among(tables::CODE_VARIABLES) || name.starts_with("GIT_CONFIG")
            // npm does not mind capitals.
            || name.to_ascii_lowercase().starts_with("npm_config_")
        {
            let text = format!("it sets {name}, which decides what code runs");
            self.found.note(Class::Opaque, text);
        }
    }

    /// What redirects do, and where the input then comes from.
    pub(super) fn redirects<'r>(
        &mut self,
        redirects: impl Iterator<Item = &'r IoRedirect>,
        mut stdin: Stdin,
        for_shell: bool,
    ) -> Stdin {
        for redirect in redirects {
            match redirect {
                IoRedirect::File(fd, kind, target) => {
                    let input = self.file_redirect(kind, target);
                    if input && fd.is_none() || *fd == Some(0) {
                        stdin = match target {
                            IoFileRedirectTarget::ProcessSubstitution(..) => Stdin::Pipe(true),
                            IoFileRedirectTarget::Filename(word) => Stdin::File {
                                written: self.writes(&word.value),
                            },
                            // What that descriptor is, is not followed.
                            _ => Stdin::Pipe(false),
                        };
                    }
                }
                IoRedirect::HereDocument(fd, document) => {
                    let delimiter = &document.here_end.value;
                    if delimiter.contains(['$', '`']) {
                        self.found
                            .trouble(Trouble("the end of a here-document in it is not plain"));
                    }
                    if document.requires_expansion {
                        self.words(&document.doc.value, Mode::HereDoc);
                    }
                    if matches!(fd, None | Some(0)) {
                        stdin = Stdin::Pipe(false);
                        let plain = !document.requires_expansion
                            || !document.doc.value.contains(['$', '`', '\\']);
                        if for_shell && plain {
                            self.apart(&document.doc.value, Stdin::None);
                            stdin = Stdin::Read;
                        }
                    }
                }
                IoRedirect::HereString(_, word) => {
                    self.words(&word.value, Mode::Word);
                    self.found
                        .trouble(Trouble("'<<<' is not known to every shell"));
                }
                IoRedirect::OutputAndError(word, _) => {
                    let target = self.word(&word.value, Mode::Word);
                    self.write_target(&target);
                    self.found.trouble(Trouble(
                        "'&>' ends a command in some shells; write '>file 2>&1'",
                    ));
                }
            }
        }
        stdin
    }

    /// Whether the line has written a file of this name.
    fn writes(&self, name: &str) -> bool {
        self.written.contains(base_name(name))
    }

    /// Paths in a here-document that names files, or is code: of `xargs`, of a
    /// loop, of an interpreter.
    pub(super) fn listed<'r>(&mut self, redirects: impl Iterator<Item = &'r IoRedirect>) {
        for redirect in redirects {
            let IoRedirect::HereDocument(_, document) = redirect else {
                continue;
            };
            let ends = |c: char| c.is_whitespace() || CODE_MARKS.contains(c);
            for name in document.doc.value.split(ends) {
                if name.len() > 1 && !self.work.is_spent() {
                    self.named(&Word::text(name), PathUse::Named);
                }
            }
        }
    }

    /// Whether the redirect is one of input.
    fn file_redirect(&mut self, kind: &IoFileRedirectKind, target: &IoFileRedirectTarget) -> bool {
        let input = matches!(
            kind,
            IoFileRedirectKind::Read
                | IoFileRedirectKind::ReadAndWrite
                | IoFileRedirectKind::DuplicateInput
        );
        match target {
            IoFileRedirectTarget::Fd(_) => {}
            IoFileRedirectTarget::Filename(word) => {
                let word = self.word(&word.value, Mode::Word);
                if input {
                    self.named(&word, PathUse::Read);
                }
                if !matches!(
                    kind,
                    IoFileRedirectKind::Read | IoFileRedirectKind::DuplicateInput
                ) {
                    self.write_target(&word);
                }
            }
            IoFileRedirectTarget::Duplicate(word) => {
                let word = self.word(&word.value, Mode::Word);
                let fd = word.literal().is_some_and(|text| {
                    let digits = text.trim_end_matches('-');
                    digits.bytes().all(|b| b.is_ascii_digit())
                });
                if !fd {
                    self.write_target(&word);
                }
            }
            IoFileRedirectTarget::ProcessSubstitution(_, subshell) => {
                let dirs = self.dirs.clone();
                self.list(&subshell.list, Stdin::None);
                self.dirs = dirs;
            }
        }
        input
    }
}
