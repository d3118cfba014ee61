//! Finds the paths that a command names, and how it uses them.

use backend_core::VPath;
use backend_core::limits::PATH_DEPTH;

use super::Walk;
use super::url::{address, without_scheme};
use crate::arguments::{Arguments, edits, prints};
use crate::danger;
use crate::directory::Directories;
use crate::error::ParseError;
use crate::location::{Location, Root};
use crate::named_path::{NamedPath, PathUse};
use crate::options::{self, OptionEffect, Parsed};
use crate::tables::{self, base_name};
use crate::word::{Word, WordPart};

/// Placeholder for a computed directory.
const UNKNOWN_DIRECTORY: &str = "/$";

/// No rule can match such a path, yet the command may be able to open it.
const TOO_DEEP: ParseError = ParseError("a path in it is too deep");

/// The cost of a path, besides its text.
const NAMED_STEPS: usize = 16;

/// The maximum number of written files that are remembered.
const MAX_WRITTEN: usize = 1024;

impl Walk<'_> {
    /// Records a path that the command names.
    pub(super) fn named(&mut self, word: &Word, usage: PathUse) {
        let text = word.shown();
        if text.is_empty() || text == "-" || text.contains('\0') {
            return;
        }
        if let Some(rest) = without_scheme(word, &text) {
            self.named(&rest, usage);
        }
        // A program that reads or writes files takes a URL for a path.
        if usage == PathUse::Named && address(&text).is_some_and(|(before, _)| before.is_empty()) {
            return;
        }
        if !self
            .budget
            .charge(NAMED_STEPS + text.len() + self.dirs.weight())
        {
            return;
        }
        let readings = self.dirs.readings(word);
        let home =
            word.parts().first() == Some(&WordPart::Home) && self.dirs.names.home_may_be_inside();
        if readings.is_empty() && !Directories::begins_computed(word) {
            return self.findings.not_understood(TOO_DEEP);
        }
        if readings.is_empty() || home {
            self.tail(word, &text);
        }
        // Check before `..` is resolved: `link/../x` is not `x`.
        let mut above = text.rsplit('/').skip(1);
        let through_link = above.any(|name| self.made_links.contains(name));
        for reading in readings {
            let above = reading.location.names.split_last().map(|(_, above)| above);
            let mut above = above.unwrap_or_default().iter();
            if through_link || above.any(|name| self.made_links.contains(&name.text)) {
                self.computed(format!(
                    "'{text}' leads through a link that it makes itself"
                ));
            }
            if word.is_unknown()
                && let Some(at) = reading.location.names.iter().position(|name| name.glob)
            {
                // The computed part may also be the rest of the path.
                let mut above = reading.location.clone();
                above.names.truncate(at + 1);
                self.location(&above, None, usage, &text);
            }
            self.location(&reading.location, reading.spelled, usage, &text);
        }
    }

    fn location(
        &mut self,
        location: &Location,
        spelled: Option<String>,
        usage: PathUse,
        text: &str,
    ) {
        if location.is_through_descriptor() {
            self.computed(format!(
                "'{text}' leads through a file that is open somewhere"
            ));
        }
        let usage = match usage {
            PathUse::Read if location.root == Root::Home => PathUse::Named,
            _ => usage,
        };
        let glob = location.names.iter().position(|name| name.glob);
        let mut parent = location.clone();
        parent.names.truncate(glob.unwrap_or(location.names.len()));
        let path = self.dirs.names.text(&parent);
        if location.names.len() > PATH_DEPTH {
            self.findings.not_understood(TOO_DEEP);
        }
        // A path that is invalid here is invalid for the command too.
        if let Ok(path) = VPath::parse(&path) {
            let (usage, text) = match glob {
                None => (usage, text.to_owned()),
                Some(_) => {
                    let usage = match usage {
                        PathUse::Write | PathUse::Within => usage,
                        _ => PathUse::Named,
                    };
                    (usage, self.dirs.names.glob(location))
                }
            };
            self.findings.push_path(NamedPath {
                usage,
                path,
                text,
                glob: glob.is_some(),
                spelled,
                inside: matches!(location.root, Root::Tree(_)),
            });
        }
    }

    /// Records the end of a path that starts with a computed part or an unknown home.
    fn tail(&mut self, word: &Word, text: &str) {
        let Some(WordPart::Text(tail)) = word.parts().last() else {
            return;
        };
        let Some((_, tail)) = tail.split_once('/') else {
            return;
        };
        let mut ends = vec![(PathUse::Possible, format!("/{tail}"), false)];
        if word.is_computed() {
            ends.push((PathUse::Named, format!("{UNKNOWN_DIRECTORY}/{tail}"), false));
        }
        let names: Vec<&str> = tail.split('/').collect();
        for location in self.dirs.names.ends_inside(&names) {
            let inside = self.dirs.names.text(&location);
            ends.push((PathUse::Named, inside, true));
        }
        for (usage, path, inside) in ends {
            if let Ok(path) = VPath::parse(&path) {
                self.findings.push_path(NamedPath {
                    usage,
                    path,
                    text: text.to_owned(),
                    glob: false,
                    spelled: None,
                    inside,
                });
            }
        }
    }

    /// Records a file that is written as a whole, for example by a redirect.
    pub(super) fn write_target(&mut self, word: &Word) {
        if danger::connects(word) {
            return self.computed(format!("'{}' is a connection", word.shown()));
        }
        self.dangerous(danger::written(word, &self.dirs));
        let relative = !word.starts_with("/") && word.parts().first() != Some(&WordPart::Home);
        if word.is_computed() || word.is_glob() || self.dirs.unknown && relative {
            self.computed(format!(
                "the file '{}' that it writes is computed",
                word.shown()
            ));
        }
        self.wrote(word);
        self.through_link(word);
        self.named(word, PathUse::Write);
        self.stands_for(word);
    }

    /// Records the files that a program's arguments name.
    pub(super) fn operands(&mut self, base: &str, words: &[Word]) {
        let args = words.get(1..).unwrap_or_default();
        // It may change directory first: `make -C dir`.
        let dirs = self.dirs.clone();
        if base == "git" {
            self.git_changes(words);
            self.dirs = dirs.clone();
        }
        self.goes(args);
        if let Some(row) = tables::program(base) {
            self.goes_to(&options::parse(row, words));
        }
        self.changes(base, words);
        let given = Arguments::new(base, words);
        self.option_values(base, args, &given);
        self.option_files(base, words, &given);
        self.pieces(base, args, &given);
        let last = given.operands.last().copied();
        let count = given.operands.len();
        let edits = edits(base, words);
        let prints = tables::PACKERS.contains(&base) && prints(args);
        for (number, at) in given.operands.iter().enumerate() {
            let Some(word) = args.get(*at) else {
                continue;
            };
            let second = number > 0 && tables::SECOND_WRITTEN.contains(&base);
            let usage = if prints {
                PathUse::Read
            } else {
                usage(base, edits || second, last == Some(*at))
            };
            if base == "dd" {
                self.dd(word);
                continue;
            }
            let no_path = given.is_said(*at) || !self.may_be_path(base, word);
            if usage == PathUse::Named && no_path {
                continue;
            }
            // If it is the only operand, `yq` takes it for a file that exists.
            if given.first == Some(*at) && !(base == "yq" && count == 1) {
                continue;
            }
            if usage == PathUse::Write {
                self.dangerous(danger::written(word, &self.dirs));
                if !matches!(base, "rm" | "rmdir" | "unlink" | "mkdir") {
                    self.wrote(word);
                }
                if !matches!(base, "rm" | "rmdir" | "unlink" | "mkdir" | "mv" | "ln") {
                    self.through_link(word);
                }
                if !matches!(base, "mkdir" | "touch") {
                    self.stands_for(word);
                }
            }
            self.named(word, usage);
            if tables::PACKERS.contains(&base) && !prints {
                self.unpacked(word);
            }
        }
        if tables::DOWNLOADERS.contains(&base) {
            for word in args {
                self.wrote(word);
            }
        }
        if matches!(base, "ln" | "mount") {
            self.links(args);
        }
        self.within_arguments(base, words);
        self.dirs = dirs;
    }

    /// Records the files in options that are not handled elsewhere.
    fn option_files(&mut self, base: &str, words: &[Word], given: &Arguments) {
        for (word, usage) in &given.files {
            match usage {
                PathUse::Write => self.option_writes(word),
                usage => self.named(word, *usage),
            }
        }
        if let Some(options) = tables::words_of(tables::WRITES, base) {
            for value in options::values_of(options, words) {
                self.option_writes(&value);
            }
        }
    }

    /// Records the file that a compressed one unpacks to.
    fn unpacked(&mut self, word: &Word) {
        const ENDINGS: &[&str] = &[
            ".gz", ".z", ".Z", ".xz", ".lzma", ".bz2", ".zst", ".lz4", ".br",
        ];
        let text = word.literal().unwrap_or_default();
        let target = ENDINGS.iter().find_map(|ending| text.strip_suffix(ending));
        if let Some(target) = target {
            self.option_writes(&Word::text(target));
        }
    }

    /// Follows options that change the directory first. The program may also stay where
    /// it is, since the same letter can mean something else.
    pub(super) fn goes(&mut self, args: &[Word]) {
        for (at, word) in args.iter().enumerate() {
            let glued = word
                .strip_prefix("-C")
                .filter(|value| !value.shown().is_empty());
            let value = match word.split_equals() {
                Some((name, value)) if tables::DIRECTORY_OPTIONS.contains(&name.as_str()) => {
                    Some(value)
                }
                _ if word.is_any(tables::DIRECTORY_OPTIONS) => args.get(at + 1).cloned(),
                _ => glued,
            };
            let is_number = |word: &Word| word.shown().bytes().all(|b| b.is_ascii_digit());
            if let Some(value) = value.filter(|value| !is_number(value)) {
                self.may_change_directory(&value);
            }
        }
    }

    /// Follows the known options of a program that change the directory first.
    pub(super) fn goes_to(&mut self, parsed: &Parsed) {
        for given in &parsed.options {
            match (given.effect, &given.value) {
                (OptionEffect::EntersDirectory, Some(value)) => self.may_change_directory(value),
                // `nsenter -w`: the directory of another process.
                (OptionEffect::EntersDirectory, None) => self.dirs.change_to_unknown(),
                _ => {}
            }
        }
    }

    fn may_change_directory(&mut self, directory: &Word) {
        if !self.budget.charge(self.dirs.weight()) {
            return;
        }
        self.named(directory, PathUse::Named);
        let before = self.dirs.clone();
        self.dirs.change_to(directory);
        self.dirs.merge(before);
    }

    /// Remembers the links that a line creates: paths through them lead elsewhere now.
    fn links(&mut self, args: &[Word]) {
        let operands: Vec<&Word> = danger::operands_at(args).map(|(_, word)| word).collect();
        let shown = operands.first().map(|word| word.shown());
        let (Some(target), Some(last)) = (shown, operands.last()) else {
            return;
        };
        let last = last.shown();
        let name = |path: &str| base_name(path.trim_end_matches('/')).to_owned();
        let mut names = vec![name(&last)];
        if operands.len() > 2 || last.ends_with('/') || matches!(last.as_str(), "." | "..") {
            names.push(name(&target));
        }
        names.retain(|name| !matches!(name.as_str(), "" | "." | ".."));
        if self.made_links.len() < MAX_WRITTEN {
            self.made_links.extend(names);
        }
    }

    /// Records paths within a word: `key=path`, `a:b`, `@file`, `-fpath`, or in code.
    fn pieces(&mut self, base: &str, args: &[Word], given: &Arguments) {
        if tables::PRINTERS.contains(&base) {
            return;
        }
        let code = tables::OPAQUE.contains(&base);
        for (at, word) in args.iter().enumerate() {
            if !code && given.is_text(at) {
                continue;
            }
            let text = word.shown();
            let address = address(&text).filter(|_| !code);
            let before = address.map(|(before, _)| Word::text(before));
            let word = before.as_ref().unwrap_or(word);
            let text = word.shown();
            if text.len() < 3 {
                continue;
            }
            let mut pieces = if code {
                word.split(|c| c.is_whitespace() || CODE_MARKS.contains(c))
            } else {
                word.split(|c| PATH_MARKS.contains(c))
            };
            if pieces.len() == 1 {
                pieces.clear();
            }
            if !code && word.starts_with("-") && !word.starts_with("--") {
                let letters = text.chars().skip(1).take_while(char::is_ascii_alphabetic);
                let ends = 2..=letters.count().min(MAX_BUNDLED) + 1;
                pieces.extend(ends.filter_map(|end| word.strip_prefix(text.get(..end)?)));
            }
            if !self.budget.charge(pieces.len()) {
                return;
            }
            for piece in &pieces {
                let text = piece.shown();
                let dotted = text.starts_with('.') || !code && text.contains('.');
                if text.len() > 2 && (dotted || text.contains('/')) {
                    self.named(piece, PathUse::Named);
                }
            }
        }
    }

    pub(super) fn wrote(&mut self, word: &Word) {
        if self.written.len() < MAX_WRITTEN {
            self.written.insert(base_name(&word.shown()).to_owned());
        }
    }

    fn dd(&mut self, word: &Word) {
        if let Some(target) = word.strip_prefix("of=") {
            self.write_target(&target);
        } else if let Some(source) = word.strip_prefix("if=") {
            self.named(&source, PathUse::Read);
        }
    }

    /// Records `--option=path`, `NAME=path`, `@file`, and the targets of downloads.
    fn option_values(&mut self, base: &str, args: &[Word], given: &Arguments) {
        for (at, word) in args.iter().enumerate() {
            if given.is_said(at) {
                continue;
            }
            if base != "dd"
                && (word.starts_with("-")
                    || !tables::NON_PATH_OPERANDS.contains(&base)
                    || tables::SETTERS.contains(&base))
                && let Some((name, value)) = word.split_equals()
            {
                self.named(&value, PathUse::Named);
                if tables::SETTERS.contains(&base) {
                    self.variable_writes(&name, &value);
                    self.value(&value);
                }
                continue;
            }
            let glued = ["-I", "-L", "-o", "-C", "-f", "-T", "-d", "-t"]
                .iter()
                .find(|flag| word.starts_with(flag));
            if let Some(value) = glued.and_then(|flag| word.strip_prefix(flag))
                && value.shown().contains(['/', '.'])
            {
                self.named(&value, PathUse::Named);
            }
            // `curl -d @file`.
            if let Some(file) = word.strip_prefix("@") {
                self.named(&file, PathUse::Read);
            }
            if matches!(
                (base, word.literal()),
                ("curl", Some("-o" | "--output")) | ("wget", Some("-O" | "--output-document"))
            ) && let Some(target) = args.get(at + 1).filter(|next| !next.starts_with("-"))
            {
                self.write_target(&target.clone());
            }
        }
    }

    /// Whether a word may be a path, if it is not known how the program uses it.
    fn may_be_path(&self, base: &str, word: &Word) -> bool {
        let text = word.shown();
        let address = address(&text).is_some_and(|(before, _)| !before.contains('/'));
        if address || text.bytes().all(|b| b.is_ascii_digit()) {
            return false;
        }
        let looks = text.starts_with(['.', '/', '~'])
            || text.contains('/') && !text.contains(char::is_whitespace);
        // Text printed for `xargs` is often a list of file names.
        let handed = self.feeds && matches!(base, "echo" | "printf");
        looks || (handed || !tables::NON_PATH_OPERANDS.contains(&base)) && !text.contains('\n')
    }
}

/// Characters that separate a path from the rest of a word.
const PATH_MARKS: &str = "=:,@;";

/// Characters that separate a path from the code around it.
pub(super) const CODE_MARKS: &str = "'\"`()[]{}<>|;&,=";

/// The maximum number of option letters before a path glued to them.
const MAX_BUNDLED: usize = 8;

/// Returns how a program uses an operand.
fn usage(base: &str, edits: bool, last: bool) -> PathUse {
    if edits || tables::WRITERS.contains(&base) || tables::MODE_CHANGERS.contains(&base) {
        PathUse::Write
    } else if tables::COPIERS.contains(&base) {
        if last { PathUse::Write } else { PathUse::Read }
    } else if tables::READERS.contains(&base)
        || tables::SEARCHERS.contains(&base)
        || matches!(base, "sed" | "gsed")
    {
        PathUse::Read
    } else {
        PathUse::Named
    }
}
