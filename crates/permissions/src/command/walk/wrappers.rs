//! Programs that run what their arguments say.

use super::{Stdin, Walk, base_name};
use crate::command::found::{Class, Role};
use crate::command::tables::{self, Wrapper};
use crate::command::word::Word;
use crate::command::{PathUse, Trouble, danger};

impl Walk<'_> {
    /// `env`, `sudo`, `nice` and the like: the command after their options. `false`
    /// if there is none.
    pub(super) fn wrapper(&mut self, wrapper: &Wrapper, words: &[Word], stdin: Stdin) -> bool {
        let mut at = 1;
        let mut skip = wrapper.skip;
        let mut surprise = false;
        while let Some(word) = words.get(at) {
            let Some(text) = word.literal() else {
                // A computed option could be anything, a program too.
                if !word.starts_with("-") {
                    break;
                }
                surprise = true;
                at += 1;
                continue;
            };
            // `env -` is `env -i`.
            if text == "--" || text == "-" && wrapper.name == "env" {
                at += 1;
                continue;
            }
            if wrapper.assigns && self.assigned(word) {
                at += 1;
                continue;
            }
            if let Some(flags) = text.strip_prefix('-').filter(|flags| !flags.is_empty()) {
                if wrapper.name == "command" && flags.contains(['v', 'V']) {
                    return false;
                }
                if wrapper.name == "env" && self.split_string(words, at) {
                    return true;
                }
                let (value, known) = takes_value(wrapper, text, flags);
                surprise |= !known;
                at += 1 + usize::from(value);
            } else if skip > 0 {
                skip -= 1;
                at += 1;
            } else {
                break;
            }
        }
        let inner = words.get(at..).unwrap_or_default();
        if surprise {
            self.search_rest(words);
        }
        if !inner.is_empty() {
            self.run(inner.to_vec(), stdin, Role::Plain);
        } else if wrapper.counts && stdin != Stdin::None {
            let text = format!("'{}' may hand its input to a shell", wrapper.name);
            self.found.note(Class::Computed, text);
        }
        !inner.is_empty()
    }

    /// Whether the word is `NAME=value`; then the variable is looked at.
    fn assigned(&mut self, word: &Word) -> bool {
        match word.split_equals() {
            Some((name, value)) if super::shell::is_name(&name) => {
                self.variable(&name, false);
                self.named(&value, PathUse::Named);
                true
            }
            _ => false,
        }
    }

    /// An option of a wrapper is not known: what follows may be its value or the
    /// command, so any of it is looked at for danger.
    fn search_rest(&mut self, words: &[Word]) {
        for at in 1..words.len().min(32) {
            let rest = words.get(at..).unwrap_or_default();
            if let Some(name) = rest.first().and_then(Word::literal) {
                let base = base_name(name).to_ascii_lowercase();
                if let Some(text) = danger::check(&base, rest, &self.dirs) {
                    self.found.note(Class::Dangerous, text);
                }
            }
        }
    }

    /// `env -S 'program arguments'`.
    fn split_string(&mut self, words: &[Word], at: usize) -> bool {
        let Some(text) = words.get(at).and_then(Word::literal) else {
            return false;
        };
        let glued = match text.strip_prefix("--split-string") {
            Some(value) => Some(value.trim_start_matches('=').to_owned()),
            None if text.starts_with("--") => None,
            None => text.split_once('S').map(|(_, value)| value.to_owned()),
        };
        let Some(mut program) = glued else {
            return false;
        };
        for word in words.get(at + 1..).unwrap_or_default() {
            let Some(text) = word.literal() else {
                let text = "what 'env -S' runs is computed";
                self.found.note(Class::Computed, text.to_owned());
                return true;
            };
            program.push(' ');
            program.push_str(text);
        }
        // The string is split by rules of its own: what those could read
        // differently from a shell is not plain.
        if program.contains(['\\', '$', '"', '\'', '#']) {
            self.found
                .trouble(Trouble("the string of 'env -S' is not plain"));
        }
        self.apart(&program, Stdin::None);
        true
    }

    /// `xargs`: what it runs gets arguments that are not known.
    pub(super) fn xargs(&mut self, words: &[Word], stdin: Stdin) {
        let mut at = 1;
        let mut token = None;
        while let Some(text) = words.get(at).and_then(Word::literal) {
            if !text.starts_with('-') || text == "-" {
                break;
            }
            let long = text.starts_with("--");
            let value = !long
                && text.len() == 2
                && text.ends_with(['a', 'd', 'E', 'I', 'L', 'n', 'P', 's']);
            if text.starts_with("-I") || text.starts_with("--replace") {
                let glued = text
                    .trim_start_matches("-I")
                    .trim_start_matches("--replace=");
                let next = words.get(at + 1).and_then(Word::literal).unwrap_or("{}");
                token = Some(if value { next } else { glued }.to_owned());
            } else if text == "-i" {
                token = Some("{}".to_owned());
            }
            at += 1 + usize::from(
                value
                    || matches!(
                        text,
                        "--arg-file" | "--delimiter" | "--max-args" | "--max-procs"
                    ),
            );
        }
        let mut inner: Vec<Word> = words.get(at..).unwrap_or_default().to_vec();
        if inner.is_empty() {
            return;
        }
        match token.filter(|token| !token.is_empty()) {
            Some(token) => replace(&mut inner, &token),
            None => inner.push(Word::computed()),
        }
        let program = inner.first().and_then(Word::literal).map(base_name);
        if program.is_some_and(|program| tables::SHELLS.contains(&program)) {
            let class = if stdin == Stdin::Pipe(true) {
                Class::Dangerous
            } else {
                Class::Computed
            };
            self.found
                .note(class, "'xargs' hands its input to a shell".to_owned());
        }
        self.run(inner, Stdin::None, Role::Plain);
    }

    /// `find`: what it runs, deletes and writes.
    pub(super) fn find(&mut self, words: &[Word]) {
        let is_expression =
            |word: &&Word| word.starts_with("-") || matches!(word.literal(), Some("(" | "!" | ","));
        let options = |word: &&Word| {
            matches!(word.literal(), Some("-H" | "-L" | "-P")) || word.starts_with("-O")
        };
        let args: Vec<&Word> = words.iter().skip(1).collect();
        let from = args.iter().take_while(|word| options(word)).count();
        let roots = args
            .iter()
            .skip(from)
            .take_while(|word| !is_expression(word));
        let mut roots: Vec<Word> = roots.map(|word| (*word).clone()).collect();
        if roots.is_empty() {
            roots.push(Word::text("."));
        }
        let mut destroys = false;
        let mut at = 1;
        while let Some(word) = words.get(at) {
            at += 1;
            match word.literal() {
                Some("-delete") => destroys = true,
                Some("-exec" | "-execdir" | "-ok" | "-okdir") => {
                    let rest = words.get(at..).unwrap_or_default();
                    let ends = |word: &Word| matches!(word.literal(), Some(";" | "+"));
                    let end = rest.iter().position(ends).unwrap_or(rest.len());
                    let mut inner = rest.get(..end).unwrap_or_default().to_vec();
                    at += end;
                    replace(&mut inner, "{}");
                    let program = inner.first().and_then(Word::literal).map(base_name);
                    destroys |= program.is_some_and(|program| {
                        tables::WRITERS.contains(&program)
                            || tables::MODE_CHANGERS.contains(&program)
                    });
                    self.run(inner, Stdin::None, Role::Plain);
                }
                Some("-fprint" | "-fprint0" | "-fprintf" | "-fls") => {
                    if let Some(target) = words.get(at) {
                        self.write_target(&target.clone());
                    }
                }
                _ => {}
            }
        }
        for root in &roots {
            self.named(root, PathUse::Read);
            if destroys {
                self.destroyed(root, "find");
            }
        }
    }

    /// Options that name a command: `tar --to-command`, `rsync -e`.
    pub(super) fn option_commands(&mut self, options: &[&str], words: &[Word], tail: bool) {
        let mut at = 1;
        while let Some(word) = words.get(at) {
            at += 1;
            if let Some((name, value)) = word.split_equals()
                && name.starts_with("--")
                && options.iter().any(|option| abbreviates(&name, option))
            {
                self.string_command(&value);
                continue;
            }
            let Some(text) = word.literal() else {
                continue;
            };
            if text == "--" {
                break;
            }
            let exact = options
                .iter()
                .any(|option| *option == text || abbreviates(text, option));
            let bundled = options.iter().find_map(|option| {
                let letter = option
                    .strip_prefix('-')
                    .filter(|letter| letter.len() == 1)?;
                let flags = text
                    .strip_prefix('-')
                    .filter(|flags| !flags.starts_with('-'))?;
                flags.split_once(letter).map(|(_, value)| value.to_owned())
            });
            let rest = words.get(at..).unwrap_or_default();
            match bundled {
                Some(value) if !value.is_empty() => self.string_command(&Word::text(&value)),
                None if !exact => {}
                _ if tail => {
                    let ends = |word: &Word| word.literal() == Some(";");
                    let end = rest.iter().position(ends).unwrap_or(rest.len());
                    let mut inner = rest.get(..end).unwrap_or_default().to_vec();
                    inner.push(Word::computed());
                    replace(&mut inner, "{}");
                    at += end;
                    self.run(inner, Stdin::None, Role::Plain);
                }
                _ => {
                    if let Some(value) = rest.first() {
                        at += 1;
                        self.string_command(&value.clone());
                    }
                }
            }
        }
    }

    /// A word that is run as a shell program.
    pub(super) fn string_command(&mut self, word: &Word) {
        match word.literal() {
            Some(text) => {
                let text = text.strip_prefix("exec=").unwrap_or(text);
                self.apart(text, Stdin::None);
            }
            None => self.computed_code(word, "a command in an argument is computed"),
        }
    }

    /// Code that is computed, or downloaded.
    pub(super) fn computed_code(&mut self, word: &Word, text: &str) {
        if word.fetches {
            let text = "it runs what it downloads or decodes";
            self.found.note(Class::Dangerous, text.to_owned());
        } else {
            self.found.note(Class::Computed, text.to_owned());
        }
    }
}

/// Whether an option of a wrapper takes the next word, and whether it is known.
fn takes_value(wrapper: &Wrapper, text: &str, flags: &str) -> (bool, bool) {
    if let Some(long) = flags.strip_prefix('-') {
        if text.contains('=') {
            return (false, true);
        }
        let takes = wrapper.longs.iter().any(|option| abbreviates(text, option));
        return (
            takes,
            takes
                || matches!(
                    long,
                    "help"
                        | "version"
                        | "verbose"
                        | "preserve-status"
                        | "foreground"
                        | "ignore-environment"
                        | "preserve-env"
                        | "login"
                ),
        );
    }
    // `nice -5`.
    if flags.bytes().all(|b| b.is_ascii_digit()) {
        return (false, true);
    }
    for (at, flag) in flags.char_indices() {
        if wrapper.values.contains(flag) {
            // The rest is the value, or the next word.
            return (flags.len() == at + flag.len_utf8(), true);
        }
        if !wrapper.plain.contains(flag) {
            return (false, false);
        }
    }
    (false, true)
}

/// Whether `text` is the long option, or its beginning.
pub(super) fn abbreviates(text: &str, option: &str) -> bool {
    text.len() > 3 && option.starts_with("--") && option.starts_with(text)
}

/// Makes every word that holds `token` a computed one.
fn replace(words: &mut [Word], token: &str) {
    for word in words {
        if word.shown().contains(token) {
            *word = Word::computed();
        }
    }
}
