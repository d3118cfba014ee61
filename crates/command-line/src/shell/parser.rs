//! The grammar: parses tokens into commands.

use std::rc::Rc;

use super::assignment::{assignment, member};
use super::ast::{
    AndOr, Arm, Assignment, Command, Compound, Definition, Item, Join, List, Pipeline, Value,
};
use super::lexer::{AROUND, GLUED, Token};
use super::{NOT_A_PROGRAM, Reader, is_name};
use crate::error::ParseError;

const UNKNOWN_TO_SOME: ParseError = ParseError("it is not written for every shell");
const DOUBLE: ParseError = ParseError("'((' is read differently by different shells");

/// Built-ins that take arrays as arguments.
const DECLARING: &[&str] = &["declare", "export", "local", "readonly", "typeset"];

impl Reader<'_> {
    /// Parses the whole text.
    pub(super) fn program(&mut self) -> Result<List, ParseError> {
        let list = self.list()?;
        match self.take()? {
            Token::End => Ok(list),
            _ => Err(NOT_A_PROGRAM),
        }
    }

    /// Parses the list of `$(`, `<(` or `>(`, up to the closing parenthesis.
    pub(super) fn enclosed(&mut self) -> Result<List, ParseError> {
        let from = self.at;
        let outer = std::mem::take(&mut self.pending);
        let list = self.list()?;
        self.expect(")")?;
        if !self.pending.is_empty() {
            return Err(ParseError(
                "a here-document leaves the substitution it is in",
            ));
        }
        let text = self.chars.get(from..self.at).unwrap_or_default();
        if !outer.is_empty() && text.contains(&'\n') {
            self.doubts.push(AROUND);
        }
        self.pending = outer;
        Ok(list)
    }

    /// Takes an operator or a word. No word is spelled like an operator.
    fn accept(&mut self, text: &str) -> Result<bool, ParseError> {
        let found = match self.peek()? {
            Token::Operator(next) => *next == text,
            Token::Word(next) => next == text,
            Token::Newline | Token::End => false,
        };
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn expect(&mut self, text: &str) -> Result<(), ParseError> {
        self.accept(text)?.then_some(()).ok_or(NOT_A_PROGRAM)
    }

    pub(super) fn any_word(&mut self) -> Result<String, ParseError> {
        match self.take()? {
            Token::Word(word) => Ok(word),
            _ => Err(NOT_A_PROGRAM),
        }
    }

    /// Skips newlines, and returns whether there were any.
    fn newlines(&mut self) -> Result<bool, ParseError> {
        let mut any = false;
        while *self.peek()? == Token::Newline {
            self.take()?;
            any = true;
        }
        Ok(any)
    }

    /// Parses commands up to a token that ends them, which is left to the caller.
    fn list(&mut self) -> Result<List, ParseError> {
        let mut list = Vec::new();
        loop {
            self.newlines()?;
            let ends = match self.peek()? {
                Token::End | Token::Operator(")" | ";;" | ";&" | ";;&") => true,
                Token::Word(word) => closes(word),
                _ => false,
            };
            if ends {
                return Ok(list);
            }
            let mut and_or = self.and_or()?;
            and_or.background = self.accept("&")?;
            let more = and_or.background || self.accept(";")? || *self.peek()? == Token::Newline;
            list.push(and_or);
            if !more {
                return Ok(list);
            }
        }
    }

    /// Parses a list of at least one command.
    fn commands(&mut self) -> Result<List, ParseError> {
        let list = self.list()?;
        if list.is_empty() {
            Err(NOT_A_PROGRAM)
        } else {
            Ok(list)
        }
    }

    fn and_or(&mut self) -> Result<AndOr, ParseError> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            let join = if self.accept("&&")? {
                Join::And
            } else if self.accept("||")? {
                Join::Or
            } else {
                break;
            };
            self.newlines()?;
            rest.push((join, self.pipeline()?));
        }
        Ok(AndOr {
            first,
            rest,
            background: false,
        })
    }

    fn pipeline(&mut self) -> Result<Pipeline, ParseError> {
        let negated = self.accept("!")?;
        let timed = self.accept("time")?;
        if timed && !negated {
            self.accept("!")?;
        }
        let mut stages = vec![self.command()?];
        while self.accept("|")? || self.accept("|&")? {
            self.newlines()?;
            stages.push(self.command()?);
        }
        Ok(Pipeline { timed, stages })
    }

    fn command(&mut self) -> Result<Command, ParseError> {
        self.enter()?;
        let command = if let Some(compound) = self.compound()? {
            Command::Compound(compound, self.redirects()?)
        } else if self.accept("[[")? {
            self.test()?
        } else {
            self.simple()?
        };
        self.leave();
        Ok(command)
    }

    /// Parses a compound command, if one starts here.
    fn compound(&mut self) -> Result<Option<Compound>, ParseError> {
        if self.accept("(")? {
            if matches!(self.peek()?, Token::Operator("(")) {
                return Err(DOUBLE);
            }
            let list = self.commands()?;
            self.expect(")")?;
            return Ok(Some(Compound::Subshell(list)));
        }
        let Token::Word(word) = self.peek()? else {
            return Ok(None);
        };
        let read = match word.as_str() {
            "{" => Self::group,
            "if" => Self::if_clause,
            "while" | "until" => Self::loop_clause,
            "for" => Self::for_clause,
            "case" => Self::case_clause,
            "function" | "select" | "coproc" => return Err(UNKNOWN_TO_SOME),
            word if closes(word) || word == "!" => return Err(NOT_A_PROGRAM),
            _ => return Ok(None),
        };
        self.take()?;
        read(self).map(Some)
    }

    fn group(&mut self) -> Result<Compound, ParseError> {
        let list = self.commands()?;
        self.expect("}")?;
        Ok(Compound::Group(list))
    }

    fn if_clause(&mut self) -> Result<Compound, ParseError> {
        let mut branches = Vec::new();
        loop {
            branches.push(self.commands()?);
            self.expect("then")?;
            branches.push(self.commands()?);
            if self.accept("elif")? {
                continue;
            }
            if self.accept("else")? {
                branches.push(self.commands()?);
            }
            self.expect("fi")?;
            return Ok(Compound::Branches(branches));
        }
    }

    fn loop_clause(&mut self) -> Result<Compound, ParseError> {
        let condition = self.commands()?;
        let body = self.body()?;
        Ok(Compound::Loop { condition, body })
    }

    /// Parses `do ... done`.
    fn body(&mut self) -> Result<List, ParseError> {
        self.expect("do")?;
        let body = self.commands()?;
        self.expect("done")?;
        Ok(body)
    }

    fn for_clause(&mut self) -> Result<Compound, ParseError> {
        if matches!(self.peek()?, Token::Operator("(")) {
            return Err(UNKNOWN_TO_SOME);
        }
        let name = self.any_word()?;
        if !is_name(&name) {
            return Err(NOT_A_PROGRAM);
        }
        let mut words = Vec::new();
        let below = self.newlines()?;
        if self.accept("in")? {
            loop {
                match self.take()? {
                    Token::Word(word) => words.push(word),
                    Token::Operator(";") | Token::Newline => break,
                    _ => return Err(NOT_A_PROGRAM),
                }
            }
        } else if !below {
            self.accept(";")?;
        }
        self.newlines()?;
        let body = self.body()?;
        Ok(Compound::For { name, words, body })
    }

    fn case_clause(&mut self) -> Result<Compound, ParseError> {
        let word = self.any_word()?;
        self.newlines()?;
        self.expect("in")?;
        let mut arms = Vec::new();
        loop {
            self.newlines()?;
            if self.accept("esac")? {
                break;
            }
            self.accept("(")?;
            let mut patterns = Vec::new();
            loop {
                let pattern = self.any_word()?;
                // Some shells would end the command here.
                if pattern == "esac" {
                    return Err(NOT_A_PROGRAM);
                }
                patterns.push(pattern);
                if !self.accept("|")? {
                    break;
                }
            }
            self.expect(")")?;
            let body = self.list()?;
            arms.push(Arm { patterns, body });
            if !(self.accept(";;")? || self.accept(";&")? || self.accept(";;&")?) {
                self.expect("esac")?;
                break;
            }
        }
        Ok(Compound::Case { word, arms })
    }

    /// Parses the rest of `[[ ... ]]`. In shells where `[[` is not a reserved word, it
    /// is a command that ends at an operator or a newline.
    fn test(&mut self) -> Result<Command, ParseError> {
        const NOT_PLAIN: ParseError = ParseError("a test in it is not plain");
        let mut words = Vec::new();
        loop {
            match self.take()? {
                Token::Word(word) if word == "]]" => break,
                Token::Word(word) => words.push(word),
                Token::Operator(_) | Token::Newline => {
                    return Err(ParseError(
                        "an operator within '[[' is read differently by different shells",
                    ));
                }
                Token::End => return Err(NOT_A_PROGRAM),
            }
        }
        let expression = match words.split_first() {
            Some((first, rest)) if first == "!" => rest,
            _ => &words,
        };
        match expression {
            [first, ..] if first == "!" => return Err(NOT_PLAIN),
            [_] | [_, _, _] => {}
            [operator, _] if operator.starts_with('-') => {}
            _ => return Err(NOT_PLAIN),
        }
        Ok(Command::Test(words, self.redirects()?))
    }

    /// Parses a simple command, or a function definition if `(` follows its name.
    fn simple(&mut self) -> Result<Command, ParseError> {
        let mut items = Vec::new();
        let mut name: Option<String> = None;
        loop {
            if let Some(redirect) = self.redirect()? {
                items.push(Item::Redirect(redirect));
                continue;
            }
            match self.peek()? {
                Token::Word(_) => {}
                Token::Operator("<(" | ">(") => {
                    items.push(Item::Substitution(self.substitution()?));
                    name.get_or_insert_default();
                    continue;
                }
                _ => break,
            }
            let word = self.any_word()?;
            let begins_array = self.char(0) == Some('(');
            match &name {
                None => {
                    if let Some(mut assignment) = assignment(&word)? {
                        if begins_array {
                            assignment.value = self.array(&assignment)?;
                        }
                        items.push(Item::Assignment(assignment));
                        continue;
                    }
                    if items.is_empty() && self.accept("(")? {
                        return self.function(word);
                    }
                    name = Some(word.clone());
                }
                Some(name) if begins_array && DECLARING.contains(&name.as_str()) => {
                    let mut assignment = assignment(&word)?.ok_or(NOT_A_PROGRAM)?;
                    assignment.value = self.array(&assignment)?;
                    items.push(Item::Assignment(assignment));
                    continue;
                }
                Some(_) => {}
            }
            items.push(Item::Word(word));
        }
        if items.is_empty() {
            Err(NOT_A_PROGRAM)
        } else {
            Ok(Command::Simple(items))
        }
    }

    /// Parses the rest of a function definition, after its first parenthesis.
    fn function(&mut self, name: String) -> Result<Command, ParseError> {
        self.expect(")")?;
        self.newlines()?;
        let body = self.compound()?.ok_or(NOT_A_PROGRAM)?;
        let redirects = self.redirects()?;
        Ok(Command::Function {
            name,
            definition: Rc::new(Definition { body, redirects }),
        })
    }

    /// Parses the members of an assigned array, after the `=`.
    fn array(&mut self, assignment: &Assignment) -> Result<Value, ParseError> {
        let empty = matches!(&assignment.value, Value::Scalar(value) if value.is_empty());
        if !empty || assignment.index.is_some() {
            return Err(NOT_A_PROGRAM);
        }
        self.expect("(")?;
        let mut members = Vec::new();
        loop {
            match self.take()? {
                Token::Newline => {}
                Token::Operator(")") => return Ok(Value::Array(members)),
                Token::Word(word) => members.push(member(word)?),
                _ => return Err(NOT_A_PROGRAM),
            }
        }
    }

    /// Parses `<(...)` or `>(...)`.
    pub(super) fn substitution(&mut self) -> Result<List, ParseError> {
        self.take()?;
        if self.char(0) == Some('(') {
            return Err(DOUBLE);
        }
        let list = self.enclosed()?;
        if !matches!(
            self.char(0),
            None | Some(' ' | '\t' | '\n' | ';' | '&' | '|' | ')')
        ) {
            self.doubts.push(GLUED);
        }
        Ok(list)
    }
}

/// Whether a word in command position ends a list.
fn closes(word: &str) -> bool {
    matches!(
        word,
        "then" | "elif" | "else" | "fi" | "do" | "done" | "esac" | "}"
    )
}
