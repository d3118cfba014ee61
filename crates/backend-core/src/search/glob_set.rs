//! [`GlobSet`]: many globs, matched at once.
//!
//! Most alternatives cannot match without some literal text: `**/*.pem` needs
//! `.pem`. Such an alternative is tried only if its text is found, and one
//! automaton looks for all texts in one pass over the path. Each candidate is then
//! matched by the glob itself, so a set always agrees with its globs. Unlike a set
//! of regular expressions this has no cache that unusual paths could evict: the
//! first path costs as much as the thousandth.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::search::glob::Glob;

/// With fewer alternatives than this, trying each is faster than looking for texts first.
const FEW: usize = 8;

/// Globs that are matched together. Cloning is cheap: clones share the compiled set.
///
/// ```
/// use backend_core::search::{Glob, GlobSet};
///
/// let globs = ["*.pem", "/etc/**", "**/*secret*"].map(Glob::new);
/// let set = GlobSet::new(globs.into_iter().collect::<Result<Vec<_>, _>>()?);
/// assert_eq!(set.first("etc/secrets"), Some(1));
/// assert_eq!(set.matches("etc/secret.pem").collect::<Vec<_>>(), [0, 1, 2]);
/// assert_eq!(set.first("src/main.rs"), None);
/// # Ok::<(), backend_core::search::GlobError>(())
/// ```
#[derive(Clone)]
pub struct GlobSet(Arc<Compiled>);

struct Compiled {
    globs: Vec<Glob>,
    /// Index of the glob and of the alternative in it, in the order of the globs.
    alternatives: Vec<(usize, usize)>,
    /// Bit set of the alternatives that are always tried.
    always: Vec<u64>,
    /// Finds the texts that the other alternatives need.
    finder: Option<AhoCorasick>,
    /// For each of the finder's texts, the alternatives that need it.
    needed_by: Vec<Vec<usize>>,
}

impl GlobSet {
    /// Creates a set of `globs`, which are identified by their index.
    pub fn new(globs: impl IntoIterator<Item = Glob>) -> Self {
        Self::with_finder(globs, None)
    }

    /// Creates a set in less time, which then matches a little slower.
    pub(super) fn made_quickly(globs: impl IntoIterator<Item = Glob>) -> Self {
        Self::with_finder(globs, Some(AhoCorasickKind::ContiguousNFA))
    }

    fn with_finder(globs: impl IntoIterator<Item = Glob>, kind: Option<AhoCorasickKind>) -> Self {
        let globs: Vec<_> = globs.into_iter().collect();
        let alternatives: Vec<_> = globs
            .iter()
            .enumerate()
            .flat_map(|(at, glob)| (0..glob.compiled_alternatives().len()).map(move |n| (at, n)))
            .collect();
        let mut compiled = Compiled {
            always: vec![0; alternatives.len().div_ceil(64)],
            globs,
            alternatives,
            finder: None,
            needed_by: Vec::new(),
        };
        compiled.find_texts(kind);
        Self(Arc::new(compiled))
    }

    /// Returns the globs in order.
    pub fn globs(&self) -> &[Glob] {
        &self.0.globs
    }

    /// Returns the index of the first glob that matches `relative`, in the sense of
    /// [`Glob::matches_relative`].
    pub fn first(&self, relative: &str) -> Option<usize> {
        self.matches(relative).next()
    }

    /// Returns the indices of the globs that match `relative`, in order, each once.
    /// The iterator is lazy.
    pub fn matches<'a>(&'a self, relative: &'a str) -> impl Iterator<Item = usize> + 'a {
        self.0.matching(self.0.candidates(relative), relative)
    }

    /// Returns the index of the first glob that matches `relative`, or else the
    /// nearest directory above it that any glob matches.
    pub(super) fn nearest(&self, relative: &str) -> Option<usize> {
        // Texts in a parent directory's path are also in the path, so candidates
        // for the path cover its parents.
        let candidates = self.0.candidates(relative);
        let mut path = relative;
        loop {
            let found = self.0.matching(candidates.clone(), path).next();
            if found.is_some() {
                return found;
            }
            (path, _) = path.rsplit_once('/')?;
        }
    }
}

impl Compiled {
    /// Sets up the search for literal texts, or marks everything as always tried.
    fn find_texts(&mut self, kind: Option<AhoCorasickKind>) {
        let mut texts: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, &(glob, number)) in self.alternatives.iter().enumerate() {
            let text = self.globs[glob].compiled_alternatives()[number].required_text();
            texts.entry(text).or_default().push(place);
        }
        let unneeded = texts.remove("").unwrap_or_default();
        let (texts, needed_by): (Vec<_>, Vec<_>) = texts.into_iter().unzip();
        let finder = match self.alternatives.len() {
            0..FEW => None,
            // If the automaton would be too large, the globs are still matched one by one.
            _ => AhoCorasick::builder().kind(kind).build(&texts).ok(),
        };
        if finder.is_none() {
            self.always.fill(u64::MAX);
            return;
        }
        for place in unneeded {
            self.always[place / 64] |= 1 << (place % 64);
        }
        self.finder = finder;
        self.needed_by = needed_by;
    }

    /// Returns the globs that match `path` with one of the `candidates`.
    fn matching<'a>(
        &'a self,
        mut candidates: IndexSet,
        path: &'a str,
    ) -> impl Iterator<Item = usize> + 'a {
        let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
        let mut last = None;
        std::iter::from_fn(move || {
            if name.is_empty() {
                return None;
            }
            loop {
                let &(glob, number) = self.alternatives.get(candidates.next()?)?;
                if last == Some(glob) {
                    continue;
                }
                let alternative = self.globs.get(glob)?.compiled_alternatives().get(number)?;
                if alternative.matches(path, name) {
                    last = Some(glob);
                    return last;
                }
            }
        })
    }

    /// Returns a superset of the alternatives that can match `path`.
    fn candidates(&self, path: &str) -> IndexSet {
        let mut places = IndexSet::new(&self.always);
        if let Some(finder) = &self.finder {
            let words = places.words();
            for found in finder.find_overlapping_iter(path) {
                for place in &self.needed_by[found.pattern().as_usize()] {
                    words[place / 64] |= 1 << (place % 64);
                }
            }
        }
        places
    }
}

/// Indices of alternatives, ascending. A set of usual size needs no allocation.
#[derive(Clone)]
struct IndexSet {
    few: [u64; Self::FEW_WORDS],
    many: Vec<u64>,
    at: usize,
}

impl IndexSet {
    const FEW_WORDS: usize = 16;

    fn new(words: &[u64]) -> Self {
        let mut few = [0; Self::FEW_WORDS];
        let mut many = Vec::new();
        match few.get_mut(..words.len()) {
            Some(few) => few.copy_from_slice(words),
            None => many.extend_from_slice(words),
        }
        Self { few, many, at: 0 }
    }

    fn words(&mut self) -> &mut [u64] {
        if self.many.is_empty() {
            &mut self.few
        } else {
            &mut self.many
        }
    }
}

impl Iterator for IndexSet {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let mut at = self.at;
        let next = loop {
            let word = self.words().get_mut(at)?;
            if *word != 0 {
                let bit = word.trailing_zeros() as usize;
                *word &= *word - 1;
                break at * 64 + bit;
            }
            at += 1;
        };
        self.at = at;
        Some(next)
    }
}

impl FromIterator<Glob> for GlobSet {
    fn from_iter<I: IntoIterator<Item = Glob>>(globs: I) -> Self {
        Self::new(globs)
    }
}

impl fmt::Debug for GlobSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("GlobSet").field(&self.0.globs).finish()
    }
}

#[cfg(test)]
mod tests;
