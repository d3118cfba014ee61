//! Reads a program with the shell grammar, and keeps away from it what it cannot
//! bear.
//!
//! The grammar recurses, so what nests deep is read on a thread with a large
//! stack, and what nests deeper is not read at all. It takes exponential time for
//! nested `case` and for parentheses in a row, recurses for every `!` of a test,
//! panics on numbers that are too large for a file descriptor and on brackets
//! around here-documents, and takes memory without end for here-documents whose
//! end mark is empty: what could do this is refused.

use std::borrow::Cow;
use std::panic::catch_unwind;

use brush_parser::ast::Program;
use brush_parser::{ParserOptions, SourceSpan, Token, parse_tokens, uncached_tokenize_str};

use super::Trouble;
use super::work::{TOO_MUCH, Work};

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

/// More here-documents than this are not read: the tokenizer's time grows with
/// their square.
const MAX_DOCUMENTS: usize = 64;

/// The longest end mark of a here-document, which the tokenizer compares with the
/// end of every line.
const MAX_MARK_BYTES: usize = 128;

/// More words and operators than this are not read: parsing takes longer than a
/// command is worth.
const MAX_TOKENS: usize = 20_000;

/// What parsing one of them costs.
const TOKEN_STEPS: usize = 4;

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
pub(crate) fn read(text: &str, work: &Work<'_>) -> Result<Program, Trouble> {
    if text.len() > MAX_BYTES {
        return Err(Trouble("it is longer than 64 KiB"));
    }
    if text.contains('\0') {
        return Err(Trouble("it holds a NUL character"));
    }
    if !work.charge(text.len()) {
        return Err(TOO_MUCH);
    }
    let options = ParserOptions {
        // `sh -c` knows no extended globs: `!(x)` is a negated subshell.
        enable_extended_globbing: false,
        ..ParserOptions::default()
    };
    let text = padded(text)?;
    // The grammar is not ours, and a line must not end a server.
    catch_unwind(|| parse(&text, &options, work))
        .unwrap_or(Err(Trouble("the shell grammar failed on it")))
}

fn parse(text: &str, options: &ParserOptions, work: &Work<'_>) -> Result<Program, Trouble> {
    let tokens = uncached_tokenize_str(text, &options.tokenizer_options())
        .map_err(|_| Trouble("its quotes or brackets are not closed"))?;
    if tokens.len() > MAX_TOKENS {
        work.exhaust();
    }
    if !work.charge(tokens.len() * TOKEN_STEPS) {
        return Err(TOO_MUCH);
    }
    check(&tokens)?;
    parse_tokens(&tokens, options).map_err(|_| Trouble("it is not a shell program"))
}

/// The text, safe for the tokenizer. That loses count of brackets around a
/// here-document: what closes one behind the end mark, or at the beginning of the
/// document, closes it twice, and then it takes the next character for one that
/// closes, even if there is none. Such documents are refused; and there is a
/// character for each bracket: newlines, which no word holds outside of quotes.
fn padded(text: &str) -> Result<Cow<'_, str>, Trouble> {
    if !text.contains("<<") {
        return Ok(Cow::Borrowed(text));
    }
    let lines = outside_of_documents(text);
    let nests = lines.iter().any(|(line, _)| {
        ["$(", "${", "$[", "`"]
            .iter()
            .any(|mark| line.contains(mark))
    });
    let closes = |c: char| matches!(c, ')' | ']' | '}');
    let mut marks: Vec<&str> = Vec::new();
    for (line, next) in &lines {
        let mut from = 0;
        let mut first = true;
        while let Some(at) = line.get(from..).and_then(|rest| rest.find("<<")) {
            let at = from + at;
            from = at + 2;
            if next.starts_with(closes) {
                return Err(Trouble("a here-document in it begins with a bracket"));
            }
            if marks.len() >= MAX_DOCUMENTS {
                return Err(Trouble("it has too many here-documents"));
            }
            let after = line.get(from..).unwrap_or_default();
            if is_shift(line, at) {
                continue;
            }
            if std::mem::take(&mut first) && nests && after.contains(BRACKETS) {
                return Err(Trouble(
                    "brackets stand behind the end mark of a here-document",
                ));
            }
            marks.push(after);
        }
    }
    let end = |mark: &&str| mark.find([' ', '\t', '\n', ';', '&', '|', '<', '>']);
    if marks
        .iter()
        .any(|mark| end(mark).unwrap_or(mark.len()) > MAX_MARK_BYTES)
    {
        return Err(Trouble("a here-document in it has a long end mark"));
    }
    if marks.len() > 1 && !marks.iter().all(|mark| begins_with_tag(mark)) {
        return Err(Trouble("a here-document in it has an unusual end mark"));
    }
    let brackets = text.matches(closes).count();
    Ok(Cow::Owned(format!("{text}{}", "\n".repeat(brackets + 1))))
}

/// What opens or closes something that the tokenizer counts.
const BRACKETS: [char; 7] = ['(', ')', '[', ']', '{', '}', '`'];

/// The lines of `text`, each with the next, without the here-documents that
/// plainly are some. Behind the first quote nothing is plain any more.
fn outside_of_documents(text: &str) -> Vec<(&str, &str)> {
    let mut lines = Vec::new();
    let mut all = text.split_inclusive('\n').peekable();
    let mut plain = true;
    while let Some(line) = all.next() {
        lines.push((line, all.peek().copied().unwrap_or_default()));
        let (before, after) = line.split_once("<<").unwrap_or((line, ""));
        plain = plain && !before.contains(['\'', '"', '\\', '`', '#', '(']);
        if !plain || after.is_empty() || after.contains("<<") {
            plain &= after.is_empty();
            continue;
        }
        let (tabs, after) = match after.strip_prefix('-') {
            Some(after) => (true, after),
            None => (false, after),
        };
        let after = after.trim_start_matches([' ', '\t']);
        let quote = after.chars().next().filter(|c| matches!(c, '\'' | '"'));
        let after = after.strip_prefix(['\'', '"']).unwrap_or(after);
        let is_tag = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let tag = after.split(|c| !is_tag(c)).next().unwrap_or_default();
        let rest = after.get(tag.len()..).unwrap_or_default();
        let rest = match quote {
            Some(quote) => rest.strip_prefix(quote),
            None => Some(rest),
        };
        let ends = rest.is_some_and(|rest| rest.starts_with([' ', '\t', '\n', ';', '&', '|', '>']));
        if tag.is_empty() || !ends {
            plain = false;
            continue;
        }
        plain &= rest.is_some_and(|rest| !rest.contains(['\'', '"', '\\', '`', '#', '(']));
        for line in all.by_ref() {
            let line = line.strip_suffix('\n').unwrap_or(line);
            let line = if tabs {
                line.trim_start_matches('\t')
            } else {
                line
            };
            if line == tag {
                break;
            }
        }
    }
    lines
}

/// Whether the `<<` at `at` is one of a calculation: `$((1 << 4))`.
fn is_shift(line: &str, at: usize) -> bool {
    let calculates = |text: &str| {
        text.chars()
            .all(|c| c.is_ascii_alphanumeric() || "_ \t+-*/%<>&|^~!=?:,$".contains(c))
    };
    let before = line.get(..at).unwrap_or_default();
    let after = line.get(at + 2..).unwrap_or_default();
    before
        .rsplit_once("$((")
        .is_some_and(|(_, inner)| calculates(inner))
        && after
            .split_once("))")
            .is_some_and(|(inner, _)| calculates(inner))
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
    // Whether the test is negated: the grammar recurses for each `!`.
    let mut negated = false;
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
                if in_test && word == "!" && std::mem::replace(&mut negated, true) {
                    return Err(Trouble("a test in it is negated twice"));
                }
                in_test = begins && word == "[[" || in_test && word != "]]";
                negated &= in_test;
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
