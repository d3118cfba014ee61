//! [`Effect`]: the exact effect of a call.

use std::fmt;

use backend_core::ops::ContentHash;
use serde::{Serialize, Serializer};

use super::limits::EFFECT_BYTES;
use super::text::{self, Unseen};

mod diff;

/// The exact effect of a call, to be shown to the approver.
///
/// `Display` shows it, truncated if it is too long, and safe to print: nothing in it can
/// move the cursor or imitate a line that is not part of it.
///
/// ```
/// use permissions::approval::Effect;
///
/// let effect = Effect::diff("/notes.md", b"one\ntwo\n", b"one\n2\n");
/// assert_eq!(effect.description(), "Edit /notes.md: replace 3 chars with 1 char");
/// assert!(effect.to_string().ends_with("-two\n+2"));
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Effect {
    /// Nothing beyond the description.
    #[default]
    None,
    /// A file is read.
    #[non_exhaustive]
    Read {
        /// The file.
        path: String,
    },
    /// A directory is listed or searched.
    #[non_exhaustive]
    List {
        /// The directory.
        path: String,
        /// The pattern that is searched for.
        pattern: String,
    },
    /// A file is changed.
    #[non_exhaustive]
    Diff {
        /// The file.
        path: String,
        /// The change as a unified diff, or in words if it is not text. At most
        /// [`EFFECT_BYTES`] long. It says if something is missing.
        text: String,
        /// The hash of the current contents.
        #[serde(serialize_with = "as_text")]
        old: ContentHash,
        /// The hash of the new contents.
        #[serde(serialize_with = "as_text")]
        new: ContentHash,
        /// The amount that is removed.
        removed: Amount,
        /// The amount that replaces it.
        added: Amount,
        /// The part that `text` does not show.
        unseen: Option<Unseen>,
    },
    /// A file is written.
    #[non_exhaustive]
    Write {
        /// The file.
        path: String,
        /// The number of bytes.
        bytes: u64,
        /// The same amount in characters if it is text, otherwise in bytes.
        amount: Amount,
        /// The hash of the new contents.
        #[serde(serialize_with = "as_text")]
        hash: ContentHash,
        /// `true` if the file does not exist yet.
        new: bool,
        /// The hash of the contents that are replaced, if any.
        #[serde(serialize_with = "as_text_if")]
        old: Option<ContentHash>,
        /// The contents, or the difference from the old ones as in [`Diff`](Self::Diff).
        text: String,
        /// The part that `text` does not show.
        unseen: Option<Unseen>,
    },
    /// A file or directory is deleted.
    #[non_exhaustive]
    Delete {
        /// The file or directory.
        path: String,
    },
    /// A file or directory is moved.
    #[non_exhaustive]
    Move {
        /// The source.
        from: String,
        /// The destination.
        to: String,
    },
    /// A file or directory is copied.
    #[non_exhaustive]
    Copy {
        /// The source.
        from: String,
        /// The destination.
        to: String,
    },
    /// A command line is run.
    Command(String),
    /// A terminal is opened, in which a command line is run and everything can be typed.
    Terminal(String),
    /// A connection is attached to a shell, through which everything can be typed.
    #[non_exhaustive]
    Attach {
        /// The id of the shell.
        shell: String,
        /// Its command line.
        line: String,
    },
}

/// An amount of text or data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "each name is the unit")]
pub enum Amount {
    Chars(u64),
    Bytes(u64),
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chars(1) => f.write_str("1 char"),
            Self::Chars(n) => write!(f, "{n} chars"),
            Self::Bytes(1) => f.write_str("1 byte"),
            Self::Bytes(n) => write!(f, "{n} bytes"),
        }
    }
}

impl Amount {
    fn of(content: &[u8]) -> Self {
        match std::str::from_utf8(content) {
            Ok(text) => Self::Chars(text.chars().count() as u64),
            Err(_) => Self::Bytes(content.len() as u64),
        }
    }
}

impl Effect {
    /// Creates the effect of reading the file at `path`.
    pub fn read(path: impl Into<String>) -> Self {
        Self::Read { path: path.into() }
    }

    /// Creates the effect of searching the directory at `path` for `pattern`.
    pub fn list(path: impl Into<String>, pattern: impl Into<String>) -> Self {
        Self::List {
            path: path.into(),
            pattern: pattern.into(),
        }
    }

    /// Creates the effect of changing the file at `path` from `old` to `new`.
    pub fn diff(path: &str, old: &[u8], new: &[u8]) -> Self {
        let (removed, added) = diff::changed(old, new);
        let (text, unseen) = diff::unified(path, Some(old), new);
        Self::Diff {
            path: path.to_owned(),
            text,
            unseen,
            old: ContentHash::of(old),
            new: ContentHash::of(new),
            removed,
            added,
        }
    }

    /// Sets the number of characters that the edit itself replaces in a
    /// [`Diff`](Self::Diff), which may be more than the characters that differ.
    #[must_use]
    pub fn replacing(mut self, old_chars: u64, new_chars: u64) -> Self {
        if let Self::Diff { removed, added, .. } = &mut self {
            *removed = Amount::Chars(old_chars);
            *added = Amount::Chars(new_chars);
        }
        self
    }

    /// Creates the effect of writing `new` to a file that contains `old`, if it exists.
    pub fn write(path: &str, old: Option<&[u8]>, new: &[u8]) -> Self {
        let (text, unseen) = diff::unified(path, old, new);
        Self::Write {
            path: path.to_owned(),
            bytes: new.len() as u64,
            amount: Amount::of(new),
            hash: ContentHash::of(new),
            new: old.is_none(),
            old: old.map(ContentHash::of),
            text,
            unseen,
        }
    }

    /// Creates the effect of deleting the entry at `path`.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::Delete { path: path.into() }
    }

    /// Creates the effect of moving the entry at `from` to `to`.
    pub fn rename(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self::Move {
            from: from.into(),
            to: to.into(),
        }
    }

    /// Creates the effect of copying the entry at `from` to `to`.
    pub fn copy(from: impl Into<String>, to: impl Into<String>) -> Self {
        Self::Copy {
            from: from.into(),
            to: to.into(),
        }
    }

    /// Creates the effect of running a command line.
    pub fn command(line: impl Into<String>) -> Self {
        Self::Command(line.into())
    }

    /// Creates the effect of running a command line in a terminal.
    pub fn terminal(line: impl Into<String>) -> Self {
        Self::Terminal(line.into())
    }

    /// Creates the effect of attaching to a shell that runs a command line.
    pub fn attach(shell: impl Into<String>, line: impl Into<String>) -> Self {
        Self::Attach {
            shell: shell.into(),
            line: line.into(),
        }
    }

    /// Returns a one-line description; empty for [`None`](Self::None). Paths and commands
    /// are not escaped, so it is not safe to print.
    pub fn description(&self) -> String {
        match self {
            Self::None => String::new(),
            Self::Read { path } => format!("Read from {path}"),
            Self::List { path, pattern } => format!("List file paths in {path} matching {pattern}"),
            Self::Diff {
                path,
                removed,
                added,
                ..
            } => format!("Edit {path}: replace {removed} with {added}"),
            Self::Write { path, amount, .. } => format!("Write {amount} to {path}"),
            Self::Delete { path } => format!("Delete {path}"),
            Self::Move { from, to } => format!("Move {from} to {to}"),
            Self::Copy { from, to } => format!("Copy {from} to {to}"),
            Self::Command(line) => format!("Run {line}"),
            Self::Terminal(line) => format!("Open a terminal for {line}"),
            Self::Attach { shell, line } => format!("Attach to shell {shell}, which runs {line}"),
        }
    }

    /// Returns the amount that is not shown, if any.
    pub fn unseen(&self) -> Option<Unseen> {
        match self {
            Self::Diff { unseen, .. } | Self::Write { unseen, .. } => *unseen,
            Self::Command(line) | Self::Terminal(line) | Self::Attach { line, .. } => {
                text::cut_lines(&text::block(line, "$ ", "> "), EFFECT_BYTES).1
            }
            _ => None,
        }
    }

    /// Returns the value by which effects are compared, with contents as hashes.
    pub(super) fn identity(&self) -> serde_json::Value {
        use serde_json::json;
        match self {
            Self::None => json!(null),
            Self::Read { path } => json!(["read", path]),
            Self::List { path, pattern } => json!(["list", path, pattern]),
            // The result of an edit depends on the current contents.
            Self::Diff { path, old, new, .. } => {
                json!(["edit", path, old.to_string(), new.to_string()])
            }
            // The result of a write does not.
            Self::Write { path, hash, .. } => json!(["write", path, hash.to_string()]),
            Self::Delete { path } => json!(["delete", path]),
            Self::Move { from, to } => json!(["move", from, to]),
            Self::Copy { from, to } => json!(["copy", from, to]),
            Self::Command(line) => json!(["command", line]),
            Self::Terminal(line) => json!(["terminal", line]),
            Self::Attach { shell, line } => json!(["attach", shell, line]),
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Diff { text, .. } | Self::Write { text, .. } => {
                f.write_str(&text::block(text.trim_end_matches('\n'), "", ""))
            }
            Self::Command(line) | Self::Terminal(line) | Self::Attach { line, .. } => {
                // Truncated last, so that the line that says so has no prompt before it.
                let shown = text::block(line, "$ ", "> ");
                f.write_str(&text::cut_lines(&shown, EFFECT_BYTES).0)
            }
            _ => Ok(()),
        }
    }
}

fn as_text<S: Serializer>(hash: &ContentHash, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(hash)
}

fn as_text_if<S: Serializer>(hash: &Option<ContentHash>, to: S) -> Result<S::Ok, S::Error> {
    hash.map(|hash| hash.to_string()).serialize(to)
}

#[cfg(test)]
mod tests;
