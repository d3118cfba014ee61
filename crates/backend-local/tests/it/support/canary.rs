//! A directory outside the root that must never be read or changed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::snapshot::snapshot;

/// The content of every file in a canary. No result may contain it.
pub(crate) const TOKEN: &str = "canary-2f7d1c";

/// A name in every directory of a canary. No result may contain it.
pub(crate) const ONLY: &str = "canary-only";

/// A directory outside, and a snapshot from when it was created.
pub(crate) struct Canary {
    pub(crate) path: PathBuf,
    before: BTreeMap<PathBuf, String>,
}

impl Canary {
    /// Creates a directory that looks like one that tests work with: the same
    /// names, other content.
    pub(crate) fn make(path: &Path, names: &[&str]) -> Self {
        fs::create_dir_all(path).unwrap();
        for name in names.iter().chain(&[ONLY]) {
            let file = path.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(&file, format!("{TOKEN} in {name}\n")).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        }
        Self {
            path: path.to_owned(),
            before: snapshot(path),
        }
    }

    /// Panics unless names, content, permission bits, owners and times are
    /// unchanged.
    pub(crate) fn check(&self) {
        assert_eq!(snapshot(&self.path), self.before, "the canary was touched");
    }
}
