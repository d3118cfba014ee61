//! Tracks the directories a command may run in, and resolves its words to paths.
//!
//! A path can have several readings: as written, and as the path it has in the backend,
//! if commands see files under other names than the backend. All readings are kept, and
//! the strictest decision about any of them applies.

use std::sync::Arc;

use backend_core::{CommandPaths, VPath};

use super::glob::{escaped, name_matches};
use super::word::{Part, Word};
use super::work::Work;

/// Limit of directories that are tracked. Beyond it the directory is unknown.
const MAX_DIRECTORIES: usize = 16;

/// The cost of comparing a place with the known ones.
const PLACE_STEPS: usize = 16;

/// A path with more names than this has no reading. The command may still be able to
/// open it, since `..` in it can lead up again.
const MAX_NAMES: usize = 2048;

/// The start of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// The root of the system.
    System,
    /// Some user's home directory.
    Home,
    /// The root of the backend, which may be any directory of the system.
    Given,
    /// A directory of the backend that commands see under another path, by its index.
    Tree(usize),
}

/// One name of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) glob: bool,
}

impl Name {
    fn plain(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            glob: false,
        }
    }

    /// Whether it is `name`, or a glob that could match it.
    pub(crate) fn could_be(&self, name: &str) -> bool {
        match self.glob {
            true => name_matches(&self.text, name),
            false => self.text == name,
        }
    }
}

/// A normalized path. Its names may be globs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) root: Root,
    pub(crate) names: Vec<Name>,
}

impl Place {
    fn at(root: Root) -> Self {
        Self {
            root,
            names: Vec::new(),
        }
    }

    fn system(names: &[String]) -> Self {
        Self {
            root: Root::System,
            names: names.iter().map(|name| Name::plain(name)).collect(),
        }
    }

    pub(crate) fn has_glob(&self) -> bool {
        self.names.iter().any(|name| name.glob)
    }

    /// Whether it could be the directory with these names.
    fn could_be(&self, names: &[String]) -> bool {
        self.root == Root::System
            && self.names.len() == names.len()
            && self
                .names
                .iter()
                .zip(names)
                .all(|(name, known)| name.could_be(known))
    }

    /// Whether it leads through a file descriptor: to a path beneath one, or to one of
    /// another process.
    pub(crate) fn is_through_descriptor(&self) -> bool {
        let is = |at: usize, name: &str| self.names.get(at).is_some_and(|it| it.could_be(name));
        let own = is(1, "self") || is(1, "thread-self");
        self.root == Root::System
            && (is(0, "dev") && is(1, "fd") && self.names.len() > 3
                || is(0, "proc")
                    && (is(2, "fd") || is(2, "task") && is(4, "fd"))
                    && (self.names.len() > 4 || self.names.len() == 4 && !own))
    }

    /// Returns the link of a process in `/proc` that it could be, if any.
    fn of_process(&self) -> Option<Process> {
        let (first, rest) = self
            .names
            .split_first()
            .filter(|_| self.root == Root::System)?;
        let last = match rest {
            [_, last] => last,
            [_, task, _, last] if task.could_be("task") => last,
            _ => return None,
        };
        if !first.could_be("proc") {
            None
        } else if last.could_be("cwd") {
            Some(Process::Directory)
        } else if last.could_be("root") {
            Some(Process::Root)
        } else {
            None
        }
    }
}

/// A link in `/proc` to a directory of a process.
enum Process {
    Directory,
    Root,
}

/// A directory of the backend, and the path at which commands see it.
#[derive(Debug)]
struct Shown {
    directory: Vec<String>,
    at: Vec<String>,
}

impl Shown {
    fn new((directory, at): &(VPath, VPath)) -> Self {
        Self {
            directory: names_of(directory),
            at: names_of(at),
        }
    }
}

/// Maps between the paths that commands see and those of the backend.
#[derive(Debug, Default)]
pub(crate) struct Names {
    roots: Vec<Shown>,
    aliases: Vec<Shown>,
    home: Option<Vec<String>>,
}

impl Names {
    fn new(names: &CommandPaths) -> Self {
        let others = |(directory, at): &&(VPath, VPath)| directory != at;
        Self {
            roots: names
                .roots()
                .iter()
                .filter(others)
                .map(Shown::new)
                .collect(),
            aliases: names
                .aliases()
                .iter()
                .filter(others)
                .map(Shown::new)
                .collect(),
            home: names.home().map(names_of),
        }
    }

    /// Returns the place of a backend path.
    fn place(&self, names: &[String]) -> Place {
        let fits = |(number, root): (usize, &Shown)| {
            let rest = names.strip_prefix(root.directory.as_slice())?;
            Some((number, rest))
        };
        let found = self.roots.iter().enumerate().filter_map(fits);
        let (root, rest) = match found.min_by_key(|(_, rest)| rest.len()) {
            Some((number, rest)) => (Root::Tree(number), rest),
            None if names.is_empty() => (Root::Given, names),
            None => (Root::System, names),
        };
        Place {
            root,
            ..Place::system(rest)
        }
    }

    /// Returns the backend's path of a place, without a trailing slash.
    pub(crate) fn text(&self, place: &Place, home: &str) -> String {
        Self::with_names(self.root(place, home), &place.names)
    }

    /// Like [`text`](Self::text), but as a glob: names that are not globs are escaped.
    pub(crate) fn glob(&self, place: &Place, home: &str) -> String {
        let pattern = |name: &Name| match name.glob {
            true => name.clone(),
            false => Name::plain(&escaped(&name.text)),
        };
        let names: Vec<Name> = place.names.iter().map(pattern).collect();
        Self::with_names(escaped(&self.root(place, home)), &names)
    }

    fn root(&self, place: &Place, home: &str) -> String {
        match place.root {
            Root::Home => home.trim_end_matches('/').to_owned(),
            Root::System | Root::Given => String::new(),
            Root::Tree(number) => joined(self.roots.get(number).map(|root| &root.directory)),
        }
    }

    /// Returns the path of a place as commands see it, or `None` if that is not known.
    fn spelled(&self, place: &Place) -> Option<String> {
        if place.has_glob() {
            return None;
        }
        let text = match place.root {
            Root::Home => return None,
            Root::System | Root::Given => String::new(),
            Root::Tree(number) => joined(self.roots.get(number).map(|root| &root.at)),
        };
        Some(Self::with_names(text, &place.names))
    }

    fn with_names(mut text: String, names: &[Name]) -> String {
        for name in names {
            text.push('/');
            text.push_str(&name.text);
        }
        match text.is_empty() {
            true => "/".to_owned(),
            false => text,
        }
    }

    /// Whether commands see other paths than the backend, and the home is not known.
    pub(crate) fn home_may_be_inside(&self) -> bool {
        !self.roots.is_empty() && self.home.is_none()
    }

    /// Returns the places in the backend that `names` may end in: whatever follows the
    /// name under which commands see a backend directory is taken as a path inside it.
    pub(crate) fn ends_inside(&self, names: &[&str]) -> Vec<Place> {
        let mut places = Vec::new();
        for shown in self.roots.iter().chain(&self.aliases) {
            let Some(last) = shown.at.last() else {
                continue;
            };
            for (at, _) in names.iter().enumerate().filter(|(_, name)| *name == last) {
                let rest = names.get(at + 1..).unwrap_or_default();
                let mut inside = shown.directory.clone();
                inside.extend(rest.iter().map(|name| (*name).to_owned()));
                places.push(self.place(&inside));
            }
        }
        places
    }
}

fn names_of(path: &VPath) -> Vec<String> {
    let names = path.components().filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn joined(names: Option<&Vec<String>>) -> String {
    let names = names.into_iter().flatten();
    names.map(|name| format!("/{name}")).collect()
}

/// One reading of a word as a path.
pub(crate) struct Reading {
    pub(crate) place: Place,
    /// The path as the command would open it, not normalized, if all of it is known.
    pub(crate) spelled: Option<String>,
}

/// The directories that a shell may be in. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Directories<'a> {
    work: &'a Work<'a>,
    all: Arc<Vec<Place>>,
    /// Directories it may have been in before.
    left: Arc<Vec<Place>>,
    pub(crate) names: Arc<Names>,
    /// Whether it may also be in some other directory.
    pub(crate) unknown: bool,
}

impl<'a> Directories<'a> {
    pub(crate) fn new(directory: &VPath, names: Option<&CommandPaths>, work: &'a Work<'a>) -> Self {
        let names = names.map(Names::new).unwrap_or_default();
        Self {
            work,
            all: Arc::new(vec![names.place(&names_of(directory))]),
            left: Arc::default(),
            names: Arc::new(names),
            unknown: false,
        }
    }

    /// Returns the number of names in all directories, which is the cost of resolving a
    /// word.
    pub(crate) fn weight(&self) -> usize {
        self.all.iter().map(|place| place.names.len() + 1).sum()
    }

    /// Adds the directories of `before`, since the shell may still be in one of them.
    pub(crate) fn or(&mut self, before: Self) {
        self.unknown |= before.unknown;
        if self.work.is_spent() {
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
        let same = |a: &Arc<Vec<Place>>, b: &Arc<Vec<Place>>| Arc::ptr_eq(a, b) || a == b;
        self.unknown == other.unknown
            && same(&self.all, &other.all)
            && same(&self.left, &other.left)
    }

    /// Whether all directories of `other` are among these.
    pub(crate) fn includes(&self, other: &Self) -> bool {
        let all = |these: &Arc<Vec<Place>>, others: &Arc<Vec<Place>>| {
            Arc::ptr_eq(these, others) || others.iter().all(|place| these.contains(place))
        };
        (self.unknown || !other.unknown)
            && all(&self.all, &other.all)
            && all(&self.left, &other.left)
    }

    /// Whether it has directories that `before` has not, if all of those were added to
    /// it.
    pub(crate) fn exceeds(&self, before: &Self) -> bool {
        self.unknown != before.unknown
            || self.all.len() > before.all.len()
            || self.left.len() > before.left.len()
    }

    fn keep(&mut self, mut all: Vec<Place>) {
        if all.len() > MAX_DIRECTORIES {
            all.truncate(MAX_DIRECTORIES);
            self.unknown = true;
        }
        self.all = Arc::new(all);
    }

    /// Changes to the directory `word`.
    pub(crate) fn go(&mut self, word: &Word) {
        let places = self.places(word).unwrap_or_default();
        if places.is_empty() || word.literal() == Some("-") {
            return self.lose();
        }
        self.unknown |= word.is_glob();
        self.leave();
        self.keep(places);
    }

    /// Changes to an unknown directory, possibly an earlier one.
    pub(crate) fn lose(&mut self) {
        self.unknown = true;
        if !self.work.charge(self.weight()) {
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
    pub(crate) fn go_home(&mut self) {
        self.leave();
        self.all = Arc::new(self.homes());
    }

    /// Returns the directories that `~` may stand for: the known home, if there is one,
    /// and that of any other user.
    fn homes(&self) -> Vec<Place> {
        let known = self.names.home.as_deref().map(Place::system);
        let mut homes: Vec<Place> = known.into_iter().collect();
        let shown: Vec<_> = homes.iter().flat_map(|home| self.shown(home)).collect();
        add(&mut homes, shown);
        homes.push(Place::at(Root::Home));
        homes
    }

    /// Returns the places that `word` may name, or `None` if some of it is computed.
    pub(crate) fn places(&self, word: &Word) -> Option<Vec<Place>> {
        if word.is_unknown() {
            return None;
        }
        let readings = self.readings(word);
        let mut places = Vec::new();
        add(
            &mut places,
            readings.into_iter().map(|reading| reading.place),
        );
        self.work.charge(PLACE_STEPS * places.len());
        Some(places)
    }

    /// Whether a word starts with a computed part, or has one right after the directory
    /// it starts with.
    pub(crate) fn begins_computed(word: &Word) -> bool {
        beginning(word).1.first() == Some(&Part::Computed)
    }

    /// Returns every reading of a word. A computed part stands for any name. A word
    /// that starts with a computed part has no reading, and neither has one that is too
    /// deep.
    pub(crate) fn readings(&self, word: &Word) -> Vec<Reading> {
        // A line that ran out of steps is denied, whatever it names.
        if Self::begins_computed(word) || self.work.is_spent() {
            return Vec::new();
        }
        let (first, rest) = beginning(word);
        let absolute = first.is_none() && word.starts_with("/");
        if !self.work.charge(if absolute { 1 } else { self.weight() }) {
            return Vec::new();
        }
        let bases = match first {
            Some(Part::Home) => self.homes(),
            None if absolute => vec![Place::at(Root::System)],
            _ => self.all.to_vec(),
        };
        let names = split(rest);
        let text = plain(rest);
        let mut readings: Vec<Reading> = Vec::new();
        for base in bases {
            let spelled = text
                .as_ref()
                .and_then(|text| Some(format!("{}/{text}", self.names.spelled(&base)?)));
            for place in self.enter(base, &names) {
                let known = readings.iter().any(|reading| reading.place == place);
                let spelled = spelled.clone().or_else(|| self.directory_of(&place));
                if !known {
                    readings.push(Reading { place, spelled });
                }
            }
        }
        readings
    }

    /// Returns the directory before the first glob in a place that has one.
    fn directory_of(&self, place: &Place) -> Option<String> {
        let end = place.names.iter().position(|name| name.glob)?;
        let mut directory = place.clone();
        directory.names.truncate(end);
        self.names.spelled(&directory)
    }

    /// Returns the places that `names` may lead to from `base`.
    fn enter(&self, base: Place, names: &[Name]) -> Vec<Place> {
        let mut places = vec![base];
        for name in names {
            if matches!(name.text.as_str(), "" | ".") {
                continue;
            }
            let names: usize = places.iter().map(|place| place.names.len() + 1).sum();
            // Each place is compared with the others.
            if !self.work.charge(names * (1 + places.len() / 4)) {
                return Vec::new();
            }
            let mut next = Vec::new();
            for place in places {
                add(&mut next, self.step(place, name));
            }
            places = next;
        }
        places
    }

    fn step(&self, mut place: Place, name: &Name) -> Vec<Place> {
        if name.text == ".." && !name.glob {
            return self.up(place);
        }
        if place.names.len() >= MAX_NAMES {
            return Vec::new();
        }
        place.names.push(name.clone());
        let mut places = match place.of_process() {
            None => Vec::new(),
            Some(Process::Directory) => self.all.to_vec(),
            Some(Process::Root) => vec![Place::at(Root::System)],
        };
        if place.could_be(&["dev", "fd"].map(str::to_owned)) {
            let open = ["proc", "self", "fd"].map(str::to_owned);
            places.push(Place::system(&open));
        }
        places.extend(self.shown(&place));
        places.insert(0, place);
        places
    }

    fn up(&self, mut place: Place) -> Vec<Place> {
        if place.names.pop().is_some() {
            let mut places = vec![place.clone()];
            places.extend(self.shown(&place));
            return places;
        }
        match place.root {
            Root::System | Root::Given => vec![Place::at(Root::System)],
            // Homes share a parent directory, except root's, which is in `/`.
            Root::Home => vec![Place::system(&["home".to_owned()]), Place::at(Root::System)],
            Root::Tree(number) => {
                let Some(root) = self.names.roots.get(number) else {
                    return Vec::new();
                };
                let above = root.at.split_last().map_or(&[][..], |(_, above)| above);
                let outside = Place::system(above);
                // The parent in the backend, in case `..` is resolved there.
                let inside = match root.directory.split_last() {
                    Some((_, above)) => self.names.place(above),
                    None => Place::at(Root::System),
                };
                let mut places = self.shown(&outside);
                places.insert(0, outside);
                add(&mut places, [inside]);
                places
            }
        }
    }

    /// Returns the backend directories that commands may see at `place`.
    fn shown(&self, place: &Place) -> Vec<Place> {
        let all = self.names.roots.iter().chain(&self.names.aliases);
        all.filter(|shown| place.could_be(&shown.at))
            .map(|shown| self.names.place(&shown.directory))
            .collect()
    }
}

/// Splits off the directory (`~` or `$PWD`) that a word starts with, if any.
fn beginning(word: &Word) -> (Option<&Part>, &[Part]) {
    match word.parts().split_first() {
        Some((first @ (Part::Home | Part::Here), rest)) => (Some(first), rest),
        _ => (None, word.parts()),
    }
}

/// Adds the places that are not in the list yet.
fn add(places: &mut Vec<Place>, more: impl IntoIterator<Item = Place>) {
    for place in more {
        if !places.contains(&place) {
            places.push(place);
        }
    }
}

/// Returns the text of `parts`, if all of it is known.
fn plain(parts: &[Part]) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// Splits a path into names. A computed part could be any text, so a name that contains
/// one is a glob. Quoted text in a glob is escaped.
fn split(parts: &[Part]) -> Vec<Name> {
    let mut names = vec![(String::new(), Name::default())];
    for part in parts {
        let (text, glob) = match part {
            Part::Text(text) => (text.as_str(), false),
            Part::Glob(glob) => (glob.as_str(), true),
            Part::Home | Part::Here | Part::Computed => ("*", true),
        };
        for (number, piece) in text.split('/').enumerate() {
            if number > 0 {
                names.push(Default::default());
            }
            if let Some((pattern, last)) = names.last_mut() {
                match glob {
                    true => pattern.push_str(piece),
                    false => pattern.push_str(&escaped(piece)),
                }
                last.text.push_str(piece);
                last.glob |= glob;
            }
        }
    }
    let name = |(pattern, name): (String, Name)| match name.glob {
        true => Name {
            text: pattern,
            glob: true,
        },
        false => name,
    };
    names.into_iter().map(name).collect()
}
