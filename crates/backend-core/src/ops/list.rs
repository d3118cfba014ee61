//! What `stat`, `ls` and the searches say about the things they find.

#[cfg(feature = "serde")]
mod serial;

use std::time::SystemTime;

use crate::error::{Error, Result};
use crate::limits::LIST_ENTRIES;
use crate::ops::Links;
use crate::path::VPath;
use crate::search::Exclude;

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link that leads nowhere this backend follows: it dangles,
    /// loops, or points outside.
    Link,
    /// Anything else: a FIFO, a socket, a device. Never read or written.
    Other,
}

/// One file system entry, as `stat`, `ls` and `glob` report it.
///
/// A link that leads somewhere is reported with the kind, size and time of what
/// it leads to and [`link`](Self::link) set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Entry {
    /// Where it is. Can be handed back to any operation as it is.
    pub path: VPath,
    /// What it is.
    pub kind: FileKind,
    /// Whether the path itself is a symbolic link.
    pub link: bool,
    /// Size in bytes; only of regular files.
    pub size: Option<u64>,
    /// Time of the last change to the content; only of regular files, and only
    /// where the backend knows it. Never invented.
    #[cfg_attr(feature = "serde", serde(with = "serial"))]
    pub modified: Option<SystemTime>,
    /// Permission bits, where the backend has them.
    pub mode: Option<u32>,
}

impl Entry {
    /// A regular file of `size` bytes.
    pub fn file(path: VPath, size: u64) -> Self {
        Self {
            size: Some(size),
            ..Self::of_kind(path, FileKind::File)
        }
    }

    /// A directory.
    pub fn directory(path: VPath) -> Self {
        Self::of_kind(path, FileKind::Directory)
    }

    /// An entry about which only its kind is known.
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

    /// The entry with its time of last change.
    #[must_use]
    pub fn with_modified(mut self, modified: Option<SystemTime>) -> Self {
        self.modified = modified;
        self
    }

    /// The entry with its permission bits.
    #[must_use]
    pub fn with_mode(mut self, mode: Option<u32>) -> Self {
        self.mode = mode;
        self
    }

    /// The entry marked as reached through a symbolic link.
    #[must_use]
    pub fn with_link(mut self, link: bool) -> Self {
        self.link = link;
        self
    }

    /// The last component of the path; `/` for the root.
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

    /// Orders a listing: directories first, then by name in byte order.
    pub fn listing_order(&self, other: &Self) -> std::cmp::Ordering {
        other
            .is_dir()
            .cmp(&self.is_dir())
            .then_with(|| self.path.cmp(&other.path))
    }
}

/// How to `stat`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StatOptions {
    /// What to do about symbolic links on the way.
    pub links: Links,
}

impl StatOptions {
    /// Sets what to do about symbolic links.
    #[must_use]
    pub fn links(mut self, links: Links) -> Self {
        self.links = links;
        self
    }
}

/// How to `ls`.
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct LsOptions {
    /// What to do about symbolic links on the way to the directory.
    pub links: Links,
    /// Most entries to return; the result says how many there are.
    pub limit: usize,
    /// What to leave out, before the limit is applied.
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
    /// Sets what to do about symbolic links.
    #[must_use]
    pub fn links(mut self, links: Links) -> Self {
        self.links = links;
        self
    }

    /// Sets the most entries to return.
    #[must_use]
    pub fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }

    /// Sets what to leave out.
    #[must_use]
    pub fn exclude(mut self, exclude: Exclude) -> Self {
        self.exclude = exclude;
        self
    }

    /// Makes the listing out of everything a directory holds, in any order.
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

/// What `ls` found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Listing {
    /// Directories first, then by name in byte order; at most
    /// [`LsOptions::limit`] of them.
    pub entries: Vec<Entry>,
    /// How many entries there are, shown or not.
    pub total: usize,
    /// What could not be shown.
    pub skipped: Skipped,
}

impl Listing {
    /// Whether entries were left out because of the limit.
    pub fn is_truncated(&self) -> bool {
        self.total > self.entries.len()
    }
}

/// What a listing or a search passed over, and why.
///
/// A directory that is not entered counts once, whatever it holds. When a
/// search ends early at its maximum, only what it had met by then is counted.
/// What a caller's [`Exclude`] hides is not counted: it must stay unseen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Skipped {
    /// Names beginning with a dot that nobody asked for.
    pub hidden: u64,
    /// Entries that a `.gitignore` or `.ignore` file excludes.
    pub ignored: u64,
    /// [Generated directories](crate::search::GENERATED_DIRECTORIES).
    pub generated: u64,
    /// Files that hold no text.
    pub binary: u64,
    /// Files and directories that could not be opened or read.
    pub unreadable: u64,
    /// Files with a line too long to search.
    pub long_line: u64,
    /// Names that are not UTF-8.
    pub not_utf8: u64,
}

impl Skipped {
    /// Whether nothing was passed over.
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
