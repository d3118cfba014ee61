//! Calculations in words: `$((...))` and indexes.

/// Whether a calculation may set a variable: `x = 1`, `x += 1`, `x++`.
pub(super) fn assigns(text: &str) -> bool {
    // These would be taken for a shift and a comparison.
    let shifted = text.contains("<<=") || text.contains(">>=");
    let compares = ["==", "!=", "<=", ">="];
    let plain = compares
        .iter()
        .fold(text.to_owned(), |text, mark| text.replace(mark, " "));
    shifted || plain.contains('=') || plain.contains("++") || plain.contains("--")
}

/// Returns the variables that a calculation may set.
pub(crate) fn assigned(text: &str) -> Vec<String> {
    if assigns(text) {
        names(text).collect()
    } else {
        Vec::new()
    }
}

/// Returns the words of a calculation that may be names.
pub(super) fn names(text: &str) -> impl Iterator<Item = String> {
    let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
    text.split(move |c: char| !is_name(c)).map(str::to_owned)
}
