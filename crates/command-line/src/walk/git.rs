//! The ways in which git runs other programs.

use super::{Stdin, Walk};
use crate::danger;
use crate::findings::{NoteKind, Role};
use crate::options::{self, Given, OptionEffect, Parsed, Row};
use crate::tables;
use crate::word::Word;
use crate::word_list::words;

impl Walk<'_> {
    pub(super) fn git(&mut self, words: &[Word]) {
        let parsed = options::parse(&tables::GIT, words);
        for option in &parsed.unknown {
            self.git_asks(&format!("'git {option}'"));
        }
        for given in &parsed.options {
            match (given.name.as_str(), &given.value) {
                ("c", Some(setting)) => self.git_setting(setting),
                ("exec-path", None) => {}
                ("git-dir", _) => {
                    let text = "the settings in another directory of git decide what code runs";
                    self.findings.note(NoteKind::Opaque, text);
                }
                ("work-tree" | "C", Some(place)) => self.git_place(words, &parsed, place),
                _ if given.effect == OptionEffect::MayRun => {
                    self.git_asks(&format!("'git --{}'", given.name));
                }
                _ => {}
            }
        }
        let Some(at) = parsed.operands.first() else {
            return;
        };
        // From here on the sub-command takes the place of the program name.
        let words = words.get(*at..).unwrap_or_default();
        let Some(verb) = words.first().and_then(Word::literal) else {
            return self.git_asks("the sub-command of git");
        };
        let Some(row) = tables::git_verb(verb) else {
            return self.git_asks(&format!("'git {verb}'"));
        };
        let arguments = words.get(1..).unwrap_or_default();
        match verb {
            "config" => return self.git_config(row, words),
            "submodule" => self.git_foreach(arguments),
            "bisect" => self.git_bisect(arguments),
            "difftool" => self.git_asks("'git difftool'"),
            "maintenance" if arguments.first().and_then(Word::literal) != Some("run") => {
                self.git_asks("'git maintenance'");
            }
            _ => {}
        }
        // The command that a sub-command runs has its own options.
        let runs = |word: &Word| word.is_any(&["foreach", "run"]);
        if matches!(verb, "submodule" | "bisect") && arguments.iter().any(runs) {
            return;
        }
        self.git_options(verb, row, words);
    }

    /// Checks a sub-command that may replace the contents of another working directory.
    fn git_place(&mut self, words: &[Word], parsed: &Parsed, place: &Word) {
        let verb = parsed.operands(words).next();
        let verb = verb.and_then(Word::literal).unwrap_or_default();
        let empties = matches!(
            verb,
            "am" | "apply"
                | "checkout"
                | "checkout-index"
                | "clean"
                | "read-tree"
                | "reset"
                | "restore"
                | "rm"
                | "stash"
                | "switch"
        );
        if empties && danger::covers_others(place, &self.dirs) {
            self.dangerous(format!(
                "'git {verb}' replaces what is in '{}'",
                place.shown()
            ));
        }
    }

    fn git_options(&mut self, verb: &str, row: &Row, words: &[Word]) {
        let mut parsed = options::parse_with(row, tables::git_long(), words);
        for given in &parsed.options {
            let Some(value) = &given.value else {
                continue;
            };
            match given.name.as_str() {
                "c" | "config" if verb == "clone" => self.git_setting(value),
                "remote" if verb == "archive" => self.git_address(value),
                _ => {}
            }
        }
        parsed.options.retain(|given| !is_harmless(verb, given));
        self.options(&format!("git {verb}"), &parsed, words, Stdin::None);
        let remote = tables::GIT_REMOTES.contains(&verb);
        for word in words.iter().skip(1) {
            if remote || word.shown().contains("ext::") {
                self.git_address(word);
            }
        }
    }

    /// Checks for `transport::address`, which runs `git-remote-transport`.
    fn git_address(&mut self, word: &Word) {
        let text = word.shown();
        let address = text.rsplit('=').next().unwrap_or(&text);
        let transport = address.split_once("::").map(|(transport, _)| transport);
        let is_name = |name: &str| !name.is_empty() && name.chars().all(char::is_alphanumeric);
        if transport.is_some_and(is_name) {
            self.git_asks("an address that names a command");
        }
    }

    fn git_foreach(&mut self, words: &[Word]) {
        let foreach = words.iter().position(|word| word.is("foreach"));
        if let Some(at) = foreach {
            let command = words.get(at + 1..).unwrap_or_default();
            let options = command
                .iter()
                .take_while(|word| word.starts_with("-"))
                .count();
            let command = command.get(options..).unwrap_or_default();
            if let Some(word) = command.iter().find(|word| word.literal().is_none()) {
                return self.computed_code(&word.clone(), "a command that git runs is computed");
            }
            let text: Vec<&str> = command.iter().filter_map(Word::literal).collect();
            self.apart(&text.join(" "), Stdin::None);
        }
    }

    fn git_bisect(&mut self, words: &[Word]) {
        let options = words.iter().take_while(|word| word.starts_with("-"));
        let words = words.get(options.count()..).unwrap_or_default();
        match words.first().and_then(Word::literal) {
            Some("run") => {
                let inner = words.get(1..).unwrap_or_default();
                // A single word is run by a shell.
                if let Some(program) = inner.first().filter(|_| inner.len() == 1) {
                    self.string_command(&program.clone());
                } else {
                    self.run(inner.to_vec(), Stdin::None, Role::Plain);
                }
            }
            Some("visualize" | "view") if words.len() > 1 => self.git_asks("'git bisect view'"),
            None if !words.is_empty() => self.git_asks("a computed step of 'git bisect'"),
            _ => {}
        }
    }

    /// Handles `git config key value`, and every other form that changes something.
    fn git_config(&mut self, row: &Row, words: &[Word]) {
        // Anything after the key is a value, even if it looks like an option.
        let parsed = options::parse_with(row, tables::git_long(), words);
        let first = parsed.operands.first().copied().unwrap_or(words.len());
        let sub = words.get(first).and_then(Word::literal);
        let sub = sub.filter(|text| CONFIG_COMMANDS.contains(text));
        let shows = option_given(words, SHOWING);
        let renames = sub == Some("rename-section") || option_given(words, &["--rename-section"]);
        let (parsed, words) = match sub {
            None => (vec![parsed], words),
            // The sub-command has its own options.
            Some(_) => {
                let words = words.get(first..).unwrap_or_default();
                let own = options::parse_with(row, tables::git_long(), words);
                (vec![parsed, own], words)
            }
        };
        let edits = |parsed: &Parsed| parsed.has(&["e", "edit"]) || !parsed.unknown.is_empty();
        if sub == Some("edit") || renames || parsed.iter().any(edits) {
            return self.git_asks("'git config' with that option");
        }
        // A form that only shows settings writes no file.
        let writes = !shows && !matches!(sub, Some("get" | "list"));
        for given in parsed
            .iter()
            .flat_map(|parsed| parsed.given(&["f", "file"]))
        {
            if let Some(file) = given.value.as_ref().filter(|_| writes) {
                self.option_writes(file);
            }
        }
        if !writes || sub == Some("unset") || option_given(words, REMOVING) {
            return;
        }
        // Before git 2.46 `set` is taken for a key, which git rejects.
        let operands = parsed
            .last()
            .into_iter()
            .flat_map(|parsed| &parsed.operands);
        let operands: Vec<&Word> = operands.filter_map(|at| words.get(*at)).collect();
        if let [key, value, ..] = operands.as_slice() {
            let known = key.literal().is_some_and(harmless);
            if !known {
                self.git_asks(&format!("the setting '{}'", key.shown()));
                if let Some(command) = value.literal().and_then(|value| value.strip_prefix('!')) {
                    self.apart(command, Stdin::None);
                }
            }
        }
    }

    /// Handles `-c key=value`.
    fn git_setting(&mut self, setting: &Word) {
        let shown = setting.shown();
        let key = shown.split('=').next().unwrap_or_default();
        if !harmless(key) {
            self.git_asks(&format!("the setting '{key}'"));
            if let Some((_, value)) = setting.split_equals()
                && let Some(text) = value.literal()
            {
                self.apart(text.trim_start_matches('!'), Stdin::None);
            }
        }
    }

    fn git_asks(&mut self, what: &str) {
        self.computed(format!("{what} can make git run something else"));
    }
}

/// Sub-commands of `git config`.
const CONFIG_COMMANDS: &[&str] = words!("get list set unset edit rename-section remove-section");

/// Options with which `git config` only shows settings. Git does not accept two of them
/// at once, nor one together with an option that changes something.
const SHOWING: &[&str] =
    words!("--get --get-all --get-regexp --get-urlmatch --get-color --get-colorbool --list -l");

/// Options with which it only removes settings.
const REMOVING: &[&str] = &["--unset", "--unset-all", "--remove-section"];

/// Whether one of `options` is given before the first operand, and as an option.
fn option_given(words: &[Word], options: &[&str]) -> bool {
    const VALUED: &[&str] = words!("-f --file --blob --type --default --value --url --comment");
    let mut words = words.iter().skip(1).map_while(Word::literal);
    while let Some(text) = words.next() {
        if !text.starts_with('-') || text == "--" {
            return false;
        }
        if options.contains(&text) {
            return true;
        }
        // Abbreviations count too.
        let valued = |known: &&str| known.starts_with(text) && text.len() > 2 || *known == text;
        if VALUED.iter().any(valued) && words.next().is_none() {
            return false;
        }
    }
    false
}

/// Whether an option that could run something does not, because of its value.
fn is_harmless(verb: &str, given: &Given) -> bool {
    let value = given.value.as_ref().and_then(Word::literal);
    match given.name.as_str() {
        "s" | "strategy" => value.is_some_and(|name| tables::GIT_STRATEGIES.contains(&name)),
        // These were checked as settings.
        "c" | "config" => verb == "clone",
        _ => false,
    }
}

/// Whether a setting is known to run nothing.
fn harmless(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    tables::GIT_SETTINGS
        .iter()
        .any(|known| match known.split_once('*') {
            Some((section, name)) => key.starts_with(section) && key.ends_with(name),
            None => key == *known || known.ends_with('.') && key.starts_with(known),
        })
}
