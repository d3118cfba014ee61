//! [`Tree`]: the entries beneath a directory, to a depth and a number.

use std::collections::VecDeque;
use std::fmt;

use backend_core::ops::{Entry, LsOptions};
use backend_core::{Backend, Error, ErrorKind, Result, VPath};

/// Levels of a tree unless the caller says otherwise.
pub const TREE_DEPTH: usize = 6;

/// Entries of a tree unless the caller says otherwise.
pub const TREE_ENTRIES: usize = 2_000;

/// Options of [`StoredFiles::tree`](crate::StoredFiles::tree).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TreeOptions {
    /// The directory; `/` by default.
    pub path: VPath,
    /// Most levels beneath it.
    pub depth: usize,
    /// Most entries.
    pub entries: usize,
}

impl Default for TreeOptions {
    fn default() -> Self {
        Self {
            path: VPath::root(),
            depth: TREE_DEPTH,
            entries: TREE_ENTRIES,
        }
    }
}

impl TreeOptions {
    backend_core::setters! {
        /// Sets the directory.
        fn path(self, path: VPath) { self.path = path }

        /// Sets the most levels beneath the directory.
        fn depth(self, depth: usize) { self.depth = depth }

        /// Sets the most entries.
        fn entries(self, entries: usize) { self.entries = entries }
    }
}

/// The entries beneath a directory, to a depth and a number. As text it is one line for each
/// entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tree {
    /// The directory.
    pub path: VPath,
    /// The entries beneath it, each directory before what it holds.
    pub entries: Vec<Entry>,
    /// Whether entries may be missing: there are more than the limit, or directories at the
    /// deepest level.
    pub truncated: bool,
    /// Directories that could not be read.
    pub unreadable: usize,
}

impl fmt::Display for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let above = self.path.components().count() + 1;
        for entry in &self.entries {
            let level = entry.path.components().count().saturating_sub(above);
            let end = if entry.is_dir() { "/" } else { "" };
            // A name may hold a line end, or a sequence that a terminal obeys.
            let name = entry.name().escape_debug();
            writeln!(f, "{:width$}{name}{end}", "", width = 2 * level)?;
        }
        if self.truncated {
            writeln!(f, "… and more")?;
        }
        Ok(())
    }
}

/// Lists `options.path` level by level, so that a limit cuts the deepest entries first.
pub(super) async fn tree(files: &dyn Backend, options: TreeOptions) -> Result<Tree> {
    if options.depth == 0 || options.entries == 0 {
        return Err(Error::invalid_input(
            "a tree of no levels or no entries shows nothing; ask for at least one",
        ));
    }
    let mut tree = Tree {
        path: options.path.clone(),
        entries: Vec::new(),
        truncated: false,
        unreadable: 0,
    };
    let mut pending = VecDeque::from([(options.path, 1)]);
    while let Some((directory, level)) = pending.pop_front() {
        let left = options.entries - tree.entries.len();
        if left == 0 {
            // Whether the directory is empty is not worth a look.
            tree.truncated = true;
            break;
        }
        let listing = match files.ls(&directory, LsOptions::default().limit(left)).await {
            Ok(listing) => listing,
            Err(error) if directory != tree.path && may_skip(&error) => {
                tree.unreadable += usize::from(!error.is_not_found());
                continue;
            }
            Err(error) => return Err(error),
        };
        tree.truncated |= listing.is_truncated();
        for entry in listing.entries {
            // A link to a directory may lead back up.
            if entry.is_dir() && !entry.link {
                if level < options.depth {
                    pending.push_back((entry.path.clone(), level + 1));
                } else {
                    tree.truncated = true;
                }
            }
            tree.entries.push(entry);
        }
    }
    let order = |one: &Entry, other: &Entry| one.path.components().cmp(other.path.components());
    tree.entries.sort_unstable_by(order);
    Ok(tree)
}

/// Whether a directory can be left out: it is gone, or closed to this user.
fn may_skip(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied
    )
}
