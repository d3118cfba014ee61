//! [`Derive`]: what a narrower scope is to keep.

use backend_core::{Error, ErrorKind, Quoted, VPath};
use serde::{Deserialize, Serialize};

use super::spelling;
use crate::Refusal;

/// Most entries that one [`Derive`] may have, reading and writing together.
pub const DERIVE_ENTRIES: usize = 1_000;

/// How often in a row a scope may be derived from another.
pub const DERIVE_DEPTH: usize = 64;

/// What a narrower scope is to keep of the one it is derived from. By default:
/// nothing.
///
/// - With `write` alone, what may be written may be read too. With `read` alone,
///   nothing may be written.
/// - With both, each stands for itself: what is only in `write` cannot be read.
/// - With neither, `inherit` keeps everything.
/// - `readonly` takes all writing away, whatever else is said.
///
/// An entry is a directory. It covers what lies beneath it in its own mount; that
/// it also covers mounts nested in it takes `span_nested`.
///
/// ```
/// use permissions::mounts::{Derive, MountConfig, Scope};
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
pub struct Derive {
    /// What may be read, as typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read: Option<Vec<String>>,
    /// What may be written, as typed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write: Option<Vec<String>>,
    /// Whether nothing may be written.
    pub readonly: bool,
    /// Whether to keep everything where neither `read` nor `write` is given.
    pub inherit: bool,
    /// Whether entries cover the mounts that are nested in them.
    pub span_nested: bool,
}

impl Derive {
    /// Keeps nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what may be read. An empty list counts as given.
    #[must_use]
    pub fn read(mut self, entries: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.read = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Sets what may be written. An empty list counts as given.
    #[must_use]
    pub fn write(mut self, entries: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.write = Some(entries.into_iter().map(Into::into).collect());
        self
    }

    /// Takes all writing away.
    #[must_use]
    pub fn readonly(mut self) -> Self {
        self.readonly = true;
        self
    }

    /// Keeps everything where neither `read` nor `write` is given.
    #[must_use]
    pub fn inherit(mut self) -> Self {
        self.inherit = true;
        self
    }

    /// Makes entries cover the mounts that are nested in them.
    #[must_use]
    pub fn span_nested(mut self) -> Self {
        self.span_nested = true;
        self
    }

    /// Every directory that is named, for reading or for writing. An entry has to
    /// be a directory, or not to be there yet; whoever can look should, and
    /// answer with [`DeriveError::file`] if it is not.
    ///
    /// # Errors
    ///
    /// [`DeriveError`] for an entry that is no path.
    pub fn entries(&self) -> Result<Vec<VPath>, DeriveError> {
        let mut entries = Vec::new();
        for typed in self.read.iter().chain(&self.write).flatten() {
            entries.push(entry(typed)?);
        }
        entries.sort_unstable();
        entries.dedup();
        Ok(entries)
    }

    pub(super) fn count(&self) -> usize {
        self.read.iter().chain(&self.write).map(Vec::len).sum()
    }
}

/// The path that a typed entry means.
pub(super) fn entry(typed: &str) -> Result<VPath, DeriveError> {
    if spelling::climbs(typed) {
        return Err(DeriveError::Parent(Quoted::new(typed)));
    }
    spelling::path(typed).map_err(|error| DeriveError::NoPath(error.to_string()))
}

/// Why a scope cannot be derived.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeriveError {
    /// An entry has a `..` component.
    #[error("the entry {0} has a '..' component; write the directory itself")]
    Parent(Quoted),
    /// An entry is no path.
    #[error("an entry cannot be used: {0}")]
    NoPath(String),
    /// An entry is a file.
    #[error("the entry '{entry}' is a file; use its directory '{parent}'")]
    #[non_exhaustive]
    File {
        /// The entry.
        entry: VPath,
        /// The directory it is in.
        parent: VPath,
    },
    /// The scope itself does not allow an entry.
    #[error("the scope does not have this to give: {0}")]
    Refused(Refusal),
    /// There are too many entries.
    #[error(
        "there are {0} entries, more than the {DERIVE_ENTRIES} that are allowed; name directories further up"
    )]
    TooMany(usize),
    /// The scope was derived too often.
    #[error("a scope can be derived {DERIVE_DEPTH} times in a row; derive from one further up")]
    TooDeep,
}

impl DeriveError {
    /// The entry turned out to be a file.
    pub fn file(entry: VPath) -> Self {
        let parent = entry.parent().unwrap_or_default();
        Self::File { entry, parent }
    }
}

impl From<DeriveError> for Error {
    fn from(error: DeriveError) -> Self {
        match error {
            DeriveError::Refused(refusal) => refusal.into(),
            DeriveError::NoPath(_) => Self::new(ErrorKind::InvalidPath, error.to_string()),
            _ => Self::invalid_input(error.to_string()),
        }
    }
}
