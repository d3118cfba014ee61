//! Separates string literals from code, so that rules about code do not check text.

/// Returns the source with every string literal replaced by spaces. Line numbers are
/// kept.
pub(super) fn blank_strings(source: &str) -> String {
    let mut blanked = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        let string = string_len(rest);
        let len = string
            .or_else(|| opaque_len(rest))
            .unwrap_or(first.len_utf8());
        let (token, after) = rest.split_at(len);
        if string.is_some() {
            blanked.extend(token.chars().map(|c| if c == '\n' { c } else { ' ' }));
        } else {
            blanked.push_str(token);
        }
        rest = after;
    }
    blanked
}

/// Returns the length of the string literal at the start of `source`. Prefixes like `b`
/// are not part of it.
fn string_len(source: &str) -> Option<usize> {
    if let Some(text) = source.strip_prefix('"') {
        return Some(1 + quoted_len(text, '"'));
    }
    let text = source.strip_prefix('r')?;
    let hashes = &text[..text.len() - text.trim_start_matches('#').len()];
    let text = text[hashes.len()..].strip_prefix('"')?;
    let end = format!("\"{hashes}");
    let len = text
        .find(&end)
        .map_or(text.len(), |index| index + end.len());
    Some(source.len() - text.len() + len)
}

/// Returns the length of the comment or character literal at the start of `source`, in
/// which a quote does not start a string.
fn opaque_len(source: &str) -> Option<usize> {
    if source.starts_with("//") {
        return Some(source.find('\n').unwrap_or(source.len()));
    }
    if source.starts_with("/*") {
        return Some(source.find("*/").map_or(source.len(), |index| index + 2));
    }
    let text = source.strip_prefix('\'')?;
    let mut chars = text.chars();
    let is_escaped = chars.next()? == '\\';
    // Neither escaped nor closed after one character: a lifetime.
    (is_escaped || chars.next()? == '\'').then(|| 1 + quoted_len(text, '\''))
}

/// Returns the length up to and including the closing quote.
fn quoted_len(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (index, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if c == quote => return index + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &str) {
        assert_eq!(blank_strings(source), expected, "{source:?}");
    }

    #[test]
    fn strings_become_spaces() {
        check(r#"f("a"); g()"#, "f(   ); g()");
        check(r#"f("a\"b", c)"#, "f(      , c)");
        check("f(\"a\nb\")", "f(  \n  )");
        check("f(\"é\")", "f(   )");
        check("b\"a\" c", "b    c");
    }

    #[test]
    fn raw_strings_end_at_their_own_mark() {
        check("r\"a\\\" b", "      b");
        check("r##\"a\"# b\"## c", "             c");
        check("r#type + for", "r#type + for");
    }

    #[test]
    fn a_quote_in_a_comment_or_character_opens_nothing() {
        check("// don't \"\nf(\"a\")", "// don't \"\nf(   )");
        check("/* \" */ f(\"a\")", "/* \" */ f(   )");
        check("'\"' '\\'' '\\\"' \"a\"", "'\"' '\\'' '\\\"'    ");
        check("fn f<'a>(x: &'a str) \"a\"", "fn f<'a>(x: &'a str)    ");
    }

    #[test]
    fn what_is_not_closed_goes_to_the_end() {
        check("\"a", "  ");
        check("r#\"a", "    ");
        check("/* \"a\"", "/* \"a\"");
        check("'", "'");
    }
}
