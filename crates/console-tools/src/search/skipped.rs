//! Reports entries that a search skipped, and how to include them.

use backend_core::ops::{Entry, LsOptions, Skipped};
use backend_core::search::{Glob, is_generated};
use backend_core::{Backend as _, VPath};

use crate::context::Context;

/// Maximum number of generated directories that are named.
const NAMED: usize = 5;

/// Maximum number of entries of the searched directory that are examined.
const LOOKED_AT: usize = 1_000;

/// Where a search starts and what it asks for, as far as that decides which directories
/// it skips.
pub(super) struct Reach {
    start: VPath,
    hidden: bool,
    pattern: Option<Glob>,
}

impl Reach {
    /// Creates the reach of a search. Its pattern is valid, or the search fails anyway.
    pub(super) fn new(start: &VPath, hidden: bool, pattern: Option<&str>) -> Self {
        Self {
            start: start.clone(),
            hidden,
            pattern: pattern.and_then(|pattern| Glob::new(pattern).ok()),
        }
    }

    /// Returns names of skipped generated directories: those directly inside the topmost
    /// directory where the pattern matches anything. It is empty if there are none, or if
    /// the search was `truncated`, because it may have ended before it met them.
    pub(super) async fn generated_names(
        &self,
        context: &Context,
        skipped: &Skipped,
        truncated: bool,
    ) -> Vec<String> {
        if skipped.generated == 0 || truncated {
            return Vec::new();
        }
        let options = LsOptions::default().limit(LOOKED_AT);
        let Ok(listing) = context.non_interactive.ls(&self.top(), options).await else {
            return Vec::new();
        };
        let entries = listing.entries.iter().filter(|entry| self.skips(entry));
        let names = entries.map(|entry| entry.name().to_owned());
        let counted = usize::try_from(skipped.generated).unwrap_or(NAMED);
        names.take(counted.min(NAMED)).collect()
    }

    /// Returns the directory that contains everything the pattern can match.
    fn top(&self) -> VPath {
        let Some(pattern) = &self.pattern else {
            return self.start.clone();
        };
        let base = if pattern.is_absolute() {
            VPath::root()
        } else {
            self.start.clone()
        };
        let top = base.join(pattern.literal_prefix()).ok();
        let top = top.filter(|top| top.starts_with(&self.start));
        top.unwrap_or_else(|| self.start.clone())
    }

    /// Whether the search skips an entry as a generated directory, and for no other reason.
    fn skips(&self, entry: &Entry) -> bool {
        let name = entry.name();
        let is_named = |pattern: &Glob| pattern.names_directory(name);
        let is_requested = |pattern: &Glob| pattern.names_hidden(name);
        let is_reached = |pattern: &Glob| pattern.may_match_beneath(&self.start, &entry.path);
        let pattern = self.pattern.as_ref();
        let is_visible = !name.starts_with('.') || self.hidden || pattern.is_some_and(is_requested);
        is_generated(name)
            && entry.is_dir()
            && !entry.link
            && is_visible
            && pattern.is_none_or(is_reached)
            && !pattern.is_some_and(is_named)
    }
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
