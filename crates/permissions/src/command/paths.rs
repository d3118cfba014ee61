//! The paths that a command names, and how it uses them.

use backend_core::VPath;

use super::danger;
use super::directory::{Place, Root};
use super::found::Class;
use super::sed;
use super::tables;
use super::walk::Walk;
use super::word::{Part, Word};
use super::{NamedPath, PathUse};

/// Stands for a home that is not known. Rules that go by the name of a file or
/// of a directory, wherever it is, still see it.
const UNKNOWN_HOME: &str = "/~";

/// Stands for a directory that is computed.
const UNKNOWN_DIRECTORY: &str = "/$";

/// More files that a line writes are not remembered.
const MAX_WRITTEN: usize = 1024;

impl Walk<'_> {
    /// A path that is named.
    pub(crate) fn named(&mut self, word: &Word, usage: PathUse) {
        let text = word.shown();
        if text.is_empty() || text == "-" || text.contains('\0') {
            return;
        }
        if let Some(rest) = word.strip_prefix("file://") {
            return self.named(&rest, usage);
        }
        if text.contains("://") {
            return;
        }
        match self.dirs.places(word) {
            Some(places) => {
                for place in places {
                    self.place(&place, usage, &text);
                }
            }
            None => self.tail(word, &text),
        }
    }

    fn place(&mut self, place: &Place, usage: PathUse, text: &str) {
        let home = self.context.home.map(VPath::as_str);
        let usage = match (place.root, home) {
            (Root::Home, None) if usage == PathUse::Read => PathUse::Named,
            _ => usage,
        };
        let home = home.unwrap_or(UNKNOWN_HOME);
        let glob = place.names.iter().position(|name| name.glob);
        let whole = place.text(home);
        let path = match glob {
            None => whole.clone(),
            Some(at) => {
                let mut parent = place.clone();
                parent.names.truncate(at);
                parent.text(home)
            }
        };
        // A path that is none here, for example one that is too long, is none for
        // the command either.
        if let Ok(path) = VPath::parse(&path) {
            let (usage, text) = match glob {
                None => (usage, text.to_owned()),
                Some(_) => (PathUse::Named, whole),
            };
            self.found.path(NamedPath {
                usage,
                path,
                text,
                glob: glob.is_some(),
            });
        }
    }

    /// The end of a path whose beginning is computed.
    fn tail(&mut self, word: &Word, text: &str) {
        let Some(Part::Text(tail)) = word.parts().last() else {
            return;
        };
        let Some((_, tail)) = tail.split_once('/') else {
            return;
        };
        if let Ok(path) = VPath::parse(&format!("{UNKNOWN_DIRECTORY}/{tail}")) {
            self.found.path(NamedPath {
                usage: PathUse::Named,
                path,
                text: text.to_owned(),
                glob: false,
            });
        }
    }

    /// A file that is written whole, by a redirect for example.
    pub(crate) fn write_target(&mut self, word: &Word) {
        if danger::connects(word) {
            let text = format!("'{}' is a connection", word.shown());
            return self.found.note(Class::Computed, text);
        }
        if let Some(text) = danger::written(word, &self.dirs) {
            self.found.note(Class::Dangerous, text);
        }
        let relative = !word.starts_with("/") && word.parts().first() != Some(&Part::Home);
        if word.is_computed() || word.is_glob() || self.dirs.unknown && relative {
            let text = format!("the file '{}' that it writes is computed", word.shown());
            self.found.note(Class::Computed, text);
        }
        self.wrote(word);
        self.named(word, PathUse::Write);
    }

    /// The operands of a program.
    pub(crate) fn operands(&mut self, base: &str, words: &[Word]) {
        let args = words.get(1..).unwrap_or_default();
        self.option_values(base, args);
        let skip = skipped(base, args);
        let operands: Vec<Word> = danger::operands(args).skip(skip).cloned().collect();
        let last = operands.len().saturating_sub(1);
        let edits = matches!(base, "sed" | "gsed") && sed::edits(words)
            || base == "perl" && args.iter().any(|word| word.starts_with("-i"));
        for (at, word) in operands.iter().enumerate() {
            let usage = if edits
                || tables::WRITERS.contains(&base)
                || tables::MODE_CHANGERS.contains(&base)
            {
                PathUse::Write
            } else if tables::COPIERS.contains(&base) {
                if at == last {
                    PathUse::Write
                } else {
                    PathUse::Read
                }
            } else if tables::READERS.contains(&base)
                || tables::SEARCHERS.contains(&base)
                || matches!(base, "sed" | "gsed")
            {
                PathUse::Read
            } else {
                PathUse::Named
            };
            if base == "dd" {
                self.dd(word);
                continue;
            }
            if usage == PathUse::Named && !may_be_path(base, word, args) {
                continue;
            }
            if usage == PathUse::Write {
                if let Some(text) = danger::written(word, &self.dirs) {
                    self.found.note(Class::Dangerous, text);
                }
                if !matches!(base, "rm" | "rmdir" | "unlink" | "mkdir") {
                    self.wrote(word);
                }
            }
            self.named(word, usage);
        }
        if tables::DOWNLOADERS.contains(&base) {
            for word in args {
                self.wrote(word);
            }
        }
    }

    pub(crate) fn wrote(&mut self, word: &Word) {
        if self.written.len() < MAX_WRITTEN {
            self.written.push(word.shown());
        }
    }

    fn dd(&mut self, word: &Word) {
        if let Some(target) = word.strip_prefix("of=") {
            self.write_target(&target);
        } else if let Some(source) = word.strip_prefix("if=") {
            self.named(&source, PathUse::Read);
        }
    }

    /// `--option=path`, `NAME=path` and `-Ipath`.
    fn option_values(&mut self, base: &str, args: &[Word]) {
        for (at, word) in args.iter().enumerate() {
            if base != "dd"
                && (word.starts_with("-") || !tables::WORDY.contains(&base))
                && let Some((_, value)) = word.split_equals()
            {
                self.named(&value, PathUse::Named);
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
            if matches!(base, "curl" | "wget")
                && matches!(
                    word.literal(),
                    Some("-o" | "-O" | "--output" | "--output-document")
                )
                && let Some(target) = args
                    .get(at + 1)
                    .filter(|next| !next.starts_with("-") && !next.shown().contains("://"))
            {
                self.write_target(&target.clone());
            }
        }
    }
}

/// How many operands of a program are no paths: a pattern, a script, a mode.
fn skipped(base: &str, args: &[Word]) -> usize {
    let given = |short: &[&str]| {
        args.iter()
            .any(|word| short.iter().any(|option| word.starts_with(option)))
    };
    let first = tables::SEARCHERS.contains(&base) && !given(&["-e", "-f", "--regexp", "--file"])
        || matches!(base, "sed" | "gsed" | "awk" | "gawk" | "mawk" | "jq" | "yq")
            && !given(&["-e", "-f", "--expression", "--file"])
        || tables::MODE_CHANGERS.contains(&base) && !given(&["--reference"]);
    usize::from(first)
}

/// Whether a word that is used in an unknown way may be a path.
fn may_be_path(base: &str, word: &Word, args: &[Word]) -> bool {
    let text = word.shown();
    if text.bytes().all(|b| b.is_ascii_digit()) {
        return false;
    }
    // Messages are no paths.
    let at = args
        .iter()
        .position(|other| std::ptr::eq(other, word) || other == word);
    let before = at
        .and_then(|at| at.checked_sub(1))
        .and_then(|at| args.get(at));
    let message = before.and_then(Word::literal).is_some_and(|option| {
        matches!(
            option,
            "-m" | "-am" | "--message" | "--title" | "--body" | "-b" | "-k" | "-e" | "-c"
        )
    });
    if message {
        return false;
    }
    let looks = text.starts_with(['.', '/', '~'])
        || text.contains('/') && !text.contains(char::is_whitespace);
    looks || !tables::WORDY.contains(&base) && !text.contains('\n')
}
