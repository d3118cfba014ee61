//! Tells the files among a program's arguments from patterns, scripts and messages.

use std::collections::BTreeSet;

use crate::danger;
use crate::named_path::PathUse;
use crate::options::{self, OptionEffect, is_bundle};
use crate::sed;
use crate::tables::{self, base_name};
use crate::word::Word;
use crate::word_list::words;

/// The roles of a program's arguments. All indexes count from the first argument.
#[derive(Default)]
pub(crate) struct Arguments {
    pub(crate) operands: Vec<usize>,
    /// The operand that is not a path, but a pattern, a script or a mode.
    pub(crate) first: Option<usize>,
    /// Arguments that are text because of the option before them: messages, patterns.
    texts: BTreeSet<usize>,
    /// Files that options name.
    pub(crate) files: Vec<(Word, PathUse)>,
}

impl Arguments {
    pub(crate) fn new(base: &str, words: &[Word]) -> Self {
        let args = words.get(1..).unwrap_or_default();
        let mut given = Self {
            texts: texts(base, words),
            ..Self::default()
        };
        if !given.parsed(base, words) {
            let operands = danger::operands_at(args).map(|(at, _)| at);
            given.operands = operands.collect();
            match base {
                "xxd" => given.operands.retain(|at| !is_xxd_value(*at, args)),
                "yq" if !args.iter().any(is_yq_script) => {
                    given.first = given.operands.first().copied();
                }
                _ => {}
            }
        }
        given
    }

    /// Parses options that are known. Returns `false` if some of them are not.
    fn parsed(&mut self, base: &str, words: &[Word]) -> bool {
        let Some((row, said_by)) = tables::first_operand(base) else {
            return false;
        };
        let parsed = options::parse(row, words);
        if !parsed.unknown.is_empty() {
            return false;
        }
        self.operands = parsed.operands.iter().map(|at| at - 1).collect();
        let mut values = BTreeSet::new();
        for option in &parsed.options {
            let at = option.next.saturating_sub(2);
            match (option.effect, &option.value) {
                (OptionEffect::Reads, Some(value)) => {
                    self.files.push((value.clone(), PathUse::Read));
                }
                (OptionEffect::Writes, Some(value)) => {
                    self.files.push((value.clone(), PathUse::Write));
                }
                (OptionEffect::Value, Some(_)) => {
                    self.texts.insert(at);
                }
                _ => {}
            }
            // `jq --arg name value`: the option takes two words.
            if base == "jq" && matches!(option.name.as_str(), "arg" | "argjson") {
                values.insert(at + 1);
            }
        }
        self.operands.retain(|at| !values.contains(at));
        let files = parsed.given(&["slurpfile", "rawfile"]);
        let files: BTreeSet<usize> = files.map(|option| option.next.saturating_sub(1)).collect();
        let mut operands = self.operands.iter().filter(|at| !files.contains(at));
        self.first = match said_by {
            Some(options) if !parsed.has(options) => operands.next().copied(),
            _ => None,
        };
        true
    }

    pub(crate) fn is_text(&self, at: usize) -> bool {
        self.first == Some(at) || self.is_said(at)
    }

    /// Whether the option before it makes the argument text.
    pub(crate) fn is_said(&self, at: usize) -> bool {
        self.texts.contains(&at)
    }
}

/// Returns the indexes of arguments that are text because of the option before them.
fn texts(base: &str, words: &[Word]) -> BTreeSet<usize> {
    let args = words.get(1..).unwrap_or_default();
    let verb = (base == "git")
        .then(|| options::parse(&tables::GIT, words))
        .and_then(|parsed| parsed.operands(words).next()?.literal())
        .map(|verb| format!("git {verb}"));
    let plain = base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    let options = |name: &str| tables::words_of(tables::TEXTS, name).unwrap_or_default();
    let mut known = vec![
        tables::TEXTS_OF_ALL,
        options(verb.as_deref().unwrap_or(plain)),
    ];
    // `poetry run pytest -k expression`
    let runs = tables::OPAQUE.contains(&plain) || tables::ALSO_RUN.contains(&plain);
    let mut texts = BTreeSet::new();
    for (at, word) in args.iter().enumerate() {
        let Some(text) = word.literal() else {
            continue;
        };
        if known.iter().any(|options| options.contains(&text)) {
            texts.insert(at + 1);
        } else if runs && !text.starts_with('-') {
            let more = options(base_name(text));
            if !known.contains(&more) {
                known.push(more);
            }
        }
    }
    texts
}

/// Whether the argument is the value of an option of `xxd`, whose long ones have one dash.
fn is_xxd_value(at: usize, args: &[Word]) -> bool {
    const VALUED: &[&str] =
        words!("-c -cols -g -group -groupsize -l -len -n -name -o -off -offset -s -seek -skip -R");
    let before = at.checked_sub(1).and_then(|at| args.get(at));
    before.is_some_and(|option| option.is_any(VALUED))
}

/// Whether the word may be an option of `yq` that gives the script, or a file with it.
fn is_yq_script(word: &Word) -> bool {
    let text = word.shown();
    text.starts_with("--fr") || text.starts_with("--exp") || is_bundle(&text) && text.contains('f')
}

/// Whether an option makes the program change its operands in place.
pub(crate) fn edits(base: &str, words: &[Word]) -> bool {
    match base {
        "sed" | "gsed" => sed::edits(words),
        "perl" | "ruby" => words.iter().any(edits_in_place),
        "yq" => words.iter().any(|word| {
            let text = word.shown();
            text.starts_with("--in") || is_bundle(&text) && text.contains('i')
        }),
        _ => false,
    }
}

/// Whether the word has `-i`, also bundled: `-pi.bak`, `-pie`.
fn edits_in_place(word: &Word) -> bool {
    let flags = word.literal().and_then(|text| text.strip_prefix('-'));
    flags.is_some_and(|flags| {
        let mut letters = flags.chars().take_while(|c| !"-eEFIMmrxCD".contains(*c));
        letters.any(|c| c == 'i')
    })
}

/// Whether a compression program only prints the result.
pub(crate) fn prints(args: &[Word]) -> bool {
    args.iter().any(|word| {
        let text = word.literal().unwrap_or_default();
        text.starts_with("--std")
            || text.starts_with("--to-")
            || is_bundle(text) && text.contains('c')
    })
}
