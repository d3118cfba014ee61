//! Parses shell programs.
//!
//! The grammar is that of POSIX, with those extensions of `bash` that are syntax errors
//! in `dash`. Text that both accept but read differently is rejected or noted as
//! doubtful, since either may be `sh`. Parsing takes time linear in the length of the
//! text, and bounded stack.

use crate::budget::{StepBudget, TOO_MUCH};
use crate::error::ParseError;

mod assignment;
pub(crate) mod ast;
mod lexer;
mod parser;
mod redirect;
#[cfg(test)]
mod tests;

use ast::Program;
use lexer::{MAX_TOKENS, Pending, Token};

/// The maximum length of a program.
const MAX_BYTES: usize = 64 * 1024;

/// The maximum nesting of commands and expansions.
const MAX_NESTING: usize = 40;

/// The cost of a word or an operator, besides its text.
const TOKEN_STEPS: usize = 4;

const NOT_CLOSED: ParseError = ParseError("its quotes or brackets are not closed");
const NOT_A_PROGRAM: ParseError = ParseError("it is not a shell program");

/// Parses a program.
pub(crate) fn read(text: &str, budget: &StepBudget<'_>) -> Result<Program, ParseError> {
    if text.len() > MAX_BYTES {
        return Err(ParseError("it is longer than 64 KiB"));
    }
    if text.contains('\0') {
        return Err(ParseError("it holds a NUL character"));
    }
    if !budget.charge(text.len()) {
        return Err(TOO_MUCH);
    }
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader::new(&chars);
    let list = reader.program();
    if reader.tokens > MAX_TOKENS {
        budget.exhaust();
    }
    if !budget.charge(reader.tokens * TOKEN_STEPS) {
        return Err(TOO_MUCH);
    }
    Ok(Program {
        list: list?,
        doubts: reader.doubts,
    })
}

/// Returns the length of the program that `text` starts with, up to the closing `)`.
pub(crate) fn enclosed(text: &[char]) -> Result<usize, ParseError> {
    let mut reader = Reader::new(text);
    reader.enclosed()?;
    Ok(reader.at)
}

/// The parser state.
#[derive(Default)]
struct Reader<'a> {
    chars: &'a [char],
    /// Index of the next character.
    at: usize,
    /// The token before that, if it was peeked and not taken.
    peeked: Option<Token>,
    /// Index of the end of the last word.
    word_end: Option<usize>,
    /// Here-documents that begin after the next newline.
    pending: Vec<Pending>,
    nesting: usize,
    tokens: usize,
    doubts: Vec<ParseError>,
}

impl<'a> Reader<'a> {
    fn new(chars: &'a [char]) -> Self {
        Self {
            chars,
            ..Self::default()
        }
    }

    /// Enters a construct that can be nested.
    fn enter(&mut self) -> Result<(), ParseError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            Err(ParseError("commands are nested too deep in it"))
        } else {
            Ok(())
        }
    }

    fn leave(&mut self) {
        self.nesting -= 1;
    }
}

/// Whether `text` can be the name of a variable.
pub(crate) fn is_name(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && text.bytes().next().is_some_and(|b| !b.is_ascii_digit())
}
