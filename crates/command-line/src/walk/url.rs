//! URLs among the words of a command.

use crate::word::Word;

/// Splits `text` before the URL in it, if it has one. `x://../y` does not count, since
/// there may be a directory called `x:`; neither does a `file:` URL, which is a path.
pub(super) fn address(text: &str) -> Option<(&str, &str)> {
    let (before, rest) = text.split_once("://")?;
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
    let start = before.trim_end_matches(is_scheme).len();
    let (before, address) = text.split_at(start);
    let letter = address.starts_with(|c: char| c.is_ascii_alphabetic());
    let file = address.get(..5)?.eq_ignore_ascii_case("file:");
    (letter && !file && !rest.split('/').any(|name| name == "..")).then_some((before, address))
}

/// Returns the path of a `file:` URL.
pub(super) fn without_scheme(word: &Word, text: &str) -> Option<Word> {
    let scheme = text.get(..7)?;
    scheme
        .eq_ignore_ascii_case("file://")
        .then(|| word.strip_prefix(scheme))?
}
