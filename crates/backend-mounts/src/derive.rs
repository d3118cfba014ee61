//! [`Derive`]: the part of a scope that a narrower scope keeps.

use backend_core::{Error, ErrorKind, Quoted, VPath};
use permissions::Refusal;
use serde::{Deserialize, Serialize};

use crate::parse;

/// Maximum number of entries in one [`Derive`], reading and writing together.
pub const DERIVE_ENTRIES: usize = 1_000;

/// Maximum number of times that a scope can be derived in a row.
pub const DERIVE_DEPTH: usize = 64;

/// The part of a scope that a derived, narrower scope keeps. By default, nothing.
///
/// - With `write` alone, writable paths are also readable. With `read` alone, nothing is
///   writable.
/// - With both, each applies separately: a path that is only in `write` cannot be read.
/// - With neither, `inherit` keeps everything.
/// - `readonly` removes all write access, whatever the other fields say.
///
/// An entry is a directory. It covers everything beneath it in its own mount. It covers
/// mounts nested in it only with `span_nested`.
///
/// ```
/// use backend_mounts::{Derive, MountConfig, Scope};
///
/// let scope = Scope::new(MountConfig::single_root("/srv/project").build()?);
/// let child = scope.derive(Derive::new().read(["/", "/docs"]).write(["/out"]))?;
/// let path = |text| scope.parse(text).expect("a path");
/// assert!(child.can_read(&path("/docs/a")) && !child.can_write(&path("/docs/a")));
/// assert!(child.can_write(&path("/out/a")));
/// assert!(scope.derive(Derive::new().read(["/a/../b"])).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[non_exhaustive]
#[must_use]
pub struct Derive {
    /// The readable directories, as typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// The writable directories, as typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// `true` if nothing may be written.
    pub readonly: bool,
    /// Whether to keep everything if neither `read` nor `write` is given.
    pub inherit: bool,
    /// Whether entries cover the mounts that are nested in them.
    pub span_nested: bool,
}

impl Derive {
    /// Creates a value that keeps nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the readable directories. An empty list counts as given.
    pub fn read(mut self, entries: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.read = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Sets the writable directories. An empty list counts as given.
    pub fn write(mut self, entries: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.write = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Removes all write access.
    pub fn readonly(mut self) -> Self {
        self.readonly = true;
        self
    }

    /// Keeps everything if neither `read` nor `write` is given.
    pub fn inherit(mut self) -> Self {
        self.inherit = true;
        self
    }

    /// Makes entries cover the mounts that are nested in them.
    pub fn span_nested(mut self) -> Self {
        self.span_nested = true;
        self
    }

    /// Returns every directory named for reading or writing. An entry must be a directory
    /// or not exist yet. A caller with file access should check this, and return
    /// [`DeriveError::file`] for a file.
    ///
    /// # Errors
    ///
    /// [`DeriveError`] for an entry that is not a valid path.
    pub fn entries(&self) -> Result<Vec<VPath>, DeriveError> {
        let mut entries = Vec::new();
        for typed in self.read.iter().chain(&self.write).flatten() {
            entries.push(entry(typed)?);
        }
        entries.sort_unstable();
        entries.dedup();
        Ok(entries)
    }

    pub(crate) fn count(&self) -> usize {
        self.read.iter().chain(&self.write).map(Vec::len).sum()
    }
}

/// Parses a typed entry.
pub(crate) fn entry(typed: &str) -> Result<VPath, DeriveError> {
    if parse::has_parent_component(typed) {
        return Err(DeriveError::Parent(Quoted::new(typed)));
    }
    parse::path(typed).map_err(|error| DeriveError::InvalidPath(error.to_string()))
}

/// The reason why a scope cannot be derived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveError {
    /// An entry has a `..` component.
    #[error("the entry {0} has a '..' component; write the directory itself")]
    Parent(Quoted),
    /// An entry is not a valid path.
    #[error("an entry cannot be used: {0}")]
    InvalidPath(String),
    /// An entry is a file.
    #[error("the entry '{entry}' is a file; use its directory '{parent}'")]
    #[non_exhaustive]
    File {
        /// The entry.
        entry: VPath,
        /// The directory that contains it.
        parent: VPath,
    },
    /// The parent scope does not allow an entry.
    #[error("the parent scope does not allow this: {0}")]
    Refused(Refusal),
    /// There are too many entries.
    #[error(
        "there are {0} entries, more than the {DERIVE_ENTRIES} that are allowed; name directories further up"
    )]
    TooMany(usize),
    /// The scope has been derived too many times in a row.
    #[error("a scope can be derived {DERIVE_DEPTH} times in a row; derive from one further up")]
    TooDeep,
}

impl DeriveError {
    /// Creates the error for an entry that is a file.
    pub fn file(entry: VPath) -> Self {
        let parent = entry.parent().unwrap_or_default();
        Self::File { entry, parent }
    }
}

impl From<DeriveError> for Error {
    fn from(error: DeriveError) -> Self {
        match error {
            DeriveError::Refused(refusal) => refusal.into(),
            DeriveError::InvalidPath(_) => Self::new(ErrorKind::InvalidPath, error.to_string()),
            _ => Self::invalid_input(error.to_string()),
        }
    }
}
