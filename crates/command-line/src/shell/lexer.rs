//! Splits a program into words and operators.

use super::ast::Body;
use super::{NOT_CLOSED, Reader};
use crate::budget::TOO_MUCH;
use crate::error::ParseError;

/// The maximum number of words and operators. More would take too long to parse.
pub(super) const MAX_TOKENS: usize = 20_000;

/// All operators, longer ones first.
const OPERATORS: &[&str] = &[
    "<<<", "<<-", "&>>", ";;&", "&&", "||", ";;", ";&", "|&", "<<", "<&", "<>", "<(", ">>", ">&",
    ">|", ">(", "&>", "<", ">", "&", "|", ";", "(", ")",
];

pub(super) const GLUED: ParseError =
    ParseError("a word in it goes on before or after '<(' or '>('");
pub(super) const AROUND: ParseError =
    ParseError("a word in it begins before a here-document and ends after it");
const DOCUMENT_IS_OPEN: ParseError = ParseError("a here-document is not closed");

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word with its quotes, but without line continuations.
    Word(String),
    Operator(&'static str),
    Newline,
    End,
}

/// A here-document whose text begins after the next newline.
#[derive(Debug)]
pub(super) struct Pending {
    /// The delimiter line.
    mark: Vec<char>,
    /// Whether leading tabs are stripped from its lines.
    tabs: bool,
    body: Body,
}

impl Reader<'_> {
    /// Returns the character `ahead` characters after the next.
    pub(super) fn char(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    /// Returns the next token without taking it.
    pub(super) fn peek(&mut self) -> Result<&Token, ParseError> {
        let token = self.take()?;
        Ok(self.peeked.insert(token))
    }

    pub(super) fn take(&mut self) -> Result<Token, ParseError> {
        match self.peeked.take() {
            Some(token) => Ok(token),
            None => self.lex(),
        }
    }

    fn lex(&mut self) -> Result<Token, ParseError> {
        self.tokens += 1;
        if self.tokens > MAX_TOKENS {
            return Err(TOO_MUCH);
        }
        self.skip_blanks();
        match self.char(0) {
            None if self.pending.is_empty() => Ok(Token::End),
            None => Err(DOCUMENT_IS_OPEN),
            Some('\n') => {
                self.at += 1;
                self.documents()?;
                Ok(Token::Newline)
            }
            Some(c) if is_operator(c) => self.operator().map(Token::Operator),
            Some(_) => self.word().map(Token::Word),
        }
    }

    /// Skips blanks, comments and line continuations.
    fn skip_blanks(&mut self) {
        loop {
            match self.char(0) {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.char(1) == Some('\n') => self.at += 2,
                Some('#') => {
                    while self.char(0).is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                _ => return,
            }
        }
    }

    fn operator(&mut self) -> Result<&'static str, ParseError> {
        let rest = self.chars.get(self.at..).unwrap_or_default();
        let spelled = |operator: &str| {
            let mut rest = rest.iter();
            operator.chars().all(|c| rest.next() == Some(&c))
        };
        let Some(operator) = OPERATORS.iter().find(|operator| spelled(operator)) else {
            return Err(super::NOT_A_PROGRAM);
        };
        // In bash it is part of the word before it.
        if matches!(*operator, "<(" | ">(") && self.word_end == Some(self.at) {
            self.doubts.push(GLUED);
        }
        self.at += operator.len();
        let mut next = 0;
        while self.char(next) == Some('\\') && self.char(next + 1) == Some('\n') {
            next += 2;
        }
        if let Some(c) = self.char(next).filter(|_| next > 0) {
            let longer = |other: &&str| {
                let more = other.strip_prefix(operator);
                more.is_some_and(|more| more.starts_with(c))
            };
            if OPERATORS.iter().any(longer) || *operator == "(" && c == '(' {
                return Err(ParseError("an operator in it goes on in the next line"));
            }
        }
        Ok(operator)
    }

    fn word(&mut self) -> Result<String, ParseError> {
        let mut word = String::new();
        while let Some(c) = self.char(0) {
            if matches!(c, ' ' | '\t' | '\n') || is_operator(c) {
                break;
            }
            self.piece(c, false, &mut word)?;
        }
        self.word_end = Some(self.at);
        if !self.pending.is_empty() && word.contains('\n') {
            self.doubts.push(AROUND);
        }
        Ok(word)
    }

    /// Reads a character or the construct it starts. `quoted`: within double quotes.
    fn piece(&mut self, c: char, quoted: bool, word: &mut String) -> Result<(), ParseError> {
        match c {
            '\\' => self.escaped(word),
            '\'' if !quoted => self.single_quoted(word)?,
            '"' => {
                self.push(c, word);
                self.up_to('"', true, word)?;
            }
            '`' => self.escaping('`', word)?,
            '$' => self.dollar(quoted, word)?,
            c => self.push(c, word),
        }
        Ok(())
    }

    fn push(&mut self, c: char, word: &mut String) {
        word.push(c);
        self.at += 1;
    }

    /// Reads a backslash and the next character. Before a newline, both are dropped.
    fn escaped(&mut self, word: &mut String) {
        match self.char(1) {
            Some('\n') => self.at += 2,
            next => {
                self.push('\\', word);
                if let Some(next) = next {
                    self.push(next, word);
                }
            }
        }
    }

    fn single_quoted(&mut self, word: &mut String) -> Result<(), ParseError> {
        self.push('\'', word);
        while let Some(c) = self.char(0) {
            self.push(c, word);
            if c == '\'' {
                return Ok(());
            }
        }
        Err(NOT_CLOSED)
    }

    /// Reads what stands before `end`, and `end` itself.
    fn up_to(&mut self, end: char, quoted: bool, word: &mut String) -> Result<(), ParseError> {
        while let Some(c) = self.char(0) {
            if c == end {
                self.push(c, word);
                return Ok(());
            }
            self.piece(c, quoted, word)?;
        }
        Err(NOT_CLOSED)
    }

    /// Reads text up to the next `quote` that is not escaped: a backquoted command, or
    /// `$'...'` as in bash. In dash a backslash in `$'...'` does not escape a quote. If
    /// that makes a difference, the word is not understood.
    fn escaping(&mut self, quote: char, word: &mut String) -> Result<(), ParseError> {
        self.push(quote, word);
        while let Some(c) = self.char(0) {
            self.push(c, word);
            match (c, self.char(0)) {
                (c, _) if c == quote => return Ok(()),
                ('\\', Some(next)) => self.push(next, word),
                _ => {}
            }
        }
        Err(NOT_CLOSED)
    }

    /// Reads a dollar sign and the expansion that it starts. Quotes within `${...}`,
    /// and anything but a calculation within `$((...))`, need no exact parsing: such
    /// words are not understood anyway.
    fn dollar(&mut self, quoted: bool, word: &mut String) -> Result<(), ParseError> {
        self.enter()?;
        self.push('$', word);
        let goes_on = |ahead| self.char(ahead) == Some('\\') && self.char(ahead + 1) == Some('\n');
        match (self.char(0), self.char(1)) {
            _ if goes_on(0) || self.char(0) == Some('(') && goes_on(1) => {
                return Err(ParseError("an expansion in it goes on in the next line"));
            }
            (Some('$'), Some('(' | '{')) => {
                return Err(ParseError("'$$' in it can be read in two ways"));
            }
            (Some('('), Some('(')) => self.calculation(quoted, word)?,
            (Some('('), _) => {
                let from = self.at;
                self.at += 1;
                self.enclosed()?;
                word.extend(self.chars.get(from..self.at).unwrap_or_default());
            }
            (Some('{'), _) => self.up_to('}', quoted, word)?,
            (Some('\''), _) if !quoted => self.escaping('\'', word)?,
            (Some(c), _) if "@*#?-$!".contains(c) => self.push(c, word),
            _ => {}
        }
        self.leave();
        Ok(())
    }

    fn calculation(&mut self, quoted: bool, word: &mut String) -> Result<(), ParseError> {
        let mut open = 0_usize;
        while let Some(c) = self.char(0) {
            self.piece(c, quoted, word)?;
            match c {
                '(' => open += 1,
                ')' if open == 1 => return Ok(()),
                ')' => open -= 1,
                _ => {}
            }
        }
        Err(NOT_CLOSED)
    }

    /// Registers a here-document, whose text follows this line.
    pub(super) fn document(&mut self, mark: &str, tabs: bool) -> Result<(bool, Body), ParseError> {
        const NOT_PLAIN: ParseError = ParseError("the end of a here-document in it is not plain");
        let mut plain = Vec::new();
        let mut quote = None;
        let mut chars = mark.chars();
        while let Some(c) = chars.next() {
            match c {
                '\'' | '"' if quote.is_none() => quote = Some(c),
                c if quote == Some(c) => quote = None,
                '\\' if quote.is_none() => plain.push(chars.next().ok_or(NOT_PLAIN)?),
                c => plain.push(c),
            }
        }
        // An empty line ends one with an empty delimiter. Shells differ on the others.
        if plain.is_empty() || mark.contains(['$', '`', '\n']) || mark.contains("\\\"") {
            self.doubts.push(NOT_PLAIN);
        }
        let body = Body::default();
        self.pending.push(Pending {
            mark: plain,
            tabs,
            body: Body::clone(&body),
        });
        Ok((!mark.contains(['\'', '"', '\\']), body))
    }

    /// Reads the here-documents of the line that just ended.
    fn documents(&mut self) -> Result<(), ParseError> {
        for document in std::mem::take(&mut self.pending) {
            let mut body = String::new();
            loop {
                let rest = self.chars.get(self.at..).unwrap_or_default();
                let end = rest.iter().position(|c| *c == '\n');
                let line = rest.get(..end.unwrap_or(rest.len())).unwrap_or_default();
                let tabs = line.iter().take_while(|c| document.tabs && **c == '\t');
                let text = line.get(tabs.count()..).unwrap_or_default();
                self.at += line.len() + usize::from(end.is_some());
                if text == document.mark {
                    break;
                }
                if end.is_none() {
                    return Err(DOCUMENT_IS_OPEN);
                }
                body.extend(text);
                body.push('\n');
            }
            // Set only once, since the document is taken from the list.
            document.body.get_or_init(|| body);
        }
        Ok(())
    }
}

fn is_operator(c: char) -> bool {
    matches!(c, '|' | '&' | ';' | '<' | '>' | '(' | ')')
}
