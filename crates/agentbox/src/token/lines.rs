//! The text of a token file: one token, or lines with a name and a token.

use console_mcp::Token;

use crate::owner::{MAX_NAME, is_name};

/// Minimum length of a token.
const MIN_LEN: usize = 16;

/// Reads the tokens. An error says what is wrong in which line, and never holds a word of
/// the text: any of them may be a token.
pub(super) fn parse(text: &str) -> Result<Vec<Token>, String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    if let [only] = *words {
        return bare(only).map(|token| vec![token]);
    }
    let lines: Vec<Line<'_>> = lines(text).collect();
    match *lines {
        [] => Err(no_token()),
        [
            Line {
                words: [only, ""], ..
            },
        ] => bare(only).map(|token| vec![token]),
        _ => named(&lines),
    }
}

/// A line that is neither empty nor a comment.
struct Line<'t> {
    number: usize,
    /// The first word, and everything after it.
    words: [&'t str; 2],
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    let numbered = text.lines().enumerate();
    numbered.filter_map(|(index, line)| {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return None;
        }
        let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Some(Line {
            number: index + 1,
            words: [first, rest.trim_start()],
        })
    })
}

fn bare(token: &str) -> Result<Token, String> {
    if is_token(token) {
        Ok(Token::new(token))
    } else {
        Err(no_token())
    }
}

fn named(lines: &[Line<'_>]) -> Result<Vec<Token>, String> {
    for (index, line) in lines.iter().enumerate() {
        let number = line.number;
        let [name, token] = line.words;
        if token.is_empty() {
            return Err(format!(
                "line {number} needs a name and a token; write NAME TOKEN"
            ));
        }
        if !is_name(name) {
            return Err(format!(
                "line {number} does not begin with a name; use a letter or digit, then up to {} \
                 letters, digits, '-' and '_'",
                MAX_NAME - 1
            ));
        }
        if token.contains(char::is_whitespace) {
            return Err(format!(
                "line {number} has text after the token; write NAME TOKEN, and comments in lines \
                 that begin with '#'"
            ));
        }
        if token.len() < MIN_LEN {
            return Err(format!(
                "the token in line {number} is too short; write at least {MIN_LEN} letters and \
                 digits"
            ));
        }
        if !is_token(token) {
            return Err(format!(
                "the token in line {number} has characters that no request can carry; write at \
                 least {MIN_LEN} letters and digits"
            ));
        }
        for before in lines.iter().take(index) {
            let [other_name, other_token] = before.words;
            // Where names of files ignore case, two such clients would share their files.
            if other_name.eq_ignore_ascii_case(name) {
                return Err(format!(
                    "lines {} and {number} have the same name; names differ in more than capitals",
                    before.number
                ));
            }
            if other_token == token {
                return Err(format!(
                    "lines {} and {number} have the same token; give each client its own",
                    before.number
                ));
            }
        }
    }
    let tokens = lines.iter().map(|line| {
        let [name, token] = line.words;
        Token::named(name, token)
    });
    Ok(tokens.collect())
}

fn no_token() -> String {
    format!(
        "it holds no token; remove it to get one, or write one line of at least {MIN_LEN} letters \
         and digits to it, or lines with NAME TOKEN"
    )
}

fn is_token(text: &str) -> bool {
    text.len() >= MIN_LEN && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef";
    const TWO: &str = "fedcba9876543210";

    fn names(text: &str) -> Vec<Option<String>> {
        let tokens = parse(text).unwrap();
        let name = |token: &Token| token.name().map(|name| name.to_string());
        tokens.iter().map(name).collect()
    }

    #[test]
    fn one_token_needs_no_name() {
        for text in [
            ONE.to_owned(),
            format!("\n {ONE}\r\n\n"),
            format!("# for the laptop\n{ONE}\n"),
            // These were tokens before there were names and comments.
            "#123456789abcdef".to_owned(),
            "alice:0123456789abcdef\n".to_owned(),
        ] {
            assert_eq!(names(&text), [None], "{text}");
        }
        assert_eq!(parse(ONE).unwrap(), [Token::new(ONE)]);
    }

    #[test]
    fn several_have_names() {
        let text = format!("# clients\n\nalice {ONE}\r\n  Bob-2_x \t{TWO}  \n");
        let expected = [Token::named("alice", ONE), Token::named("Bob-2_x", TWO)];
        assert_eq!(parse(&text).unwrap(), expected);
        assert_eq!(names(&format!("alice {ONE}")), [Some("alice".to_owned())]);
    }

    #[test]
    fn a_wrong_line_is_named_and_no_token_is_shown() {
        let long = "a".repeat(MAX_NAME + 1);
        for (text, about) in [
            (String::new(), "holds no token"),
            (" \n\n".to_owned(), "holds no token"),
            ("# alice 0123456789abcdef\n".to_owned(), "holds no token"),
            ("brief".to_owned(), "holds no token"),
            ("0123456789abcdeä".to_owned(), "holds no token"),
            (format!("{ONE}\n{TWO}\n"), "line 1 needs a name and a token"),
            (format!("alice {ONE}\n{TWO}\n"), "line 2 needs a name"),
            (format!("\n#\nalice {ONE}\nbob\n"), "line 4 needs a name"),
            (format!("alice {ONE} {TWO}"), "line 1 has text after the"),
            (format!("alice {ONE} # laptop"), "line 1 has text after the"),
            (format!("alice {ONE}\nbob brief"), "in line 2 is too short"),
            ("alice brief".to_owned(), "at least 16 letters"),
            (format!("alice {ONE}ä"), "the token in line 1 has char"),
            (format!("alice.b {ONE}"), "line 1 does not begin"),
            (format!("../a {ONE}"), "line 1 does not begin"),
            (format!("-a {ONE}"), "line 1 does not begin"),
            (format!("alice: {ONE}"), "line 1 does not begin"),
            (format!("ä {ONE}"), "line 1 does not begin"),
            (format!("\u{feff}alice {ONE}"), "line 1 does not begin"),
            (format!("{long} {ONE}"), "line 1 does not begin"),
            (
                format!("alice {ONE}\n\nalice {TWO}"),
                "lines 1 and 3 have the same name",
            ),
            (
                format!("alice {ONE}\nALICE {TWO}"),
                "lines 1 and 2 have the same name",
            ),
            (
                format!("alice {ONE}\nbob {ONE}"),
                "lines 1 and 2 have the same token",
            ),
        ] {
            let error = parse(&text).unwrap_err();
            assert!(error.contains(about), "{text:?}: {error}");
            for secret in [ONE, TWO, "brief", "0123456789abcde"] {
                assert!(!error.contains(secret), "{error}");
            }
        }
    }
}
