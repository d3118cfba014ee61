//! [`IgnoreRules`]: what `.gitignore` and `.ignore` files say about a path.
//!
//! Files are handed in as bytes by whoever walks; nothing is read here, and no
//! rule comes from outside the tree. A `.ignore` file beats every `.gitignore`
//! file, within one kind the deeper file beats the shallower, and within one
//! file the last line that matches wins. Whoever asks walks from the top and
//! does not enter what is ignored, so nothing comes back from inside it.
//!
//! Only files that hold a rule are kept, so that asking costs nothing where
//! there are none.

use std::borrow::Cow;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::limits::{IGNORE_FILE_BYTES, PATH_BYTES};
use crate::path::VPath;

/// A kind of ignore file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IgnoreFile {
    Git,
    Plain,
}

impl IgnoreFile {
    /// Every kind, in the order in which they are read.
    pub(super) const ALL: [Self; 2] = [Self::Git, Self::Plain];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Git => ".gitignore",
            Self::Plain => ".ignore",
        }
    }
}

/// The rules of a directory and of those above it.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules {
    git: Vec<Layer>,
    plain: Vec<Layer>,
}

/// The rules of one file.
#[derive(Debug)]
struct Layer {
    /// Bytes to cut from a path to make it relative to the file's directory.
    offset: usize,
    rules: Gitignore,
}

/// A point in the history of an [`IgnoreRules`] to go back to.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mark {
    git: usize,
    plain: usize,
}

/// An ignore file is too large to be honoured.
#[derive(Debug, PartialEq)]
pub(super) struct TooLarge;

impl IgnoreRules {
    /// Adds a file of `directory`, which lies in that of the last one added.
    pub(super) fn push(
        &mut self,
        directory: &VPath,
        file: IgnoreFile,
        text: &[u8],
    ) -> Result<(), TooLarge> {
        let rules = parse(text)?;
        if rules.is_empty() {
            return Ok(());
        }
        let offset = directory.as_str().len() + usize::from(!directory.is_root());
        let layer = Layer { offset, rules };
        match file {
            IgnoreFile::Git => self.git.push(layer),
            IgnoreFile::Plain => self.plain.push(layer),
        }
        Ok(())
    }

    /// Where [`reset`](Self::reset) can return to.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            git: self.git.len(),
            plain: self.plain.len(),
        }
    }

    /// Forgets what was added since `mark`.
    pub(super) fn reset(&mut self, mark: Mark) {
        self.git.truncate(mark.git);
        self.plain.truncate(mark.plain);
    }

    /// Whether no rule is in force.
    pub(super) fn is_empty(&self) -> bool {
        self.git.is_empty() && self.plain.is_empty()
    }

    /// Whether `path`, which lies beneath every directory added, is ignored.
    pub(super) fn is_ignored(&self, path: &VPath, is_directory: bool) -> bool {
        let deepest_first = self.plain.iter().rev().chain(self.git.iter().rev());
        for layer in deepest_first {
            let relative = path.as_str().get(layer.offset..).unwrap_or_default();
            match layer.rules.matched(relative, is_directory) {
                Match::None => {}
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
            }
        }
        false
    }
}

/// The rules in `text`. A line that cannot be read is passed over, as git does.
fn parse(text: &[u8]) -> Result<Gitignore, TooLarge> {
    if text.len() > IGNORE_FILE_BYTES {
        return Err(TooLarge);
    }
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let mut builder = GitignoreBuilder::new("");
    builder.allow_unclosed_class(false);
    for line in text.split(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let Ok(line) = std::str::from_utf8(line) else {
            continue;
        };
        // Longer than any path, and one such line can make all others fail.
        if line.len() > PATH_BYTES {
            continue;
        }
        let _: Result<_, ignore::Error> = builder.add_line(None, &escape_braces(trim(line)));
    }
    builder.build().map_err(|_| TooLarge)
}

/// Removes the spaces at the end of `line`, but not one behind a backslash.
fn trim(line: &str) -> &str {
    let trimmed = line.trim_end_matches(' ');
    let backslashes = trimmed.len() - trimmed.trim_end_matches('\\').len();
    match backslashes % 2 {
        1 => &line[..line.len().min(trimmed.len() + 1)],
        _ => trimmed,
    }
}

/// Braces stand for themselves in an ignore file, but not in the matcher used
/// here, which would also recurse as deep as they nest.
fn escape_braces(line: &str) -> Cow<'_, str> {
    if !line.contains(['{', '}']) {
        return Cow::Borrowed(line);
    }
    let mut escaped = String::with_capacity(line.len() + 8);
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            '[' => class_length(rest).unwrap_or(1),
            '{' | '}' => {
                escaped.push('\\');
                1
            }
            c => c.len_utf8(),
        };
        escaped.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    Cow::Owned(escaped)
}

/// The length of the class at the beginning of `text`, if it is closed. The
/// first member may be `]`; the matcher knows no escapes in here.
fn class_length(text: &str) -> Option<usize> {
    let negated = usize::from(text[1..].starts_with(['!', '^']));
    let first = text[1 + negated..].chars().next()?.len_utf8();
    let begun = 1 + negated + first;
    Some(begun + text[begun..].find(']')? + 1)
}

#[cfg(test)]
#[path = "ignore_rules_tests.rs"]
mod tests;
