//! Entries and listings, as `stat`, `ls` and the searches return them.

#[cfg(feature = "serde")]
mod serial;

use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::limits::LIST_ENTRIES;
use crate::ops::links::Links;
use crate::path::VPath;
use crate::search::exclude::Exclude;
use crate::setters::setters;

/// The kind of a file system entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link that this backend cannot follow: it dangles, loops, or
    /// points outside.
    Link,
    /// Anything else: a FIFO, a socket, a device. Never read or written.
    Other,
}

/// One file system entry, as `stat`, `ls` and `glob` report it.
///
/// A link that can be followed is reported with the kind, size and time of its
/// target and [`link`](Self::link) set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Entry {
    /// The path. It can be passed back to any operation unchanged.
    pub path: VPath,
    /// The kind of entry.
    pub kind: FileKind,
    /// Whether the path itself is a symbolic link.
    pub link: bool,
    /// Size in bytes; only of regular files.
    pub size: Option<u64>,
    /// Time of the last change to the content. Set only for regular files, and only
    /// if the backend knows it; never made up.
    #[cfg_attr(feature = "serde", serde(with = "serial"))]
    pub modified: Option<SystemTime>,
    /// Permission bits, if the backend has them.
    pub mode: Option<u32>,
}

impl Entry {
    /// Creates an entry for a regular file of `size` bytes.
    pub fn file(path: VPath, size: u64) -> Self {
        Self {
            size: Some(size),
            ..Self::of_kind(path, FileKind::File)
        }
    }

    /// Creates an entry for a directory.
    pub fn directory(path: VPath) -> Self {
        Self::of_kind(path, FileKind::Directory)
    }

    /// Creates an entry of which only the kind is known.
    pub fn of_kind(path: VPath, kind: FileKind) -> Self {
        Self {
            path,
            kind,
            link: false,
            size: None,
            modified: None,
            mode: None,
        }
    }

    crate::setters! {
        /// Sets the time of the last change.
        fn with_modified(self, modified: Option<SystemTime>) { self.modified = modified }

        /// Sets the permission bits.
        fn with_mode(self, mode: Option<u32>) { self.mode = mode }

        /// Marks the entry as reached through a symbolic link.
        fn with_link(self, link: bool) { self.link = link }
    }

    /// Returns the last component of the path; `/` for the root.
    pub fn name(&self) -> &str {
        self.path.file_name().unwrap_or("/")
    }

    /// Whether this is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind == FileKind::File
    }

    /// Whether this is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind == FileKind::Directory
    }

    /// Compares entries for a listing: directories first, then by name in byte order.
    fn listing_order(&self, other: &Self) -> std::cmp::Ordering {
        other
            .is_dir()
            .cmp(&self.is_dir())
            .then_with(|| self.path.cmp(&other.path))
    }
}

/// Options of `stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StatOptions {
    /// Treatment of symbolic links in the path.
    pub links: Links,
}

impl StatOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
    }
}

/// Options of `ls`.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LsOptions {
    /// Treatment of symbolic links on the way to the directory.
    pub links: Links,
    /// Most entries to return; the result also has the total number.
    pub limit: usize,
    /// Entries to leave out, before the limit is applied.
    pub exclude: Exclude,
}

impl Default for LsOptions {
    fn default() -> Self {
        Self {
            links: Links::default(),
            limit: LIST_ENTRIES,
            exclude: Exclude::none(),
        }
    }
}

impl LsOptions {
    setters! {
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the most entries to return.
        limit: usize,
        /// Sets the entries to leave out.
        exclude: Exclude,
    }

    /// Builds the listing from all entries of a directory, given in any order.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a limit of zero.
    pub fn listing(&self, mut entries: Vec<Entry>, skipped: Skipped) -> Result<Listing> {
        if self.limit == 0 {
            return Err(Error::invalid_input(
                "a limit of zero entries lists nothing; ask for at least one",
            ));
        }
        if !self.exclude.is_none() {
            entries.retain(|entry| !self.exclude.hides(&entry.path));
        }
        entries.sort_unstable_by(Entry::listing_order);
        let total = entries.len();
        entries.truncate(self.limit);
        Ok(Listing {
            entries,
            total,
            skipped,
        })
    }
}

/// The result of `ls`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Listing {
    /// Directories first, then by name in byte order; at most
    /// [`LsOptions::limit`] of them.
    pub entries: Vec<Entry>,
    /// Total number of entries, returned or not.
    pub total: usize,
    /// Entries that could not be shown.
    pub skipped: Skipped,
}

impl Listing {
    /// Whether entries were left out because of the limit.
    pub fn is_truncated(&self) -> bool {
        self.total > self.entries.len()
    }
}

/// Counts of what a listing or a search skipped, by reason.
///
/// A directory that is not entered counts once, whatever it contains. When a search
/// ends early at its maximum, only entries met by then are counted. Entries hidden
/// by a caller's [`Exclude`] are not counted: the count would reveal them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Skipped {
    /// Names beginning with a dot that were not requested.
    pub hidden: u64,
    /// Entries excluded by a `.gitignore` or `.ignore` file.
    pub ignored: u64,
    /// [Generated directories](crate::search::GENERATED_DIRECTORIES).
    pub generated: u64,
    /// Files that are not text.
    pub binary: u64,
    /// Files and directories that could not be opened or read.
    pub unreadable: u64,
    /// Files with a line too long to search.
    pub long_line: u64,
    /// Names that are not UTF-8.
    pub not_utf8: u64,
}

impl Skipped {
    /// Whether nothing was skipped.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl std::ops::AddAssign for Skipped {
    fn add_assign(&mut self, other: Self) {
        self.hidden += other.hidden;
        self.ignored += other.ignored;
        self.generated += other.generated;
        self.binary += other.binary;
        self.unreadable += other.unreadable;
        self.long_line += other.long_line;
        self.not_utf8 += other.not_utf8;
    }
}
