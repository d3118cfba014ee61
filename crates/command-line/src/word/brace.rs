//! Brace expansion, with limits.

use super::Atom;
use crate::budget::StepBudget;

/// A word that expands to more words than this counts as computed.
const MAX_WORDS: usize = 256;

/// The longest sequence that is expanded.
const MAX_SEQUENCE: usize = 64;

/// The maximum nesting of braces.
const MAX_DEPTH: usize = 8;

/// Returns every word that `atoms` expand to, or `None` if there is nothing to expand.
/// The list is empty if there are too many words.
pub(super) fn expand(atoms: &[Atom], budget: &StepBudget<'_>) -> Option<Vec<Vec<Atom>>> {
    if !atoms.contains(&Atom::Open('{')) {
        return None;
    }
    let mut words = Vec::new();
    match expand_into(atoms, 0, &mut words, budget) {
        None => Some(Vec::new()),
        Some(()) if words.len() == 1 && words.first().is_some_and(|word| word == atoms) => None,
        Some(()) => Some(words),
    }
}

/// Adds the expansions of `atoms` to `words`. Returns `None` if there are too many.
fn expand_into(
    atoms: &[Atom],
    depth: usize,
    words: &mut Vec<Vec<Atom>>,
    budget: &StepBudget<'_>,
) -> Option<()> {
    if depth > MAX_DEPTH || words.len() > MAX_WORDS || !budget.charge(atoms.len()) {
        return None;
    }
    let mut from = 0;
    while let Some(open) = position(atoms, from, '{') {
        from = open + 1;
        // Finding the closing brace may scan the rest of the word.
        if !budget.charge(atoms.len() - open) {
            return None;
        }
        let Some((close, commas)) = matching(atoms, open) else {
            continue;
        };
        let inner = atoms.get(open + 1..close)?;
        let members = if commas.is_empty() {
            match sequence(inner) {
                // A sequence that is not expanded counts as computed.
                Some(members) => members.unwrap_or_else(|| vec![vec![Atom::Computed]]),
                None => continue,
            }
        } else {
            let mut members = Vec::new();
            let mut start = open + 1;
            for end in commas.into_iter().chain([close]) {
                members.push(atoms.get(start..end)?.to_vec());
                start = end + 1;
            }
            members
        };
        for member in members {
            let mut word = atoms.get(..open)?.to_vec();
            word.extend(member);
            word.extend_from_slice(atoms.get(close + 1..)?);
            expand_into(&word, depth + 1, words, budget)?;
        }
        return Some(());
    }
    words.push(atoms.to_vec());
    (words.len() <= MAX_WORDS).then_some(())
}

fn position(atoms: &[Atom], from: usize, c: char) -> Option<usize> {
    let rest = atoms.get(from..)?;
    Some(from + rest.iter().position(|atom| *atom == Atom::Open(c))?)
}

/// Finds the end of the brace at `open`, and the commas between its members. A brace
/// with neither a comma nor two dots before it is text: `{a},b}` is `a}` and `b`.
fn matching(atoms: &[Atom], open: usize) -> Option<(usize, Vec<usize>)> {
    let is = |at: usize, c: char| atoms.get(at) == Some(&Atom::Open(c));
    let mut depth = 0_usize;
    let mut commas = Vec::new();
    let mut dots = false;
    for (at, atom) in atoms.iter().enumerate().skip(open + 1) {
        match atom {
            Atom::Open('{') => depth += 1,
            Atom::Open('}') if depth > 0 => depth -= 1,
            Atom::Open('}') if dots || !commas.is_empty() => return Some((at, commas)),
            Atom::Open(',') if depth == 0 => commas.push(at),
            Atom::Open('.') if depth == 0 => dots |= is(at + 1, '.') && !is(at + 2, '}'),
            _ => {}
        }
    }
    None
}

/// Expands `1..5` or `a..e`. Returns `None` if it is not a sequence, and `Some(None)`
/// if it is one that is not expanded.
fn sequence(inner: &[Atom]) -> Option<Option<Vec<Vec<Atom>>>> {
    let text: Option<String> = inner
        .iter()
        .map(|atom| match atom {
            Atom::Open(c) => Some(*c),
            _ => None,
        })
        .collect();
    let text = text?;
    let mut ends = text.split("..");
    let (from, to, step, rest) = (ends.next()?, ends.next()?, ends.next(), ends.next());
    if rest.is_some() || step.is_some_and(|step| step.parse::<i32>().is_err()) {
        return None;
    }
    let letter = |text: &str| {
        let mut chars = text.chars();
        let c = chars.next().filter(char::is_ascii_alphabetic)?;
        chars.next().is_none().then_some(c)
    };
    // Widths and steps only pad members or leave some out. A sequence with either is
    // not expanded.
    let exact = step.is_none() && !padded(from) && !padded(to);
    if let (Some(from), Some(to)) = (letter(from), letter(to)) {
        let (low, high) = (from.min(to), from.max(to));
        let members = (low..=high).map(|c| vec![Atom::Open(c)]).collect();
        return Some(exact.then_some(members));
    }
    let (from, to) = (from.parse::<i32>().ok()?, to.parse::<i32>().ok()?);
    let (low, high) = (from.min(to), from.max(to));
    if !exact || i64::from(high) - i64::from(low) >= MAX_SEQUENCE as i64 {
        return Some(None);
    }
    let digits = |n: i32| n.to_string().chars().map(Atom::Open).collect();
    Some(Some((low..=high).map(digits).collect()))
}

fn padded(number: &str) -> bool {
    let digits = number.trim_start_matches(['-', '+']);
    digits.len() > 1 && digits.starts_with('0') || number.starts_with('+')
}
