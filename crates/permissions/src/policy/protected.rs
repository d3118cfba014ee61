//! [`Protected`]: the files that define the policy. A session that could change them
//! would be bound by the policy only until the next start.

use backend_core::VPath;
use backend_core::search::{Exclude, Glob};
use command_line::glob::{glob_could_name, name_or_dot_matches};
use command_line::{NamedPath, PathUse};

use crate::{Action, Layer, Op, Reason, Vote};

/// Programs that remove or move a directory with everything in it.
const REMOVES: &[&str] = &[
    "mv", "rename", "rm", "rmdir", "rsync", "shred", "trash", "unlink",
];

/// Programs that change the files they are given.
const CHANGES: &[&str] = &["chmod", "chown", "tee", "touch", "truncate"];

/// Programs that give a file a second name.
const LINKS: &[&str] = &["link", "ln"];

/// Files that cannot be changed, removed or moved, alone or with a directory above them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Protected(Vec<VPath>);

impl Protected {
    pub(super) fn add(&mut self, paths: impl IntoIterator<Item = VPath>) {
        for path in paths {
            if !path.is_root() && !self.0.contains(&path) {
                self.0.push(path);
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the file names, as input for the policy's id.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(VPath::as_str).collect();
        names.join("\n")
    }

    /// Returns the files as paths that commands must not change.
    pub(super) fn exclude(&self) -> Exclude {
        let files = self.0.iter().map(|own| Glob::escape(own.as_str()));
        // If a path is too long to be a pattern, nothing may be changed.
        Exclude::hide(files)
            .or_else(|_| Exclude::hide(["**"]))
            .unwrap_or_default()
    }

    /// Returns the objection to an access to a path, if there is one.
    pub(super) fn judge(&self, op: Op, path: &VPath) -> Option<Vote> {
        let changes = matches!(op, Op::Write | Op::Edit | Op::Delete);
        let touches = |own: &VPath| own.starts_with(path) || path.starts_with(own);
        (changes && self.0.iter().any(touches)).then(vote)
    }

    /// Returns whether an entry beneath a directory is protected from `op`.
    pub(super) fn is_beneath(&self, op: Op, directory: &VPath) -> bool {
        let changes = matches!(op, Op::Write | Op::Edit | Op::Delete);
        changes && self.0.iter().any(|own| own.starts_with(directory))
    }

    /// Returns the paths that a command line must not name, each with the objection.
    ///
    /// A file is protected from every command that is not known to read it. For a
    /// directory above one, it is only known that something in it changes, which may be
    /// anything. So it counts only where a program removes or moves directories.
    pub(super) fn judge_command<'r>(
        &self,
        commands: &[String],
        paths: &'r [NamedPath],
        line: &str,
        here: &VPath,
    ) -> Vec<(&'r NamedPath, Vote)> {
        let runs = |programs: &[&str]| commands.iter().any(|line| is_one_of(line, programs));
        let removes = runs(REMOVES);
        // Changing a file under a second name changes the file.
        let links = runs(LINKS) || has_option(commands, &["cp"], 'l', "--link");
        // It is not known what is done to the files that a glob matches.
        let edits = has_option(commands, &["gsed", "perl", "sed"], 'i', "--in-place");
        let changes = removes || links || edits || runs(CHANGES) || line.contains('>');
        let is_against = |named: &NamedPath| {
            if named.usage == PathUse::Within {
                return self.lies_within(named, here);
            }
            let is_read = matches!(
                named.usage,
                PathUse::Read | PathUse::Run | PathUse::Possible
            ) && !links;
            let against = self.0.iter().any(|own| {
                if named.glob {
                    return changes && could_name(named, own);
                }
                // A directory that a command runs in cannot be removed by its name.
                let above = removes && named.usage == PathUse::Write;
                !is_read && named.path.starts_with(own)
                    || above && own.starts_with(&named.path) && !here.starts_with(&named.path)
            });
            against.then(vote)
        };
        let against = |named: &'r NamedPath| Some((named, is_against(named)?));
        paths.iter().filter_map(against).collect()
    }

    /// Returns the objection to a command that may change anything beneath a directory. If
    /// the command runs in that directory, it was named for everything in it, and it is not
    /// known whether a protected file is meant. Then the vote is to ask.
    fn lies_within(&self, named: &NamedPath, here: &VPath) -> Option<Vote> {
        let lies = |own: &VPath| match named.text.rsplit_once("/**/") {
            Some((_, name)) if named.glob => own
                .strip_prefix(&named.path)
                .is_some_and(|rest| rest.split('/').any(|it| could_be(name, it))),
            _ if named.glob => could_name(named, own),
            _ => own.starts_with(&named.path),
        };
        self.0.iter().any(lies).then(|| {
            let own = !named.glob || named.text.contains("/**/");
            if own && here.starts_with(&named.path) {
                question()
            } else {
                vote()
            }
        })
    }
}

/// Returns whether a pattern of `find` could match a file name, ignoring case. Unlike a
/// shell, `find` lets a wildcard match a leading dot.
fn could_be(pattern: &str, name: &str) -> bool {
    name_or_dot_matches(&pattern.to_lowercase(), &name.to_lowercase())
}

fn question() -> Vote {
    let why = "it may change the files that define these permissions";
    Vote::new(Layer::Protected, Action::Ask, Reason::Text(why.into()))
}

/// Returns whether one of these programs is run with an option.
fn has_option(commands: &[String], programs: &[&str], short: char, long: &str) -> bool {
    let is_option = |word: &str| {
        word.starts_with(long)
            || word.starts_with('-') && !word.starts_with("--") && word.contains(short)
    };
    let mut lines = commands.iter().filter(|line| is_one_of(line, programs));
    lines.any(|line| line.split_whitespace().skip(1).any(is_option))
}

/// Returns whether a command runs one of these programs.
fn is_one_of(line: &str, programs: &[&str]) -> bool {
    let program = line.split_whitespace().next().unwrap_or_default();
    programs.contains(&program.rsplit('/').next().unwrap_or_default())
}

/// Returns whether a glob could name a path, or a directory above it.
fn could_name(glob: &NamedPath, path: &VPath) -> bool {
    let mut whole = path.ancestors().chain([path.clone()]);
    whole.any(|path| glob_could_name(&glob.text, path.as_str()))
}

fn vote() -> Vote {
    let why = "it defines these permissions, or contains a file that does; tools cannot change it";
    Vote::new(Layer::Protected, Action::Deny, Reason::Text(why.into()))
}
