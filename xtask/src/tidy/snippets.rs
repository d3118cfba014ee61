//! Code shown in Markdown equals the file it was taken from.
//!
//! A line `<!-- code: PATH -->` before a fenced block ties the block to a file,
//! or to the part of it between `// docs:start` and `// docs:end`. What
//! is shown is thus code that is compiled and tested elsewhere.

use std::ops::Range;

use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;
use crate::tidy::links::fence_marker;

const START: &str = "// docs:start";
const END: &str = "// docs:end";

/// Finds the text of a file from its path under the root of the repository.
type Read<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reports the blocks that differ from their file, and ties that lead nowhere.
pub(super) fn check(file: &TextFile, read: Read<'_>) -> Vec<Finding> {
    let lines: Vec<_> = file.text.lines().collect();
    let check_one = |tie: Tie<'_>| {
        let finding = |message: String| Finding::error(&file.path, message).at(tie.line);
        let Some(block) = &tie.block else {
            return Some(finding("no fenced block follows".to_owned()));
        };
        let Some(source) = read(tie.path) else {
            return Some(finding(format!("there is no file `{}`", tie.path)));
        };
        let is_same = lines[block.clone()] == excerpt(&source);
        let message = || {
            format!(
                "the block differs from {}: run `cargo xtask tidy --fix`",
                tie.path
            )
        };
        (!is_same).then(|| finding(message()))
    };
    ties(&lines).into_iter().filter_map(check_one).collect()
}

/// The text of the file with every block that has a source taken from it anew.
pub(super) fn fix(file: &TextFile, read: Read<'_>) -> String {
    let mut lines: Vec<_> = file.text.lines().map(str::to_owned).collect();
    let shown: Vec<_> = file.text.lines().collect();
    // From the end, so that the ranges of the earlier blocks stay right.
    for tie in ties(&shown).into_iter().rev() {
        if let (Some(block), Some(source)) = (tie.block, read(tie.path)) {
            lines.splice(block, excerpt(&source));
        }
    }
    let mut text = lines.join("\n");
    if file.text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// A comment that names a file, and the lines inside the block after it.
#[derive(Debug)]
struct Tie<'a> {
    line: usize,
    path: &'a str,
    block: Option<Range<usize>>,
}

fn ties<'a>(lines: &[&'a str]) -> Vec<Tie<'a>> {
    let tie = |(line, text): (usize, &&'a str)| {
        let path = text
            .trim()
            .strip_prefix("<!-- code:")?
            .strip_suffix("-->")?
            .trim();
        Some(Tie {
            line,
            path,
            block: block_after(lines, line),
        })
    };
    lines.iter().enumerate().filter_map(tie).collect()
}

/// The inside of the fenced block that is the first thing after the given line.
fn block_after(lines: &[&str], line: usize) -> Option<Range<usize>> {
    let open = (line + 1..lines.len()).find(|index| !lines[*index].trim().is_empty())?;
    let marker = fence_marker(lines[open])?;
    let close = (open + 1..lines.len()).find(|index| lines[*index].trim() == marker)?;
    Some(open + 1..close)
}

/// The lines between the markers without their common indentation, or the whole file.
fn excerpt(source: &str) -> Vec<String> {
    let lines: Vec<_> = source.lines().collect();
    let position = |marker: &str| lines.iter().position(|line| line.trim() == marker);
    let shown = match (position(START), position(END)) {
        (Some(start), Some(end)) if start < end => &lines[start + 1..end],
        _ => &lines[..],
    };
    let filled = shown.iter().filter(|line| !line.trim().is_empty());
    let indent = filled
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    shown
        .iter()
        .map(|line| line.get(indent..).unwrap_or_default().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::findings::shown;
    use crate::tidy::text_file;

    const SOURCE: &str = "//! Doc.\n\nfn main() {\n    // docs:start\n    let a = 1;\n\n    if a > 0 {\n        f();\n    }\n    // docs:end\n}\n";
    const SHOWN: &str = "let a = 1;\n\nif a > 0 {\n    f();\n}\n";

    fn read(path: &str) -> Option<String> {
        match path {
            "examples/a.rs" => Some(SOURCE.to_owned()),
            "examples/whole.rs" => Some("fn f() {}\n".to_owned()),
            _ => None,
        }
    }

    fn page(path: &str, block: &str) -> TextFile {
        let text = format!("# T\n\n<!-- code: {path} -->\n```rust\n{block}```\n\nEnd.\n");
        text_file("README.md", &text)
    }

    fn check_page(page: &TextFile) -> Vec<String> {
        shown(&check(page, &read))
    }

    #[test]
    fn equal_blocks_are_fine() {
        assert_eq!(check_page(&page("examples/a.rs", SHOWN)), [""; 0]);
        assert_eq!(
            check_page(&page("examples/whole.rs", "fn f() {}\n")),
            [""; 0]
        );
    }

    #[test]
    fn a_different_block_is_reported_and_fixed() {
        for block in [
            "let a = 2;\n",
            "",
            "let a = 1;\n\nif a > 0 {\n    f();\n}\n\n",
        ] {
            let page = page("examples/a.rs", block);
            let found = check_page(&page);
            let expected = "README.md:3: error: the block differs from examples/a.rs: \
                            run `cargo xtask tidy --fix`";
            assert_eq!(found, [expected]);
            assert_eq!(fix(&page, &read), self::page("examples/a.rs", SHOWN).text);
        }
    }

    #[test]
    fn all_blocks_of_a_page_are_fixed() {
        let old = page("examples/a.rs", "x\n").text + &page("examples/whole.rs", "y\nz\n").text;
        let new =
            page("examples/a.rs", SHOWN).text + &page("examples/whole.rs", "fn f() {}\n").text;
        assert_eq!(fix(&text_file("README.md", &old), &read), new);
    }

    #[test]
    fn a_tie_needs_a_block_and_a_file() {
        let missing = page("examples/no.rs", "x\n");
        assert_eq!(
            check_page(&missing),
            ["README.md:3: error: there is no file `examples/no.rs`"]
        );
        assert_eq!(fix(&missing, &read), missing.text);
        let bare = text_file("README.md", "<!-- code: examples/a.rs -->\ntext\n");
        assert_eq!(
            check_page(&bare),
            ["README.md:1: error: no fenced block follows"]
        );
    }
}
