//! Sorts the listing of a tree into its directories.

use std::collections::BTreeMap;
use std::time::SystemTime;

use backend_core::VPath;
use backend_core::ops::{Entry, FileKind};
use backend_core::search::{Child, WalkOptions, is_generated};

use super::IGNORE_FILES;
use crate::record::Record;

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileInfo {
    pub(crate) size: u64,
    modified: Option<SystemTime>,
    mode: u32,
}

impl FileInfo {
    /// Whether all users may read it.
    pub(crate) fn is_readable(self) -> bool {
        self.mode & 0o444 == 0o444
    }

    pub(crate) fn entry(self, path: VPath) -> Entry {
        Entry::file(path, self.size)
            .with_modified(self.modified)
            .with_mode(Some(self.mode))
    }
}

/// A directory with all its entries.
#[derive(Debug, Default)]
pub(super) struct ListedDir {
    pub(super) children: Vec<Child<FileInfo>>,
    pub(super) not_utf8: u64,
}

/// Directories that are only listed when they are entered, because searches
/// seldom do.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Avoid {
    Git,
    Hidden,
}

impl Avoid {
    /// Returns the directories that a walk seldom enters. Hidden ones are only
    /// listed when they are entered.
    pub(crate) fn of(options: &WalkOptions) -> Self {
        match options.hidden {
            true => Self::Git,
            false => Self::Hidden,
        }
    }

    /// Returns the pattern for `find`. The script excludes generated
    /// directories by itself.
    pub(crate) fn pattern(self) -> &'static str {
        match self {
            Self::Git => ".git",
            Self::Hidden => ".?*",
        }
    }

    pub(super) fn is_avoided(self, name: &str) -> bool {
        let avoided = match self {
            Self::Git => name == ".git",
            Self::Hidden => name.starts_with('.'),
        };
        avoided || is_generated(name)
    }
}

/// Sorts the machine's listing of trees.
#[derive(Debug)]
pub(super) struct Sorter {
    pub(super) avoid: Avoid,
    /// Whether every directory can be read.
    pub(super) reads_all: bool,
    /// Whether more than one level was requested.
    pub(super) is_deep: bool,
    /// Whether the answer is truncated.
    pub(super) is_cut: bool,
}

impl Sorter {
    /// Returns the directories whose entries are all in `rows`, which are in
    /// the order of a walk through one of `starts` after the other. All keys
    /// end with a slash, except the empty one.
    pub(super) fn sort(&self, starts: &[&str], rows: &[Record<'_>]) -> BTreeMap<String, ListedDir> {
        let listed = starts
            .iter()
            .map(|key| ((*key).to_owned(), ListedDir::default()));
        let mut found: BTreeMap<_, _> = listed.collect();
        let mut last = String::new();
        for row in rows {
            let slash = row.name.iter().rposition(|byte| *byte == b'/');
            let (above, name) = row.name.split_at(slash.map_or(0, |slash| slash + 1));
            let Ok(above) = std::str::from_utf8(above) else {
                continue;
            };
            // A directory that was not entered, or one that was not listed.
            let Some(listed) = found.get_mut(above) else {
                continue;
            };
            let Ok(name) = std::str::from_utf8(name) else {
                listed.not_utf8 += 1;
                last = above.to_owned();
                continue;
            };
            let payload = FileInfo {
                size: row.size,
                modified: row.modified,
                mode: row.mode,
            };
            listed.children.push(Child::new(name, row.kind, payload));
            last = format!("{above}{name}/");
            // A directory that looks empty may just be unreadable.
            let is_open = self.reads_all || row.mode & 0o555 == 0o555;
            let is_directory = row.kind == FileKind::Directory;
            if is_directory && self.is_deep && is_open && !self.avoid.is_avoided(name) {
                found.insert(last.clone(), ListedDir::default());
            }
        }
        if self.is_cut {
            // The answer was cut inside these directories, and did not reach
            // any later start.
            let at = starts.iter().position(|start| last.starts_with(start));
            let later = if rows.is_empty() {
                0
            } else {
                at.map_or(0, |at| at + 1)
            };
            for start in starts.get(later..).unwrap_or_default() {
                found.remove(*start);
            }
            found.retain(|key, _| !last.starts_with(key.as_str()));
        }
        found
    }
}

/// Returns the ignore files in the listed directories.
pub(super) fn ignore_files(listed: &BTreeMap<String, ListedDir>) -> Vec<String> {
    let children = listed.iter().flat_map(|(key, listed)| {
        let children = listed.children.iter();
        children.map(move |child| (key, child))
    });
    children
        .filter(|(_, child)| child.kind == FileKind::File)
        .filter(|(_, child)| matches!(child.name.as_str(), ".gitignore" | ".ignore"))
        .map(|(key, child)| format!("{key}{}", child.name))
        .take(IGNORE_FILES)
        .collect()
}

/// Returns the last name of a directory with this key.
pub(super) fn last_name(key: &str) -> &str {
    let path = key.strip_suffix('/').unwrap_or(key);
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use backend_core::search::GENERATED_DIRECTORIES;

    use super::*;
    use crate::record::records;

    /// A walk through two directories, as the machine lists it.
    const NAMES: &[(&str, bool)] = &[
        ("a/one", false),
        ("a/d", true),
        ("a/d/x", false),
        ("a/d/e", true),
        ("a/d/y", false),
        ("a/.h", true),
        ("a/node_modules", true),
        ("a/two", false),
        ("b/.gitignore", false),
        ("b/c", true),
        ("b/c/z", false),
    ];

    fn answer() -> String {
        let row = |(name, is_directory): &(&str, bool)| {
            let mode = if *is_directory { "41ed" } else { "81a4" };
            format!("//{mode} 1 2 2020-01-01 00:00:00.000000000 +0000 ./{name}\n")
        };
        NAMES.iter().map(row).collect()
    }

    fn sort(answer: &str, is_cut: bool) -> Vec<(String, Vec<String>)> {
        let sorter = Sorter {
            avoid: Avoid::Hidden,
            reads_all: true,
            is_deep: true,
            is_cut,
        };
        let rows = records(answer.as_bytes(), is_cut).unwrap();
        let found = sorter.sort(&["a/", "b/", "empty/"], &rows);
        let names = |listed: ListedDir| listed.children.into_iter().map(|child| child.name);
        let found = found.into_iter();
        found
            .map(|(key, listed)| (key, names(listed).collect()))
            .collect()
    }

    /// A directory that only one of the two skips would look empty to the
    /// other.
    #[test]
    fn find_avoids_the_same_names() {
        let script = include_str!("../worker/read.sh");
        let avoided = script.split("generated='").nth(1).unwrap();
        let avoided = avoided.split('\'').next().unwrap();
        let words = avoided.split_whitespace();
        let names: Vec<_> = words
            .filter(|word| !["-name", "-o"].contains(word))
            .collect();
        assert_eq!(names, GENERATED_DIRECTORIES);
    }

    #[test]
    fn every_directory_has_its_entries() {
        let all = sort(&answer(), false);
        let keys: Vec<_> = all.iter().map(|(key, _)| key.as_str()).collect();
        assert_eq!(keys, ["a/", "a/d/", "a/d/e/", "b/", "b/c/", "empty/"]);
        assert_eq!(all[0].1, ["one", "d", ".h", "node_modules", "two"]);
        assert!(all[2].1.is_empty() && all[5].1.is_empty());
    }

    #[test]
    fn a_cut_leaves_only_what_is_complete() {
        let (answer, all) = (answer(), sort(&answer(), false));
        for cut in 0..answer.len() {
            for (key, names) in sort(&answer[..cut], true) {
                let whole = all.iter().find(|(other, _)| *other == key);
                assert_eq!(
                    Some(&names),
                    whole.map(|(_, names)| names),
                    "{key} at {cut}"
                );
                assert_ne!(key, "empty/", "nobody came there");
            }
        }
        // One record into the second start, the first is complete.
        let cut = answer.find("./b/c/z").unwrap();
        let keys: Vec<_> = sort(&answer[..cut], true)
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(keys, ["a/", "a/d/", "a/d/e/"]);
    }

    #[test]
    fn closed_directories_are_asked_for() {
        let answer = answer().replace("41ed", "41c0");
        let sorter = Sorter {
            avoid: Avoid::Git,
            reads_all: false,
            is_deep: true,
            is_cut: false,
        };
        let rows = records(answer.as_bytes(), false).unwrap();
        let found = sorter.sort(&["a/", "b/"], &rows);
        assert_eq!(found.len(), 2);
        assert_eq!(ignore_files(&found), ["b/.gitignore"]);
        assert_eq!(
            (last_name("a/d/"), last_name("a/"), last_name("")),
            ("d", "a", "")
        );
    }
}
