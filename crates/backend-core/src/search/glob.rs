//! [`Glob`]: the one glob dialect of this workspace.
//!
//! | Written | Matches |
//! |---|---|
//! | `*` | any characters of one name, or none |
//! | `?` | any one character of a name |
//! | `[a-z]`, `[!a-z]`, `[^a-z]` | one character of a name that is, or is not, listed |
//! | `**` | as a whole component: any number of directories, or none; at the end: everything beneath |
//! | `{a,b}` | either; groups nest, and what is in them may hold `/` |
//! | `\*` | the character behind the backslash, also within `[…]` |
//!
//! Only `**` crosses a `/`. Within a component `**` is the same as `*`. Upper and
//! lower case differ. Braces are expanded first and every alternative is then
//! parsed separately:
//!
//! - An alternative that begins with `/` is matched against the path from the root,
//!   any other against the path from the directory where the search starts.
//! - A relative alternative of a single component, such as `*.rs`, matches at any
//!   depth.
//! - Empty and `.` components are dropped, as they are in a path.
//!
//! The `globset` crate is not used, for three reasons. It matches bytes, so its `?`
//! does not match `é`. Its negated classes match `/`. And it does not tell which
//! directories a pattern can reach, which saves a walk most of its work. The tests
//! compare the two where their dialects agree.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use crate::error::Error;
use crate::limits::{GLOB_ALTERNATIVES, PATTERN_BYTES};
use crate::path::{Quoted, VPath};

mod component;
mod expand;
mod render;

pub(super) use component::Alternative;
use component::Unmatchable;
use expand::{ExpandError, Token};

/// A compiled glob. Cloning is cheap: clones share the compiled pattern.
///
/// ```
/// use backend_core::VPath;
/// use backend_core::search::Glob;
///
/// let start = VPath::parse("/project")?;
/// let path = VPath::parse("/project/src/bin/main.rs")?;
///
/// assert!(Glob::new("*.{rs,toml}")?.matches(&start, &path), "at any depth");
/// assert!(Glob::new("src/**")?.matches(&start, &path));
/// assert!(!Glob::new("src/*")?.matches(&start, &path), "* stays within a name");
/// assert!(Glob::new("/project/**/main.rs")?.matches(&start, &path), "from the root");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Glob(Arc<Compiled>);

struct Compiled {
    pattern: String,
    absolute: bool,
    alternatives: Vec<Alternative>,
    literal_prefix: String,
}

/// The reason why a string is not a [`Glob`], or not one for this search.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GlobError {
    /// The pattern, or one of its alternatives, has no component.
    #[error("the pattern names no file; write '**' to match every file")]
    Empty,
    /// The pattern is longer than [`PATTERN_BYTES`].
    #[error("the pattern has {0} bytes, more than the {PATTERN_BYTES} it can have; shorten it")]
    TooLong(usize),
    /// The pattern holds a NUL character.
    #[error("the pattern {0} holds a NUL character; remove it")]
    Nul(Quoted),
    /// A component is `..`.
    #[error("the pattern {0} has a '..' component; pass the directory as path instead")]
    ParentComponent(Quoted),
    /// The pattern ends with a slash.
    #[error("the pattern {0} ends with '/', but a glob matches files; write 'dir/**' instead")]
    TrailingSlash(Quoted),
    /// The braces expand to more than [`GLOB_ALTERNATIVES`], or to a few that are very long.
    #[error(
        "the pattern {0} expands to too many alternatives (at most {GLOB_ALTERNATIVES}); use fewer '{{a,b}}' groups"
    )]
    TooManyAlternatives(Quoted),
    /// The pattern has a syntax error.
    #[error("the pattern {pattern} cannot be read at byte {at}: {message}")]
    #[non_exhaustive]
    Syntax {
        /// The pattern.
        pattern: Quoted,
        /// The problem, and what to write instead.
        message: &'static str,
        /// Position in bytes from the beginning of the pattern.
        at: usize,
    },
    /// An absolute pattern that can match nothing beneath the start.
    #[error(
        "the absolute pattern {pattern} matches nothing beneath {start}; pass the directory as path and a relative pattern"
    )]
    #[non_exhaustive]
    Outside {
        /// The pattern.
        pattern: Quoted,
        /// The directory where the search would start.
        start: Quoted,
    },
}

impl From<GlobError> for Error {
    fn from(error: GlobError) -> Self {
        Self::invalid_input(error.to_string())
    }
}

impl Glob {
    /// Compiles `pattern`.
    ///
    /// # Errors
    ///
    /// A [`GlobError`] that says what is wrong and what to write instead.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        if pattern.len() > PATTERN_BYTES {
            return Err(GlobError::TooLong(pattern.len()));
        }
        if pattern.contains('\0') {
            return Err(GlobError::Nul(Quoted::new(pattern)));
        }
        let sequences = expand::expand(pattern).map_err(|fault| match fault {
            ExpandError::TooMany => GlobError::TooManyAlternatives(Quoted::new(pattern)),
            ExpandError::Syntax { message, at } => syntax(pattern, message, at),
        })?;
        let is_absolute = |tokens: &Vec<Token>| tokens.first() == Some(&Token::Slash);
        let absolute = sequences.first().is_some_and(is_absolute);
        if !sequences
            .iter()
            .all(|tokens| is_absolute(tokens) == absolute)
        {
            let message = "some alternatives begin with '/' and some do not; use two patterns";
            return Err(syntax(pattern, message, 0));
        }
        let alternatives = sequences
            .iter()
            .map(|tokens| Alternative::new(tokens, absolute))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|reason| match reason {
                Unmatchable::Empty => GlobError::Empty,
                Unmatchable::ParentComponent => GlobError::ParentComponent(Quoted::new(pattern)),
                Unmatchable::TrailingSlash => GlobError::TrailingSlash(Quoted::new(pattern)),
            })?;
        Ok(Self(Arc::new(Compiled {
            pattern: pattern.to_owned(),
            absolute,
            literal_prefix: common_directory(&alternatives),
            alternatives,
        })))
    }

    /// Returns the pattern as it was given.
    pub fn as_str(&self) -> &str {
        &self.0.pattern
    }

    /// Whether the pattern begins with `/` and is matched from the root.
    pub fn is_absolute(&self) -> bool {
        self.0.absolute
    }

    /// Returns the longest literal directory prefix that all matches share, without
    /// a slash at either end; empty if there is none. It is relative to the root
    /// for an absolute pattern, otherwise to the start.
    ///
    /// ```
    /// use backend_core::search::Glob;
    /// assert_eq!(Glob::new("src/bin/*.rs")?.literal_prefix(), "src/bin");
    /// assert_eq!(Glob::new("/src/{a,b}/*.rs")?.literal_prefix(), "src");
    /// assert_eq!(Glob::new("*.rs")?.literal_prefix(), "");
    /// # Ok::<(), backend_core::search::GlobError>(())
    /// ```
    pub fn literal_prefix(&self) -> &str {
        &self.0.literal_prefix
    }

    /// Whether `path` matches in a search that starts at `start`. A relative
    /// pattern matches only paths beneath `start`, so it does not match `start`
    /// itself.
    pub fn matches(&self, start: &VPath, path: &VPath) -> bool {
        self.relative(start, path)
            .is_some_and(|relative| self.matches_relative(relative))
    }

    /// Whether the pattern matches `relative`, a path without a slash at either
    /// end. It is relative to the root for an absolute pattern, otherwise to the
    /// start.
    pub fn matches_relative(&self, relative: &str) -> bool {
        let slash = memchr::memrchr(b'/', relative.as_bytes());
        let name = slash.map_or(relative, |slash| &relative[slash + 1..]);
        !name.is_empty() && self.any(|alternative| alternative.matches(relative, name))
    }

    /// Whether a file called `name` can match anywhere. `false` is certain.
    pub(super) fn may_match_name(&self, name: &str) -> bool {
        self.any(|alternative| alternative.may_match_name(name))
    }

    /// Whether anything beneath `directory` can match in a search that starts at
    /// `start`. `false` is certain; `true` means that something may match.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Glob;
    ///
    /// let glob = Glob::new("src/*/mod.rs")?;
    /// let may = |path| Ok::<_, backend_core::PathError>(
    ///     glob.may_match_beneath(&VPath::root(), &VPath::parse(path)?));
    /// assert!(may("/src")? && may("/src/net")?);
    /// assert!(!may("/docs")? && !may("/src/net/http")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn may_match_beneath(&self, start: &VPath, directory: &VPath) -> bool {
        let relative = match self.relative(start, directory) {
            Some(relative) => relative,
            None if start.starts_with(directory) => "",
            None => return false,
        };
        self.any(|alternative| alternative.may_match_beneath(relative))
    }

    /// Whether everything beneath `directory` matches in a search that starts at
    /// `start`. `true` is certain; `false` means that something may not match.
    ///
    /// ```
    /// use backend_core::VPath;
    /// use backend_core::search::Glob;
    ///
    /// let glob = Glob::new("**/.ssh/**")?;
    /// let all = |path| Ok::<_, backend_core::PathError>(
    ///     glob.matches_all_beneath(&VPath::root(), &VPath::parse(path)?));
    /// assert!(all("/root/.ssh")? && all("/root/.ssh/keys")?);
    /// assert!(!all("/root")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn matches_all_beneath(&self, start: &VPath, directory: &VPath) -> bool {
        self.relative(start, directory)
            .is_some_and(|relative| self.any(|it| it.matches_all_beneath(relative)))
    }

    /// Checks that the pattern can match in a search that starts at `start`.
    ///
    /// # Errors
    ///
    /// [`GlobError::Outside`] for an absolute pattern that cannot match there.
    pub fn check_start(&self, start: &VPath) -> Result<(), GlobError> {
        if self.may_match_beneath(start, start) || self.matches(start, start) {
            return Ok(());
        }
        Err(GlobError::Outside {
            pattern: Quoted::new(self.as_str()),
            start: Quoted::new(start.as_str()),
        })
    }

    /// Whether the pattern explicitly names the hidden entry `name`: one of its
    /// components begins with a literal `.` and matches it.
    ///
    /// ```
    /// use backend_core::search::Glob;
    /// let glob = Glob::new(".github/**/*.yml")?;
    /// assert!(glob.names_hidden(".github"));
    /// assert!(!glob.names_hidden(".x.yml"), "* does not ask for hidden names");
    /// # Ok::<(), backend_core::search::GlobError>(())
    /// ```
    pub fn names_hidden(&self, name: &str) -> bool {
        self.any(|alternative| alternative.names_hidden(name))
    }

    /// Whether the pattern explicitly names a directory `name`: a component other
    /// than the last is exactly that name.
    ///
    /// ```
    /// use backend_core::search::Glob;
    /// let glob = Glob::new("{dist,build}/**/*.js")?;
    /// assert!(glob.names_directory("dist") && glob.names_directory("build"));
    /// assert!(!Glob::new("*/**/dist")?.names_directory("dist"), "a file's name");
    /// # Ok::<(), backend_core::search::GlobError>(())
    /// ```
    pub fn names_directory(&self, name: &str) -> bool {
        self.any(|alternative| alternative.names_directory(name))
    }

    fn any(&self, test: impl Fn(&Alternative) -> bool) -> bool {
        self.0.alternatives.iter().any(test)
    }

    /// Returns the alternatives after brace expansion.
    pub(super) fn compiled_alternatives(&self) -> &[Alternative] {
        &self.0.alternatives
    }

    /// Returns the part of `path` that the pattern is matched against.
    fn relative<'a>(&self, start: &VPath, path: &'a VPath) -> Option<&'a str> {
        if self.0.absolute || start.is_root() {
            path.as_str().strip_prefix('/')
        } else {
            path.strip_prefix(start)
        }
    }
}

fn syntax(pattern: &str, message: &'static str, at: usize) -> GlobError {
    GlobError::Syntax {
        pattern: Quoted::new(pattern),
        message,
        at,
    }
}

/// Returns the leading literal directories that all `alternatives` share.
fn common_directory(alternatives: &[Alternative]) -> String {
    let mut directories = alternatives.iter().map(Alternative::literal_directories);
    let mut names: Vec<&str> = directories.next().into_iter().flatten().collect();
    for others in directories {
        let shared = names
            .iter()
            .zip(others)
            .take_while(|(one, other)| *one == other)
            .count();
        names.truncate(shared);
    }
    names.join("/")
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(pattern: &str) -> Result<Self, GlobError> {
        Self::new(pattern)
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for Glob {}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Glob").field(&self.as_str()).finish()
    }
}

#[cfg(test)]
pub(super) mod tests;
