//! Reports entries that a search skipped, and how to include them.

use backend_core::ops::{LsOptions, Skipped};
use backend_core::search::is_generated;
use backend_core::{Backend as _, VPath};

use crate::context::Context;

/// Maximum number of generated directories that are named.
const NAMED: usize = 5;

/// Maximum number of entries of the searched directory that are examined.
const LOOKED_AT: usize = 1_000;

/// Returns the names of generated directories directly inside the searched directory.
pub(super) async fn generated_names(
    context: &Context,
    path: &VPath,
    skipped: &Skipped,
) -> Vec<String> {
    if skipped.generated == 0 {
        return Vec::new();
    }
    let options = LsOptions::default().limit(LOOKED_AT);
    let Ok(listing) = context.non_interactive.ls(path, options).await else {
        return Vec::new();
    };
    let entries = listing.entries.into_iter();
    let entries = entries.filter(|entry| entry.is_dir() && is_generated(entry.name()));
    let names = entries.map(|entry| entry.name().to_owned());
    names.take(NAMED).collect()
}

/// Formats one line about the entries that a search without results skipped, or an
/// empty string if it skipped none. `names` are generated directories among them,
/// `hidden` is the argument that includes hidden files.
pub(super) fn note(skipped: &Skipped, names: &[String], hidden: &str) -> String {
    let counted = |count: u64, before: &str, after: &str| {
        let plural = if count == 1 { "y" } else { "ies" };
        (count > 0).then(|| format!("{count} {before}entr{plural}{after}"))
    };
    let hidden = format!(" ({hidden} includes them)");
    let parts = [
        counted(skipped.hidden, "hidden ", &hidden),
        counted(skipped.ignored, "ignored ", " (ignored=true includes them)"),
        generated(skipped, names),
        counted(skipped.binary, "binary ", ""),
        counted(skipped.unreadable, "unreadable ", ""),
        counted(skipped.not_utf8, "", " with names that are not UTF-8"),
        counted(skipped.long_line, "", " with lines that are too long"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        return String::new();
    }
    format!("\nNot searched: {}.", parts.join(", "))
}

/// Formats one line about the entries that a search with results skipped. It only
/// mentions generated directories: they may contain more matches, although no ignore
/// rule of the tree names them.
pub(super) fn warning(skipped: &Skipped, names: &[String]) -> String {
    let generated = generated(skipped, names);
    generated.map_or_else(String::new, |part| format!("\nNot searched: {part}."))
}

fn generated(skipped: &Skipped, names: &[String]) -> Option<String> {
    let directories = match skipped.generated {
        0 => return None,
        1 => "directory",
        _ => "directories",
    };
    let which = match names {
        [] => " such as node_modules".to_owned(),
        names if (names.len() as u64) < skipped.generated => {
            format!(", among them {}", names.join(", "))
        }
        names => format!(": {}", names.join(", ")),
    };
    let count = skipped.generated;
    Some(format!(
        "{count} generated {directories}{which} (ignored=true or naming one includes them)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_to_include_what_was_left_out() {
        let mut skipped = Skipped::default();
        assert_eq!(note(&skipped, &[], "hidden=true"), "");
        skipped.hidden = 1;
        skipped.ignored = 2;
        skipped.binary = 3;
        assert_eq!(
            note(&skipped, &[], "hidden=true"),
            "\nNot searched: 1 hidden entry (hidden=true includes them), 2 ignored entries \
             (ignored=true includes them), 3 binary entries."
        );
        assert_eq!(warning(&skipped, &[]), "");
        let mut skipped = Skipped::default();
        skipped.generated = 1;
        let line = "\nNot searched: 1 generated directory such as node_modules (ignored=true or \
                    naming one includes them).";
        assert_eq!(note(&skipped, &[], "hidden=true"), line);
        let names = ["build".to_owned(), "dist".to_owned()];
        skipped.generated = 2;
        let both = warning(&skipped, &names);
        assert!(
            both.contains("2 generated directories: build, dist (ignored"),
            "{both}"
        );
        skipped.generated = 7;
        let more = warning(&skipped, &names);
        assert!(
            more.contains("7 generated directories, among them build, dist (ig"),
            "{more}"
        );
        skipped.generated = 1;
        assert_eq!(warning(&skipped, &[]), line);
    }
}
