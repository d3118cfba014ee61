//! Finds files that programs change besides their operands: those that options,
//! sub-commands and variables name, files copied into a directory, and whole trees.

use super::Walk;
use crate::curl;
use crate::danger;
use crate::named_path::{NamedPath, PathUse};
use crate::options::{self, OptionEffect, Parsed};
use crate::sed;
use crate::tables::{self, base_name};
use crate::word::{Word, WordPart};
use backend_core::VPath;

/// The maximum number of variable values that are remembered.
const MAX_VALUES: usize = 8;

impl Walk<'_> {
    /// Records a file that a program writes, removes or replaces.
    pub(super) fn changed(&mut self, word: &Word) {
        self.dangerous(danger::written(word, &self.dirs));
        self.wrote(word);
        self.through_link(word);
        self.named(word, PathUse::Write);
        self.stands_for(word);
    }

    /// Records a tree in which anything may be changed.
    pub(super) fn within(&mut self, word: &Word) {
        if !word.is_computed() {
            self.named(word, PathUse::Within);
        }
    }

    /// Records that any `name` may be changed, in the tree of `directory` or anywhere.
    pub(super) fn within_named(&mut self, directory: Option<&Word>, name: &str, shown: &str) {
        let directories: Vec<String> = match directory {
            None => vec![String::new()],
            Some(word) => {
                let locations = self.dirs.locations(word).unwrap_or_default();
                let text = |location| self.dirs.names.text(location);
                let texts = locations.iter().map(text);
                texts
                    .map(|it| it.trim_end_matches('/').to_owned())
                    .collect()
            }
        };
        for directory in directories {
            let Ok(path) = VPath::parse(&format!("{directory}/")) else {
                continue;
            };
            self.findings.push_path(NamedPath {
                usage: PathUse::Within,
                path,
                text: match name {
                    "" => shown.to_owned(),
                    name => format!("{directory}/**/{name}"),
                },
                glob: !name.is_empty(),
                spelled: None,
                inside: false,
            });
        }
    }

    /// Notes a write to a link that the line itself creates, which goes elsewhere.
    pub(super) fn through_link(&mut self, word: &Word) {
        let text = word.shown();
        if self
            .made_links
            .contains(base_name(text.trim_end_matches('/')))
        {
            self.computed(format!(
                "it writes to '{text}', a link that it makes itself"
            ));
        }
    }

    /// Remembers a value that a variable of the line may have.
    pub(super) fn value(&mut self, word: &Word) {
        let known = word.is_computed() || word.shown().is_empty() || self.values.contains(word);
        if !known && self.values.len() < MAX_VALUES {
            self.values.push(word.clone());
        }
    }

    /// Records the files that a computed word may stand for if it is written: any value
    /// that the line assigns to a variable, or any file.
    pub(super) fn stands_for(&mut self, word: &Word) {
        if !word.is_computed() {
            return;
        }
        for value in self.values.clone() {
            let filled = word.filled(&value);
            if !self.budget.charge(filled.len()) {
                return;
            }
            self.named(&filled, PathUse::Write);
        }
        let name = match word.parts().last() {
            Some(WordPart::Text(text)) => text.rsplit_once('/').map(|(_, name)| name),
            _ => None,
        };
        self.within_named(None, name.unwrap_or_default(), &word.shown());
    }

    /// Handles a variable whose value is a file that is written.
    pub(super) fn variable_writes(&mut self, name: &str, value: &Word) {
        if tables::has_variable(tables::WRITTEN_VARIABLES, name) && value.starts_with("/") {
            self.changed(value);
        }
    }

    /// Records changes by a program that its operands alone do not show.
    pub(super) fn changes(&mut self, base: &str, words: &[Word]) {
        let args = words.get(1..).unwrap_or_default();
        let operands: Vec<Word> = match tables::program(base) {
            Some(row) => options::parse(row, words)
                .operands(words)
                .cloned()
                .collect(),
            None => danger::operands(args).cloned().collect(),
        };
        match base {
            "cp" | "gcp" | "ln" | "gln" | "install" | "ginstall" | "mv" | "gmv" | "rsync"
            | "scp" => self.copied(base, words),
            "tar" | "gtar" if args.iter().any(|word| word.starts_with("--remove")) => {
                self.taken(&operands);
            }
            "zip" => {
                if let Some(archive) = operands.first() {
                    self.changed(archive);
                }
                if danger::has_flag(args, &['m'], "--move") {
                    self.taken(operands.get(1..).unwrap_or_default());
                }
            }
            "patch" | "gpatch" => match operands.first() {
                Some(file) => self.changed(file),
                None => self.within(&Word::text(".")),
            },
            "cpp" => {
                if let Some(file) = operands.get(1) {
                    self.changed(file);
                }
            }
            "ar" => {
                let key = operands.first().map(Word::shown).unwrap_or_default();
                if key.contains(['r', 'q', 'd', 'm', 's'])
                    && let Some(archive) = operands.get(1)
                {
                    self.changed(archive);
                }
            }
            "strip" | "objcopy" | "mktemp" | "gmktemp" => {
                for file in &operands {
                    self.changed(file);
                }
            }
            _ if tables::PACKERS.contains(&base) => {
                let shows = danger::has_flag(args, &['c', 't', 'l', 'k'], "--stdout")
                    || ["--to-stdout", "--test", "--list", "--keep"]
                        .iter()
                        .any(|long| danger::has_flag(args, &[], long));
                let keeps = matches!(base, "zstd" | "lz4" | "brotli")
                    && !danger::has_flag(args, &[], "--rm");
                if !shows && !keeps {
                    self.taken(&operands);
                }
            }
            _ => {}
        }
        let outputs = tables::OUTPUTS
            .iter()
            .filter(|(names, _)| names.contains(&base));
        for (_, outputs) in outputs {
            for value in values_of(args, outputs) {
                self.changed(&value);
            }
        }
    }

    /// Records the files in scripts of `sed`, and in URLs and forms of `curl`.
    pub(super) fn within_arguments(&mut self, base: &str, words: &[Word]) {
        if matches!(base, "sed" | "gsed") {
            let script = sed::Script::of(words);
            for file in &script.reads {
                self.named(&Word::text(file), PathUse::Named);
            }
            for file in &script.writes {
                self.changed(&Word::text(file));
            }
        }
        if base == "curl" {
            for file in curl::files(words) {
                self.named(&file, PathUse::Read);
            }
        }
    }

    /// Records files and directories that are removed once they are archived.
    fn taken(&mut self, operands: &[Word]) {
        for word in operands {
            self.changed(word);
            self.within(word);
        }
    }

    /// Records the targets of `cp d/.envrc .`: in a directory, a file keeps its name.
    fn copied(&mut self, base: &str, words: &[Word]) {
        let Some(row) = tables::program(base) else {
            return;
        };
        let parsed = options::parse(row, words);
        let mut sources: Vec<Word> = parsed.operands(words).cloned().collect();
        if matches!(base, "install" | "ginstall") && parsed.has(&["d", "directory"]) {
            return;
        }
        let into = |given: &&options::Given| {
            given.effect == OptionEffect::WritesInto && given.name.starts_with('t')
        };
        let into = parsed.options.iter().rfind(into);
        let into = into.and_then(|given| given.value.clone());
        let named = into.is_some();
        let target = match into {
            Some(target) => target,
            // `ln -s d/file`.
            None if sources.len() == 1 && matches!(base, "ln" | "gln") => Word::text("."),
            None => match sources.pop() {
                Some(target) => target,
                None => return,
            },
        };
        let whole = parsed.has(&["r", "R", "a", "recursive", "archive"]);
        if base == "rsync"
            && parsed
                .options
                .iter()
                .any(|given| given.name.starts_with("del"))
        {
            self.within(&target);
        }
        let exact = parsed.has(&["T", "no-target-directory"]);
        let directory = named || sources.len() > 1 || may_be_directory(&target);
        for source in &sources {
            let shown = source.shown();
            let pieces = source.split(|c| c == '/');
            let name = pieces.last().filter(|name| {
                let contents = base == "rsync" && shown.ends_with('/');
                !contents && !matches!(name.shown().as_str(), "." | "..")
            });
            let joined = match name {
                Some(name) if directory && !exact && name.is_computed() => {
                    self.within(&target);
                    continue;
                }
                Some(name) if directory && !exact => target.beneath(name),
                _ => {
                    if whole {
                        self.within(&target);
                    }
                    continue;
                }
            };
            self.changed(&joined);
            if whole {
                self.within(&joined);
            }
        }
    }

    /// Records the files that a sub-command of git writes or may change in the working
    /// tree. Leaves `dirs` in the directory that git changed to.
    pub(super) fn git_changes(&mut self, words: &[Word]) {
        let global = options::parse(&tables::GIT, words);
        for given in global.given(&["C"]) {
            if let Some(directory) = &given.value
                && self.budget.charge(self.dirs.weight())
            {
                self.dirs.change_to(directory);
            }
        }
        let words = global.operands.first().and_then(|at| words.get(*at..));
        let Some(git) = words.and_then(Git::new) else {
            return;
        };
        let mut files = git.files();
        if matches!(git.verb, "init" | "init-db") && global.has(&["C"]) {
            files.push(Word::text("."));
        }
        for file in &files {
            self.changed(file);
            if git.verb != "bundle" {
                self.within(file);
            }
        }
        if git.verb == "mv"
            && let [sources @ .., target] = files.as_slice()
            && may_be_directory(target)
        {
            for source in sources {
                if let Some(name) = source.split(|c| c == '/').last() {
                    self.changed(&target.beneath(name));
                }
            }
        }
        let whole = git.changes_tree();
        for given in global.given(&["work-tree"]) {
            if let Some(place) = given.value.as_ref()
                && (whole || !files.is_empty())
            {
                self.changed(place);
                self.within(place);
            }
        }
        match git.verb {
            _ if !whole => {}
            "clean" => self.within(&Word::text(".")),
            // An operand may be a branch or a path.
            "checkout" => {
                for word in &git.operands {
                    self.within(word);
                }
                self.within_named(None, "", "git checkout");
            }
            // The root of the repository is not known.
            verb => self.within_named(None, "", &format!("git {verb}")),
        }
    }
}

/// A sub-command of git with its arguments.
struct Git<'w> {
    verb: &'w str,
    words: &'w [Word],
    parsed: Parsed,
    operands: Vec<Word>,
}

impl<'w> Git<'w> {
    fn new(words: &'w [Word]) -> Option<Self> {
        let verb = words.first().and_then(Word::literal)?;
        let parsed = options::parse_with(tables::git_verb(verb)?, tables::git_long(), words);
        Some(Self {
            operands: parsed.operands(words).cloned().collect(),
            verb,
            words,
            parsed,
        })
    }

    fn has(&self, short: &str, long: &str) -> bool {
        self.parsed.has(&[short]) || danger::has_flag(self.words, &[], long)
    }

    /// Returns the first operand, such as `add` of `git worktree add`.
    fn first(&self) -> &str {
        let first = self.operands.first();
        first.and_then(Word::literal).unwrap_or_default()
    }

    /// Returns the words after `--`.
    fn paths(&self) -> &'w [Word] {
        let is = |word: &Word| word.is("--");
        let at = self.words.iter().position(is);
        at.and_then(|at| self.words.get(at + 1..))
            .unwrap_or_default()
    }

    /// Whether it is a dry run, or only changes the index.
    fn shows(&self) -> bool {
        match self.verb {
            "clean" => self.has("n", "--dry-run"),
            "rm" => self.has("n", "--dry-run") || self.has("", "--cached"),
            "restore" => self.has("S", "--staged") && !self.has("W", "--worktree"),
            "apply" => ["--check", "--stat", "--numstat", "--summary", "--cached"]
                .iter()
                .any(|long| self.has("", long)),
            _ => false,
        }
    }

    /// Returns the files and directories it writes.
    fn files(&self) -> Vec<Word> {
        let operands = &self.operands;
        let from = |at: usize| operands.get(at..).unwrap_or_default().to_vec();
        let some = |at: usize, count: usize| from(at).into_iter().take(count).collect();
        match (self.verb, self.first()) {
            _ if self.shows() => Vec::new(),
            ("clean" | "mv" | "rm" | "restore" | "mailinfo" | "checkout-index", _) => from(0),
            ("checkout", _) if self.paths().is_empty() => {
                // A branch name cannot start with a dot.
                let dotted = |word: &&Word| word.starts_with(".");
                operands.iter().filter(dotted).cloned().collect()
            }
            ("checkout" | "stash", _) => self.paths().to_vec(),
            ("bundle", "create") | ("worktree", "add" | "remove") => some(1, 1),
            ("worktree", "move") => some(1, 2),
            ("merge-file", _) => some(0, 1),
            ("submodule", "add") => from(2),
            ("clone", _) => from(1),
            ("init" | "init-db", _) => {
                let mut files = from(0);
                if self.parsed.has(&["separate-git-dir"]) {
                    files.push(Word::text(".git"));
                }
                files
            }
            _ => Vec::new(),
        }
    }

    /// Whether it may change files that it does not name.
    fn changes_tree(&self) -> bool {
        let named = !self.paths().is_empty();
        match (self.verb, self.first()) {
            _ if self.shows() => false,
            ("clean" | "rm" | "restore" | "checkout-index", _) => self.operands.is_empty(),
            ("checkout" | "switch", _) => {
                let creates = ["b", "c", "C"].iter().any(|name| self.parsed.has(&[name]));
                let dotted = |word: &Word| word.starts_with(".");
                let files = !self.operands.is_empty() && self.operands.iter().all(dotted);
                let nothing = self.operands.is_empty() && (creates || self.words.len() == 1);
                !named && !files && !nothing
            }
            ("stash", "list" | "show" | "drop" | "clear" | "create" | "store") => false,
            ("stash", _) => !named,
            ("reset", _) => ["--hard", "--merge", "--keep"]
                .iter()
                .any(|long| self.has("", long)),
            ("submodule", first) => matches!(first, "update" | "deinit"),
            ("lfs", first) => matches!(first, "checkout" | "pull"),
            ("sparse-checkout", first) => first != "list",
            ("read-tree", _) => self.parsed.has(&["u"]),
            (verb, _) => tables::GIT_TREES.contains(&verb),
        }
    }
}

/// Whether a target may be a directory, since its name has no extension.
fn may_be_directory(word: &Word) -> bool {
    let text = word.shown();
    let name = base_name(&text);
    matches!(name, "" | "." | "..") || !name.contains('.')
}

/// Returns the values of `options`, glued to them or in the next word.
fn values_of(args: &[Word], options: &[&str]) -> Vec<Word> {
    let mut values = Vec::new();
    for (at, word) in args.iter().enumerate() {
        for option in options {
            let Some(rest) = word.strip_prefix(option) else {
                continue;
            };
            let long = option.starts_with("--");
            if rest.is("") {
                values.extend(args.get(at + 1).cloned());
            } else if let Some(value) = rest.strip_prefix("=") {
                values.push(value);
            } else if option.len() == 2 && !long {
                values.push(rest);
            }
        }
    }
    values
}
