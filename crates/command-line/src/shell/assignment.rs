//! Parses words that are assignments.

use super::ast::{Assignment, Value};
use super::{enclosed, is_name};
use crate::error::ParseError;

/// Parses a word as an assignment, if it is one.
pub(super) fn assignment(word: &str) -> Result<Option<Assignment>, ParseError> {
    let end = word.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let (name, rest) = word.split_at(end.unwrap_or(word.len()));
    if !is_name(name) {
        return Ok(None);
    }
    let (mut index, mut rest) = (None, rest.to_owned());
    if rest.starts_with('[') {
        let (inner, after) = subscript(&rest)?;
        index = Some(inner);
        rest = after;
    }
    let (append, value) = match rest.strip_prefix("+=") {
        Some(value) => (true, Some(value)),
        None => (false, rest.strip_prefix('=')),
    };
    Ok(value.map(|value| Assignment {
        name: name.to_owned(),
        index,
        append,
        value: Value::Scalar(value.to_owned()),
    }))
}

/// Parses a member of an array: `value` or `[index]=value`.
pub(super) fn member(word: String) -> Result<(Option<String>, String), ParseError> {
    if !word.starts_with('[') {
        return Ok((None, word));
    }
    let (index, after) = subscript(&word)?;
    let value = after.strip_prefix("+=").or(after.strip_prefix('='));
    Ok(match value {
        Some(value) => (Some(index), value.to_owned()),
        None => (None, word),
    })
}

/// Splits `text` into the contents of the brackets it starts with and the rest. In bash
/// the word extends to the closing bracket, whatever is in between.
fn subscript(text: &str) -> Result<(String, String), ParseError> {
    let chars: Vec<char> = text.chars().collect();
    let mut open = 0_usize;
    let mut quote = None;
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        at += 1;
        match c {
            '\\' if quote != Some('\'') => at += 1,
            '$' if quote != Some('\'') && chars.get(at) == Some(&'(') => {
                at += 1 + enclosed(chars.get(at + 1..).unwrap_or_default())?;
            }
            c if quote == Some(c) => quote = None,
            _ if quote.is_some() => {}
            '\'' | '"' | '`' => quote = Some(c),
            '[' => open += 1,
            ']' if open == 1 => {
                let (inner, after) = (chars.get(1..at - 1), chars.get(at..));
                let text = |chars: Option<&[char]>| chars.unwrap_or_default().iter().collect();
                return Ok((text(inner), text(after)));
            }
            ']' => open -= 1,
            _ => {}
        }
    }
    Err(ParseError("an index in it is not closed"))
}
