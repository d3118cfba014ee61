//! Tracks the directories a command may run in, and resolves its words to paths.
//!
//! A path can have several readings: as written, and as the path it has in the backend,
//! if commands see files under other names than the backend. All readings are kept, and
//! the strictest decision about any of them applies.

use std::sync::Arc;

use backend_core::{CommandPaths, VPath};

use crate::budget::StepBudget;
use crate::glob::escaped;
use crate::location::{Location, Name, Names, Process, Root, names_of};
use crate::word::{Word, WordPart};

/// Limit of directories that are tracked. Beyond it the directory is unknown.
const MAX_DIRECTORIES: usize = 16;

/// The cost of comparing a location with the known ones.
const LOCATION_STEPS: usize = 16;

/// A path with more names than this has no reading. The command may still be able to
/// open it, since `..` in it can lead up again.
const MAX_NAMES: usize = 2048;

/// One reading of a word as a path.
pub(crate) struct Reading {
    pub(crate) location: Location,
    /// The path as the command would open it, not normalized, if all of it is known.
    pub(crate) spelled: Option<String>,
}

/// The directories that a shell may be in. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Directories<'a> {
    budget: &'a StepBudget<'a>,
    all: Arc<Vec<Location>>,
    /// Directories it may have been in before.
    left: Arc<Vec<Location>>,
    pub(crate) names: Arc<Names>,
    /// Whether it may also be in some other directory.
    pub(crate) unknown: bool,
}

impl<'a> Directories<'a> {
    pub(crate) fn new(
        directory: &VPath,
        names: Option<&CommandPaths>,
        budget: &'a StepBudget<'a>,
    ) -> Self {
        let names = names.map(Names::new).unwrap_or_default();
        Self {
            budget,
            all: Arc::new(vec![names.location(&names_of(directory))]),
            left: Arc::default(),
            names: Arc::new(names),
            unknown: false,
        }
    }

    /// Returns the number of names in all directories: the cost of resolving a word.
    pub(crate) fn weight(&self) -> usize {
        self.all
            .iter()
            .map(|location| location.names.len() + 1)
            .sum()
    }

    /// Adds the directories of `before`, since the shell may still be in one of them.
    pub(crate) fn merge(&mut self, before: Self) {
        self.unknown |= before.unknown;
        if self.budget.is_spent() {
            return;
        }
        if !Arc::ptr_eq(&self.left, &before.left) {
            let mut left = self.left.to_vec();
            add(&mut left, before.left.iter().cloned());
            left.truncate(MAX_DIRECTORIES);
            self.left = Arc::new(left);
        }
        if Arc::ptr_eq(&self.all, &before.all) {
            return;
        }
        let mut all = self.all.to_vec();
        add(&mut all, before.all.iter().cloned());
        self.keep(all);
    }

    /// Whether these are the same directories in the same order.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let same = |a: &Arc<Vec<Location>>, b: &Arc<Vec<Location>>| Arc::ptr_eq(a, b) || a == b;
        self.unknown == other.unknown
            && same(&self.all, &other.all)
            && same(&self.left, &other.left)
    }

    /// Whether all directories of `other` are among these.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let all = |these: &Arc<Vec<Location>>, others: &Arc<Vec<Location>>| {
            Arc::ptr_eq(these, others) || others.iter().all(|location| these.contains(location))
        };
        (self.unknown || !other.unknown)
            && all(&self.all, &other.all)
            && all(&self.left, &other.left)
    }

    /// Whether it has more directories than `before`, which were all added to it.
    pub(crate) fn exceeds(&self, before: &Self) -> bool {
        self.unknown != before.unknown
            || self.all.len() > before.all.len()
            || self.left.len() > before.left.len()
    }

    fn keep(&mut self, mut all: Vec<Location>) {
        if all.len() > MAX_DIRECTORIES {
            all.truncate(MAX_DIRECTORIES);
            self.unknown = true;
        }
        self.all = Arc::new(all);
    }

    /// Changes to the directory `word`.
    pub(crate) fn change_to(&mut self, word: &Word) {
        let locations = self.locations(word).unwrap_or_default();
        if locations.is_empty() || word.is("-") {
            return self.change_to_unknown();
        }
        self.unknown |= word.is_glob();
        self.leave();
        self.keep(locations);
    }

    /// Changes to an unknown directory, possibly an earlier one.
    pub(crate) fn change_to_unknown(&mut self) {
        self.unknown = true;
        if !self.budget.charge(self.weight()) {
            return;
        }
        let mut all = self.all.to_vec();
        add(&mut all, self.left.iter().cloned());
        self.keep(all);
    }

    /// Records the current directories as earlier ones.
    fn leave(&mut self) {
        let mut left = self.all.to_vec();
        add(&mut left, self.left.iter().cloned());
        left.truncate(MAX_DIRECTORIES);
        self.left = Arc::new(left);
    }

    /// Changes to the home directory.
    pub(crate) fn change_to_home(&mut self) {
        self.leave();
        self.all = Arc::new(self.homes());
    }

    /// Returns the directories that `~` may stand for: the known home, and any other.
    fn homes(&self) -> Vec<Location> {
        let known = self.names.home.as_deref().map(Location::system);
        let mut homes: Vec<Location> = known.into_iter().collect();
        let shown: Vec<_> = homes.iter().flat_map(|home| self.shown(home)).collect();
        add(&mut homes, shown);
        homes.push(Location::at(Root::Home));
        homes
    }

    /// Returns the locations that `word` may name, or `None` if some of it is computed.
    pub(crate) fn locations(&self, word: &Word) -> Option<Vec<Location>> {
        if word.is_unknown() {
            return None;
        }
        let readings = self.readings(word);
        let mut locations = Vec::new();
        add(
            &mut locations,
            readings.into_iter().map(|reading| reading.location),
        );
        self.budget.charge(LOCATION_STEPS * locations.len());
        Some(locations)
    }

    /// Whether a word starts with a computed part, or has one right after `~` or `$PWD`.
    pub(crate) fn begins_computed(word: &Word) -> bool {
        beginning(word).1.first() == Some(&WordPart::Computed)
    }

    /// Returns every reading of a word. A computed part stands for any name. There is none
    /// if the word starts with a computed part or is too deep.
    pub(crate) fn readings(&self, word: &Word) -> Vec<Reading> {
        // A line that ran out of steps is denied, whatever it names.
        if Self::begins_computed(word) || self.budget.is_spent() {
            return Vec::new();
        }
        let (first, rest) = beginning(word);
        let absolute = first.is_none() && word.starts_with("/");
        if !self.budget.charge(if absolute { 1 } else { self.weight() }) {
            return Vec::new();
        }
        let bases = match first {
            Some(WordPart::Home) => self.homes(),
            None if absolute => vec![Location::at(Root::System)],
            _ => self.all.to_vec(),
        };
        let names = split(rest);
        let text = plain(rest);
        let mut readings: Vec<Reading> = Vec::new();
        for base in bases {
            let spelled = text
                .as_ref()
                .and_then(|text| Some(format!("{}/{text}", self.names.spelled(&base)?)));
            for location in self.enter(base, &names) {
                let known = readings.iter().any(|reading| reading.location == location);
                let spelled = spelled.clone().or_else(|| self.directory_of(&location));
                if !known {
                    readings.push(Reading { location, spelled });
                }
            }
        }
        readings
    }

    /// Returns the directory before the first glob in a location that has one.
    fn directory_of(&self, location: &Location) -> Option<String> {
        let end = location.names.iter().position(|name| name.glob)?;
        let mut directory = location.clone();
        directory.names.truncate(end);
        self.names.spelled(&directory)
    }

    /// Returns the locations that `names` may lead to from `base`.
    fn enter(&self, base: Location, names: &[Name]) -> Vec<Location> {
        let mut locations = vec![base];
        for name in names {
            if matches!(name.text.as_str(), "" | ".") {
                continue;
            }
            let names: usize = locations
                .iter()
                .map(|location| location.names.len() + 1)
                .sum();
            // Each location is compared with the others.
            if !self.budget.charge(names * (1 + locations.len() / 4)) {
                return Vec::new();
            }
            let mut next = Vec::new();
            for location in locations {
                add(&mut next, self.step(location, name));
            }
            locations = next;
        }
        locations
    }

    fn step(&self, mut location: Location, name: &Name) -> Vec<Location> {
        if name.text == ".." && !name.glob {
            return self.up(location);
        }
        if location.names.len() >= MAX_NAMES {
            return Vec::new();
        }
        location.names.push(name.clone());
        let mut locations = match location.of_process() {
            None => Vec::new(),
            Some(Process::Directory) => self.all.to_vec(),
            Some(Process::Root) => vec![Location::at(Root::System)],
        };
        if location.could_be(&["dev", "fd"].map(str::to_owned)) {
            let open = ["proc", "self", "fd"].map(str::to_owned);
            locations.push(Location::system(&open));
        }
        locations.extend(self.shown(&location));
        locations.insert(0, location);
        locations
    }

    fn up(&self, mut location: Location) -> Vec<Location> {
        if location.names.pop().is_some() {
            let mut locations = vec![location.clone()];
            locations.extend(self.shown(&location));
            return locations;
        }
        match location.root {
            Root::System | Root::Given => vec![Location::at(Root::System)],
            // Homes share a parent directory, except root's, which is in `/`.
            Root::Home => vec![
                Location::system(&["home".to_owned()]),
                Location::at(Root::System),
            ],
            Root::Tree(number) => {
                let Some(root) = self.names.roots.get(number) else {
                    return Vec::new();
                };
                let above = root.at.split_last().map_or(&[][..], |(_, above)| above);
                let outside = Location::system(above);
                // The parent in the backend, in case `..` is resolved there.
                let inside = match root.directory.split_last() {
                    Some((_, above)) => self.names.location(above),
                    None => Location::at(Root::System),
                };
                let mut locations = self.shown(&outside);
                locations.insert(0, outside);
                add(&mut locations, [inside]);
                locations
            }
        }
    }

    /// Returns the backend directories that commands may see at `location`.
    fn shown(&self, location: &Location) -> Vec<Location> {
        let all = self.names.roots.iter().chain(&self.names.aliases);
        all.filter(|shown| location.could_be(&shown.at))
            .map(|shown| self.names.location(&shown.directory))
            .collect()
    }
}

/// Splits off the directory (`~` or `$PWD`) that a word starts with, if any.
fn beginning(word: &Word) -> (Option<&WordPart>, &[WordPart]) {
    match word.parts().split_first() {
        Some((first @ (WordPart::Home | WordPart::Here), rest)) => (Some(first), rest),
        _ => (None, word.parts()),
    }
}

/// Adds the locations that are not in the list yet.
fn add(locations: &mut Vec<Location>, more: impl IntoIterator<Item = Location>) {
    for location in more {
        if !locations.contains(&location) {
            locations.push(location);
        }
    }
}

/// Returns the text of `parts`, if all of it is known.
fn plain(parts: &[WordPart]) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            WordPart::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Splits a path into names. A computed part could be any text, so a name that contains
/// one is a glob. Quoted text in a glob is escaped.
fn split(parts: &[WordPart]) -> Vec<Name> {
    let mut names = vec![(String::new(), Name::default())];
    for part in parts {
        let (text, glob) = match part {
            WordPart::Text(text) => (text.as_str(), false),
            WordPart::Glob(glob) => (glob.as_str(), true),
            WordPart::Home | WordPart::Here | WordPart::Computed => ("*", true),
        };
        for (number, piece) in text.split('/').enumerate() {
            if number > 0 {
                names.push(Default::default());
            }
            if let Some((pattern, last)) = names.last_mut() {
                if glob {
                    pattern.push_str(piece);
                } else {
                    pattern.push_str(&escaped(piece));
                }
                last.text.push_str(piece);
                last.glob |= glob;
            }
        }
    }
    let name = |(pattern, name): (String, Name)| {
        if name.glob {
            Name {
                text: pattern,
                glob: true,
            }
        } else {
            name
        }
    };
    names.into_iter().map(name).collect()
}
