//! [`Location`]: a path as a command and as the backend see it.

use backend_core::{CommandPaths, VPath};

use crate::glob::{escaped, name_matches};

/// Placeholder for an unknown home. Rules that match the name of a file or directory
/// anywhere still apply to paths in it.
const UNKNOWN_HOME: &str = "/~";

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
        if self.glob {
            name_matches(&self.text, name)
        } else {
            self.text == name
        }
    }
}

/// A normalized path. Its names may be globs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) root: Root,
    pub(crate) names: Vec<Name>,
}

impl Location {
    pub(crate) fn at(root: Root) -> Self {
        Self {
            root,
            names: Vec::new(),
        }
    }

    pub(crate) fn system(names: &[String]) -> Self {
        Self {
            root: Root::System,
            names: names.iter().map(|name| Name::plain(name)).collect(),
        }
    }

    /// Whether it could be the directory with these names.
    pub(crate) fn could_be(&self, names: &[String]) -> bool {
        self.root == Root::System
            && self.names.len() == names.len()
            && std::iter::zip(&self.names, names).all(|(name, known)| name.could_be(known))
    }

    /// Whether it leads beneath a file descriptor, or to one of another process.
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
    pub(crate) fn of_process(&self) -> Option<Process> {
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
pub(crate) enum Process {
    Directory,
    Root,
}

/// A directory of the backend, and the path at which commands see it.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) directory: Vec<String>,
    pub(crate) at: Vec<String>,
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
    pub(crate) roots: Vec<Shown>,
    pub(crate) aliases: Vec<Shown>,
    pub(crate) home: Option<Vec<String>>,
}

impl Names {
    pub(crate) fn new(names: &CommandPaths) -> Self {
        let shown = |pairs: &[(VPath, VPath)]| {
            let others = pairs.iter().filter(|(directory, at)| directory != at);
            others.map(Shown::new).collect()
        };
        Self {
            roots: shown(names.roots()),
            aliases: shown(names.aliases()),
            home: names.home().map(names_of),
        }
    }

    /// Returns the location of a backend path.
    pub(crate) fn location(&self, names: &[String]) -> Location {
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
        Location {
            root,
            ..Location::system(rest)
        }
    }

    /// Returns the backend's path of a location, without a trailing slash.
    pub(crate) fn text(&self, location: &Location) -> String {
        Self::with_names(self.root(location), &location.names)
    }

    /// Like [`text`](Self::text), but as a glob: names that are not globs are escaped.
    pub(crate) fn glob(&self, location: &Location) -> String {
        let pattern = |name: &Name| {
            if name.glob {
                name.clone()
            } else {
                Name::plain(&escaped(&name.text))
            }
        };
        let names: Vec<Name> = location.names.iter().map(pattern).collect();
        Self::with_names(escaped(&self.root(location)), &names)
    }

    fn root(&self, location: &Location) -> String {
        match location.root {
            Root::Home => UNKNOWN_HOME.to_owned(),
            Root::System | Root::Given => String::new(),
            Root::Tree(number) => joined(self.roots.get(number).map(|root| &root.directory)),
        }
    }

    /// Returns the path of a location as commands see it, or `None` if that is not known.
    pub(crate) fn spelled(&self, location: &Location) -> Option<String> {
        if location.names.iter().any(|name| name.glob) {
            return None;
        }
        let text = match location.root {
            Root::Home => return None,
            Root::System | Root::Given => String::new(),
            Root::Tree(number) => joined(self.roots.get(number).map(|root| &root.at)),
        };
        Some(Self::with_names(text, &location.names))
    }

    fn with_names(mut text: String, names: &[Name]) -> String {
        for name in names {
            text.push('/');
            text.push_str(&name.text);
        }
        if text.is_empty() {
            "/".to_owned()
        } else {
            text
        }
    }

    /// Whether commands see other paths than the backend, and the home is not known.
    pub(crate) fn home_may_be_inside(&self) -> bool {
        !self.roots.is_empty() && self.home.is_none()
    }

    /// Returns the locations in the backend that `names` may end in: whatever follows the
    /// name under which commands see a backend directory is taken as a path inside it.
    pub(crate) fn ends_inside(&self, names: &[&str]) -> Vec<Location> {
        let mut locations = Vec::new();
        for shown in self.roots.iter().chain(&self.aliases) {
            let Some(last) = shown.at.last() else {
                continue;
            };
            for (at, _) in names.iter().enumerate().filter(|(_, name)| *name == last) {
                let rest = names.get(at + 1..).unwrap_or_default();
                let mut inside = shown.directory.clone();
                inside.extend(rest.iter().map(|name| (*name).to_owned()));
                locations.push(self.location(&inside));
            }
        }
        locations
    }
}

pub(crate) fn names_of(path: &VPath) -> Vec<String> {
    let names = path.components().filter(|name| !name.is_empty());
    names.map(str::to_owned).collect()
}

fn joined(names: Option<&Vec<String>>) -> String {
    let names = names.into_iter().flatten();
    names.map(|name| format!("/{name}")).collect()
}
