//! Relative links in Markdown files point to files that exist.

use crate::markdown;
use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;

/// Reports the links of one file whose target is missing.
///
/// `exists` is called with paths from the root of the repository.
pub(super) fn check(file: &TextFile, exists: &dyn Fn(&str) -> bool) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in markdown::prose_lines(&file.text) {
        for target in markdown::link_targets(line) {
            let is_broken = markdown::is_relative(target)
                && markdown::resolve(file.dir(), target).is_none_or(|path| !exists(&path));
            if is_broken {
                let message = format!("the link `{target}` points to nothing");
                found.push(Finding::error(&file.path, message).at(index));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::findings::shown;
    use crate::tidy::text_file;

    fn check_text(path: &str, text: &str) -> Vec<String> {
        let exists = |path: &str| ["README.md", "docs/a.md", "docs", ""].contains(&path);
        shown(&check(&text_file(path, text), &exists))
    }

    #[test]
    fn links_that_lead_somewhere_are_fine() {
        let text = "[a](docs/a.md) and [b](./docs/a.md#part \"title\"), [c](<docs/a.md>)\n\
                    [web](https://example.org/x) [mail](mailto:a@b.c) [here](#part) [root](/docs)\n\
                    [item](crate::Backend)\n\n[label]: docs/a.md\n";
        assert_eq!(check_text("README.md", text), [""; 0]);
        assert_eq!(
            check_text("docs/a.md", "[up](../README.md), [self](a.md), [dir](..)\n"),
            [""; 0]
        );
    }

    #[test]
    fn broken_links_are_found_with_their_line() {
        let text = "text\n[a](docs/b.md) ![image](x.png)\n\n[label]: nowhere.md\n";
        let expected = [
            "README.md:2: error: the link `docs/b.md` points to nothing",
            "README.md:2: error: the link `x.png` points to nothing",
            "README.md:4: error: the link `nowhere.md` points to nothing",
        ];
        assert_eq!(check_text("README.md", text), expected);
    }

    #[test]
    fn a_link_out_of_the_repository_is_broken() {
        assert_eq!(check_text("docs/a.md", "[x](../../README.md)\n").len(), 1);
        assert_eq!(check_text("README.md", "[x](../README.md)\n").len(), 1);
    }

    #[test]
    fn code_holds_no_links() {
        let text = "`[a](b.md)` and ``x``\n\n````md\n```\n[a](b.md)\n```\n[c](d.md)\n````\n~~~\n[e](f)\n~~~\n";
        assert_eq!(check_text("README.md", text), [""; 0]);
    }
}
