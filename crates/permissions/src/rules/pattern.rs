//! Patterns that are validated when parsed.

use std::fmt;

use backend_core::search::{Glob, GlobError};
use backend_core::{Quoted, VPath};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::command_pattern::{Compiled, Form};
use super::ports::PortRangeError;

/// Maximum length of a rule's pattern, in bytes. Appended to the longest working
/// directory, it is still a valid glob.
pub const PATTERN_BYTES: usize = 4_000;

/// The reason why a string is not a valid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// Not a valid glob.
    #[error(transparent)]
    Glob(#[from] GlobError),
    /// No command in a command pattern.
    #[error("the command pattern {0} names no command; write '*' for every command")]
    Empty(Quoted),
    /// A quote or an escape in a command pattern is not closed.
    #[error(
        "the command pattern {0} ends within a quote or an escape; close it or write '\\\\' before it"
    )]
    Unclosed(Quoted),
    /// A home directory, which is not known here.
    #[error("the pattern {0} begins with '~', which is not expanded; write the whole path")]
    Home(Quoted),
    /// Longer than [`PATTERN_BYTES`].
    #[error(
        "the pattern {0} has {1} bytes, more than the {PATTERN_BYTES} that are allowed; shorten it"
    )]
    TooLong(Quoted, usize),
    /// Contains a NUL character.
    #[error("the pattern {0} holds a NUL character; remove it")]
    Nul(Quoted),
    /// Not a port or a range of ports.
    #[error(transparent)]
    Ports(#[from] PortRangeError),
}

/// Checks the conditions that apply to every kind of pattern.
fn check(pattern: &str) -> Result<(), PatternError> {
    if pattern.len() > PATTERN_BYTES {
        return Err(PatternError::TooLong(Quoted::new(pattern), pattern.len()));
    }
    if pattern.contains('\0') {
        return Err(PatternError::Nul(Quoted::new(pattern)));
    }
    Ok(())
}

/// The glob that matches every path.
pub(super) const EVERYTHING: &str = "/**";

/// A glob over paths, in the dialect of [`Glob`], interpreted as follows:
///
/// | Pattern | Matches |
/// |---|---|
/// | `/etc/**` | the tree from the root |
/// | `*.pem`, `**/.ssh/**` | any depth of the whole tree |
/// | `src/*.rs` | entries in the working directory |
///
/// A pattern that covers everything beneath a directory covers the directory as well:
/// `/etc/**` also covers `/etc`, `**/.ssh/**` also covers `/root/.ssh`, and `**` and `*`
/// also cover `/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern(Glob);

impl PathPattern {
    /// Validates a pattern. The error names it and the problem.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        check(pattern)?;
        let glob = Glob::new(pattern)?;
        let is_home = |glob: &Glob| glob.as_str() == "/**/~" || glob.as_str().starts_with("/~/");
        if pattern.starts_with('~') || glob.from_root(&VPath::root()).iter().any(is_home) {
            return Err(PatternError::Home(Quoted::new(pattern)));
        }
        Ok(Self(glob))
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the glob.
    pub fn glob(&self) -> &Glob {
        &self.0
    }

    /// Returns globs for everything the pattern covers. Each begins with a slash, and
    /// [`EVERYTHING`] also stands for the root.
    pub(super) fn covered(&self, working_dir: &VPath) -> Vec<Glob> {
        let mut globs = self.0.from_root(working_dir);
        let mut at = 0;
        // `/a/**/*/**` covers `/a/*`, so everything beneath `/a`, and so `/a` itself.
        while let Some(glob) = globs.get(at) {
            globs.extend(glob.whole_directories());
            at += 1;
        }
        globs
    }
}

/// A pattern for simple commands: a program and its arguments.
///
/// Words are separated by blanks. The pattern must match the whole command as it is after
/// the shell has removed the quotes, without the variables set in front of it.
///
/// - `*` is any text, also across words and slashes. At the end, ` *` also matches no
///   further word, and a `*` attached to a word also matches further words: `git *`
///   matches `git`, and `mkfs*` matches `mkfs.ext4 /dev/sda`.
/// - `?` is one character of a word.
/// - `\\` escapes the next character. Quotes do the same for the text between them,
///   including blanks.
///
/// A rule that denies or asks sees through the spelling: the directory of the program,
/// its case, and the order and bundling of options. If a part of a command is computed,
/// such a rule matches if it could match. A rule that allows matches only the program as
/// written, and a computed word only where the pattern has a `*`.
///
/// ```
/// use permissions::rules::CommandPattern;
///
/// let pattern = CommandPattern::new("git log *")?;
/// assert!(pattern.matches(&["git", "log", "--", "src/lib.rs"]));
/// assert!(pattern.matches(&["git", "log"]));
/// assert!(!pattern.matches(&["git", "push"]));
/// # Ok::<(), permissions::rules::PatternError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandPattern {
    text: String,
    compiled: Compiled,
}

impl CommandPattern {
    /// Validates a pattern. The error names it and the problem.
    pub fn new(pattern: &str) -> Result<Self, PatternError> {
        check(pattern)?;
        if pattern.trim().is_empty() {
            return Err(PatternError::Empty(Quoted::new(pattern)));
        }
        let compiled =
            Compiled::new(pattern).ok_or_else(|| PatternError::Unclosed(Quoted::new(pattern)))?;
        Ok(Self {
            text: pattern.to_owned(),
            compiled,
        })
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern matches a command with exactly these words.
    pub fn matches(&self, words: &[&str]) -> bool {
        self.compiled.is_all_of(&Form::literal(words))
    }

    pub(crate) fn compiled(&self) -> &Compiled {
        &self.compiled
    }
}

macro_rules! as_text {
    ($type:ty) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl std::str::FromStr for $type {
            type Err = PatternError;

            fn from_str(pattern: &str) -> Result<Self, PatternError> {
                Self::new(pattern)
            }
        }

        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                // Validated here, so that the error names the line.
                let pattern = std::borrow::Cow::<'de, str>::deserialize(from)?;
                Self::new(&pattern).map_err(serde::de::Error::custom)
            }
        }
    };
}

as_text!(PathPattern);
as_text!(CommandPattern);
