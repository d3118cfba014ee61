//! Reads a program with the shell grammar, and keeps away from it what it cannot
//! bear.
//!
//! The grammar recurses, so what nests deep is read on a thread with a large
//! stack, and what nests deeper is not read at all. It takes exponential time for
//! nested `case` and for parentheses in a row, panics on numbers that are too
//! large for a file descriptor, and takes memory without end for here-documents
//! whose end mark is empty: what could do this is refused.

use std::borrow::Cow;

use brush_parser::ast::Program;
use brush_parser::{ParserOptions, SourceSpan, Token, parse_tokens, uncached_tokenize_str};

use super::Trouble;

/// A longer line is not read.
pub(crate) const MAX_BYTES: usize = 64 * 1024;

/// What may open a nested construct, that many times, is read on the stack of
/// the caller. In a debug build one level takes up to 25 KiB of stack, and a
/// worker of an async runtime has 2 MiB.
pub(crate) const MAX_OPENERS_INLINE: usize = 16;

/// Above this nothing is read.
pub(crate) const MAX_OPENERS: usize = 512;

/// The stack of the thread that reads what nests deep.
pub(crate) const STACK_BYTES: usize = 32 * 1024 * 1024;

/// More `case` words than this are not read: the time doubles with each.
const MAX_CASES: usize = 6;

/// How many things in `text` could open a nested construct. Quotes and comments
/// are counted too: it can only be too many.
pub(crate) fn openers(text: &str) -> usize {
    let marks = text.bytes().filter(|b| b"({[`".contains(b)).count();
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text.split(|c| !is_word(c)).filter(|word| {
        matches!(
            *word,
            "if" | "elif" | "while" | "until" | "for" | "case" | "function" | "time"
        )
    });
    marks + words.count()
}

/// Reads a program.
pub(crate) fn read(text: &str) -> Result<Program, Trouble> {
    if text.len() > MAX_BYTES {
        return Err(Trouble("it is longer than 64 KiB"));
    }
    if text.contains('\0') {
        return Err(Trouble("it holds a NUL character"));
    }
    let options = ParserOptions {
        // `sh -c` knows no extended globs: `!(x)` is a negated subshell.
        enable_extended_globbing: false,
        ..ParserOptions::default()
    };
    let tokens = uncached_tokenize_str(&padded(text)?, &options.tokenizer_options())
        .map_err(|_| Trouble("its quotes or brackets are not closed"))?;
    check(&tokens)?;
    parse_tokens(&tokens, &options).map_err(|_| Trouble("it is not a shell program"))
}

/// The text, safe for the tokenizer. That loses count of brackets if a document
/// within them begins with a bracket, and then takes the next character for one
/// that closes, even if there is none: so there must be one for each. They are
/// newlines, which no word holds outside of quotes.
fn padded(text: &str) -> Result<Cow<'_, str>, Trouble> {
    let closes = |c: char| matches!(c, ')' | ']' | '}');
    for (at, _) in text.match_indices("<<") {
        let after = text.get(at..).and_then(|rest| rest.split_once('\n'));
        if after.is_some_and(|(_, document)| document.starts_with(closes)) {
            return Err(Trouble("a here-document in it begins with a bracket"));
        }
    }
    if !text.contains("<<") {
        return Ok(Cow::Borrowed(text));
    }
    let several = text.matches("<<").nth(1).is_some();
    if several && !text.split("<<").skip(1).all(begins_with_tag) {
        return Err(Trouble("a here-document in it has an unusual end mark"));
    }
    let brackets = text.matches(closes).count();
    Ok(Cow::Owned(format!("{text}{}", "\n".repeat(brackets + 1))))
}

/// Whether the end mark of a here-document begins like most do, perhaps quoted. For one that is
/// empty, with another here-document after it, the tokenizer makes tokens without end.
fn begins_with_tag(after: &str) -> bool {
    let tag = after.strip_prefix('-').unwrap_or(after);
    let tag = tag.trim_start_matches([' ', '\t']);
    let tag = tag.strip_prefix(['\'', '"', '\\']).unwrap_or(tag);
    tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

fn touches(left: &SourceSpan, right: &SourceSpan) -> bool {
    left.end.index == right.start.index
}

/// Refuses what the grammar cannot bear, and what shells read differently.
fn check(tokens: &[Token]) -> Result<(), Trouble> {
    let mut cases = 0;
    let mut in_test = false;
    // Whether the next word is the name of a command.
    let mut begins = true;
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        match token {
            Token::Operator(operator, _) => {
                let next_is = |text: &str| matches!(next, Some(Token::Operator(o, _)) if o == text);
                if operator == "<<<" {
                    return Err(Trouble("'<<<' is not known to every shell"));
                }
                if operator == "(" && next_is("(") {
                    return Err(Trouble("'((' is read differently by different shells"));
                }
                if in_test && operator != "\n" {
                    return Err(Trouble(
                        "an operator within '[[' is read differently by different shells",
                    ));
                }
                begins = !operator.starts_with(['<', '>']) && operator != "&>" && operator != "&>>";
            }
            Token::Word(word, place) => {
                cases += usize::from(word == "case");
                let is_number = word.bytes().all(|b| b.is_ascii_digit());
                if is_number && (word.is_empty() || word.len() > 9) {
                    let redirects = |next: &Token| matches!(next, Token::Operator(o, p) if o.starts_with(['<', '>']) && touches(place, p));
                    if next.is_some_and(redirects) {
                        return Err(Trouble("a file descriptor in it is no number"));
                    }
                }
                if begins && matches!(word.as_str(), "function" | "select" | "coproc") {
                    return Err(Trouble("it is not written for every shell"));
                }
                in_test = begins && word == "[[" || in_test && word != "]]";
                begins = matches!(
                    word.as_str(),
                    "then" | "do" | "else" | "elif" | "if" | "while" | "until" | "{" | "!" | "time"
                ) || begins && word.split_once('=').is_some_and(|(name, _)| is_name(name));
            }
        }
    }
    if cases > MAX_CASES {
        return Err(Trouble("it nests 'case' too often"));
    }
    Ok(())
}

/// Whether `text` can be the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}
