//! [`Protected`]: the files that a policy came from. Those whom it holds must not
//! change them, or it would hold them until the next start only.

use std::borrow::Cow;

use backend_core::VPath;

use crate::command::{NamedPath, PathUse, glob_could_name, name_matches};
use crate::{Action, Layer, Op, Vote, Why};

/// Programs that take a directory away, with everything in it.
const TAKES_AWAY: &[&str] = &[
    "mv", "rename", "rm", "rmdir", "rsync", "shred", "trash", "unlink",
];

/// Programs that change the files they are given.
const CHANGES: &[&str] = &["chmod", "chown", "tee", "touch", "truncate"];

/// Programs that give a file a second name.
const LINKS: &[&str] = &["link", "ln"];

/// Files that cannot be changed, removed or moved; nor can the directories that they
/// lie in be removed or moved.
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

    /// Their names, for the name of the policy.
    pub(super) fn names(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(VPath::as_str).collect();
        names.join("\n")
    }

    /// What is against an access to a path, if anything is.
    pub(super) fn judge(&self, op: Op, path: &VPath) -> Option<Vote> {
        let changes = matches!(op, Op::Write | Op::Edit | Op::Delete);
        let touches = |own: &VPath| own.starts_with(path) || path.starts_with(own);
        (changes && self.0.iter().any(touches)).then(vote)
    }

    /// Whether something beneath a directory is protected from `op`.
    pub(super) fn is_beneath(&self, op: Op, directory: &VPath) -> bool {
        let changes = matches!(op, Op::Write | Op::Edit | Op::Delete);
        changes && self.0.iter().any(|own| own.starts_with(directory))
    }

    /// The paths in a command line that it must not name, each with what is against it.
    ///
    /// A file is protected from every command that is not known to read it. Of a
    /// directory above one it is known only that something in it changes, which may be
    /// anything; it counts where a program takes directories away.
    pub(super) fn judge_command<'r>(
        &self,
        commands: &[String],
        paths: &'r [NamedPath],
        line: &str,
        here: &VPath,
    ) -> Vec<(&'r NamedPath, Vote)> {
        let runs = |programs: &[&str]| {
            let mut lines = commands.iter();
            lines.any(|line| {
                let program = line.split_whitespace().next().unwrap_or_default();
                programs.contains(&program.rsplit('/').next().unwrap_or_default())
            })
        };
        let takes_away = runs(TAKES_AWAY);
        // A second name of a file is as good as the first.
        let links = runs(LINKS) || commands.iter().any(|line| copies_as_links(line));
        // How the files of a glob are used is not known.
        let edits = commands.iter().any(|line| edits_in_place(line));
        let changes = takes_away || links || edits || runs(CHANGES) || line.contains('>');
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
                    let mut whole = own.ancestors().chain([own.clone()]);
                    return changes
                        && whole.any(|path| glob_could_name(&named.text, path.as_str()));
                }
                // A directory that a command runs in cannot be taken away by its name.
                let above = takes_away && named.usage == PathUse::Write;
                !is_read && named.path.starts_with(own)
                    || above && own.starts_with(&named.path) && !here.starts_with(&named.path)
            });
            against.then(vote)
        };
        let against = |named: &'r NamedPath| Some((named, is_against(named)?));
        paths.iter().filter_map(against).collect()
    }

    /// What is against a command that may change anything beneath a directory. One
    /// that holds where the command runs was named for all that is in it: of that it
    /// is not known whether a protected file is meant.
    fn lies_within(&self, named: &NamedPath, here: &VPath) -> Option<Vote> {
        let lies = |own: &VPath| match named.text.rsplit_once("/**/") {
            Some((_, name)) if named.glob => own
                .strip_prefix(&named.path)
                .is_some_and(|rest| rest.split('/').any(|it| could_be(name, it))),
            _ if named.glob => {
                let mut whole = own.ancestors().chain([own.clone()]);
                whole.any(|path| glob_could_name(&named.text, path.as_str()))
            }
            _ => own.starts_with(&named.path),
        };
        self.0.iter().any(lies).then(|| {
            let own = !named.glob || named.text.contains("/**/");
            match own && here.starts_with(&named.path) {
                true => question(),
                false => vote(),
            }
        })
    }
}

/// Whether a file of a name could be found by a pattern of `find`, in any spelling of
/// capitals. Unlike a shell it takes a leading dot for any character.
fn could_be(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.to_lowercase(), name.to_lowercase());
    name_matches(&pattern, &name)
        || name.starts_with('.') && name_matches(&pattern, &format!("x{name}"))
}

fn question() -> Vote {
    let why = "it may change what says what this session may do";
    Vote::new(
        Layer::Protected,
        Action::Ask,
        Why::Because(Cow::Borrowed(why)),
    )
}

/// Whether a command changes files where they are: `sed -i`, `perl -pi`.
fn edits_in_place(line: &str) -> bool {
    has_option(line, &["gsed", "perl", "sed"], 'i', "--in-place")
}

/// Whether a command copies files by giving them a second name: `cp -l`.
fn copies_as_links(line: &str) -> bool {
    has_option(line, &["cp"], 'l', "--link")
}

fn has_option(line: &str, programs: &[&str], short: char, long: &str) -> bool {
    let mut words = line.split_whitespace();
    let program = words.next().unwrap_or_default();
    let is_option = |word: &str| {
        word.starts_with(long)
            || word.starts_with('-') && !word.starts_with("--") && word.contains(short)
    };
    programs.contains(&program.rsplit('/').next().unwrap_or_default()) && words.any(is_option)
}

fn vote() -> Vote {
    let why = "it holds the rules of this session, or lies above a file that does; tools cannot change it";
    Vote::new(
        Layer::Protected,
        Action::Deny,
        Why::Because(Cow::Borrowed(why)),
    )
}
