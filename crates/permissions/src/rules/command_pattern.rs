//! Matches commands against rule patterns.
//!
//! A word of a command may be computed, so both the pattern and the command can contain
//! wildcards. A rule that denies matches if some text for the computed parts makes the
//! pattern match. A rule that allows matches only if the pattern has a `*` wherever the
//! command has a computed part.

use command_line::{Word, WordPart};

/// One step of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Char(char),
    /// The gap between two words.
    Gap,
    /// `?`
    One,
    /// `*`
    Star,
}

/// One element of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Element {
    Char(char),
    /// The gap between two words.
    Gap,
    /// Any text, possibly several words.
    Any,
}

/// A compiled pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Compiled {
    steps: Vec<Step>,
    /// The first word, if it has no wildcards.
    program: Option<String>,
    /// The pattern without its options, and the options.
    options: Option<(Vec<Step>, Options)>,
}

/// A command, prepared for matching.
pub(crate) struct Form {
    written: Vec<Element>,
    /// The command with the program's name in lower case, without its directory.
    base: Vec<Element>,
    /// Like `base`, without the options.
    bare: Vec<Element>,
    options: Options,
}

/// A set of options, regardless of bundling.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Options {
    letters: Vec<char>,
    longs: Vec<String>,
}

/// Long options, and the letters that most programs use for them.
const LETTERS: &[(&str, char)] = &[
    ("--recursive", 'r'),
    ("--force", 'f'),
    ("--all", 'a'),
    ("--verbose", 'v'),
    ("--interactive", 'i'),
    ("--quiet", 'q'),
    ("--delete", 'd'),
];

impl Options {
    /// Adds `word` if it is an option, and returns whether it is.
    fn take(&mut self, word: &str) -> bool {
        if let Some((_, letter)) = LETTERS
            .iter()
            .find(|(long, _)| word.len() > 3 && long.starts_with(word))
        {
            self.letters.push(*letter);
            return true;
        }
        if word.starts_with("--") && word.len() > 2 {
            self.longs.push(word.to_owned());
            return true;
        }
        match word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            Some(letters) if letters.chars().all(|c| c.is_ascii_alphabetic()) => {
                // For the commands that matter, `-R` and `-r` mean the same.
                self.letters
                    .extend(letters.chars().map(|c| if c == 'R' { 'r' } else { c }));
                true
            }
            _ => false,
        }
    }

    fn has_all(&self, wanted: &Self) -> bool {
        wanted
            .letters
            .iter()
            .all(|letter| self.letters.contains(letter))
            && wanted.longs.iter().all(|long| self.longs.contains(long))
    }
}

impl Compiled {
    /// Compiles a pattern. Returns `None` if it ends within a quote or an escape.
    pub(crate) fn new(pattern: &str) -> Option<Self> {
        let words = read(pattern)?;
        let mut options = Options::default();
        let bare = words.iter().enumerate().filter(|(at, word)| {
            *at == 0 || !literal(word).is_some_and(|text| options.take(&text))
        });
        let bare: Vec<Vec<Step>> = bare.map(|(_, word)| word.clone()).collect();
        Some(Self {
            program: words.first().and_then(|word| literal(word)),
            options: (options != Options::default()).then(|| (join(&bare), options)),
            steps: join(&words),
        })
    }

    pub(crate) fn program(&self) -> Option<&str> {
        self.program.as_deref()
    }

    /// Returns the approximate cost of matching: one step for each step of the pattern
    /// and sixteen characters of the command, unless the first characters differ.
    pub(crate) fn cost(&self, form: &Form) -> usize {
        let first = (self.steps.first(), form.base.first(), form.written.first());
        match first {
            (Some(Step::Char(a)), Some(Element::Char(b)), Some(Element::Char(c)))
                if a != b && a != c =>
            {
                1
            }
            _ => 1 + self.steps.len() * form.written.len() / 16,
        }
    }

    /// Whether the pattern matches the command for some value of the computed parts.
    pub(crate) fn could_be(&self, form: &Form) -> bool {
        let could = |steps: &[Step], elements: &[Element]| matches(steps, elements, true);
        could(&self.steps, &form.written)
            || could(&self.steps, &form.base)
            || self.options.as_ref().is_some_and(|(steps, options)| {
                form.options.has_all(options) && could(steps, &form.bare)
            })
    }

    /// Whether the pattern matches the command for all values of the computed parts.
    pub(crate) fn is_all_of(&self, form: &Form) -> bool {
        matches(&self.steps, &form.written, false)
    }
}

impl Form {
    /// Creates a command of known words.
    pub(crate) fn literal(words: &[&str]) -> Self {
        let words: Vec<Word> = words.iter().map(|word| Word::text(word)).collect();
        Self::new(&words)
    }

    pub(crate) fn new(words: &[Word]) -> Self {
        let written: Vec<Vec<Element>> = words.iter().map(elements).collect();
        let mut base = written.clone();
        if let Some(first) = base.first_mut() {
            if let Some(slash) = first
                .iter()
                .rposition(|element| *element == Element::Char('/'))
            {
                first.drain(..=slash);
            }
            for element in first.iter_mut() {
                if let Element::Char(c) = element {
                    *c = c.to_ascii_lowercase();
                }
            }
        }
        let mut options = Options::default();
        let bare: Vec<Vec<Element>> = words
            .iter()
            .zip(&base)
            .enumerate()
            .filter(|(at, (word, _))| {
                *at == 0
                    || word.literal() != Some("--")
                        && !word.literal().is_some_and(|text| options.take(text))
            })
            .map(|(_, (_, elements))| elements.clone())
            .collect();
        Self {
            written: written.join(&Element::Gap),
            base: base.join(&Element::Gap),
            bare: bare.join(&Element::Gap),
            options,
        }
    }
}

fn elements(word: &Word) -> Vec<Element> {
    let mut elements = Vec::new();
    for part in word.parts() {
        match part {
            WordPart::Text(text) => elements.extend(text.chars().map(Element::Char)),
            WordPart::Home => elements.push(Element::Char('~')),
            WordPart::Glob(_) | WordPart::Here | WordPart::Computed => elements.push(Element::Any),
        }
    }
    elements
}

fn join(words: &[Vec<Step>]) -> Vec<Step> {
    words.join(&Step::Gap)
}

fn literal(word: &[Step]) -> Option<String> {
    word.iter()
        .map(|step| match step {
            Step::Char(c) => Some(*c),
            _ => None,
        })
        .collect()
}

fn read(pattern: &str) -> Option<Vec<Vec<Step>>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<Step>> = None;
    let mut quote = None;
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('\\', _) => word.get_or_insert_default().push(Step::Char(chars.next()?)),
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            ('*', None) => word.get_or_insert_default().push(Step::Star),
            ('?', None) => word.get_or_insert_default().push(Step::One),
            (c, _) => word.get_or_insert_default().push(Step::Char(c)),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// Whether the steps match the elements. With `could`, [`Element::Any`] may stand for
/// any text that makes them match; without it, only a star matches it.
fn matches(steps: &[Step], elements: &[Element], could: bool) -> bool {
    if let [rest @ .., Step::Gap, Step::Star] = steps
        && walk(rest, elements, could)
    {
        return true;
    }
    walk(steps, elements, could)
}

fn walk(steps: &[Step], elements: &[Element], could: bool) -> bool {
    // Most rules differ in the first character.
    if let (Some(Step::Char(a)), Some(Element::Char(b))) = (steps.first(), elements.first())
        && a != b
    {
        return false;
    }
    // `reached[n]`: the first `n` steps match the elements so far.
    let mut reached = vec![false; steps.len() + 1];
    if let Some(first) = reached.first_mut() {
        *first = true;
    }
    close(steps, &mut reached, false);
    for element in elements {
        let any = could && *element == Element::Any;
        let mut next = vec![false; steps.len() + 1];
        let mut alive = false;
        for (at, step) in steps.iter().enumerate() {
            if !reached.get(at).copied().unwrap_or_default() {
                continue;
            }
            let (stays, moves) = match (step, element) {
                (Step::Star, _) => (true, false),
                (Step::Char(a), Element::Char(b)) => (false, a == b),
                (Step::Gap, Element::Gap) | (Step::One, Element::Char(_)) => (false, true),
                _ => (false, false),
            };
            for (to, yes) in [(at, stays || any), (at + 1, moves)] {
                if yes && let Some(slot) = next.get_mut(to) {
                    *slot = true;
                    alive = true;
                }
            }
        }
        if any
            && reached.last() == Some(&true)
            && let Some(slot) = next.last_mut()
        {
            *slot = true;
            alive = true;
        }
        if !alive {
            return false;
        }
        close(steps, &mut next, any);
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

/// Skips stars, which may match nothing, and any step if the last element may be any text.
fn close(steps: &[Step], reached: &mut [bool], any: bool) {
    let mut before = false;
    for (at, slot) in reached.iter_mut().enumerate() {
        let skips = at
            .checked_sub(1)
            .and_then(|at| steps.get(at))
            .is_some_and(|step| any || *step == Step::Star);
        *slot |= before && skips;
        before = *slot;
    }
}

#[cfg(test)]
mod tests;
