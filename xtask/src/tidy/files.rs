//! The text files of the repository, read once for all rules.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

/// Extensions of the files that the rules check.
const EXTENSIONS: &[&str] = &["md", "rs"];

/// Directories with generated files, by path or by name.
const SKIPPED: &[&str] = &[
    "target",
    "node_modules",
    "fuzz/artifacts",
    "fuzz/corpus",
    "fuzz/coverage",
];

/// A file of the repository.
#[derive(Debug)]
pub(crate) struct TextFile {
    /// The path from the root of the repository, with `/` as the separator.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl TextFile {
    pub(crate) fn has_extension(&self, extension: &str) -> bool {
        Path::new(&self.path)
            .extension()
            .is_some_and(|found| found == extension)
    }

    /// Returns the directory of the file; empty for the root.
    pub(super) fn dir(&self) -> &str {
        self.path.rsplit_once('/').map_or("", |(dir, _)| dir)
    }
}

/// Reads the source and Markdown files under `root`, sorted by path.
pub(crate) fn read(root: &Path) -> Result<Vec<TextFile>> {
    let mut paths = Vec::new();
    walk(root, root, &mut paths)?;
    paths.sort();
    let read_one = |path: PathBuf| {
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(TextFile {
            path: relative(root, &path),
            text,
        })
    };
    paths.into_iter().map(read_one).collect()
}

/// Collects the paths. Symbolic links are not followed: their targets are visited at
/// their own location.
fn walk(root: &Path, dir: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(dir).with_context(|| format!("cannot list {}", dir.display()))?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let kind = entry.file_type()?;
        if kind.is_dir() && !is_skipped(&relative(root, &path)) {
            walk(root, &path, paths)?;
        } else if kind.is_file() && path.extension().is_some_and(is_read) {
            paths.push(path);
        }
    }
    Ok(())
}

fn is_read(extension: &std::ffi::OsStr) -> bool {
    EXTENSIONS.iter().any(|known| extension == *known)
}

fn is_skipped(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.starts_with('.') || SKIPPED.contains(&name) || SKIPPED.contains(&path)
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    path.iter()
        .map(|part| part.to_string_lossy())
        .collect::<Vec<_>>()
        .join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::text_file;

    #[test]
    fn output_of_tools_and_hidden_directories_are_skipped() {
        for path in "target crates/x/target .git docs/.cache fuzz/corpus".split(' ') {
            assert!(is_skipped(path), "{path}");
        }
        for path in ["crates", "docs/corpus", "xtask/src"] {
            assert!(!is_skipped(path), "{path}");
        }
    }

    #[test]
    fn directory_of_a_file() {
        assert_eq!(text_file("a/b/c.md", "").dir(), "a/b");
        assert_eq!(text_file("README.md", "").dir(), "");
    }

    #[test]
    fn reads_this_crate() {
        let files = read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
        let main = files
            .iter()
            .find(|file| file.path == "src/main.rs")
            .unwrap();
        assert!(main.has_extension("rs") && !main.text.is_empty());
    }
}
