//! [`Walk`]: the one walk behind every search, without any I/O.
//!
//! It alone decides which entries a search sees, in which order, and which ones it
//! counts as skipped. A backend drives the walk: it asks for the next [`Step`],
//! performs it with its own handles, and passes the result back. So the same code
//! serves a store in memory, directories opened one beneath the other, and an async
//! backend that has nothing but `ls` and `read`.
//!
//! # Rules
//!
//! Regular files are found in byte order of their whole paths, and directories are
//! entered. Links and everything else are skipped without being counted, as are the
//! temporary names of files being written. Then, in this order:
//!
//! 1. Entries that [`WalkOptions::exclude`] hides are left out and never counted. A
//!    directory is entered anyway if a rule may keep something beneath it.
//! 2. A directory beneath which [`WalkOptions::pattern`] cannot match is left out
//!    and not counted.
//! 3. A name that begins with a dot is left out and counted as hidden, unless
//!    [`WalkOptions::hidden`] is set or the pattern names it: one of its
//!    components begins with a literal dot and matches the name. `.git` is left
//!    out unless the pattern names it, even if `hidden` is set.
//! 4. Entries that an ignore file excludes are left out and counted as ignored, unless
//!    [`WalkOptions::ignored`] is set. Ignore files above the start apply as well.
//! 5. A [generated directory](super::GENERATED_DIRECTORIES) is left out and counted
//!    as generated, unless [`WalkOptions::generated`] or [`WalkOptions::ignored`] is
//!    set, an ignore file in force here holds a rule, the pattern names it (a
//!    component other than the last is that name), or it lies in another generated
//!    directory that was entered.
//! 6. A file that does not match the pattern is left out and not counted.
//!
//! So the counts cover everything that the rules left out of the directories that
//! were entered, whether or not the pattern would have matched it. The start is
//! always entered, whatever the rules say about it.
//!
//! # Bounds
//!
//! Nothing recurses. Memory holds the remaining children, and the handles, of those
//! directories on the path to the current one that have children left.

use std::cmp::Ordering;
use std::collections::VecDeque;

use crate::limits::TEMPORARY_PREFIX;
use crate::ops::{FileKind, Skipped};
use crate::path::VPath;
use crate::search::exclude::ExcludeState;
use crate::search::ignore_rules::IgnoreFile;

mod rules;

use rules::Rules;
pub use rules::WalkOptions;

/// One entry of a directory, as the driver found it.
///
/// The payload belongs to the driver, for example metadata it already has, and is
/// returned with [`Step::File`].
#[derive(Debug, Clone)]
pub struct Child<E> {
    /// The entry's name.
    pub name: String,
    /// The kind of the entry itself: a link is a link, wherever it leads.
    pub kind: FileKind,
    /// The value returned with the file.
    pub payload: E,
}

impl<E> Child<E> {
    /// Creates an entry called `name`.
    pub fn new(name: impl Into<String>, kind: FileKind, payload: E) -> Self {
        Self {
            name: name.into(),
            kind,
            payload,
        }
    }

    /// Sorts the entries of a directory in the order in which a [`Walk`] visits them. A
    /// driver need not: the walk sorts them itself, which is cheaper if they are sorted.
    pub fn sort(children: &mut [Self]) {
        children.sort_unstable_by(Self::path_order);
    }

    /// Compares entries of a directory so that the paths beneath them come out in
    /// order: a directory sorts by its name and a slash.
    fn path_order(&self, other: &Self) -> Ordering {
        let (one, two) = (self.name.as_bytes(), other.name.as_bytes());
        let common = one.len().min(two.len());
        let slash = |child: &Self| (child.kind == FileKind::Directory).then_some(b'/');
        let rest = |bytes: &[u8], child| bytes.get(common).copied().or(slash(child));
        one[..common]
            .cmp(&two[..common])
            .then_with(|| rest(one, self).cmp(&rest(two, other)))
            .then_with(|| one.len().cmp(&two.len()))
    }
}

/// The next request of a [`Walk`] to its driver.
#[derive(Debug)]
pub enum Step<'a, D, E> {
    /// Open and list this directory, without following a link at its last name, then
    /// call [`Walk::entered`] or [`Walk::unreadable`].
    Enter {
        /// Its parent directory; `None` for the start.
        parent: Option<&'a D>,
        /// Its name in `parent`; empty for the root.
        name: &'a str,
        /// Its path.
        path: &'a VPath,
    },
    /// Read this ignore file if it is a regular one, then call
    /// [`Walk::ignore_file`].
    IgnoreFile {
        /// Its directory, which was entered; `None` if it lies above the start,
        /// where there may be no such file.
        directory: Option<&'a D>,
        /// Its name in `directory`.
        name: &'static str,
        /// Its path.
        path: &'a VPath,
    },
    /// A file was found. No answer is needed.
    File {
        /// Its directory.
        directory: &'a D,
        /// Its path.
        path: VPath,
        /// The payload of its entry.
        payload: E,
    },
    /// There are no more files.
    Done,
}

/// A walk over the files beneath a directory, in path order.
///
/// `D` is the driver's handle on an open directory. It is dropped when nothing more
/// in the directory has to be opened. `E` is the payload that the driver attaches to an entry.
///
/// Until a step is answered, [`step`](Self::step) repeats it, so an async driver may
/// be dropped and resumed anywhere. An answer to a step that was not requested is ignored.
///
/// ```
/// use backend_core::VPath;
/// use backend_core::ops::FileKind;
/// use backend_core::search::{Child, Step, Walk, WalkOptions};
///
/// let mut walk = Walk::new(VPath::root(), WalkOptions::default());
/// let mut found = Vec::new();
/// loop {
///     match walk.step() {
///         Step::Enter { path, .. } if path.is_root() => walk.entered((), vec![
///             Child::new("b.rs", FileKind::File, 2_u64),
///             Child::new("a", FileKind::Directory, 0),
///             Child::new(".hidden", FileKind::File, 3),
///         ]),
///         Step::Enter { .. } => walk.entered((), vec![Child::new("c.rs", FileKind::File, 1)]),
///         Step::IgnoreFile { .. } => walk.ignore_file(None),
///         Step::File { path, payload, .. } => found.push((path.to_string(), payload)),
///         Step::Done => break,
///     }
/// }
/// assert_eq!(found, [("/a/c.rs".to_owned(), 1), ("/b.rs".to_owned(), 2)]);
/// assert_eq!(walk.skipped().hidden, 1);
/// ```
#[derive(Debug)]
pub struct Walk<D, E> {
    rules: Rules,
    /// Whether the start was requested.
    started: bool,
    /// Directories whose ignore files are still to be read, in order.
    unread: VecDeque<(VPath, IgnoreFile)>,
    request: Request,
    /// The directories on the path to the current one.
    frames: Vec<Frame<D, E>>,
}

/// The request that the driver has not answered yet.
#[derive(Debug, Default)]
enum Request {
    #[default]
    Nothing,
    Enter {
        path: VPath,
        exclude: ExcludeState,
    },
    IgnoreFile {
        directory: VPath,
        path: VPath,
        file: IgnoreFile,
    },
}

/// A directory that was entered and has children left.
#[derive(Debug)]
struct Frame<D, E> {
    directory: D,
    path: VPath,
    exclude: ExcludeState,
    /// The ignore rules in force before those of this directory.
    mark: usize,
    children: std::vec::IntoIter<Child<E>>,
    /// The number of children at the end that [`Walk::coming`] has not looked at.
    unseen: usize,
}

impl<D, E> Walk<D, E> {
    /// Creates a walk over everything beneath `start`, which the first
    /// [`Step::Enter`] asks for.
    pub fn new(start: VPath, options: WalkOptions) -> Self {
        let mut unread = VecDeque::new();
        if !options.ignored {
            for above in start.ancestors() {
                unread.extend(IgnoreFile::ALL.map(|file| (above.clone(), file)));
            }
        }
        Self {
            rules: Rules::new(start, options),
            started: false,
            unread,
            request: Request::Nothing,
            frames: Vec::new(),
        }
    }

    /// Returns the next step. It stays the same until it is answered.
    pub fn step(&mut self) -> Step<'_, D, E> {
        let found = match self.request {
            Request::Nothing => self.advance(),
            _ => None,
        };
        let directory = self.frames.last().map(|frame| &frame.directory);
        match (&self.request, directory, found) {
            (Request::Enter { path, .. }, parent, _) => Step::Enter {
                parent,
                name: path.file_name().unwrap_or_default(),
                path,
            },
            (Request::IgnoreFile { path, file, .. }, directory, _) => Step::IgnoreFile {
                directory,
                name: file.name(),
                path,
            },
            (Request::Nothing, Some(directory), Some((path, payload))) => Step::File {
                directory,
                path,
                payload,
            },
            (Request::Nothing, _, _) => Step::Done,
        }
    }

    /// Answers [`Step::Enter`]: the directory is open, and `children` are all its
    /// entries, in any order. A child whose name is invalid, or makes the path too
    /// long, is skipped and counted as unreadable.
    pub fn entered(&mut self, directory: D, mut children: Vec<Child<E>>) {
        let (path, exclude) = match std::mem::take(&mut self.request) {
            Request::Enter { path, exclude } => (path, exclude),
            other => return self.request = other,
        };
        if !self.rules.options.ignored {
            let is_there = |file: &IgnoreFile| {
                children
                    .iter()
                    .any(|child| child.kind == FileKind::File && child.name == file.name())
            };
            let files = IgnoreFile::ALL.into_iter().filter(is_there);
            self.unread.extend(files.map(|file| (path.clone(), file)));
        }
        children.retain(|child| {
            matches!(child.kind, FileKind::File | FileKind::Directory)
                && !child.name.starts_with(TEMPORARY_PREFIX)
        });
        Child::sort(&mut children);
        // A parent without further children is finished. Its handle is dropped, and
        // its ignore rules end together with this directory's.
        let finished = self.frames.pop_if(|parent| parent.children.len() == 0);
        self.frames.push(Frame {
            directory,
            path,
            exclude,
            mark: finished.map_or_else(|| self.rules.ignore.mark(), |parent| parent.mark),
            unseen: children.len(),
            children: children.into_iter(),
        });
    }

    /// Returns the directories that the walk will ask for in the directory of the pending
    /// [`Step::Enter`], in this order, with that directory: at most `most` of those that
    /// were not returned before. A driver may list them while the walk goes on.
    ///
    /// `wanted` is asked first, with the directory. Returns `None` if it says no, if no
    /// such step is pending, or if nothing follows.
    pub fn coming(
        &mut self,
        most: usize,
        wanted: impl FnOnce(&D) -> bool,
    ) -> Option<(&D, Vec<&str>)> {
        // All ignore files that count in this directory were read before this step.
        if !matches!(self.request, Request::Enter { .. }) {
            return None;
        }
        let frame = self.frames.last_mut()?;
        let left = frame.children.as_slice();
        let mut unseen = left[left.len().saturating_sub(frame.unseen)..].iter();
        if unseen.len() == 0 || !wanted(&frame.directory) {
            return None;
        }
        let (rules, path, exclude) = (&self.rules, &frame.path, &frame.exclude);
        let is_entered = |child: &&Child<E>| {
            child.kind == FileKind::Directory && rules.decide(path, exclude, child).is_ok()
        };
        let names = unseen.by_ref().filter(is_entered).take(most);
        let names: Vec<_> = names.map(|child| child.name.as_str()).collect();
        frame.unseen = unseen.len();
        (!names.is_empty()).then_some((&frame.directory, names))
    }

    /// Answers [`Step::Enter`]: the directory cannot be listed. It is counted, and
    /// the walk continues without it.
    pub fn unreadable(&mut self) {
        match std::mem::take(&mut self.request) {
            Request::Enter { exclude, .. } => self.rules.count_unreadable(&exclude),
            other => self.request = other,
        }
    }

    /// Answers [`Step::IgnoreFile`] with the file's content, or `None` if it is
    /// missing, not a regular file, or cannot be read.
    ///
    /// A file that was listed but cannot be read counts as unreadable. So does one
    /// that is longer than [`IGNORE_FILE_BYTES`](crate::limits::IGNORE_FILE_BYTES),
    /// of which a driver need not read more than one byte past that limit.
    pub fn ignore_file(&mut self, text: Option<&[u8]>) {
        let (directory, path, file) = match std::mem::take(&mut self.request) {
            Request::IgnoreFile {
                directory,
                path,
                file,
            } => (directory, path, file),
            other => return self.request = other,
        };
        let honoured = match text {
            Some(text) => self.rules.ignore.push(&directory, file, text).is_ok(),
            None => self.frames.is_empty(),
        };
        if !honoured {
            let exclude = self.rules.options.exclude.state_for(&path);
            self.rules.count_unreadable(&exclude);
        }
    }

    /// Counts names that are not UTF-8 and so cannot be children. Must be called
    /// before [`entered`](Self::entered) for their directory.
    pub fn skip_names(&mut self, not_utf8: u64) {
        match &self.request {
            Request::Enter { exclude, .. } if exclude.is_hidden() => {}
            _ => self.rules.skipped.not_utf8 += not_utf8,
        }
    }

    /// Returns the counts of what was skipped so far.
    pub fn skipped(&self) -> Skipped {
        self.rules.skipped
    }

    /// Advances to the next file, which is returned, or to the next request.
    fn advance(&mut self) -> Option<(VPath, E)> {
        while let Some((directory, file)) = self.unread.pop_front() {
            // If the name does not fit into a path, there is no such file.
            if let Ok(path) = directory.child(file.name()) {
                self.request = Request::IgnoreFile {
                    directory,
                    path,
                    file,
                };
                return None;
            }
        }
        if !self.started {
            self.started = true;
            self.request = Request::Enter {
                path: self.rules.start.clone(),
                exclude: self.rules.options.exclude.state_for(&self.rules.start),
            };
            return None;
        }
        while let Some(frame) = self.frames.last_mut() {
            let Some(child) = frame.children.next() else {
                self.rules.ignore.reset(frame.mark);
                self.frames.pop();
                continue;
            };
            let Some((path, exclude)) = self.rules.judge(&frame.path, &frame.exclude, &child)
            else {
                continue;
            };
            if child.kind == FileKind::File {
                return Some((path, child.payload));
            }
            self.request = Request::Enter { path, exclude };
            return None;
        }
        None
    }
}

#[cfg(test)]
mod tests;
