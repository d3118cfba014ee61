//! Functions that Markdown names as `PATH.rs::NAME`, such as tests, must exist.

use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;

/// Reports the functions named in one file that do not exist.
///
/// `read` is called with paths from the root of the repository.
pub(super) fn check(file: &TextFile, read: &dyn Fn(&str) -> Option<String>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in file.text.lines().enumerate() {
        for (path, name) in named(line) {
            let problem = match read(path) {
                None => format!("`{path}` is named here and is not there"),
                Some(text) if !text.contains(&format!("fn {name}(")) => {
                    format!("`{path}` has no function `{name}`")
                }
                Some(_) => continue,
            };
            found.push(Finding::error(&file.path, problem).at(index));
        }
    }
    found
}

/// Returns the files and functions in code spans of a line.
fn named(line: &str) -> Vec<(&str, &str)> {
    let spans = line.split('`').skip(1).step_by(2);
    let name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let pairs = spans.filter_map(|span| span.split_once(".rs::").map(|(_, name)| (span, name)));
    pairs
        .filter(|(_, function)| !function.is_empty() && name(function))
        .map(|(span, function)| (&span[..span.len() - function.len() - 2], function))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::text_file;

    #[test]
    fn functions_that_are_named_must_exist() {
        let read = |path: &str| (path == "a/b.rs").then(|| "async fn one() {}\n".to_owned());
        let messages = |text: &str| -> Vec<String> {
            let found = check(&text_file("docs/x.md", text), &read);
            found.iter().map(ToString::to_string).collect()
        };
        for fine in [
            "| `a/b.rs::one` |",
            "`std::fs`, `c.rs`, a/b.rs::two, `a/b.rs::two()`",
        ] {
            assert!(messages(fine).is_empty(), "{fine}");
        }
        let found = messages("x\n| `a/b.rs::one`, `a/b.rs::on` | `c.rs::one`\n");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].contains("no function `on`"), "{found:?}");
        assert!(found[1].contains("`c.rs` is named here"), "{found:?}");
    }
}
