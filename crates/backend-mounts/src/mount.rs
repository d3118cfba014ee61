//! [`Mount`]: one host directory in the tree, and the permissions there.

use std::path::PathBuf;

use backend_core::VPath;
use permissions::OpClass;
use serde::{Deserialize, Serialize};

use crate::error::{self, MountError};

/// The access mode of a mount.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Read-only.
    #[default]
    Ro,
    /// Readable and writable.
    Rw,
}

/// A host directory, its path in the tree, and the permissions there.
///
/// ```
/// use backend_mounts::{Mode, Mount};
///
/// let mount = Mount::new("/srv/notes", "/notes/")?
///     .mode(Mode::Rw)
///     .suffixes([".md", ".txt"])
///     .max_file_bytes(100_000)
///     .write_approval(false);
/// assert_eq!(mount.mount_point.as_str(), "/notes");
/// # Ok::<(), backend_mounts::MountError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Mount {
    /// The directory on the host, as written. Nothing is expanded, and it need not exist.
    pub host_path: PathBuf,
    /// The path in the tree. When parsed from text, backslashes become slashes,
    /// surrounding white space is dropped, empty text means `/`, and the path is
    /// normalized. A `..` above the root is an error, because a mount that became `/` by
    /// mistake would open more than intended.
    #[serde(with = "point_text")]
    pub mount_point: VPath,
    /// The access mode.
    #[serde(default)]
    pub mode: Mode,
    /// The files that may be used, by the last suffix of their name, such as `.md`. The
    /// case of ASCII letters does not matter, and `""` stands for names without a suffix.
    /// `None` allows every file, an empty list none. An entry without a dot, or with two,
    /// matches no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suffixes: Option<Vec<String>>,
    /// The maximum size of a file that is read or written, in bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_file_bytes: Option<u64>,
    /// Whether changes need approval.
    #[serde(default = "asks_by_default")]
    pub write_approval: bool,
    /// Whether reading and listing need approval.
    #[serde(default)]
    pub read_approval: bool,
}

pub(crate) fn asks_by_default() -> bool {
    true
}

impl Mount {
    /// Creates a read-only mount of `host_path` at `mount_point`, for files of any name
    /// and size. Reading needs no approval. Writing needs approval if the mode is changed
    /// to allow it.
    ///
    /// # Errors
    ///
    /// [`MountError::Point`] if `mount_point` is not a valid mount point.
    pub fn new(host_path: impl Into<PathBuf>, mount_point: &str) -> Result<Self, MountError> {
        Ok(Self::at(host_path, error::point(mount_point)?))
    }

    pub(crate) fn at(host_path: impl Into<PathBuf>, mount_point: VPath) -> Self {
        Self {
            host_path: host_path.into(),
            mount_point,
            mode: Mode::Ro,
            suffixes: None,
            max_file_bytes: None,
            write_approval: asks_by_default(),
            read_approval: false,
        }
    }

    backend_core::setters! {
        /// Sets the access mode.
        mode: Mode,
        /// Sets the maximum size of a file that is read or written.
        max_file_bytes: u64,
        /// Sets whether changes need approval.
        write_approval: bool,
        /// Sets whether reading and listing need approval.
        read_approval: bool,
    }

    /// Sets the suffixes of the files that may be used.
    #[must_use]
    pub fn suffixes(mut self, suffixes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.suffixes = Some(suffixes.into_iter().map(Into::into).collect());
        self
    }

    /// Returns whether a file of this name may be used.
    pub(crate) fn allows_suffix_of(&self, path: &VPath) -> bool {
        let Some(allowed) = &self.suffixes else {
            return true;
        };
        let suffix = suffix(path);
        allowed
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(suffix))
    }

    /// Returns whether operations of `class` need approval.
    pub(crate) fn asks(&self, class: OpClass) -> bool {
        match class {
            OpClass::Read => self.read_approval,
            OpClass::Write => self.write_approval,
            OpClass::Execute => false,
        }
    }
}

/// Returns the last suffix of a name with its dot, or an empty string. A dot at the start
/// or end of a name does not begin a suffix.
pub(crate) fn suffix(path: &VPath) -> &str {
    let name = path.file_name().unwrap_or_default();
    match name.rfind('.') {
        Some(dot) if dot > 0 && dot + 1 < name.len() => name.get(dot..).unwrap_or_default(),
        _ => "",
    }
}

/// Serializes a mount point as its text.
mod point_text {
    use std::borrow::Cow;

    use backend_core::VPath;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(crate) fn serialize<S: Serializer>(point: &VPath, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(point.as_str())
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<VPath, D::Error> {
        // Validated here, so that the error names the line.
        let typed = Cow::<'de, str>::deserialize(from)?;
        super::error::point(&typed).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_normalised() {
        for (typed, point) in [
            ("", "/"),
            ("  ", "/"),
            ("/", "/"),
            ("/.", "/"),
            ("/docs/", "/docs"),
            ("//docs", "/docs"),
            ("\\docs", "/docs"),
            (" /docs ", "/docs"),
            ("/a/../b", "/b"),
            ("/a/./b", "/a/b"),
        ] {
            let mount = Mount::new("/h", typed).unwrap();
            assert_eq!(mount.mount_point.as_str(), point, "{typed:?}");
        }
        for (typed, hint) in [
            ("docs", "write '/docs'"),
            (".", "does not begin with '/'"),
            ("~", "does not begin with '/'"),
            ("/a\0", "NUL"),
            ("/..", "above the root"),
            ("/a/../..", "above the root"),
        ] {
            let error = Mount::new("/h", typed).unwrap_err().to_string();
            assert!(error.contains(hint), "{typed:?}: {error}");
        }
    }

    #[test]
    fn a_suffix_begins_at_the_last_dot_within_a_name() {
        for (name, expected) in [
            ("/a.md", ".md"),
            ("/a.tar.gz", ".gz"),
            ("/A.MD", ".MD"),
            ("/x..md", ".md"),
            ("/..foo", ".foo"),
            ("/.a.b", ".b"),
            ("/README", ""),
            ("/.txt", ""),
            ("/.bashrc", ""),
            ("/b.", ""),
            ("/a.b.", ""),
            ("/...", ""),
            ("/x.d/README", ""),
            ("/", ""),
            ("/ä.é", ".é"),
        ] {
            assert_eq!(suffix(&VPath::parse(name).unwrap()), expected, "{name}");
        }
    }

    #[test]
    fn suffixes_are_compared_whole_and_without_case() {
        let takes = |allowed: &[&str], path: &str| {
            let mount = Mount::new("/h", "/").unwrap().suffixes(allowed.to_vec());
            mount.allows_suffix_of(&VPath::parse(path).unwrap())
        };
        assert!(takes(&[".md"], "/a.MD") && takes(&[".Md"], "/a.md"));
        assert!(!takes(&["md"], "/a.md"), "an entry needs its dot");
        assert!(!takes(&[".tar.gz"], "/a.tar.gz") && takes(&[".gz"], "/a.tar.gz"));
        assert!(takes(&[""], "/README") && takes(&[""], "/.bashrc") && takes(&[""], "/b."));
        assert!(!takes(&[""], "/a.md") && !takes(&[".md"], "/README"));
        assert!(!takes(&[], "/a.md") && !takes(&[], "/README"));
        assert!(!takes(&[".txt"], "/.txt"));
    }
}
