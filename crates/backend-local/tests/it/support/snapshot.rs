//! A snapshot of a tree, to detect changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Returns everything beneath `path`, with all properties in which a change
/// would show.
pub(crate) fn snapshot(path: &Path) -> BTreeMap<PathBuf, String> {
    let mut all = BTreeMap::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path).unwrap();
        let content = if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
            String::new()
        } else if metadata.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else if metadata.is_file() {
            String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned()
        } else {
            "special".to_owned()
        };
        let line = format!(
            "{:o} {}:{} {}.{:09} {} {content}",
            metadata.mode(),
            metadata.uid(),
            metadata.gid(),
            metadata.mtime(),
            metadata.mtime_nsec(),
            metadata.nlink(),
        );
        all.insert(path, line);
    }
    all
}
