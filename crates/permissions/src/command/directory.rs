//! Where a command may run, and what its words then name.
//!
//! A path can be read in several ways: as it is written, and as what it is for
//! the backend where commands see other names than that does. All of them are
//! kept, and the strongest answer to any of them counts.

use std::sync::Arc;

use backend_core::{CommandNames, VPath};

use super::glob::{escaped, name_matches};
use super::word::{Part, Word};
use super::work::Work;

/// More directories than this are not told apart.
const MAX_DIRECTORIES: usize = 16;

/// The cost of comparing a place with those that are known.
const PLACE_STEPS: usize = 16;

/// A path of more names has no reading. It may be a path for the command: what is
/// in it can lead up again.
const MAX_NAMES: usize = 2048;

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// At the root of the system.
    System,
    /// At the home directory of somebody.
    Home,
    /// At the root that a backend shows, which may be any directory.
    Given,
    /// At a directory of the backend that commands see elsewhere, by its number.
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

    /// Whether it is `name`, or a glob that could be.
    pub(crate) fn could_be(&self, name: &str) -> bool {
        match self.glob {
            true => name_matches(&self.text, name),
            false => self.text == name,
        }
    }
}

/// A path, folded; its names may be globs.
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

    /// Whether it could be the directory of these names.
    fn could_be(&self, names: &[String]) -> bool {
        self.root == Root::System
            && self.names.len() == names.len()
            && self
                .names
                .iter()
                .zip(names)
                .all(|(name, known)| name.could_be(known))
    }

    /// Whether it leads through an open file: beneath one, or to one of another
    /// process.
    pub(crate) fn is_through_descriptor(&self) -> bool {
        let is = |at: usize, name: &str| self.names.get(at).is_some_and(|it| it.could_be(name));
        let own = is(1, "self") || is(1, "thread-self");
        self.root == Root::System
            && (is(0, "dev") && is(1, "fd") && self.names.len() > 3
                || is(0, "proc")
                    && (is(2, "fd") || is(2, "task") && is(4, "fd"))
                    && (self.names.len() > 4 || self.names.len() == 4 && !own))
    }

    /// What in `/proc` it could stand for that belongs to a process.
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

/// A link of `/proc` to something of a process.
enum Process {
    Directory,
    Root,
}

/// A directory of the backend, and where commands see it.
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

/// The names that files have for commands.
#[derive(Debug, Default)]
pub(crate) struct Names {
    roots: Vec<Shown>,
    aliases: Vec<Shown>,
    home: Option<Vec<String>>,
}

impl Names {
    fn new(names: &CommandNames) -> Self {
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

    /// A path of the backend.
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

    /// The text of a path as the backend names it, without a slash at the end.
    pub(crate) fn text(&self, place: &Place, home: &str) -> String {
        Self::with_names(self.root(place, home), &place.names)
    }

    /// The same as a glob, in which names that are none stand for themselves.
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

    /// The same as commands name it. `None` if that is not known.
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

    /// Whether commands see other names, and what `~` stands for is not known.
    pub(crate) fn home_may_be_inside(&self) -> bool {
        !self.roots.is_empty() && self.home.is_none()
    }

    /// The ends of `names` that lie in a directory of the backend if they stand
    /// behind the name that it has for commands.
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

/// One way to read a word as a path.
pub(crate) struct Reading {
    pub(crate) place: Place,
    /// The path as the command would open it, not folded, where all of it is known.
    pub(crate) spelled: Option<String>,
}

/// The directories that a shell may be in. Cloning is cheap.
#[derive(Debug, Clone)]
pub(crate) struct Directories<'a> {
    work: &'a Work<'a>,
    all: Arc<Vec<Place>>,
    /// Where it was before.
    left: Arc<Vec<Place>>,
    pub(crate) names: Arc<Names>,
    /// Whether it may also be elsewhere.
    pub(crate) unknown: bool,
}

impl<'a> Directories<'a> {
    pub(crate) fn new(directory: &VPath, names: Option<&CommandNames>, work: &'a Work<'a>) -> Self {
        let names = names.map(Names::new).unwrap_or_default();
        Self {
            work,
            all: Arc::new(vec![names.place(&names_of(directory))]),
            left: Arc::default(),
            names: Arc::new(names),
            unknown: false,
        }
    }

    /// How many names there are in all of them: what reading a word costs.
    pub(crate) fn weight(&self) -> usize {
        self.all.iter().map(|place| place.names.len() + 1).sum()
    }

    /// It may also be where it was before.
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

    fn keep(&mut self, mut all: Vec<Place>) {
        if all.len() > MAX_DIRECTORIES {
            all.truncate(MAX_DIRECTORIES);
            self.unknown = true;
        }
        self.all = Arc::new(all);
    }

    /// It goes to `word`.
    pub(crate) fn go(&mut self, word: &Word) {
        let places = self.places(word).unwrap_or_default();
        if places.is_empty() || word.literal() == Some("-") {
            return self.lose();
        }
        self.unknown |= word.is_glob();
        self.leave();
        self.keep(places);
    }

    /// It goes somewhere, perhaps back.
    pub(crate) fn lose(&mut self) {
        self.unknown = true;
        if !self.work.charge(self.weight()) {
            return;
        }
        let mut all = self.all.to_vec();
        add(&mut all, self.left.iter().cloned());
        self.keep(all);
    }

    /// It goes away from where it is.
    fn leave(&mut self) {
        let mut left = self.all.to_vec();
        add(&mut left, self.left.iter().cloned());
        left.truncate(MAX_DIRECTORIES);
        self.left = Arc::new(left);
    }

    /// It goes home.
    pub(crate) fn go_home(&mut self) {
        self.leave();
        self.all = Arc::new(self.homes());
    }

    /// What `~` may stand for: of whom it is, is not known.
    fn homes(&self) -> Vec<Place> {
        let known = self.names.home.as_deref().map(Place::system);
        let mut homes: Vec<Place> = known.into_iter().collect();
        let shown: Vec<_> = homes.iter().flat_map(|home| self.shown(home)).collect();
        add(&mut homes, shown);
        homes.push(Place::at(Root::Home));
        homes
    }

    /// What `word` may name, or `None` if some of it is computed.
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

    /// Whether what a word begins with, or what stands behind the directory it
    /// begins with, is computed.
    pub(crate) fn begins_computed(word: &Word) -> bool {
        beginning(word).1.first() == Some(&Part::Computed)
    }

    /// Every way to read a word. What is computed in it stands for any name; a
    /// word that begins with it has no reading, and neither has one that is too deep.
    pub(crate) fn readings(&self, word: &Word) -> Vec<Reading> {
        // A line that was given up is refused, whatever it names.
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

    /// Of a glob, the directory before the first name that is one.
    fn directory_of(&self, place: &Place) -> Option<String> {
        let end = place.names.iter().position(|name| name.glob)?;
        let mut directory = place.clone();
        directory.names.truncate(end);
        self.names.spelled(&directory)
    }

    /// Where `names` lead from `base`.
    fn enter(&self, base: Place, names: &[Name]) -> Vec<Place> {
        let mut places = vec![base];
        for name in names {
            if matches!(name.text.as_str(), "" | ".") {
                continue;
            }
            let names: usize = places.iter().map(|place| place.names.len() + 1).sum();
            // Each is compared with the others.
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
            // Homes stand side by side, but for that of root.
            Root::Home => vec![Place::system(&["home".to_owned()]), Place::at(Root::System)],
            Root::Tree(number) => {
                let Some(root) = self.names.roots.get(number) else {
                    return Vec::new();
                };
                let above = root.at.split_last().map_or(&[][..], |(_, above)| above);
                let outside = Place::system(above);
                // As if the backend's names were all there are.
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

    /// The directory of the backend that commands see at `place`.
    fn shown(&self, place: &Place) -> Vec<Place> {
        let all = self.names.roots.iter().chain(&self.names.aliases);
        all.filter(|shown| place.could_be(&shown.at))
            .map(|shown| self.names.place(&shown.directory))
            .collect()
    }
}

/// The directory that a word begins with, if it is no text, and the rest.
fn beginning(word: &Word) -> (Option<&Part>, &[Part]) {
    match word.parts().split_first() {
        Some((first @ (Part::Home | Part::Here), rest)) => (Some(first), rest),
        _ => (None, word.parts()),
    }
}

/// Adds what is not there yet.
fn add(places: &mut Vec<Place>, more: impl IntoIterator<Item = Place>) {
    for place in more {
        if !places.contains(&place) {
            places.push(place);
        }
    }
}

/// The text behind the beginning, if all of it is known.
fn plain(parts: &[Part]) -> Option<String> {
    parts
        .iter()
        .map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// The names of a path. What is computed could be any text, so that a name which
/// holds some is a glob. What is quoted in a glob stands for itself.
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
