//! Words of a command line, and the part of their text that is known before they run.
//!
//! `shell` finds the start and end of a word. Its contents are read here, in one pass
//! and without backtracking. Words that `dash` and `bash` read differently are
//! rejected.

#[cfg(feature = "shell")]
use crate::budget::StepBudget;
use crate::glob::{ANY, BracketKind, bracket};

#[cfg(feature = "shell")]
mod brace;
#[cfg(feature = "shell")]
mod calculation;
#[cfg(feature = "shell")]
mod scan;

#[cfg(feature = "shell")]
pub(crate) use calculation::assigned;
#[cfg(feature = "shell")]
pub(crate) use scan::{Mode, Scanned, scan};

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordPart {
    /// Known text.
    Text(String),
    /// `*`, `?` or `[...]`, to be matched against file names.
    Glob(String),
    /// Some user's home directory.
    Home,
    /// The current directory of the shell.
    Here,
    /// Text known only when the command runs.
    Computed,
}

/// One character of a word, before braces are expanded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Atom {
    /// A quoted character, which stands for itself.
    Lit(char),
    /// An unquoted character, which may be part of a glob or a brace expression.
    Open(char),
    /// See [`WordPart::Home`].
    Home,
    /// See [`WordPart::Here`].
    Here,
    /// See [`WordPart::Computed`].
    Computed,
}

/// A word, with the known part of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Word {
    parts: Vec<WordPart>,
    /// The whole text, if all of it is known.
    literal: Option<String>,
    /// Whether a substitution in the word downloads or decodes something.
    pub(crate) fetches: bool,
}

impl Word {
    /// Creates a word of known text.
    pub fn text(text: &str) -> Self {
        Self::from_parts(vec![WordPart::Text(text.to_owned())])
    }

    /// Creates a word in which the wildcards of `text` are globs.
    pub(crate) fn pattern(text: &str) -> Self {
        let atoms: Vec<Atom> = text.chars().map(Atom::Open).collect();
        Self::from_atoms(&atoms)
    }

    /// Creates a word of which nothing is known.
    pub fn computed() -> Self {
        Self::from_parts(vec![WordPart::Computed])
    }

    fn from_parts(parts: Vec<WordPart>) -> Self {
        let literal = parts
            .iter()
            .map(|part| match part {
                WordPart::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        Self {
            parts,
            literal,
            fetches: false,
        }
    }

    pub(crate) fn from_atoms(atoms: &[Atom]) -> Self {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut at = 0;
        // After a bracket that is not closed, none is until the next slash.
        let mut closed = true;
        while let Some(atom) = atoms.get(at) {
            let rest = atoms.get(at..).unwrap_or_default();
            let (len, part) = match atom {
                Atom::Open(c @ ('*' | '?')) => (1, Some(WordPart::Glob(c.to_string()))),
                Atom::Open('[') if closed => match class(rest) {
                    Some((len, part)) => (len, Some(part)),
                    None => {
                        closed = false;
                        (1, None)
                    }
                },
                Atom::Home => (1, Some(WordPart::Home)),
                Atom::Here => (1, Some(WordPart::Here)),
                Atom::Computed => (1, Some(WordPart::Computed)),
                Atom::Lit(_) | Atom::Open(_) => (1, None),
            };
            at += len;
            match (part, atom) {
                (Some(part), _) => {
                    if !text.is_empty() {
                        parts.push(WordPart::Text(std::mem::take(&mut text)));
                    }
                    parts.push(part);
                }
                (None, Atom::Lit(c) | Atom::Open(c)) => {
                    closed |= *c == '/';
                    text.push(*c);
                }
                (None, _) => {}
            }
        }
        if !text.is_empty() || parts.is_empty() {
            parts.push(WordPart::Text(text));
        }
        Self::from_parts(parts)
    }

    /// Returns the approximate length in bytes.
    pub(crate) fn len(&self) -> usize {
        let len = |part: &WordPart| match part {
            WordPart::Text(text) | WordPart::Glob(text) => text.len(),
            WordPart::Home | WordPart::Here | WordPart::Computed => 1,
        };
        self.parts.iter().map(len).sum()
    }

    /// Returns the parts of the word, in order.
    pub fn parts(&self) -> &[WordPart] {
        &self.parts
    }

    /// Returns the text, if all of it is known.
    pub fn literal(&self) -> Option<&str> {
        self.literal.as_deref()
    }

    /// Whether it is known to be `text`.
    pub(crate) fn is(&self, text: &str) -> bool {
        self.literal() == Some(text)
    }

    /// Whether it is known to be one of `texts`.
    pub(crate) fn is_any(&self, texts: &[&str]) -> bool {
        self.literal().is_some_and(|text| texts.contains(&text))
    }

    /// Whether some of the text is known only when the command runs.
    pub(crate) fn is_computed(&self) -> bool {
        let computed = |part: &WordPart| matches!(part, WordPart::Computed | WordPart::Here);
        self.parts.iter().any(computed)
    }

    /// Whether the word is not even known as a path. The shell's directory or a home at
    /// the start is known as one.
    pub(crate) fn is_unknown(&self) -> bool {
        let unknown = |(at, part): (usize, &WordPart)| match part {
            WordPart::Computed => true,
            WordPart::Here | WordPart::Home => at > 0,
            WordPart::Text(_) | WordPart::Glob(_) => false,
        };
        self.parts.iter().enumerate().any(unknown)
    }

    /// Whether the word is matched against file names.
    pub(crate) fn is_glob(&self) -> bool {
        self.parts
            .iter()
            .any(|part| matches!(part, WordPart::Glob(_)))
    }

    /// Whether the known text at the start begins with `prefix`.
    pub(crate) fn starts_with(&self, prefix: &str) -> bool {
        matches!(self.parts.first(), Some(WordPart::Text(text)) if text.starts_with(prefix))
    }

    /// Returns the first character, if it is known.
    pub(crate) fn first_char(&self) -> Option<char> {
        match self.parts.first() {
            Some(WordPart::Text(text)) => text.chars().next(),
            _ => None,
        }
    }

    /// Returns the word without `prefix`, if its known text starts with it.
    pub(crate) fn strip_prefix(&self, prefix: &str) -> Option<Self> {
        let (first, rest) = self.parts.split_first()?;
        let WordPart::Text(text) = first else {
            return None;
        };
        let mut parts = vec![WordPart::Text(text.strip_prefix(prefix)?.to_owned())];
        parts.extend_from_slice(rest);
        let mut word = Self::from_parts(parts);
        word.fetches = self.fetches;
        Some(word)
    }

    /// Splits the word at the marks. They and empty pieces are left out.
    pub(crate) fn split(&self, is_mark: impl Fn(char) -> bool) -> Vec<Self> {
        let mut pieces = vec![Vec::new()];
        for part in &self.parts {
            let WordPart::Text(text) = part else {
                if let Some(last) = pieces.last_mut() {
                    last.push(part.clone());
                }
                continue;
            };
            for (number, text) in text.split(&is_mark).enumerate() {
                if number > 0 {
                    pieces.push(Vec::new());
                }
                if let Some(last) = pieces.last_mut().filter(|_| !text.is_empty()) {
                    last.push(WordPart::Text(text.to_owned()));
                }
            }
        }
        pieces.retain(|parts| !parts.is_empty());
        pieces.into_iter().map(Self::from_parts).collect()
    }

    /// Returns the word with every `token` replaced by a computed part.
    pub(crate) fn computing(&self, token: &str) -> Self {
        let mut parts = Vec::new();
        for part in &self.parts {
            let WordPart::Text(text) = part else {
                parts.push(part.clone());
                continue;
            };
            for (number, text) in text.split(token).enumerate() {
                if number > 0 {
                    parts.push(WordPart::Computed);
                }
                if !text.is_empty() {
                    parts.push(WordPart::Text(text.to_owned()));
                }
            }
        }
        let mut word = Self::from_parts(parts);
        word.fetches = self.fetches;
        word
    }

    /// Joins `name` to the word as a path.
    pub(crate) fn beneath(&self, name: &Self) -> Self {
        let mut parts = self.parts.clone();
        parts.push(WordPart::Text("/".to_owned()));
        parts.extend_from_slice(&name.parts);
        Self::from_parts(parts)
    }

    /// Returns the word with every computed part replaced by `value`.
    pub(crate) fn filled(&self, value: &Self) -> Self {
        let mut parts = Vec::new();
        for part in &self.parts {
            match part {
                WordPart::Computed => parts.extend_from_slice(&value.parts),
                part => parts.push(part.clone()),
            }
        }
        Self::from_parts(parts)
    }

    /// Splits the word at the first `=` of the known text at its start.
    pub(crate) fn split_equals(&self) -> Option<(String, Self)> {
        let Some(WordPart::Text(text)) = self.parts.first() else {
            return None;
        };
        let (name, _) = text.split_once('=')?;
        let value = self.strip_prefix(&format!("{name}="))?;
        Some((name.to_owned(), value))
    }

    /// Returns the word as displayed to users.
    pub fn shown(&self) -> String {
        let mut shown = String::new();
        for part in &self.parts {
            match part {
                WordPart::Text(text) | WordPart::Glob(text) => shown.push_str(text),
                WordPart::Home => shown.push('~'),
                WordPart::Here => shown.push_str("$PWD"),
                WordPart::Computed => shown.push_str("$(?)"),
            }
        }
        shown
    }
}

/// Reads the bracket expression at the start of `atoms`. Returns its length too.
fn class(atoms: &[Atom]) -> Option<(usize, WordPart)> {
    let symbol = |at: usize| match atoms.get(at)? {
        Atom::Lit('/') | Atom::Open('/') => None,
        Atom::Lit(c) => Some((*c, true)),
        Atom::Open(c) => Some((*c, false)),
        Atom::Home | Atom::Here | Atom::Computed => None,
    };
    let Some((len, reading)) = bracket(symbol) else {
        return computed_class(atoms);
    };
    let glob = match reading {
        BracketKind::Any => ANY.to_owned(),
        BracketKind::Loose => format!("{ANY}*"),
        BracketKind::Exact => (0..len).filter_map(|at| Some(symbol(at)?.0)).collect(),
    };
    Some((len, WordPart::Glob(glob)))
}

/// Reads a bracket that a computed part may close.
fn computed_class(atoms: &[Atom]) -> Option<(usize, WordPart)> {
    let slash = |atom: &Atom| matches!(atom, Atom::Lit('/') | Atom::Open('/'));
    let end = atoms.iter().position(slash).unwrap_or(atoms.len());
    let atoms = atoms.get(..end)?;
    let computed = |atom: &Atom| matches!(atom, Atom::Home | Atom::Here | Atom::Computed);
    let last = atoms.iter().rposition(computed)?;
    let rest = atoms.get(last..)?;
    let close = rest.iter().position(|atom| *atom == Atom::Open(']'));
    Some((last + close.unwrap_or(0) + 1, WordPart::Computed))
}

/// The expansion of a word: the words as `bash` expands them and, if that differs, the
/// single word of `dash`, which has no brace expansion.
pub(crate) struct Expanded {
    pub(crate) words: Vec<Word>,
    pub(crate) plain: Option<Word>,
    /// Whether these are not all of the words, or not only those.
    pub(crate) cut: bool,
}

impl Expanded {
    pub(crate) fn one(word: Word) -> Self {
        Self {
            words: vec![word],
            plain: None,
            cut: false,
        }
    }
}

/// Expands the braces of a scanned word.
#[cfg(feature = "shell")]
pub(crate) fn expand(scanned: &Scanned, budget: &StepBudget<'_>) -> Expanded {
    let brackets = scanned
        .atoms
        .iter()
        .filter(|atom| **atom == Atom::Open('['));
    let expanded = brace::expand(&scanned.atoms, budget);
    let words = expanded.as_ref().map_or(1, Vec::len);
    // The end of each bracket expression is searched for in each word.
    let search = brackets.count().saturating_mul(scanned.atoms.len()) / 8;
    if !budget.charge(search.saturating_mul(words)) {
        return Expanded {
            cut: true,
            ..Expanded::one(Word::computed())
        };
    }
    match expanded {
        None => Expanded::one(Word::from_atoms(&scanned.atoms)),
        Some(mut all) => {
            let too_many = all.is_empty();
            // An empty member is left out, unless it is quoted: `{,rm} x` runs `rm`.
            let empty = all.iter().any(Vec::is_empty);
            if !scanned.quotes {
                all.retain(|atoms| !atoms.is_empty());
            }
            Expanded {
                cut: too_many || empty && scanned.quotes,
                words: if too_many {
                    vec![Word::computed()]
                } else {
                    all.iter().map(|atoms| Word::from_atoms(atoms)).collect()
                },
                plain: Some(Word::from_atoms(&scanned.atoms)),
            }
        }
    }
}

#[cfg(feature = "shell")]
#[cfg(test)]
mod tests;
