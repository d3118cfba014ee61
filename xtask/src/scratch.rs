//! Directories that exist for a while.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// An empty directory that is removed on drop.
#[derive(Debug)]
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// Creates it in the place of one that an earlier run has left.
    pub(crate) fn at(path: PathBuf) -> Result<Self> {
        empty(&path)?;
        Ok(Self(path))
    }

    /// Creates it among the system's temporary files. `name` is unique in this process.
    pub(crate) fn temporary(name: &str) -> Result<Self> {
        let name = format!("agentbox-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Deref for Scratch {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("error: cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Creates an empty directory, after removing everything that was there.
pub(crate) fn empty(path: &Path) -> Result<()> {
    if path.exists() {
        fs::remove_dir_all(path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    fs::create_dir_all(path).with_context(|| format!("cannot make {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_empty_and_goes_away() {
        let scratch = Scratch::temporary("scratch").unwrap();
        assert!(Scratch::temporary("scratch").is_err());
        let path = scratch.join("a/b");
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("left"), "").unwrap();
        let inner = Scratch::at(path.clone()).unwrap();
        assert_eq!(fs::read_dir(&*inner).unwrap().count(), 0);
        drop(inner);
        assert!(!path.exists());
        let top = scratch.to_path_buf();
        drop(scratch);
        assert!(!top.exists());
    }
}
