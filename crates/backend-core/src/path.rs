//! [`VPath`]: the one kind of path that crosses the [`Backend`](crate::Backend) trait.
//!
//! A path enters as a string once, at the edge, and is folded and checked there.
//! From then on it is absolute, free of `.`, `..` and doubled slashes, and safe to
//! compare byte by byte. Folding is lexical: nothing is expanded, decoded or looked
//! up. Only the backend that owns a path knows what it leads to.

#[cfg(feature = "serde")]
mod serial;

use std::fmt::{self, Write as _};
use std::str::FromStr;
use std::sync::Arc;

use crate::limits::{NAME_BYTES, PATH_BYTES, PATH_DEPTH, QUOTED_BYTES, TEMPORARY_PREFIX};

/// An absolute, folded UTF-8 path inside a backend's namespace.
///
/// Cloning is cheap: clones share one allocation. Paths order by their bytes,
/// which is the order of every sorted result in this workspace.
///
/// ```
/// use backend_core::VPath;
///
/// let work = VPath::parse("/workspace")?;
/// assert_eq!(work.join("src/../notes.md")?.as_str(), "/workspace/notes.md");
/// assert_eq!(work.join("/etc//hosts")?.as_str(), "/etc/hosts");
/// assert_eq!(work.join("")?, work);
/// assert!(work.join("../../..").is_err(), "nothing is above the root");
/// # Ok::<(), backend_core::PathError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VPath(Arc<str>);

/// The reason why a string is not a [`VPath`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The string holds a NUL character.
    #[error("the path {0} holds a NUL character; remove it")]
    Nul(Quoted),
    /// The string begins with `~`, which is not expanded.
    #[error(
        "the path {0} begins with '~', which is not expanded; give a path from the working directory"
    )]
    Home(Quoted),
    /// The string is a Windows path with a drive letter.
    #[error("the path {0} is a Windows path; use '/' and no drive letter")]
    Drive(Quoted),
    /// `..` climbs above the root.
    #[error("the path {0} climbs above the root; use fewer '..'")]
    AboveRoot(Quoted),
    /// The folded path is longer than [`PATH_BYTES`].
    #[error("the path {0} has {1} bytes, more than the {PATH_BYTES} a path can have; shorten it")]
    TooLong(Quoted, usize),
    /// The folded path has more than [`PATH_DEPTH`] components.
    #[error(
        "the path {0} is {1} levels deep, more than the {PATH_DEPTH} a path can have; nest less"
    )]
    TooDeep(Quoted, usize),
    /// One component is longer than [`NAME_BYTES`].
    #[error("the name {0} has {1} bytes, more than the {NAME_BYTES} a name can have; shorten it")]
    NameTooLong(Quoted, usize),
    /// A component begins with [`TEMPORARY_PREFIX`].
    #[error("the name {0} is reserved for files that are being written; choose another")]
    Reserved(Quoted),
    /// Something other than a single name was given.
    #[error("{0} is not the name of a file; give one name without '/'")]
    NotAName(Quoted),
}

/// Foreign text made fit for a message: quoted, escaped and cut.
#[derive(Clone, PartialEq, Eq)]
pub struct Quoted(String);

impl Quoted {
    /// Quotes the beginning of `text`; control characters are escaped. The quotes are
    /// double if the text itself has single ones.
    pub fn new(text: &str) -> Self {
        let cut = text.floor_char_boundary(QUOTED_BYTES);
        if cut == text.len() {
            Self(text.to_owned())
        } else {
            Self(format!("{}…", &text[..cut]))
        }
    }
}

impl fmt::Display for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_single = self.0.contains('\'') && !self.0.contains('"');
        let (own, other) = if is_single { ('"', '\'') } else { ('\'', '"') };
        f.write_char(own)?;
        for (number, part) in self.0.split(other).enumerate() {
            if number > 0 {
                f.write_char(other)?;
            }
            write!(f, "{}", part.escape_debug())?;
        }
        f.write_char(own)
    }
}

impl fmt::Debug for Quoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl VPath {
    /// Returns the root, `/`.
    pub fn root() -> Self {
        Self(Arc::from("/"))
    }

    /// Folds `input`; a relative path starts at the root.
    ///
    /// # Errors
    ///
    /// A [`PathError`] that says what is wrong and what to write instead.
    pub fn parse(input: &str) -> Result<Self, PathError> {
        Self::fold("", input)
    }

    /// Folds `input`; a relative path starts at `self`, and `""`, `.` and `./` are `self`.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn join(&self, input: &str) -> Result<Self, PathError> {
        if input.starts_with('/') {
            Self::fold("", input)
        } else {
            Self::fold(self.without_slash(), input)
        }
    }

    /// Returns the path of the entry called `name` in this directory.
    ///
    /// # Errors
    ///
    /// [`PathError::NotAName`] for `""`, `.`, `..` and anything with a slash,
    /// otherwise as [`parse`](Self::parse).
    pub fn child(&self, name: &str) -> Result<Self, PathError> {
        if matches!(name, "" | "." | "..") || name.contains('/') {
            return Err(PathError::NotAName(Quoted::new(name)));
        }
        if name.contains('\0') {
            return Err(PathError::Nul(Quoted::new(name)));
        }
        check_name(name)?;
        let mut text = String::with_capacity(self.0.len() + 1 + name.len());
        text.push_str(self.without_slash());
        text.push('/');
        text.push_str(name);
        Self::checked(text)
    }

    /// Whether [`child`](Self::child) certainly succeeds for `name`. `false` is not certain.
    pub(crate) fn is_room_for(&self, name: &str) -> bool {
        // Every level takes at least two bytes, so so short a path is not too deep either.
        self.0.len() + 1 + name.len() <= 2 * PATH_DEPTH
            && !matches!(name, "" | "." | "..")
            && !name.bytes().any(|byte| matches!(byte, b'/' | 0))
            && check_name(name).is_ok()
    }

    /// Returns the path as a string. It always begins with `/`; only the root ends with one.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether this is `/`.
    pub fn is_root(&self) -> bool {
        self.0.len() == 1
    }

    /// Returns the last component, or `None` for the root.
    pub fn file_name(&self) -> Option<&str> {
        self.0
            .rsplit_once('/')
            .map(|(_, name)| name)
            .filter(|name| !name.is_empty())
    }

    /// Returns the parent directory, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let (parent, _) = self.0.rsplit_once('/')?;
        Some(if parent.is_empty() {
            Self::root()
        } else {
            Self(Arc::from(parent))
        })
    }

    /// Returns the directories above this path, from the root down, without the path itself.
    ///
    /// ```
    /// use backend_core::VPath;
    /// let above: Vec<_> = VPath::parse("/a/b/c")?.ancestors().collect();
    /// assert_eq!(above, [VPath::root(), VPath::parse("/a")?, VPath::parse("/a/b")?]);
    /// # Ok::<(), backend_core::PathError>(())
    /// ```
    pub fn ancestors(&self) -> impl Iterator<Item = Self> + '_ {
        self.0
            .char_indices()
            .filter(|(_, c)| *c == '/')
            .map(|(at, _)| match at {
                0 => Self::root(),
                _ => Self(Arc::from(&self.0[..at])),
            })
            .take_while(move |above| above.0.len() < self.0.len())
    }

    /// Returns the names from the root down. Empty for the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.0.split('/').filter(|name| !name.is_empty())
    }

    /// Whether this path is `base` or lies beneath it. `/foobar` is not beneath `/foo`.
    pub fn starts_with(&self, base: &Self) -> bool {
        self.strip_prefix(base).is_some()
    }

    /// Returns the part beneath `base` without a leading slash: `""` for `base`
    /// itself, `None` if this path is not beneath it.
    ///
    /// ```
    /// use backend_core::VPath;
    /// let path = VPath::parse("/src/lib.rs")?;
    /// assert_eq!(path.strip_prefix(&VPath::parse("/src")?), Some("lib.rs"));
    /// assert_eq!(path.strip_prefix(&VPath::parse("/sr")?), None);
    /// # Ok::<(), backend_core::PathError>(())
    /// ```
    pub fn strip_prefix(&self, base: &Self) -> Option<&str> {
        if base.is_root() {
            return self.0.strip_prefix('/');
        }
        match self.0.strip_prefix(base.as_str())? {
            "" => Some(""),
            rest => rest.strip_prefix('/'),
        }
    }

    /// Moves this path from beneath `base` to beneath `target`.
    ///
    /// # Errors
    ///
    /// [`PathError::TooLong`] or [`PathError::TooDeep`] if the result is too long
    /// or too deep; [`PathError::NotAName`] if this path is not beneath `base`.
    pub fn rebase(&self, base: &Self, target: &Self) -> Result<Self, PathError> {
        match self.strip_prefix(base) {
            None => Err(PathError::NotAName(Quoted::new(&self.0))),
            Some("") => Ok(target.clone()),
            Some(rest) => Self::checked(format!("{}/{rest}", target.without_slash())),
        }
    }

    /// Returns the text in front of a child's slash: empty for the root.
    fn without_slash(&self) -> &str {
        if self.is_root() { "" } else { &self.0 }
    }

    fn fold(base: &str, input: &str) -> Result<Self, PathError> {
        if input.contains('\0') {
            return Err(PathError::Nul(Quoted::new(input)));
        }
        if input == "~" || input.starts_with("~/") {
            return Err(PathError::Home(Quoted::new(input)));
        }
        if let [letter, b':', b'\\' | b'/', ..] = input.as_bytes()
            && letter.is_ascii_alphabetic()
        {
            return Err(PathError::Drive(Quoted::new(input)));
        }
        let mut text = String::with_capacity(base.len() + 1 + input.len().min(PATH_BYTES));
        text.push_str(base);
        for name in input.split('/') {
            match name {
                "" | "." => {}
                ".." => {
                    let Some(slash) = text.rfind('/') else {
                        return Err(PathError::AboveRoot(Quoted::new(input)));
                    };
                    text.truncate(slash);
                }
                name => {
                    check_name(name)?;
                    text.push('/');
                    text.push_str(name);
                }
            }
        }
        if text.is_empty() {
            return Ok(Self::root());
        }
        Self::checked(text)
    }

    fn checked(text: String) -> Result<Self, PathError> {
        if text.len() > PATH_BYTES {
            return Err(PathError::TooLong(Quoted::new(&text), text.len()));
        }
        // Every level takes at least two bytes, so most paths need no counting.
        if text.len() > 2 * PATH_DEPTH {
            let depth = memchr::memchr_iter(b'/', text.as_bytes()).count();
            if depth > PATH_DEPTH {
                return Err(PathError::TooDeep(Quoted::new(&text), depth));
            }
        }
        Ok(Self(Arc::from(text)))
    }
}

fn check_name(name: &str) -> Result<(), PathError> {
    if name.len() > NAME_BYTES {
        return Err(PathError::NameTooLong(Quoted::new(name), name.len()));
    }
    if name.starts_with(TEMPORARY_PREFIX) {
        return Err(PathError::Reserved(Quoted::new(name)));
    }
    Ok(())
}

impl Default for VPath {
    fn default() -> Self {
        Self::root()
    }
}

impl FromStr for VPath {
    type Err = PathError;

    fn from_str(input: &str) -> Result<Self, PathError> {
        Self::parse(input)
    }
}

impl AsRef<str> for VPath {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for VPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for VPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests;
