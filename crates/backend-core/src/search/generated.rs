//! The directories that tools fill and a search passes by.

/// Names of directories that hold what tools made or installed: a search does not
/// enter one unless it is asked to.
///
/// In the list is what common tools create by themselves in the middle of a
/// project and fill with many files. Directories whose names as often stand for
/// work of people (`vendor`, `out`, `bin`, `coverage`) are not, and `.git` has a
/// rule of its own.
///
/// The list stands in for an ignore file, so it counts only where no `.gitignore`
/// or `.ignore` holds a rule: those say better what is generated, and a repository
/// may well keep sources in `build`. [`Walk`](super::Walk) has the whole rule.
pub const GENERATED_DIRECTORIES: [&str; 12] = [
    ".eggs",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "build",
    "dist",
    "node_modules",
    "target",
    "venv",
];

/// Whether a directory of this name is one of [`GENERATED_DIRECTORIES`].
pub fn is_generated(name: &str) -> bool {
    GENERATED_DIRECTORIES.contains(&name)
}

/// Whether a path, or one without its first slash, leads through a generated
/// directory.
pub(super) fn leads_through_generated(path: &str) -> bool {
    path.split('/').any(is_generated)
}
