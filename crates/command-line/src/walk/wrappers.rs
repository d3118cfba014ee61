//! Programs that run the commands in their arguments.

use super::{Stdin, Walk};
use crate::danger;
use crate::findings::Role;
use crate::named_path::PathUse;
use crate::options::{self, Given, OptionEffect, Parsed, Row, abbreviates};
use crate::tables::{self, base_name};
use crate::word::Word;
use crate::word_list::words;

impl Walk<'_> {
    /// Walks the command of `env`, `sudo`, `nice` and the like. Returns whether there is one.
    pub(super) fn launcher(&mut self, row: &Row, words: &[Word], stdin: Stdin) -> bool {
        let dirs = self.dirs.clone();
        let ran = self.launched(row, words, stdin);
        // These run built-ins too, in the shell itself: `command cd dir`.
        if ["command", "builtin", "time"]
            .iter()
            .any(|name| row.is(name))
        {
            self.dirs.merge(dirs);
        } else {
            self.dirs = dirs;
        }
        ran
    }

    fn launched(&mut self, row: &Row, words: &[Word], stdin: Stdin) -> bool {
        // `setarch x86_64 -R program`: the options follow the first operand.
        let leads = row.is("setarch") && words.get(1).is_some_and(|word| !word.starts_with("-"));
        let words = words.get(usize::from(leads)..).unwrap_or_default();
        let parsed = options::parse(row, words);
        self.goes_to(&parsed);
        if row.is("env")
            && let Some(given) = parsed.given(&["S", "split-string"]).next()
        {
            self.split_string(words, given, stdin);
            return true;
        }
        let name = row.names.split(' ').next().unwrap_or_default();
        let options = parsed.operands.first().copied().unwrap_or(words.len());
        self.own_options(words.get(1..options).unwrap_or_default());
        self.options(name, &parsed, words, stdin);
        if !parsed.unknown.is_empty() {
            self.search_rest(words);
        }
        let is = |effect| parsed.options.iter().any(|given| given.effect == effect);
        if row.is("systemd-run") {
            self.unit_properties(&parsed);
        }
        if is(OptionEffect::Stops) {
            return false;
        }
        if is(OptionEffect::Starts) {
            return true;
        }
        let operands: Vec<Word> = parsed.operands(words).cloned().collect();
        for operand in operands.iter().take(row.skip) {
            if operand.is_computed() {
                self.computed(format!(
                    "an operand of '{name}' before the command is computed"
                ));
            }
            // For these it is a log, or a lock file that may be created.
            if matches!(name, "script" | "logsave" | "flock") {
                self.option_writes(operand);
            }
        }
        // `script [file] -- program`, in newer versions.
        if row.is("script")
            && let Some(end) = words.iter().position(|word| word.is("--"))
            && let Some(inner) = words.get(end + 1..).filter(|inner| !inner.is_empty())
        {
            self.run(inner.to_vec(), stdin, Role::Plain);
        }
        let inner = operands.get(row.skip..).unwrap_or_default();
        let inner = if row.assigns {
            self.after_assignments(row, inner)
        } else {
            inner
        };
        if inner.is_empty() {
            let runs = is(OptionEffect::Runs);
            if row.shell && !runs {
                self.shell_without_program(name, stdin);
            }
            return runs;
        }
        match inner {
            // `sudo A=b -u me program`.
            [option, ..] if row.assigns && option.starts_with("-") => {
                let mut again = vec![Word::text(name)];
                again.extend_from_slice(inner);
                self.run(again, stdin, Role::Wrapper);
            }
            // `flock file -c 'program'`.
            [option, program, ..] if row.is("flock") && option.is_any(&["-c", "--command"]) => {
                self.string_command(program);
            }
            _ if row.joins && !parsed.has(&["x", "exec"]) => self.join(inner),
            _ => self.run(inner.to_vec(), stdin, Role::Plain),
        }
        true
    }

    /// Handles `systemd-run -p ExecStopPost=program`, and files that a unit writes to.
    fn unit_properties(&mut self, parsed: &Parsed) {
        for given in parsed.given(&["p", "property"]) {
            let Some((name, value)) = given.value.as_ref().and_then(Word::split_equals) else {
                continue;
            };
            if name.starts_with("Exec") {
                // Prefixes such as `+` and `-` may precede the program.
                let program = value
                    .literal()
                    .map(|text| text.trim_start_matches(EXEC_MARKS));
                self.string_command(&program.map_or(value.clone(), Word::text));
            }
            for mark in ["file:", "append:", "truncate:"] {
                if let Some(file) = value.strip_prefix(mark) {
                    self.option_writes(&file);
                }
            }
        }
    }

    /// Skips `NAME=value` words, and the `-` of `env`.
    fn after_assignments<'w>(&mut self, row: &Row, mut words: &'w [Word]) -> &'w [Word] {
        if row.is("env")
            && let [first, rest @ ..] = words
            && first.is("-")
        {
            words = rest;
        }
        while let [first, rest @ ..] = words {
            if !self.assigned(first) {
                break;
            }
            words = rest;
        }
        words
    }

    /// Handles a shell that reads its input, because no program was named.
    fn shell_without_program(&mut self, name: &str, stdin: Stdin) {
        let stdin = self.input(stdin);
        if stdin != Stdin::None {
            self.code_from(stdin, format!("'{name}' may hand its input to a shell"));
        }
    }

    /// Handles the options of a program.
    pub(super) fn options(&mut self, name: &str, parsed: &Parsed, words: &[Word], stdin: Stdin) {
        for option in &parsed.unknown {
            self.computed(format!("unknown option '{option}' of '{name}'"));
        }
        let packs = matches!(name, "tar" | "bsdtar") && !parsed.has(&["x", "extract", "get"]);
        for given in &parsed.options {
            match (given.effect, &given.value) {
                (OptionEffect::WritesInto, Some(value)) if packs => {
                    self.named(value, PathUse::Read);
                }
                // `goes_to` handles the change of directory.
                (
                    OptionEffect::Flag
                    | OptionEffect::Value
                    | OptionEffect::Stops
                    | OptionEffect::EntersDirectory,
                    _,
                ) => {}
                (OptionEffect::MayRunAlone | OptionEffect::MayRun, _) => {
                    self.computed(format!(
                        "option '{}' of '{name}' can run something",
                        given.name
                    ));
                }
                (_, None) => {}
                (OptionEffect::Runs, Some(value)) => self.string_command(value),
                (OptionEffect::Starts, Some(value)) => {
                    let mut inner = vec![value.clone()];
                    inner.extend(parsed.operands(words).cloned());
                    self.run(inner, stdin, Role::Plain);
                }
                (OptionEffect::Writes, Some(value)) => self.option_writes(value),
                (OptionEffect::Reads, Some(value)) => self.named(value, PathUse::Read),
                (OptionEffect::WritesInto, Some(value)) => self.option_enters(name, value),
            }
        }
    }

    /// Handles an option that names a directory to write into.
    fn option_enters(&mut self, name: &str, word: &Word) {
        const ARCHIVERS: &[&str] = &["tar", "bsdtar", "cpio", "unzip", "git checkout-index"];
        if ARCHIVERS.contains(&name) && danger::is_root(word, &self.dirs) {
            self.dangerous(format!("'{name}' unpacks into '{}'", word.shown()));
        }
        self.option_writes(word);
        self.within(word);
    }

    /// Handles the options of a program in the table that is not a launcher.
    pub(super) fn program_options(&mut self, row: &Row, words: &[Word], stdin: Stdin) {
        let name = row.names.split(' ').next().unwrap_or_default();
        let parsed = options::parse(row, words);
        self.options(name, &parsed, words, stdin);
        // Options of `ssh` may also follow the host.
        if name == "ssh"
            && let Some(rest) = parsed.operands.first().and_then(|at| words.get(*at..))
            && rest.get(1).is_some_and(|word| word.starts_with("-"))
        {
            self.program_options(row, rest, stdin);
        }
        const WRITING: &[&str] = words!("c r u A create append update catenate concatenate delete");
        let unpacks = match name {
            "tar" | "bsdtar" => parsed.has(&["x", "extract", "get"]),
            "cpio" => parsed.has(&["i", "extract"]),
            "unzip" => !parsed.has(&["l", "t", "v", "Z", "p", "d"]),
            _ => false,
        };
        let elsewhere = parsed
            .options
            .iter()
            .any(|given| given.effect == OptionEffect::WritesInto);
        if unpacks && !elsewhere {
            self.option_enters(name, &Word::text("."));
        }
        if matches!(name, "tar" | "bsdtar") && parsed.has(WRITING) {
            for given in parsed.given(&["f", "file"]) {
                if let Some(archive) = &given.value {
                    self.option_writes(archive);
                }
            }
        }
    }

    /// Handles an option that names a file to write.
    pub(crate) fn option_writes(&mut self, word: &Word) {
        // `strace -o '|program'`.
        for mark in ["|", "!"] {
            if let Some(command) = word.strip_prefix(mark) {
                return self.string_command(&command);
            }
        }
        self.changed(word);
    }

    /// Walks the command of `su` or `runuser`: in an option, or in the operands.
    pub(super) fn su(&mut self, base: &str, words: &[Word], stdin: Stdin) {
        let parsed = options::parse(&tables::SU, words);
        self.options(base, &parsed, words, stdin);
        if !parsed.unknown.is_empty() {
            self.search_rest(words);
        }
        let mut operands: Vec<Word> = parsed.operands(words).cloned().collect();
        if base == "runuser" && parsed.has(&["u", "user"]) {
            if !operands.is_empty() {
                self.run(operands, stdin, Role::Plain);
            }
            return;
        }
        if operands.first().is_some_and(|word| word.is("-")) {
            operands.remove(0);
        }
        if operands.len() > 1 {
            let mut inner = vec![Word::text("sh")];
            inner.extend(operands.into_iter().skip(1));
            self.run(inner, stdin, Role::Plain);
        } else if !parsed.has(&["c", "command", "session-command"]) {
            self.shell_without_program(base, stdin);
        }
    }

    /// Records files that a wrapper uses itself: `xargs -a file`.
    fn own_options(&mut self, options: &[Word]) {
        for word in options {
            let glued = word.literal().filter(|text| text.starts_with('-'));
            let glued = glued.and_then(|text| text.get(2..)).map(Word::text);
            for word in glued.iter().chain([word]) {
                for piece in word.split(|c| "=:,".contains(c)) {
                    if piece.shown().contains(['/', '.']) {
                        self.named(&piece, PathUse::Named);
                    }
                }
            }
        }
    }

    /// Checks the variable if the word is `NAME=value`, and returns whether it is.
    fn assigned(&mut self, word: &Word) -> bool {
        match word.split_equals() {
            Some((name, value)) if super::shell::is_name(&name) => {
                self.variable(&name, false);
                self.named(&value, PathUse::Named);
                self.variable_writes(&name, &value);
                true
            }
            _ => false,
        }
    }

    /// Checks the words of a wrapper with an unknown option for danger. Each of them
    /// may be the value of the option or the start of the command.
    fn search_rest(&mut self, words: &[Word]) {
        for at in 1..words.len().min(32) {
            let rest = words.get(at..).unwrap_or_default();
            if let Some(name) = rest.first().and_then(Word::literal) {
                let base = base_name(name).to_ascii_lowercase();
                self.dangerous(danger::check(&base, rest, &self.dirs));
            }
        }
    }

    /// Handles `env -S 'program arguments'`, which splits the string into words.
    fn split_string(&mut self, words: &[Word], given: &Given, stdin: Stdin) {
        let Some(text) = given.value.as_ref().and_then(Word::literal) else {
            return self.computed("what 'env -S' runs is computed");
        };
        // `env` has rules of its own. Only text that it splits at blanks is understood.
        if text.contains(['\\', '$', '"', '\'', '#']) {
            self.not_understood("the string of 'env -S' is not plain");
        }
        let mut again = vec![Word::text("env")];
        again.extend(text.split_ascii_whitespace().map(Word::text));
        again.extend_from_slice(words.get(given.next..).unwrap_or_default());
        self.run(again, stdin, Role::Wrapper);
    }

    /// Walks the command of `xargs`, with arguments that are not known.
    pub(super) fn xargs(&mut self, words: &[Word], stdin: Stdin) {
        let parsed = options::parse(&tables::XARGS, words);
        self.options("xargs", &parsed, words, stdin);
        if !parsed.unknown.is_empty() {
            self.search_rest(words);
        }
        let mut inner: Vec<Word> = parsed.operands(words).cloned().collect();
        let options = parsed.operands.first().copied().unwrap_or(words.len());
        self.own_options(words.get(1..options).unwrap_or_default());
        if inner.is_empty() {
            return;
        }
        let token = parsed.given(&["I", "i", "replace", "J"]).last();
        match token.map(|given| given.value.as_ref()) {
            None => inner.push(Word::computed()),
            Some(None) => replace(&mut inner, "{}"),
            Some(Some(token)) => match token.literal().filter(|token| !token.is_empty()) {
                Some(token) => replace(&mut inner, token),
                None => inner.push(Word::computed()),
            },
        }
        let program = inner.first().and_then(Word::literal).map(base_name);
        if program.is_some_and(|program| tables::SHELLS.contains(&program)) {
            self.code_from(stdin, "'xargs' hands its input to a shell");
        }
        self.run(inner, Stdin::None, Role::Plain);
    }

    /// Walks the commands that options name: `tar --to-command`, `rsync -e`.
    pub(super) fn option_commands(&mut self, options: &[&str], words: &[Word], tail: bool) {
        let mut at = 1;
        while let Some(word) = words.get(at) {
            at += 1;
            if let Some((name, value)) = word.split_equals()
                && options
                    .iter()
                    .any(|option| *option == name || abbreviates(&name, option))
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
                    .filter(|letter| letter.len() == 1 || *letter == "TT")?;
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
                    let ends = |word: &Word| word.is(";");
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

    /// Walks a word that is run as a shell program.
    pub(super) fn string_command(&mut self, word: &Word) {
        match word.literal() {
            Some(text) => {
                let text = text.strip_prefix("exec=").unwrap_or(text);
                self.apart(text, Stdin::None);
            }
            None => self.computed_code(word, "a command in an argument is computed"),
        }
    }

    /// Notes code that is computed or downloaded.
    pub(super) fn computed_code(&mut self, word: &Word, text: &str) {
        if word.fetches {
            self.dangerous("it runs what it downloads or decodes".to_owned());
        } else {
            self.computed(text);
        }
    }
}

/// Prefixes of the program of a unit; see systemd.service(5).
const EXEC_MARKS: [char; 6] = ['@', '-', ':', '+', '!', '|'];

/// Replaces `token` in every word by a computed part.
pub(super) fn replace(words: &mut [Word], token: &str) {
    for word in words {
        if word.shown().contains(token) {
            *word = word.computing(token);
        }
    }
}
