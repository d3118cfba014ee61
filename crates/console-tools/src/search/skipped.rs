//! What a search passed over, and how to include it.

use backend_core::ops::Skipped;

/// One line about what a search that found nothing passed over; empty if that is
/// nothing. `hidden` is the argument that includes hidden files.
pub(super) fn note(skipped: &Skipped, hidden: &str) -> String {
    let counted = |count: u64, what: &str| {
        let plural = if count == 1 { "y" } else { "ies" };
        format!("{count} {what} entr{plural}")
    };
    let mut parts = Vec::new();
    if skipped.hidden > 0 {
        parts.push(format!(
            "{} ({hidden} includes them)",
            counted(skipped.hidden, "hidden")
        ));
    }
    if skipped.ignored > 0 {
        let entries = counted(skipped.ignored, "ignored");
        parts.push(format!("{entries} (ignored=true includes them)"));
    }
    parts.extend(generated(skipped));
    for (count, what) in [
        (skipped.binary, "binary"),
        (skipped.unreadable, "unreadable"),
        (skipped.not_utf8, "oddly named"),
    ] {
        if count > 0 {
            parts.push(counted(count, what));
        }
    }
    if skipped.long_line > 0 {
        let entries = counted(skipped.long_line, "too long-lined");
        parts.push(entries);
    }
    if parts.is_empty() {
        return String::new();
    }
    format!("\nNot searched: {}.", parts.join(", "))
}

/// One line about what a search passed over that found something: directories in
/// which there may be more, although no rule of the tree speaks of them.
pub(super) fn warning(skipped: &Skipped) -> String {
    let generated = generated(skipped);
    generated.map_or_else(String::new, |part| format!("\nNot searched: {part}."))
}

fn generated(skipped: &Skipped) -> Option<String> {
    let directories = match skipped.generated {
        0 => return None,
        1 => "directory",
        _ => "directories",
    };
    Some(format!(
        "{} generated {directories} such as node_modules (ignored=true or naming one includes them)",
        skipped.generated
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_how_to_include_what_was_left_out() {
        let mut skipped = Skipped::default();
        assert_eq!(note(&skipped, "hidden=true"), "");
        skipped.hidden = 1;
        skipped.ignored = 2;
        skipped.binary = 3;
        assert_eq!(
            note(&skipped, "hidden=true"),
            "\nNot searched: 1 hidden entry (hidden=true includes them), 2 ignored entries \
             (ignored=true includes them), 3 binary entries."
        );
        assert_eq!(warning(&skipped), "");
        let mut skipped = Skipped::default();
        skipped.generated = 1;
        let line = "\nNot searched: 1 generated directory such as node_modules (ignored=true or \
                    naming one includes them).";
        assert_eq!(note(&skipped, "hidden=true"), line);
        assert_eq!(warning(&skipped), line);
    }
}
