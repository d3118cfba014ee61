//! The grammar of redirects.

use super::ast::{Kind, Redirect, Target};
use super::lexer::Token;
use super::{NOT_A_PROGRAM, Reader, is_name};
use crate::error::ParseError;

impl Reader<'_> {
    pub(super) fn redirects(&mut self) -> Result<Vec<Redirect>, ParseError> {
        let mut redirects = Vec::new();
        while let Some(redirect) = self.redirect()? {
            redirects.push(redirect);
        }
        Ok(redirects)
    }

    pub(super) fn redirect(&mut self) -> Result<Option<Redirect>, ParseError> {
        let fd = self.descriptor()?;
        let operator = match self.peek()? {
            Token::Operator(operator) => *operator,
            _ => return Ok(None),
        };
        let kind = match operator {
            "<" => Kind::Read,
            ">" | ">>" | ">|" => Kind::Write,
            "<>" => Kind::ReadWrite,
            "<&" => Kind::CopyInput,
            ">&" => Kind::CopyOutput,
            "<<" | "<<-" => {
                self.take()?;
                let mark = self.target()?;
                let (expands, body) = self.document(&mark, operator == "<<-")?;
                return Ok(Some(Redirect::Document { fd, expands, body }));
            }
            "&>" | "&>>" => {
                self.take()?;
                return Ok(Some(Redirect::Both(self.target()?)));
            }
            "<<<" => return Err(ParseError("'<<<' is not known to every shell")),
            _ => return Ok(None),
        };
        self.take()?;
        let copies = matches!(kind, Kind::CopyInput | Kind::CopyOutput);
        let target = match self.peek()? {
            Token::Operator("<(" | ">(") if !copies => Target::Substitution(self.substitution()?),
            _ => Target::Word(self.target()?),
        };
        Ok(Some(Redirect::File { fd, kind, target }))
    }

    /// Parses a file descriptor before a redirect operator.
    fn descriptor(&mut self) -> Result<Option<u32>, ParseError> {
        let Token::Word(word) = self.peek()? else {
            return Ok(None);
        };
        let digits = word.bytes().all(|b| b.is_ascii_digit());
        let (fd, short) = (word.parse().unwrap_or(u32::MAX), word.len() == 1);
        let name = word
            .strip_prefix('{')
            .and_then(|word| word.strip_suffix('}'));
        let named = name.is_some_and(is_name);
        if !matches!(self.char(0), Some('<' | '>')) || !digits && !named {
            return Ok(None);
        }
        if !short {
            self.doubts.push(ParseError(
                "a file descriptor of more than one digit is not known to every shell",
            ));
        }
        self.take()?;
        Ok(Some(fd))
    }

    /// Parses the word after a redirect operator.
    fn target(&mut self) -> Result<String, ParseError> {
        // It is the descriptor of another redirect.
        if self.descriptor()?.is_some() {
            return Err(NOT_A_PROGRAM);
        }
        self.any_word()
    }
}
