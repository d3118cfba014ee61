//! Ways in which git runs something else.

use super::{Stdin, Walk, wrappers::abbreviates};
use crate::command::found::{Class, Role};
use crate::command::tables;
use crate::command::word::Word;

impl Walk<'_> {
    pub(super) fn git(&mut self, words: &[Word]) {
        let mut at = 1;
        while let Some(word) = words.get(at) {
            if !word.starts_with("-") {
                break;
            }
            at += 1;
            match word.literal() {
                Some("-C" | "--git-dir" | "--work-tree" | "--namespace" | "--super-prefix") => {
                    at += 1;
                }
                Some("-c") => {
                    if let Some(setting) = words.get(at) {
                        self.git_setting(&setting.clone());
                    }
                    at += 1;
                }
                Some(text)
                    if text.starts_with("--config-env") || text.starts_with("--exec-path=") =>
                {
                    self.git_asks(&format!("'git {text}'"));
                }
                Some(text) if text.starts_with("-c") => {
                    if let Some(setting) = word.strip_prefix("-c") {
                        self.git_setting(&setting);
                    }
                }
                _ => {}
            }
        }
        let Some(verb) = words.get(at) else {
            return;
        };
        let rest = words.get(at + 1..).unwrap_or_default();
        match verb.literal() {
            None => self.git_asks("the sub-command of git"),
            Some("config") => self.git_config(rest),
            Some("submodule") => {
                let foreach = rest
                    .iter()
                    .position(|word| word.literal() == Some("foreach"));
                if let Some(at) = foreach {
                    let command = rest.get(at + 1..).unwrap_or_default();
                    let options = command
                        .iter()
                        .take_while(|word| word.starts_with("-"))
                        .count();
                    self.git_string(command.get(options..).unwrap_or_default());
                }
            }
            Some("bisect") if rest.first().and_then(Word::literal) == Some("run") => {
                self.run(
                    rest.get(1..).unwrap_or_default().to_vec(),
                    Stdin::None,
                    Role::Plain,
                );
            }
            Some(verb) => self.git_options(verb, rest),
        }
    }

    /// Options of a sub-command that name a command.
    fn git_options(&mut self, verb: &str, rest: &[Word]) {
        let short = match verb {
            "rebase" | "difftool" => &["-x"][..],
            "grep" => &["-O"][..],
            "clone" => &["-u", "-c"][..],
            _ => &[][..],
        };
        for (at, word) in rest.iter().enumerate() {
            let shown = word.shown();
            if shown.starts_with("ext::") || shown.starts_with("fd::") || shown.contains("=ext::") {
                self.git_asks("an address that names a command");
            }
            if let Some(letter) = short.iter().find(|letter| shown.starts_with(**letter)) {
                let glued = word
                    .strip_prefix(letter)
                    .filter(|value| value.shown() != "");
                let value = glued.or_else(|| rest.get(at + 1).cloned());
                match value {
                    Some(value) if *letter == "-c" => self.git_setting(&value),
                    Some(value) => self.string_command(&value),
                    None => {}
                }
                continue;
            }
            let option = shown.split('=').next().unwrap_or_default();
            if option == "--config" && verb == "clone" {
                if let Some(value) = rest.get(at + 1).filter(|_| option == shown) {
                    self.git_setting(&value.clone());
                } else if let Some((_, value)) = word.split_equals() {
                    self.git_setting(&value);
                }
            }
            let known = tables::GIT_RUNS
                .iter()
                .any(|known| option == *known && known.len() > 2 || abbreviates(option, known));
            if known {
                let glued = word.split_equals().map(|(_, value)| value);
                match glued.or_else(|| rest.get(at + 1).cloned()) {
                    Some(value) => self.string_command(&value),
                    None => self.git_asks(&format!("'{option}'")),
                }
            }
        }
    }

    fn git_string(&mut self, words: &[Word]) {
        if let Some(word) = words.iter().find(|word| word.literal().is_none()) {
            return self.computed_code(&word.clone(), "a command that git runs is computed");
        }
        let text: Vec<&str> = words.iter().filter_map(Word::literal).collect();
        self.apart(&text.join(" "), Stdin::None);
    }

    /// `git config key value`.
    fn git_config(&mut self, rest: &[Word]) {
        const SHOWS: &[&str] = &[
            "--get",
            "--get-all",
            "--get-regexp",
            "--list",
            "-l",
            "--show-origin",
            "--unset",
            "--unset-all",
            "--get-urlmatch",
            "get",
            "list",
            "unset",
        ];
        if rest
            .iter()
            .any(|word| word.literal().is_some_and(|text| SHOWS.contains(&text)))
        {
            return;
        }
        const VALUED: &[&str] = &["-f", "--file", "--blob", "--type", "--default"];
        let mut operands = Vec::new();
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            if word.literal().is_some_and(|text| VALUED.contains(&text)) {
                words.next();
            } else if !word.starts_with("-") && word.literal() != Some("set") {
                operands.push(word);
            }
        }
        if let [key, value, ..] = operands.as_slice() {
            let text = format!("{}={}", key.shown(), value.shown());
            let known = key.literal().is_some() && harmless(&text);
            if !known {
                self.git_asks(&format!("the setting '{}'", key.shown()));
                if let Some(command) = value.literal().and_then(|value| value.strip_prefix('!')) {
                    self.apart(command, Stdin::None);
                }
            }
        }
    }

    /// `-c key=value`.
    fn git_setting(&mut self, setting: &Word) {
        let shown = setting.shown();
        if !harmless(&shown) {
            let key = shown.split('=').next().unwrap_or_default();
            self.git_asks(&format!("the setting '{key}'"));
            if let Some((_, value)) = setting.split_equals()
                && let Some(text) = value.literal()
            {
                self.apart(text.trim_start_matches('!'), Stdin::None);
            }
        }
    }

    fn git_asks(&mut self, what: &str) {
        let text = format!("{what} can make git run something else");
        self.found.note(Class::Computed, text);
    }
}

/// Whether `key=value` is a setting that runs nothing.
fn harmless(setting: &str) -> bool {
    let (key, _) = setting.split_once('=').unwrap_or((setting, ""));
    let key = key.to_ascii_lowercase();
    tables::GIT_SETTINGS
        .iter()
        .any(|known| key == *known || known.ends_with('.') && key.starts_with(known))
}
