//! Directories that tools fill and a search skips by default.

/// Names of directories that hold generated or installed files. A search does not
/// enter them unless requested.
///
/// The list has the directories that common tools create on their own inside a
/// project and fill with many files. Directories whose names often hold people's
/// own work (`vendor`, `out`, `bin`, `coverage`) are not on the list, and `.git`
/// has a separate rule.
///
/// The list replaces a missing ignore file, so it applies only where no
/// `.gitignore` or `.ignore` holds a rule. Those files know better what is
/// generated, and a repository may well keep sources in `build`.
/// [`Walk`](super::Walk) has the complete rule.
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

/// Whether a path, with or without its leading slash, leads through a generated
/// directory.
pub(super) fn leads_through_generated(path: &str) -> bool {
    path.split('/').any(is_generated)
}
