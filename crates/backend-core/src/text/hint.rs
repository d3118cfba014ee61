//! Finds the places in a text that are most similar to text that was not found.
//!
//! This module defines "nearest". Invariants: a hint is only shown, never applied; the work is
//! bounded by [`MAX_HINT_LINES`] lines, [`MAX_COMPARED_BYTES`] bytes of each and
//! [`MAX_HINT_BYTES`] in total, and is linear within these bounds, whatever the text is.
//!
//! Lines are compared in a normal form: no white space, lower case, ASCII quotes and dashes.
//! Text that occurs in normal form differs from the file only in what the form hides, and the
//! weakest form in which it still occurs tells what that is. If it occurs in none, the lines
//! that begin and end most like its first line are the hints.

use std::cmp::Reverse;
use std::fmt;

use memchr::memmem;

use crate::limits::{EDIT_CANDIDATES, QUOTED_BYTES};

/// Most lines that are examined.
const MAX_HINT_LINES: usize = 200_000;
/// Most bytes that are compared over all lines.
const MAX_HINT_BYTES: usize = 16 * 1024 * 1024;
/// Most bytes that are compared of a line, from its first character that is not white space.
const MAX_COMPARED_BYTES: usize = 300;
/// Most places whose kind of difference is determined.
const MAX_PLACES: usize = 16;
/// Shortest line that can be called similar; a lone bracket is similar to too much.
const MIN_SIMILAR_BYTES: usize = 3;
/// Smallest part of a line, in thousandths, that must be equal for the line to be called similar.
const MIN_SCORE: usize = 600;

/// A place that resembles the text that was not found.
///
/// It displays as `line 12 (differs in white space): "the line"`, with control characters
/// escaped, so that showing it cannot disturb a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Candidate {
    /// The number of its first line, counted from 1.
    pub line: u64,
    /// That line, without its line end and cut to 200 bytes.
    pub text: String,
    /// The way the place differs from the text.
    pub why: Similarity,
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {} ({}): {:?}", self.line, self.why, self.text)
    }
}

/// The difference between a [`Candidate`] and the text that was not found, from least to most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Similarity {
    /// Only white space.
    Whitespace,
    /// Upper and lower case, and perhaps white space.
    Case,
    /// Typographic quotes, dashes or no-break spaces, and perhaps the above.
    Quotes,
    /// Some characters.
    Close,
}

impl fmt::Display for Similarity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Whitespace => "differs in white space",
            Self::Case => "differs in upper and lower case",
            Self::Quotes => "differs in typographic quotes, dashes or spaces",
            Self::Close => "similar",
        })
    }
}

/// Returns the places of `content` most similar to `old`, best first; at most three.
pub(super) fn candidates(content: &str, old: &str) -> Vec<Candidate> {
    let wanted = NormalizedText::new(old);
    if wanted.full.is_empty() {
        return Vec::new();
    }
    let lines = searched_lines(content);
    let page = normal_form(&lines, NormalForm::Full);
    let mut places: Vec<(Similarity, usize)> = places(&page, &wanted.full)
        .map(|at| (wanted.difference(lines.get(at..).unwrap_or_default()), at))
        .collect();
    places.sort_unstable();
    if places.is_empty() {
        let first_line = wanted.full.split('\n').next().unwrap_or_default();
        places = similar_lines(&page, first_line)
            .map(|at| (Similarity::Close, at))
            .collect();
    }
    let show = |(why, at): (Similarity, usize)| {
        let line = lines.get(at).copied().unwrap_or_default();
        let line = line.strip_suffix('\r').unwrap_or(line);
        Candidate {
            line: at as u64 + 1,
            text: cut(line, QUOTED_BYTES).to_owned(),
            why,
        }
    };
    places.into_iter().take(EDIT_CANDIDATES).map(show).collect()
}

/// Returns the first lines of `text`, as many as the bounds allow.
fn searched_lines(text: &str) -> Vec<&str> {
    let mut room = MAX_HINT_BYTES;
    let lines = text.split('\n').take(MAX_HINT_LINES);
    let in_bounds = lines.take_while(|line| {
        let had_room = room > 0;
        room = room.saturating_sub(line.len().min(MAX_COMPARED_BYTES));
        had_room
    });
    in_bounds.collect()
}

/// A normal form. Each hides everything that the previous one hides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NormalForm {
    Space,
    Case,
    Full,
}

/// The text that was not found, without blank lines around it, in every form.
struct NormalizedText {
    space: String,
    case: String,
    full: String,
    /// Whether the forms omit part of it.
    is_cut: bool,
}

impl NormalizedText {
    fn new(old: &str) -> Self {
        let lines = searched_lines(old);
        let form = |form| normal_form(&lines, form).trim_matches('\n').to_owned();
        Self {
            space: form(NormalForm::Space),
            case: form(NormalForm::Case),
            full: form(NormalForm::Full),
            is_cut: lines.len() < old.split('\n').count() || lines.iter().any(|line| is_cut(line)),
        }
    }

    /// Classifies the difference to the place at the start of `lines`, where the full form occurs.
    fn difference(&self, lines: &[&str]) -> Similarity {
        let height = 1 + memchr::memchr_iter(b'\n', self.full.as_bytes()).count();
        let place = lines.get(..height).unwrap_or(lines);
        let (_, inner) = place.split_last().unwrap_or((&"", &[]));
        // If the end of a line was not compared, nothing is known about it.
        if self.is_cut || inner.iter().any(|line| is_cut(line)) {
            Similarity::Close
        } else if contains(&normal_form(place, NormalForm::Space), &self.space) {
            Similarity::Whitespace
        } else if contains(&normal_form(place, NormalForm::Case), &self.case) {
            Similarity::Case
        } else {
            Similarity::Quotes
        }
    }
}

fn contains(text: &str, part: &str) -> bool {
    memmem::find(text.as_bytes(), part.as_bytes()).is_some()
}

/// Yields the lines (from 0) of `page` on which `wanted` starts.
fn places(page: &str, wanted: &str) -> impl Iterator<Item = usize> {
    let page = page.as_bytes();
    let mut line = 0;
    let mut from = 0;
    let mut last = None;
    let starts = memmem::find_iter(page, wanted.as_bytes()).map(move |start| {
        line += memchr::memchr_iter(b'\n', &page[from..start]).count();
        from = start;
        line
    });
    starts
        .filter(move |&line| last.replace(line) != Some(line))
        .take(MAX_PLACES)
}

/// Yields the lines (from 0) of `page` most similar to `wanted`, best first.
fn similar_lines(page: &str, wanted: &str) -> impl Iterator<Item = usize> {
    let mut best: Vec<(Reverse<usize>, usize)> = Vec::with_capacity(EDIT_CANDIDATES + 1);
    if wanted.len() >= MIN_SIMILAR_BYTES {
        for (at, line) in page.split('\n').enumerate() {
            if let Some(score) = score(line.as_bytes(), wanted.as_bytes()) {
                best.push((Reverse(score), at));
                best.sort_unstable();
                best.truncate(EDIT_CANDIDATES);
            }
        }
    }
    best.into_iter().map(|(_, at)| at)
}

/// Returns the share of the longer line that the common start and end make up, in thousandths.
fn score(one: &[u8], other: &[u8]) -> Option<usize> {
    let longest = one.len().max(other.len());
    let shortest = one.len().min(other.len());
    let of_longest = |bytes: usize| bytes * 1000 / longest.max(1);
    // Most lines can be ruled out by their length alone.
    if of_longest(shortest) < MIN_SCORE {
        return None;
    }
    let start = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let (one, other) = (&one[start..], &other[start..]);
    let end = one
        .iter()
        .rev()
        .zip(other.iter().rev())
        .take_while(|(a, b)| a == b)
        .count();
    Some(of_longest(start + end)).filter(|&score| score >= MIN_SCORE)
}

/// Returns the lines in normal form, with `\n` between them.
fn normal_form(lines: &[&str], form: NormalForm) -> String {
    let mut out = String::new();
    for (nth, line) in lines.iter().enumerate() {
        if nth > 0 {
            out.push('\n');
        }
        push_normal(&mut out, compared(line), form);
    }
    out
}

fn push_normal(out: &mut String, line: &str, form: NormalForm) {
    for character in line.chars() {
        let character = if form == NormalForm::Full {
            plain(character)
        } else {
            character
        };
        if is_space(character) {
            continue;
        }
        if form == NormalForm::Space {
            out.push(character);
        } else if character.is_ascii() {
            out.push(character.to_ascii_lowercase());
        } else {
            out.extend(character.to_lowercase());
        }
    }
}

/// Maps typographic punctuation to its ASCII character.
fn plain(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201B}' | '\u{2032}' => '\'',
        '\u{201C}'..='\u{201F}' | '\u{2033}' | '\u{AB}' | '\u{BB}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
        _ if is_no_break_space(character) => ' ',
        _ => character,
    }
}

fn is_no_break_space(character: char) -> bool {
    matches!(character, '\u{A0}' | '\u{2007}' | '\u{202F}')
}

/// Whether a character is ordinary white space; a no-break space is a separate kind of difference.
fn is_space(character: char) -> bool {
    character.is_whitespace() && !is_no_break_space(character)
}

/// Returns the part of a line that is compared.
fn compared(line: &str) -> &str {
    cut(line.trim_start_matches(is_space), MAX_COMPARED_BYTES)
}

/// Whether part of the line is not compared.
fn is_cut(line: &str) -> bool {
    line.trim_matches(is_space).len() > MAX_COMPARED_BYTES
}

/// Returns the start of `text`, at most `width` bytes, cut between characters.
fn cut(text: &str, width: usize) -> &str {
    text.split_at(text.floor_char_boundary(width)).0
}

#[cfg(test)]
mod tests;
