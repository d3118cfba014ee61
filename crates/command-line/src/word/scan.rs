//! Scans the text of one word.

use std::iter::Peekable;
use std::str::Chars;

use super::Atom;
use super::calculation::{assigned, assigns, names};
use crate::error::ParseError;
use crate::shell;

/// The maximum nesting of `${` and `$((` in a word. `$(` is parsed separately.
const MAX_DEPTH: usize = 12;

/// The context of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// A word of a command.
    Word,
    /// The value of an assignment, where `~` is also expanded after a colon.
    Assignment,
    /// A here-document whose delimiter is not quoted.
    HereDoc,
}

/// The contents of a word.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scanned {
    pub(crate) atoms: Vec<Atom>,
    /// The programs in command substitutions.
    pub(crate) programs: Vec<String>,
    /// Variables that the word may set: by `${NAME:=value}`, or in a calculation.
    pub(crate) sets: Vec<String>,
    /// Whether a variable is evaluated as a number, which may run a substitution in it.
    pub(crate) numbers: bool,
    /// The atoms with the defaults of unset variables filled in: `${x:-this}`.
    pub(crate) defaults: Option<Vec<Atom>>,
    /// Whether it has quotes.
    pub(crate) quotes: bool,
}

/// Scans a word.
pub(crate) fn scan(text: &str, mode: Mode) -> Result<Scanned, ParseError> {
    let mut scanner = Scanner {
        chars: text.chars().collect(),
        at: 0,
        out: Scanned {
            quotes: text.contains(['\'', '"']),
            ..Scanned::default()
        },
    };
    match mode {
        Mode::HereDoc => scanner.quoted(None)?,
        Mode::Word | Mode::Assignment => scanner.open(mode)?,
    }
    Ok(scanner.out)
}

struct Scanner {
    chars: Vec<char>,
    at: usize,
    out: Scanned,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn next(&mut self) -> Option<char> {
        let c = self.peek(0)?;
        self.at += 1;
        Some(c)
    }

    fn slice(&self, from: usize, to: usize) -> String {
        self.chars
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .collect()
    }

    fn push(&mut self, atom: Atom) {
        self.out.atoms.push(atom);
        if let Some(defaults) = &mut self.out.defaults {
            defaults.push(atom);
        }
    }

    /// Records the value of a parameter if its variable is not set.
    fn default(&mut self, text: &str, atoms: usize) {
        let name = text.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let Some(value) = name.trim_start_matches(':').strip_prefix(['-', '=', '+']) else {
            return;
        };
        // Of nested defaults, take the innermost.
        let value = value.rsplit_once(":-").map_or(value, |(_, value)| value);
        let value = value.trim_end_matches('}');
        let mut defaults = match self.out.defaults.take() {
            Some(defaults) => defaults,
            None => self.out.atoms.get(..atoms).unwrap_or_default().to_vec(),
        };
        if defaults.last() == Some(&Atom::Computed) {
            defaults.pop();
        }
        defaults.extend(value.chars().map(Atom::Open));
        self.out.defaults = Some(defaults);
    }

    fn literal(&mut self, text: &str) {
        for c in text.chars() {
            self.push(Atom::Lit(c));
        }
    }

    /// Text outside of quotes.
    fn open(&mut self, mode: Mode) -> Result<(), ParseError> {
        while let Some(c) = self.peek(0) {
            match c {
                '~' if self.tilde_may_stand_here(mode) => self.tilde()?,
                '$' => self.dollar(false, 0)?,
                '`' => self.backquoted()?,
                '\\' => {
                    self.at += 1;
                    let c = self.next().ok_or(ParseError("a backslash ends the line"))?;
                    self.push(Atom::Lit(c));
                }
                '\'' => {
                    self.at += 1;
                    let text = self.until('\'')?;
                    self.literal(&text);
                }
                '"' => {
                    self.at += 1;
                    self.quoted(Some('"'))?;
                }
                // The lexer ends words before these, so shells would not agree here.
                ' ' | '\t' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => {
                    return Err(ParseError("its quotes can be read in two ways"));
                }
                c => {
                    self.at += 1;
                    self.push(Atom::Open(c));
                }
            }
        }
        Ok(())
    }

    fn tilde_may_stand_here(&self, mode: Mode) -> bool {
        match self.out.atoms.last() {
            None => true,
            Some(Atom::Open('=')) => true,
            Some(Atom::Open(':')) => mode == Mode::Assignment,
            Some(_) => false,
        }
    }

    /// Reads `~` or `~name`.
    fn tilde(&mut self) -> Result<(), ParseError> {
        let name = self.chars.iter().skip(self.at + 1);
        let name: String = name
            .take_while(|c| c.is_ascii_alphanumeric() || "._-+".contains(**c))
            .collect();
        let end = self.at + 1 + name.len();
        if !matches!(self.chars.get(end), None | Some('/' | ':')) {
            self.push(Atom::Open('~'));
            self.at += 1;
            return Ok(());
        }
        self.at = end;
        if !name.is_empty() && self.slice(end, self.chars.len()).contains("..") {
            return Err(ParseError("it leads above the home of another user"));
        }
        // `~+` and `~-` are directories the shell has been in.
        let elsewhere =
            name.starts_with(['+', '-']) || name.starts_with(|c: char| c.is_ascii_digit());
        self.push(if elsewhere {
            Atom::Computed
        } else {
            Atom::Home
        });
        Ok(())
    }

    /// Reads text up to `end`, and skips `end`.
    fn until(&mut self, end: char) -> Result<String, ParseError> {
        let from = self.at;
        while let Some(c) = self.next() {
            if c == end {
                return Ok(self.slice(from, self.at - 1));
            }
        }
        Err(ParseError("a quote is not closed"))
    }

    /// Reads text in double quotes, or a here-document if there is no `end`.
    fn quoted(&mut self, end: Option<char>) -> Result<(), ParseError> {
        while let Some(c) = self.peek(0) {
            match c {
                _ if Some(c) == end => {
                    self.at += 1;
                    return Ok(());
                }
                '$' => self.dollar(true, 0)?,
                '`' => self.backquoted()?,
                '\\' => {
                    self.at += 1;
                    match self.peek(0) {
                        // The shell joins these lines first.
                        Some('\n') if end.is_none() => {
                            return Err(ParseError(
                                "a line of its here-document goes on in the next",
                            ));
                        }
                        Some(c @ ('$' | '`' | '\\')) => {
                            self.at += 1;
                            self.push(Atom::Lit(c));
                        }
                        Some('"') if end.is_some() => {
                            self.at += 1;
                            self.push(Atom::Lit('"'));
                        }
                        Some('\n') => self.at += 1,
                        _ => self.push(Atom::Lit('\\')),
                    }
                }
                c => {
                    self.at += 1;
                    self.push(Atom::Lit(c));
                }
            }
        }
        match end {
            None => Ok(()),
            Some(_) => Err(ParseError("a quote is not closed")),
        }
    }

    fn backquoted(&mut self) -> Result<(), ParseError> {
        self.at += 1;
        let program = self.until('`')?;
        if program.contains('\\') {
            return Err(ParseError("it escapes something between backquotes"));
        }
        self.push(substituted(&program));
        self.out.programs.push(program);
        Ok(())
    }

    /// Reads an expansion that starts with a dollar sign.
    fn dollar(&mut self, quoted: bool, depth: usize) -> Result<(), ParseError> {
        if depth > MAX_DEPTH {
            return Err(ParseError("its expansions are nested too deep"));
        }
        self.at += 1;
        match self.peek(0) {
            Some('\'') if !quoted => {
                self.at += 1;
                let text = self.until('\'')?;
                self.ansi(&text)
            }
            // `$"..."`: the caller reads the quotes next.
            Some('"') if !quoted => Ok(()),
            Some('(') if self.peek(1) == Some('(') => self.arithmetic(depth),
            Some('(') => {
                self.at += 1;
                let from = self.at;
                self.at += shell::enclosed(self.chars.get(from..).unwrap_or_default())?;
                let program = self.slice(from, self.at - 1);
                self.push(substituted(&program));
                self.out.programs.push(program);
                Ok(())
            }
            Some('{') => self.parameter(depth),
            Some('[') => Err(ParseError("'$[' is read differently by different shells")),
            Some(c) if c == '_' || c.is_ascii_alphabetic() => {
                let from = self.at;
                while self
                    .peek(0)
                    .is_some_and(|c| c == '_' || c.is_ascii_alphanumeric())
                {
                    self.at += 1;
                }
                let name = self.slice(from, self.at);
                self.push(variable(&name));
                Ok(())
            }
            Some(c) if c.is_ascii_digit() || "@*#?-$!".contains(c) => {
                self.at += 1;
                self.push(Atom::Computed);
                Ok(())
            }
            _ => {
                self.push(Atom::Lit('$'));
                Ok(())
            }
        }
    }

    /// Reads `$'...'`. `dash` takes it for a dollar sign and a quoted string, which
    /// ends at the same place unless a quote in it is escaped.
    fn ansi(&mut self, text: &str) -> Result<(), ParseError> {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            if c != '\\' {
                self.push(Atom::Lit(c));
                continue;
            }
            match chars.next() {
                None => return Err(ParseError("a quote within $'...' is read in two ways")),
                Some('n') => self.push(Atom::Lit('\n')),
                Some('t') => self.push(Atom::Lit('\t')),
                Some('r') => self.push(Atom::Lit('\r')),
                Some(c @ ('\\' | '"' | '?')) => self.push(Atom::Lit(c)),
                Some('x') => self.numbered(0, 16, 2, 127, &mut chars),
                Some(first @ '0'..='7') => {
                    let first = first.to_digit(8).unwrap_or_default();
                    self.numbered(first, 8, 2, 127, &mut chars);
                }
                Some('u') => self.numbered(0, 16, 4, u32::MAX, &mut chars),
                Some('U') => self.numbered(0, 16, 8, u32::MAX, &mut chars),
                // The other escapes count as computed, which is safe.
                Some(_) => self.push(Atom::Computed),
            }
        }
        Ok(())
    }

    /// Reads up to `count` more digits of the number of a character. A NUL would end the
    /// text for some shells, and bytes above `most` are only parts of characters.
    fn numbered(
        &mut self,
        first: u32,
        radix: u32,
        count: usize,
        most: u32,
        chars: &mut Peekable<Chars<'_>>,
    ) {
        let digits = std::iter::from_fn(|| chars.next_if(|c| c.is_digit(radix))?.to_digit(radix));
        let code = digits
            .take(count)
            .fold(first, |code, digit| code * radix + digit);
        let known = (1..=most).contains(&code).then(|| char::from_u32(code));
        self.push(known.flatten().map_or(Atom::Computed, Atom::Lit));
    }

    /// Reads `$((...))`, if it is plainly arithmetic.
    fn arithmetic(&mut self, depth: usize) -> Result<(), ParseError> {
        const TWO_WAYS: ParseError = ParseError("'$((' does not plainly begin a calculation");
        self.at += 2;
        let from = self.at;
        let mut open = 2;
        // Two names with only blanks between them may be a command.
        let mut operand = false;
        let mut apart = false;
        while let Some(c) = self.peek(0) {
            let begins = c == '$' || c == '_' || c.is_ascii_alphanumeric();
            if begins && operand && apart {
                return Err(TWO_WAYS);
            }
            apart = matches!(c, ' ' | '\t');
            operand = begins || c == ')' || apart && operand;
            match c {
                '$' => {
                    // The value does not matter: the whole calculation is computed.
                    let atoms = self.out.atoms.len();
                    let before = self.at;
                    self.dollar(true, depth + 1)?;
                    self.out.atoms.truncate(atoms);
                    if self.slice(before, self.at).contains("<<") {
                        return Err(TWO_WAYS);
                    }
                    self.out.numbers = true;
                    continue;
                }
                '(' => open += 1,
                ')' => {
                    open -= 1;
                    if open == 1 {
                        if self.peek(1) != Some(')') {
                            return Err(TWO_WAYS);
                        }
                        let text = self.slice(from, self.at);
                        if assigns(&text) {
                            if text.contains('$') {
                                return Err(ParseError("a calculation in it sets a variable"));
                            }
                            self.out.sets.extend(names(&text));
                        }
                        self.at += 2;
                        self.push(Atom::Computed);
                        return Ok(());
                    }
                }
                '_' | 'a'..='z' | 'A'..='Z' => self.out.numbers = true,
                '0'..='9' | ' ' | '\t' => {}
                '+' | '-' | '*' | '/' | '%' | '<' | '>' | '=' | '!' | '&' | '|' | '^' | '~'
                | '?' | ':' | ',' | '#' => {}
                _ => return Err(TWO_WAYS),
            }
            self.at += 1;
        }
        Err(TWO_WAYS)
    }

    /// Reads `${...}`.
    fn parameter(&mut self, depth: usize) -> Result<(), ParseError> {
        const TWO_WAYS: ParseError = ParseError("a '${...}' in it can be read in two ways");
        self.at += 1;
        let from = self.at;
        let atoms = self.out.atoms.len();
        let defaults = self.out.defaults.as_ref().map(Vec::len);
        while let Some(c) = self.peek(0) {
            match c {
                '}' => {
                    let text = self.slice(from, self.at);
                    self.at += 1;
                    self.out.atoms.truncate(atoms);
                    match (defaults, &mut self.out.defaults) {
                        (Some(len), Some(defaults)) => defaults.truncate(len),
                        (_, defaults) => *defaults = None,
                    }
                    let after_colon = text.split_once(':').map(|(_, rest)| rest);
                    let slices =
                        after_colon.is_some_and(|rest| !rest.starts_with(['-', '=', '?', '+']));
                    // `${!x}` evaluates an index in the value of `x`.
                    if slices || text.contains('[') || text.starts_with('!') {
                        self.out.numbers = true;
                        self.out.sets.extend(assigned(&text));
                    }
                    if let Some((name, _)) = text.split_once('=') {
                        let name = name.strip_suffix(':').unwrap_or(name);
                        self.out.sets.push(name.to_owned());
                    }
                    // `${x@P}` runs the contents of `x`.
                    let transforms = text
                        .split_once('@')
                        .is_some_and(|(_, op)| op.starts_with(|c: char| c.is_ascii_alphabetic()));
                    if transforms {
                        return Err(TWO_WAYS);
                    }
                    self.push(variable(&text));
                    self.default(&text, atoms);
                    return Ok(());
                }
                '$' => {
                    self.dollar(true, depth + 1)?;
                    continue;
                }
                '`' => {
                    self.backquoted()?;
                    continue;
                }
                '\'' | '"' | '\\' | '{' | '(' | ')' | '<' | '>' | ';' | '&' | '|' | '\n' => {
                    return Err(TWO_WAYS);
                }
                _ => self.at += 1,
            }
        }
        Err(TWO_WAYS)
    }
}

/// Returns the atom that a variable expands to.
fn variable(name: &str) -> Atom {
    match name {
        "HOME" => Atom::Home,
        "PWD" => Atom::Here,
        _ => Atom::Computed,
    }
}

/// Returns the atom that a command substitution expands to.
fn substituted(program: &str) -> Atom {
    match program.trim() {
        "pwd" | "pwd -P" | "pwd -L" => Atom::Here,
        _ => Atom::Computed,
    }
}
