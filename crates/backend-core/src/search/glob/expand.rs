//! Parses the text of a glob into its alternatives: escapes, classes and braces.
//!
//! Braces are expanded here, before anything else is decided, so later code sees
//! flat sequences of [`Token`]s. Nothing recurses, and both the number of
//! alternatives and the work spent on them are bounded, because a pattern can be
//! untrusted input.

use std::iter::Peekable;
use std::str::CharIndices;
use std::sync::Arc;

use crate::limits::{GLOB_ALTERNATIVES, PATTERN_BYTES};

/// Most tokens that an expansion may write, counting every copy.
const EXPANSION_TOKENS: usize = 4 * PATTERN_BYTES;

/// One piece of an alternative.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Token {
    /// This character, never a slash.
    Literal(char),
    /// The end of a component.
    Slash,
    /// `?`: any one character.
    One,
    /// `*`: any characters, or none.
    Many,
    /// `[…]`: one character out of a set.
    Class(Arc<Class>),
}

/// A set of characters.
#[derive(Debug, PartialEq)]
pub(super) struct Class {
    pub(super) negated: bool,
    pub(super) ranges: Vec<(char, char)>,
}

impl Class {
    pub(super) fn contains(&self, c: char) -> bool {
        let listed = self.ranges.iter().any(|&(low, high)| low <= c && c <= high);
        listed != self.negated
    }
}

/// The reason why a text cannot be expanded.
#[derive(Debug, PartialEq)]
pub(super) enum ExpandError {
    TooMany,
    Syntax { message: &'static str, at: usize },
}

/// Returns the alternatives that `pattern` expands to, in the order written.
pub(super) fn expand(pattern: &str) -> Result<Vec<Vec<Token>>, ExpandError> {
    let mut expansion = Expansion::new();
    let mut characters = pattern.char_indices().peekable();
    while let Some((at, c)) = characters.next() {
        match c {
            '/' => expansion.push(&Token::Slash)?,
            '?' => expansion.push(&Token::One)?,
            '*' => expansion.push(&Token::Many)?,
            '[' => expansion.push(&Token::Class(Arc::new(class(at, &mut characters)?)))?,
            '{' => expansion.open(at),
            ',' if expansion.is_open() => expansion.next_branch()?,
            '}' => expansion.close(at)?,
            '\\' => match escaped(at, &mut characters)? {
                '/' => expansion.push(&Token::Slash)?,
                c => expansion.push(&Token::Literal(c))?,
            },
            c => expansion.push(&Token::Literal(c))?,
        }
    }
    expansion.finish()
}

/// Alternatives under construction.
struct Expansion {
    /// The expansion of the text read so far in the innermost open branch.
    current: Vec<Vec<Token>>,
    groups: Vec<Group>,
    tokens_left: usize,
}

/// A `{` that is still open.
struct Group {
    at: usize,
    /// The expansion of the text before the brace.
    before: Vec<Vec<Token>>,
    /// The completed branches.
    branches: Vec<Vec<Token>>,
}

impl Expansion {
    fn new() -> Self {
        Self {
            current: vec![Vec::new()],
            groups: Vec::new(),
            tokens_left: EXPANSION_TOKENS,
        }
    }

    fn is_open(&self) -> bool {
        !self.groups.is_empty()
    }

    fn spend(&mut self, tokens: usize) -> Result<(), ExpandError> {
        self.tokens_left = self
            .tokens_left
            .checked_sub(tokens)
            .ok_or(ExpandError::TooMany)?;
        Ok(())
    }

    fn push(&mut self, token: &Token) -> Result<(), ExpandError> {
        self.spend(self.current.len())?;
        for sequence in &mut self.current {
            sequence.push(token.clone());
        }
        Ok(())
    }

    fn open(&mut self, at: usize) {
        self.groups.push(Group {
            at,
            before: std::mem::replace(&mut self.current, vec![Vec::new()]),
            branches: Vec::new(),
        });
    }

    fn next_branch(&mut self) -> Result<(), ExpandError> {
        let branch = std::mem::replace(&mut self.current, vec![Vec::new()]);
        let Some(group) = self.groups.last_mut() else {
            return Ok(());
        };
        group.branches.extend(branch);
        match group.branches.len() {
            0..=GLOB_ALTERNATIVES => Ok(()),
            _ => Err(ExpandError::TooMany),
        }
    }

    fn close(&mut self, at: usize) -> Result<(), ExpandError> {
        self.next_branch()?;
        let Some(Group {
            before, branches, ..
        }) = self.groups.pop()
        else {
            let message = "'}' closes nothing; write '\\}' for the character itself";
            return Err(ExpandError::Syntax { message, at });
        };
        if before.len() * branches.len() > GLOB_ALTERNATIVES {
            return Err(ExpandError::TooMany);
        }
        let length = |sequences: &[Vec<Token>]| sequences.iter().map(Vec::len).sum::<usize>();
        self.spend(length(&before) * branches.len() + length(&branches) * before.len())?;
        self.current = before
            .iter()
            .flat_map(|head| branches.iter().map(move |tail| [&head[..], tail].concat()))
            .collect();
        Ok(())
    }

    fn finish(self) -> Result<Vec<Vec<Token>>, ExpandError> {
        match self.groups.last() {
            None => Ok(self.current),
            Some(group) => Err(ExpandError::Syntax {
                message: "'{' is never closed; add '}', or write '\\{' for the character itself",
                at: group.at,
            }),
        }
    }
}

/// Returns the character after the backslash at `at`.
fn escaped(at: usize, characters: &mut Peekable<CharIndices<'_>>) -> Result<char, ExpandError> {
    let (_, c) = characters.next().ok_or(ExpandError::Syntax {
        message: "'\\' at the end escapes nothing; remove it, or write '\\\\' for the character itself",
        at,
    })?;
    Ok(c)
}

/// Parses the rest of the class that opens at `at`. A leading `]`, and a leading or
/// trailing `-`, are literal.
fn class(at: usize, characters: &mut Peekable<CharIndices<'_>>) -> Result<Class, ExpandError> {
    let negated = characters
        .next_if(|(_, c)| matches!(c, '!' | '^'))
        .is_some();
    let mut ranges = Vec::new();
    loop {
        let low = match member(at, characters)? {
            (']', false) if !ranges.is_empty() => return Ok(Class { negated, ranges }),
            (low, _) => low,
        };
        let mut ahead = characters.clone();
        let is_range = ahead.next_if(|(_, c)| *c == '-').is_some()
            && ahead.peek().is_some_and(|(_, c)| *c != ']');
        if !is_range {
            ranges.push((low, low));
            continue;
        }
        *characters = ahead;
        let (high, _) = member(at, characters)?;
        if high < low {
            let message = "a range in '[…]' runs backwards; swap its ends";
            return Err(ExpandError::Syntax { message, at });
        }
        ranges.push((low, high));
    }
}

/// Parses one member of the class that opens at `at`, and tells whether it was escaped.
fn member(
    at: usize,
    characters: &mut Peekable<CharIndices<'_>>,
) -> Result<(char, bool), ExpandError> {
    match characters.next() {
        Some((at, '\\')) => Ok((escaped(at, characters)?, true)),
        Some((_, c)) => Ok((c, false)),
        None => Err(ExpandError::Syntax {
            message: "'[' is never closed; add ']', or write '\\[' for the character itself",
            at,
        }),
    }
}
