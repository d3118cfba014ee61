//! Command lines in the files of `tests/corpus`.

use std::path::Path;

/// Returns the lines of a file, each with its section.
pub(crate) fn corpus(name: &str) -> Vec<(String, String)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/corpus")
        .join(name);
    let text = std::fs::read_to_string(path).unwrap();
    let mut section = String::new();
    let mut entries = Vec::new();
    for line in text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
    {
        match line.strip_prefix('@') {
            Some(name) => section = name.to_owned(),
            None => entries.push((section.clone(), line.replace("\\n", "\n"))),
        }
    }
    entries
}
