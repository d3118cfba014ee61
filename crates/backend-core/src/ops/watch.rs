//! Watching: the query, and the changes that are told.

use crate::ops::links::Links;
use crate::path::VPath;
use crate::search::exclude::Exclude;
use crate::setters::setters;

/// A request for the changes of a tree.
///
/// ```
/// use backend_core::{VPath, ops::WatchQuery};
/// let query = WatchQuery::new(VPath::parse("/src")?);
/// assert!(query.tells(&VPath::parse("/src/deep/main.rs")?));
/// assert!(!query.recursive(false).tells(&VPath::parse("/src/deep/main.rs")?));
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct WatchQuery {
    /// The directory to watch.
    pub path: VPath,
    /// Whether to watch the directories in it too, and those in them.
    pub recursive: bool,
    /// Treatment of symbolic links on the way to `path`. Links beneath it are never followed.
    pub links: Links,
    /// Entries of which nothing is told.
    pub exclude: Exclude,
}

impl WatchQuery {
    /// Creates a query for all changes beneath `path`.
    pub fn new(path: VPath) -> Self {
        Self {
            path,
            recursive: true,
            links: Links::default(),
            exclude: Exclude::none(),
        }
    }

    setters! {
        /// Sets whether to watch the directories in it too, and those in them.
        recursive: bool,
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the entries of which nothing is told.
        exclude: Exclude,
    }

    /// Whether changes of `path` are told: it lies beneath the watched directory, no
    /// deeper than asked for, and is not left out. The watched directory itself is not
    /// beneath it.
    pub fn tells(&self, path: &VPath) -> bool {
        path.strip_prefix(&self.path).is_some_and(|rest| {
            !rest.is_empty() && (self.recursive || !rest.contains('/')) && !self.exclude.hides(path)
        })
    }
}

/// One item of the stream that [`Backend::watch`](crate::Backend::watch) returns.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum WatchEvent {
    /// Something changed.
    Change(Change),
    /// Changes were lost, because they came faster than they were read. Later ones are
    /// told again; list the tree to learn its present state.
    Overflow,
}

impl WatchEvent {
    /// Returns the event as it looks in a view with other paths. `path` returns the path
    /// there, or `None` for entries that the view does not show.
    ///
    /// A move of which only the new path is shown is told as `Created`. Entries beneath
    /// it were not told, so [`Overflow`](Self::Overflow) follows.
    ///
    /// ```
    /// use backend_core::{VPath, ops::{Change, WatchEvent}};
    /// let (a, b) = (VPath::parse("/a")?, VPath::parse("/b")?);
    /// let moved = WatchEvent::from(Change::renamed(a, b.clone()));
    /// let seen = moved.seen(|path| (*path == b).then(|| b.clone()));
    /// assert_eq!(seen, [Change::created(b).into(), WatchEvent::Overflow]);
    /// # Ok::<(), backend_core::PathError>(())
    /// ```
    #[must_use]
    pub fn seen(self, path: impl Fn(&VPath) -> Option<VPath>) -> Vec<Self> {
        let Self::Change(change) = self else {
            return vec![self];
        };
        let here = path(&change.path);
        let (seen, is_partial) = match change.kind {
            ChangeKind::Renamed { from } => match (path(&from), here) {
                (Some(from), Some(to)) => (Some(Change::renamed(from, to)), false),
                (Some(from), None) => (Some(Change::deleted(from)), false),
                (None, Some(to)) => (Some(Change::created(to)), true),
                (None, None) => (None, false),
            },
            kind => (here.map(|path| Change::new(path, kind)), false),
        };
        let mut events: Vec<Self> = seen.into_iter().map(Self::Change).collect();
        if is_partial {
            events.push(Self::Overflow);
        }
        events
    }
}

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Change {
    /// The entry; after a move its new path.
    pub path: VPath,
    /// The kind of change.
    pub kind: ChangeKind,
}

/// The kind of a [`Change`].
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ChangeKind {
    /// The entry is new: it was created, or moved in from elsewhere.
    Created,
    /// The content of the file may have changed.
    Changed,
    /// The entry is gone, with everything beneath it: it was deleted, or moved elsewhere.
    Deleted,
    /// The entry was moved, with everything beneath it. A file that was at its new path
    /// is gone.
    Renamed {
        /// Its path until then.
        from: VPath,
    },
}

impl Change {
    /// Creates a change of `path`.
    pub fn new(path: VPath, kind: ChangeKind) -> Self {
        Self { path, kind }
    }

    /// Says that the entry at `path` is new.
    pub fn created(path: VPath) -> Self {
        Self::new(path, ChangeKind::Created)
    }

    /// Says that the content of the file at `path` may have changed.
    pub fn changed(path: VPath) -> Self {
        Self::new(path, ChangeKind::Changed)
    }

    /// Says that the entry at `path` is gone.
    pub fn deleted(path: VPath) -> Self {
        Self::new(path, ChangeKind::Deleted)
    }

    /// Says that an entry was moved.
    pub fn renamed(from: VPath, to: VPath) -> Self {
        Self::new(to, ChangeKind::Renamed { from })
    }

    /// Returns the change as it looks if only the entries that `shown` accepts are known.
    /// A move of which one side is not becomes the creation or deletion of the other.
    ///
    /// ```
    /// use backend_core::{VPath, ops::Change};
    /// let (a, b) = (VPath::parse("/a")?, VPath::parse("/b")?);
    /// let moved = Change::renamed(a.clone(), b.clone());
    /// assert_eq!(moved.clone().narrowed(|path| *path == b), Some(Change::created(b)));
    /// assert_eq!(moved.clone().narrowed(|path| *path == a), Some(Change::deleted(a)));
    /// assert_eq!(moved.narrowed(|_| false), None);
    /// # Ok::<(), backend_core::PathError>(())
    /// ```
    #[must_use]
    pub fn narrowed(self, shown: impl Fn(&VPath) -> bool) -> Option<Self> {
        let here = shown(&self.path);
        match self.kind {
            ChangeKind::Renamed { from } => match (shown(&from), here) {
                (true, true) => Some(Self::renamed(from, self.path)),
                (true, false) => Some(Self::deleted(from)),
                (false, true) => Some(Self::created(self.path)),
                (false, false) => None,
            },
            _ => here.then_some(self),
        }
    }

    /// Returns the paths that the change names: the entry's, and after a move the old one.
    pub fn paths(&self) -> impl Iterator<Item = &VPath> {
        let from = match &self.kind {
            ChangeKind::Renamed { from } => Some(from),
            _ => None,
        };
        std::iter::once(&self.path).chain(from)
    }
}

impl From<Change> for WatchEvent {
    fn from(change: Change) -> Self {
        Self::Change(change)
    }
}
