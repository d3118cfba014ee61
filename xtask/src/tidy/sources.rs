//! Rules for Rust source files: module docs, white space, size, leftovers.

use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;
use crate::tidy::lexer::blank_strings;

/// Number of lines before a file's tests above which it should, or must, be split.
const WARN_LINES: usize = 500;
const MAX_LINES: usize = 800;

/// Markers of unfinished work.
const LEFTOVERS: &[&str] = &["todo!(", "unimplemented!(", concat!("FIX", "ME")];

/// Applies all rules to one source file.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let path = file.path.as_str();
    let mut found = check_white_space(file);
    if needs_module_doc(path) && !has_module_doc(&file.text) {
        found.push(Finding::error(path, "does not begin with a `//!` comment"));
    }
    // String literals are not code: an example may show an unfinished program.
    let code = blank_strings(&file.text);
    found.extend(check_ignored(path, &code));
    found.extend(check_module_paths(path, &code));
    if !is_test_source(path) {
        let lines = lines_before_tests(&code);
        found.extend(check_size(path, lines.len()));
        found.extend(check_leftovers(path, &lines));
    }
    found
}

/// Reports the lines for which `is_wrong` returns `true`.
fn lines_that(
    path: &str,
    code: &str,
    is_wrong: impl Fn(&str) -> bool,
    message: &str,
) -> Vec<Finding> {
    let wrong = code
        .split('\n')
        .enumerate()
        .filter(|(_, line)| is_wrong(line));
    wrong
        .map(|(index, _)| Finding::error(path, message).at(index))
        .collect()
}

fn check_white_space(file: &TextFile) -> Vec<Finding> {
    let is_trailing = |line: &str| line.ends_with([' ', '\t', '\r']);
    let message = "white space at the end of the line";
    let mut found = lines_that(&file.path, &file.text, is_trailing, message);
    if !file.text.ends_with('\n') {
        let message = "no newline at the end of the file";
        found.push(Finding::error(&file.path, message));
    }
    found
}

/// Checks that every ignored test has a reason, which is printed when the test is
/// skipped.
fn check_ignored(path: &str, code: &str) -> Vec<Finding> {
    let is_silent = |line: &str| {
        let line = line.trim();
        line.starts_with("#[ignore]")
            || (line.starts_with("#[cfg_attr(") && line.ends_with(", ignore)]"))
    };
    lines_that(path, code, is_silent, "`#[ignore]` needs a reason")
}

/// Checks that modules are in the files where the compiler looks for them.
fn check_module_paths(path: &str, code: &str) -> Vec<Finding> {
    if !path.starts_with("crates/") && !path.starts_with("xtask/") {
        return Vec::new();
    }
    let is_named = |line: &str| line.trim_start().starts_with("#[path");
    let message = "`#[path]` hides where a module is; put it where its name says";
    lines_that(path, code, is_named, message)
}

fn check_size(path: &str, n_lines: usize) -> Option<Finding> {
    let message = |limit| format!("{n_lines} lines before the tests, limit {limit}");
    if n_lines > MAX_LINES {
        Some(Finding::error(path, message(MAX_LINES)))
    } else if n_lines > WARN_LINES {
        Some(Finding::warning(path, message(WARN_LINES)))
    } else {
        None
    }
}

fn check_leftovers(path: &str, lines: &[&str]) -> Vec<Finding> {
    let leftover = |(index, line): (usize, &&str)| {
        let found = LEFTOVERS
            .iter()
            .find(|leftover| line.contains(**leftover))?;
        Some(Finding::error(path, format!("unfinished: `{found}`")).at(index))
    };
    lines.iter().enumerate().filter_map(leftover).collect()
}

/// Returns the lines before the file's test module.
///
/// Only a module with a body counts: `#[cfg(test)] mod tests;` may be at the top.
pub(crate) fn lines_before_tests(code: &str) -> Vec<&str> {
    let mut lines: Vec<_> = code.lines().collect();
    let is_test_module = |pair: &[&str]| matches!(pair, ["#[cfg(test)]", item] if item.contains("mod ") && item.ends_with('{'));
    let end = lines.windows(2).position(is_test_module);
    lines.truncate(end.unwrap_or(lines.len()));
    lines
}

fn needs_module_doc(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    matches!(
        parts[..],
        ["crates", _, "src", ..] | ["examples", ..] | ["xtask", "src", ..]
    )
}

/// Whether a source is only for tests, benchmarks or fuzzing.
pub(crate) fn is_test_source(path: &str) -> bool {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let is_test_dir = |part| matches!(part, "tests" | "benches" | "fuzz");
    dir.split('/').any(is_test_dir) || name == "tests.rs" || name.ends_with("_tests.rs")
}

/// Whether the first item after inner attributes is a module doc.
///
/// An included README counts, because it is compiled and shown as the doc.
fn has_module_doc(text: &str) -> bool {
    let mut rest = text.trim_start();
    while rest.starts_with("#![") {
        let Some(end) = attribute_end(rest) else {
            return false;
        };
        // A README may be the front page only with the feature that its program needs.
        if rest[..end].contains("doc = include_str!(") {
            return true;
        }
        rest = rest[end..].trim_start();
    }
    rest.starts_with("//!")
}

/// Returns the index after the bracket that closes the attribute at the start of
/// `text`.
///
/// Brackets in string literals are counted too, because attributes hardly ever contain
/// unbalanced ones.
fn attribute_end(text: &str) -> Option<usize> {
    let mut depth = 0;
    for (index, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' if depth == 1 => return Some(index + 1),
            b']' => depth -= 1,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests;
