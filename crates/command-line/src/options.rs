//! Parses a program's options the way the program itself does.
//!
//! The options of a program are described by one [`Row`]: two getopt-like strings in
//! which a mark after an option says what its value is for. [`parse`] handles bundles
//! (`-ix`), glued values (`-o/x`), `--long=value`, values in the next word, unambiguous
//! abbreviations (`--upl`) and `--`. A word that looks like an option but is none of
//! these is reported, never skipped.

use crate::word::Word;

/// The effect of an option, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionEffect {
    /// No effect, and no value.
    Flag,
    /// Takes a value that does not matter. `:`
    Value,
    /// The value is run by a shell. `!`
    Runs,
    /// The value is a program, and the operands are its arguments. `&`
    Starts,
    /// The value is a file that is written. `>`
    Writes,
    /// The value is a file that is read. `<`
    Reads,
    /// The value is a directory that is written into. `/`
    WritesInto,
    /// Takes a value, and can make the program run something. `@`
    MayRun,
    /// Takes no value, and can make the program run something. `*`
    MayRunAlone,
    /// Makes the program run nothing else. `^`
    Stops,
    /// The value is the directory that the program changes to first. `%`
    EntersDirectory,
}

/// The names and options of one program.
///
/// `short` begins with `+` if the first operand ends the options, and with `=` if the
/// first word may be a bundle without a dash, as for `tar`. `#` stands for numbers, as
/// in `nice -5`. An option letter that is itself a mark is escaped with a backslash.
/// After an option, `?` means that its value is optional and must be glued; the marks
/// of [`OptionEffect`] mean that it takes a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row {
    pub(crate) names: &'static str,
    pub(crate) short: &'static str,
    pub(crate) long: &'static str,
    /// For a launcher, the number of operands before the program that it starts.
    pub(crate) skip: usize,
    /// Whether `NAME=value` words may precede that program.
    pub(crate) assigns: bool,
    /// Whether the launcher needs a rule of its own, because it changes the user or the
    /// environment that the program runs in, or is rare.
    pub(crate) counts: bool,
    /// Whether the operands are joined and passed to a shell.
    pub(crate) joins: bool,
    /// Whether the launcher starts a shell if no program is named.
    pub(crate) shell: bool,
}

impl Row {
    pub(crate) const fn new(names: &'static str, short: &'static str, long: &'static str) -> Self {
        Self {
            names,
            short,
            long,
            skip: 0,
            assigns: false,
            counts: false,
            joins: false,
            shell: false,
        }
    }

    pub(crate) const fn skip(mut self, operands: usize) -> Self {
        self.skip = operands;
        self
    }

    pub(crate) const fn assigns(mut self) -> Self {
        self.assigns = true;
        self
    }

    pub(crate) const fn counts(mut self) -> Self {
        self.counts = true;
        self
    }

    pub(crate) const fn joins(mut self) -> Self {
        self.joins = true;
        self
    }

    pub(crate) const fn shell(mut self) -> Self {
        self.shell = true;
        self
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.names.split(' ').any(|known| known == name)
    }
}

/// An option found on the command line.
#[derive(Debug, Clone)]
pub(crate) struct Given {
    /// The name as spelled in the table: `x` or `exec`.
    pub(crate) name: String,
    pub(crate) effect: OptionEffect,
    pub(crate) value: Option<Word>,
    /// Index of the first word after the option and its value.
    pub(crate) next: usize,
}

/// The parsed arguments of a program.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) options: Vec<Given>,
    /// Indexes of the operands among the words.
    pub(crate) operands: Vec<usize>,
    /// Unknown options, as written.
    pub(crate) unknown: Vec<String>,
}

impl Parsed {
    /// Returns the options with one of these names.
    pub(crate) fn given<'p>(&'p self, names: &'p [&str]) -> impl Iterator<Item = &'p Given> {
        let is = move |given: &&Given| names.contains(&given.name.as_str());
        self.options.iter().filter(is)
    }

    /// Returns the operands, which are among `words`.
    pub(crate) fn operands<'w>(&self, words: &'w [Word]) -> impl Iterator<Item = &'w Word> {
        self.operands.iter().filter_map(move |at| words.get(*at))
    }

    fn give(&mut self, name: &str, kind: Kind, value: Option<Word>, next: usize) {
        self.options.push(Given {
            name: name.to_owned(),
            effect: kind.effect,
            value,
            next,
        });
    }

    pub(crate) fn has(&self, names: &[&str]) -> bool {
        self.given(names).next().is_some()
    }
}

/// The effect of an option, and whether its value is optional.
#[derive(Debug, Clone, Copy)]
struct Kind {
    effect: OptionEffect,
    optional: bool,
}

impl Kind {
    /// Whether giving the option makes a difference.
    fn matters(self) -> bool {
        !matches!(self.effect, OptionEffect::Flag | OptionEffect::Value)
    }

    fn has_value(self) -> bool {
        !matches!(
            self.effect,
            OptionEffect::Flag | OptionEffect::MayRunAlone | OptionEffect::Stops
        )
    }
}

/// Parses the kind at the start of `marks`.
fn kind(marks: &str) -> Kind {
    let optional = marks.starts_with('?');
    let rest = marks.strip_prefix('?').unwrap_or(marks);
    let effect = match rest.chars().next() {
        Some(':') => Some(OptionEffect::Value),
        Some('!') => Some(OptionEffect::Runs),
        Some('&') => Some(OptionEffect::Starts),
        Some('>') => Some(OptionEffect::Writes),
        Some('<') => Some(OptionEffect::Reads),
        Some('/') => Some(OptionEffect::WritesInto),
        Some('@') => Some(OptionEffect::MayRun),
        Some('*') => Some(OptionEffect::MayRunAlone),
        Some('^') => Some(OptionEffect::Stops),
        Some('%') => Some(OptionEffect::EntersDirectory),
        _ => None,
    };
    let otherwise = if optional {
        OptionEffect::Value
    } else {
        OptionEffect::Flag
    };
    let effect = effect.unwrap_or(otherwise);
    Kind { effect, optional }
}

fn short_kind(short: &str, letter: char) -> Option<Kind> {
    let at = match letter {
        letter if letter.is_ascii_alphanumeric() => short.find(letter)?,
        mark => short.find(&format!("\\{mark}"))? + 1,
    };
    Some(kind(short.get(at + 1..).unwrap_or_default()))
}

/// Whether numbers are accepted as short options.
fn takes_numbers(short: &str) -> bool {
    short.replace("\\#", "").contains('#')
}

/// Finds the option that `name` is or abbreviates. If it abbreviates several, one that
/// matters is picked: that can only be too strict.
fn long_kind<'t>(long: &'t str, name: &str) -> Option<(&'t str, Kind)> {
    let mut found: Option<(&str, Kind)> = None;
    let mut several = false;
    for entry in long.split_ascii_whitespace() {
        let end = entry
            .find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c))
            .unwrap_or(entry.len());
        let (known, marks) = entry.split_at(end);
        if !known.starts_with(name) {
            continue;
        }
        let kind = kind(marks);
        if known == name {
            return Some((known, kind));
        }
        match found {
            Some((_, other)) if other.matters() => {}
            Some(_) if !kind.matters() => several = true,
            _ => {
                found = Some((known, kind));
                several = false;
            }
        }
    }
    found.filter(|_| !several)
}

/// Parses the arguments of a program, whose name is the first of `words`.
pub(crate) fn parse(row: &Row, words: &[Word]) -> Parsed {
    parse_with(row, &[], words)
}

/// Like [`parse`], with `more` long options of which only the names are known.
pub(crate) fn parse_with(row: &Row, more: &[&str], words: &[Word]) -> Parsed {
    let short = row.short;
    let mut parsed = Parsed::default();
    let mut at = 1;
    if short.starts_with('=')
        && let Some(text) = words.get(1).and_then(Word::literal)
        && !text.starts_with('-')
    {
        at = old_bundle(short, text, words, &mut parsed);
    }
    // Whether the next word may be the value of the option just read.
    let mut loose = false;
    while let Some(word) = words.get(at) {
        at += 1;
        let was_loose = std::mem::take(&mut loose);
        if !word.starts_with("-") || word.is("-") {
            parsed.operands.push(at - 1);
            if short.starts_with('+') {
                break;
            }
        } else if word.is("--") {
            if !was_loose {
                break;
            }
        } else if word.starts_with("--") {
            match one_long(row, word, words.get(at), at, &mut parsed) {
                Some(taken) => at += taken,
                None if knows(more, word) => loose = word.split_equals().is_none(),
                None => parsed.unknown.push(word.shown()),
            }
        } else {
            at += bundle(short, word, words.get(at), at, &mut parsed);
        }
    }
    parsed.operands.extend(at..words.len());
    parsed
}

/// Whether `word` is or abbreviates one of the long options in `more`, which is sorted.
fn knows(more: &[&str], word: &Word) -> bool {
    let name = match word.split_equals() {
        Some((name, _)) => name,
        None => word.literal().unwrap_or_default().to_owned(),
    };
    let name = name.strip_prefix("--").unwrap_or_default();
    let name = name.strip_prefix("no-").unwrap_or(name);
    let at = more.partition_point(|known| *known < name);
    !name.is_empty() && more.get(at).is_some_and(|known| known.starts_with(name))
}

/// Parses `--name`, `--name=value` or `--name value`. Returns how many more words it
/// takes, or `None` if there is no such option.
fn one_long(
    row: &Row,
    word: &Word,
    next: Option<&Word>,
    at: usize,
    parsed: &mut Parsed,
) -> Option<usize> {
    let glued = word.split_equals();
    let name = match &glued {
        Some((name, _)) => name.clone(),
        None => word.literal()?.to_owned(),
    };
    let name = name.strip_prefix("--").unwrap_or(&name);
    if takes_numbers(row.short) && name.bytes().all(|b| b.is_ascii_digit()) {
        return Some(0);
    }
    let negated = name.strip_prefix("no-");
    let Some((known, kind)) = long_kind(row.long, name) else {
        // The negation does not have the effect of the option.
        return negated
            .and_then(|name| long_kind(row.long, name))
            .map(|_| 0);
    };
    let takes_next = glued.is_none() && kind.has_value() && !kind.optional;
    let value = match glued {
        Some((_, value)) => Some(value),
        None if takes_next => next.cloned(),
        None => None,
    };
    parsed.give(known, kind, value, at + usize::from(takes_next));
    Some(usize::from(takes_next))
}

/// Parses `-xyz`. Returns how many more words it takes.
fn bundle(short: &str, word: &Word, next: Option<&Word>, at: usize, parsed: &mut Parsed) -> usize {
    let mut rest = word.strip_prefix("-").unwrap_or_else(|| word.clone());
    let is_number = |text: &str| {
        let digits = text.trim_start_matches(['+', '-']);
        digits.bytes().all(|b| b.is_ascii_digit())
    };
    if takes_numbers(short) && rest.literal().is_some_and(is_number) {
        return 0;
    }
    // No real bundle has more letters than this.
    for _ in 0..64 {
        if rest.is("") {
            return 0;
        }
        let letter = rest.first_char();
        // A computed part could be any letter.
        let Some((letter, kind)) = letter.and_then(|c| Some((c, short_kind(short, c)?))) else {
            break;
        };
        rest = rest
            .strip_prefix(letter.encode_utf8(&mut [0; 4]))
            .unwrap_or_else(|| Word::text(""));
        let empty = rest.is("");
        let takes_next = kind.has_value() && empty && !kind.optional;
        let value = match kind.has_value() {
            true if takes_next => next.cloned(),
            true if !empty => Some(rest.clone()),
            _ => None,
        };
        let next = at + usize::from(takes_next);
        parsed.give(letter.encode_utf8(&mut [0; 4]), kind, value, next);
        if kind.has_value() {
            return usize::from(takes_next);
        }
    }
    parsed.unknown.push(word.shown());
    0
}

/// Returns the values of `options`, for a program whose other options are not known.
/// Any word that may be such a value is included.
pub(crate) fn values_of(options: &[&str], words: &[Word]) -> Vec<Word> {
    let mut values = Vec::new();
    for (at, word) in words.iter().enumerate().skip(1) {
        let glued = word.split_equals();
        let name = match &glued {
            Some((name, _)) => name.clone(),
            None => word.shown(),
        };
        for option in options {
            let rest = match option.strip_prefix("--") {
                Some(_) => {
                    let abbreviates = name.len() > 2 && option.starts_with(&name);
                    abbreviates.then(|| glued.clone().map(|(_, value)| value))
                }
                None if word.starts_with("--") || !word.starts_with("-") => None,
                None => {
                    let letter = option.trim_start_matches('-');
                    let text = word.shown();
                    let end = text.find(letter).map(|start| start + letter.len());
                    end.and_then(|end| word.strip_prefix(text.get(..end)?))
                        .map(|rest| Some(rest).filter(|rest| !rest.is("")))
                }
            };
            match rest {
                Some(Some(value)) => values.push(value),
                Some(None) => values.extend(words.get(at + 1).cloned()),
                None => {}
            }
        }
    }
    values
}

/// Whether the text is a bundle of short options.
pub(crate) fn is_bundle(text: &str) -> bool {
    text.starts_with('-') && !text.starts_with("--")
}

/// Whether the word is one of `options`, possibly bundled or abbreviated.
pub(crate) fn has_option(word: &Word, options: &[&str]) -> bool {
    let text = word.literal().unwrap_or_default();
    options.iter().any(|option| {
        text == *option
            || abbreviates(text.split('=').next().unwrap_or_default(), option)
            || option
                .strip_prefix('-')
                .is_some_and(|letter| letter.len() == 1 && is_bundle(text) && text.contains(letter))
    })
}

/// Whether `text` is the long option or an abbreviation of it.
pub(crate) fn abbreviates(text: &str, option: &str) -> bool {
    text.len() > 3 && option.starts_with("--") && option.starts_with(text)
}

/// Parses `tar cfI archive program`: the values are in the next words, in order.
/// Returns the index of the first word after them.
fn old_bundle(short: &str, text: &str, words: &[Word], parsed: &mut Parsed) -> usize {
    let mut at = 2;
    for letter in text.chars() {
        let Some(kind) = short_kind(short, letter) else {
            parsed.unknown.push(text.to_owned());
            return at;
        };
        let takes_next = kind.has_value() && !kind.optional;
        let value = words.get(at).filter(|_| takes_next).cloned();
        at += usize::from(takes_next);
        parsed.give(letter.encode_utf8(&mut [0; 4]), kind, value, at);
    }
    at
}

#[cfg(test)]
mod tests;
