//! Where a command may run, and what its words then name.

use backend_core::VPath;

use super::word::{Part, Word};

/// More directories than this are not told apart.
const MAX_DIRECTORIES: usize = 8;

/// Where a path starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// At the root of the system.
    System,
    /// At the home directory of somebody.
    Home,
    /// At the root that a backend shows, which may be any directory.
    Given,
}

/// One name of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) glob: bool,
}

/// A path, folded; its names may be globs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) root: Root,
    pub(crate) names: Vec<Name>,
}

impl Place {
    fn of(path: &VPath) -> Self {
        let names = path.components().filter(|name| !name.is_empty());
        let names: Vec<_> = names
            .map(|name| Name {
                text: name.to_owned(),
                glob: false,
            })
            .collect();
        Self {
            root: if names.is_empty() {
                Root::Given
            } else {
                Root::System
            },
            names,
        }
    }

    fn enter(&mut self, name: Name) {
        match name.text.as_str() {
            "" | "." => {}
            ".." if self.names.pop().is_none() => match self.root {
                Root::System => {}
                Root::Given => self.root = Root::System,
                // Homes stand side by side.
                Root::Home => {
                    self.root = Root::System;
                    self.names.push(Name {
                        text: "home".to_owned(),
                        glob: false,
                    });
                }
            },
            ".." => {}
            _ => self.names.push(name),
        }
    }

    /// The text of the path, without a slash at the end.
    pub(crate) fn text(&self, home: &str) -> String {
        let mut text = match self.root {
            Root::Home => home.trim_end_matches('/').to_owned(),
            Root::System | Root::Given => String::new(),
        };
        for name in &self.names {
            text.push('/');
            text.push_str(&name.text);
        }
        if text.is_empty() {
            "/".to_owned()
        } else {
            text
        }
    }
}

/// The directories that a shell may be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Directories {
    all: Vec<Place>,
    /// Whether it may also be elsewhere.
    pub(crate) unknown: bool,
}

impl Directories {
    pub(crate) fn new(directory: &VPath) -> Self {
        Self {
            all: vec![Place::of(directory)],
            unknown: false,
        }
    }

    /// It may also be where it was before.
    pub(crate) fn or(&mut self, before: Self) {
        self.unknown |= before.unknown;
        for place in before.all {
            if !self.all.contains(&place) {
                self.all.push(place);
            }
        }
        if self.all.len() > MAX_DIRECTORIES {
            self.all.truncate(MAX_DIRECTORIES);
            self.unknown = true;
        }
    }

    /// It goes to `word`.
    pub(crate) fn go(&mut self, word: &Word) {
        match self.places(word) {
            Some(places) if !word.is_glob() && word.literal() != Some("-") => self.all = places,
            _ => self.unknown = true,
        }
    }

    /// It goes somewhere.
    pub(crate) fn lose(&mut self) {
        self.unknown = true;
    }

    /// It goes home.
    pub(crate) fn go_home(&mut self) {
        self.all = vec![Place {
            root: Root::Home,
            names: Vec::new(),
        }];
    }

    /// What `word` may name, or `None` if some of it is computed.
    pub(crate) fn places(&self, word: &Word) -> Option<Vec<Place>> {
        let mut parts = word.parts();
        let from_home = parts.first() == Some(&Part::Home);
        if from_home {
            parts = parts.get(1..).unwrap_or_default();
        }
        let mut names = vec![Name {
            text: String::new(),
            glob: false,
        }];
        for part in parts {
            match part {
                Part::Text(text) => {
                    for (number, piece) in text.split('/').enumerate() {
                        if number > 0 {
                            names.push(Name {
                                text: String::new(),
                                glob: false,
                            });
                        }
                        names.last_mut()?.text.push_str(piece);
                    }
                }
                Part::Glob(glob) => {
                    let last = names.last_mut()?;
                    last.text.push_str(glob);
                    last.glob = true;
                }
                Part::Home | Part::Computed => return None,
            }
        }
        let bases = if from_home {
            vec![Place {
                root: Root::Home,
                names: Vec::new(),
            }]
        } else if word.starts_with("/") {
            vec![Place {
                root: Root::System,
                names: Vec::new(),
            }]
        } else {
            self.all.clone()
        };
        let enter = |mut place: Place| {
            for name in &names {
                place.enter(name.clone());
            }
            place
        };
        Some(bases.into_iter().map(enter).collect())
    }
}
