//! The wording of comments: a doc comment names its subject, and a comment names the
//! party it speaks of.

use crate::tidy::files::TextFile;
use crate::tidy::findings::Finding;

/// Words that leave open which program, caller or user is meant.
const VAGUE: &[&str] = &[
    "anybody",
    "everybody",
    "nobody",
    "somebody",
    "whoever",
    "whom",
];

/// Reports doc comments that open with "What", and comments with a vague word.
pub(super) fn check(file: &TextFile) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut is_inside_doc = false;
    for (index, line) in file.text.lines().enumerate() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or(line.strip_prefix("//!"));
        if !is_inside_doc && doc.is_some_and(|text| text.trim_start().starts_with("What ")) {
            let message = "a doc comment opens with \"What\"; name the thing, or begin with a verb";
            found.push(Finding::error(&file.path, message).at(index));
        }
        is_inside_doc = doc.is_some();
        if let Some(word) = vague(line) {
            let message = format!("the comment says \"{word}\"; name the caller, user or program");
            found.push(Finding::error(&file.path, message).at(index));
        }
    }
    found
}

/// Returns the first vague word of a comment line. Quoted words are examples.
fn vague(line: &str) -> Option<&'static str> {
    let comment = line.strip_prefix("//")?;
    let mut words = comment.split(|c: char| c.is_whitespace() || ".,;:()".contains(c));
    words.find_map(|word| {
        VAGUE
            .iter()
            .find(|vague| word.eq_ignore_ascii_case(vague))
            .copied()
    })
}

#[cfg(test)]
mod tests {
    use super::check;
    use crate::tidy::text_file;

    fn messages(text: &str) -> usize {
        check(&text_file("crates/a/src/lib.rs", text)).len()
    }

    #[test]
    fn a_doc_comment_names_its_subject() {
        assert_eq!(messages("/// What was found.\nstruct Found;\n"), 1);
        assert_eq!(messages("    //! What this does.\n"), 1);
        assert_eq!(
            messages("/// The result of a search.\n/// What is left out is counted.\n"),
            0
        );
        assert_eq!(messages("// What follows is sorted.\n"), 0);
    }

    #[test]
    fn a_comment_names_the_party() {
        assert_eq!(messages("// Whoever comes first wins.\n"), 1);
        assert_eq!(messages("/// Removes it, so that nobody waits.\n"), 1);
        assert_eq!(messages("// The user `nobody` owns it.\n"), 0);
        assert_eq!(messages("let a = \"nobody\";\n"), 0);
    }
}
