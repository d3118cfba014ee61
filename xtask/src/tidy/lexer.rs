//! Separates string literals from code, so that rules about code do not check text.

use std::ops::Range;

use proc_macro2::{TokenStream, TokenTree};

/// Returns the source with every string literal replaced by spaces. Line numbers are
/// kept. A text that is not Rust stays as it is.
pub(super) fn blank_strings(source: &str) -> String {
    let tokens: TokenStream = source.parse().unwrap_or_default();
    let mut blanked = String::with_capacity(source.len());
    let mut end = 0;
    for string in strings(tokens, source) {
        blanked.push_str(&source[end..string.start]);
        end = string.end;
        let text = source[string].chars();
        blanked.extend(text.map(|c| if c == '\n' { c } else { ' ' }));
    }
    blanked + &source[end..]
}

/// Returns the byte ranges of all string literals, in order.
fn strings(tokens: TokenStream, source: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for token in tokens {
        match token {
            TokenTree::Group(group) => found.extend(strings(group.stream(), source)),
            TokenTree::Literal(literal) => {
                // A doc comment and a character are literals too.
                let range = literal.span().byte_range();
                let text = source[range.clone()].trim_start_matches(['b', 'c', 'r', '#']);
                found.extend(text.starts_with('"').then_some(range));
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
    found
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
        check("é(\"é\")", "é(   )");
        check("b\"a\" c", "     c");
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
        check("/// don't \"\nf(\"a\")", "/// don't \"\nf(   )");
        check("/* \" */ f(\"a\")", "/* \" */ f(   )");
        check("'\"' '\\'' '\\\"' \"a\"", "'\"' '\\'' '\\\"'    ");
        check("fn f<'a>(x: &'a str) \"a\"", "fn f<'a>(x: &'a str)    ");
    }

    #[test]
    fn a_text_that_is_not_rust_stays() {
        for text in ["\"a", "r#\"a", "/* \"a\"", "'", "f(\"a\""] {
            check(text, text);
        }
    }
}
