//! Reads a program as a shell does.
//!
//! The grammar is the one of POSIX, with what `bash` adds and `dash` takes for an
//! error. What both run, and read differently, is refused: either may be `sh`.
//! Reading takes time that grows with the length of the text, and the stack it
//! takes is bounded.

use super::Trouble;
use super::work::{TOO_MUCH, Work};

mod assignment;
pub(crate) mod ast;
mod lexer;
mod parser;
#[cfg(test)]
mod tests;

use ast::Program;
use lexer::{MAX_TOKENS, Pending, Token};

/// A longer line is not read.
const MAX_BYTES: usize = 64 * 1024;

/// How deep commands and expansions may stand in one another.
const MAX_NESTING: usize = 40;

/// What a word or an operator costs beside its text.
const TOKEN_STEPS: usize = 4;

const NOT_CLOSED: Trouble = Trouble("its quotes or brackets are not closed");
const NOT_A_PROGRAM: Trouble = Trouble("it is not a shell program");

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
    let chars: Vec<char> = text.chars().collect();
    let mut reader = Reader::new(&chars);
    let list = reader.program();
    if reader.tokens > MAX_TOKENS {
        work.exhaust();
    }
    if !work.charge(reader.tokens * TOKEN_STEPS) {
        return Err(TOO_MUCH);
    }
    Ok(Program {
        list: list?,
        doubts: reader.doubts,
    })
}

/// How long the program is that `text` begins with, up to and with the parenthesis
/// that closes it.
pub(crate) fn enclosed(text: &[char]) -> Result<usize, Trouble> {
    let mut reader = Reader::new(text);
    reader.enclosed()?;
    Ok(reader.at)
}

/// A text, on the way through it.
struct Reader<'a> {
    chars: &'a [char],
    /// The next character to be read.
    at: usize,
    /// The token before that, if it was looked at and not taken.
    peeked: Option<Token>,
    /// Where the last word ended.
    word_end: usize,
    /// The here-documents that begin after the next newline.
    pending: Vec<Pending>,
    nesting: usize,
    tokens: usize,
    doubts: Vec<Trouble>,
}

impl<'a> Reader<'a> {
    fn new(chars: &'a [char]) -> Self {
        Self {
            chars,
            at: 0,
            peeked: None,
            word_end: usize::MAX,
            pending: Vec::new(),
            nesting: 0,
            tokens: 0,
            doubts: Vec::new(),
        }
    }

    /// Enters something that may hold the same again.
    fn enter(&mut self) -> Result<(), Trouble> {
        self.nesting += 1;
        match self.nesting > MAX_NESTING {
            true => Err(Trouble("commands are nested too deep in it")),
            false => Ok(()),
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
