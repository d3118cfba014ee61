//! [`IgnoreRules`]: the rules of `.gitignore` and `.ignore` files.
//!
//! The walk passes the files in as bytes. Nothing is read here, and no rule comes
//! from outside the tree. A `.ignore` file overrides every `.gitignore` file,
//! within one kind the deeper file overrides the shallower, and within one file the
//! last line that matches wins. The walk goes from the top and does not enter
//! ignored directories, so nothing inside one can be included again.
//!
//! Only files that hold a rule are kept, so a lookup costs nothing where there are none.
//!
//! The `ignore` crate is not used: it brings a directory walker with threads, and
//! compiles regular expressions whose size depends on the file. The tests compare the two.

use crate::limits::{IGNORE_FILE_BYTES, PATH_BYTES};
use crate::path::VPath;
use crate::search::glob::Glob;
use crate::search::glob_set::GlobSet;

/// Most bytes of lines with several wildcards that are honoured in one file.
/// Matching such a line takes time that grows with its length and the length of the name.
const COSTLY_BYTES: usize = 32 * 1024;

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

/// The rules of a directory and its parents, in the order in which they were read.
#[derive(Debug, Default)]
pub(super) struct IgnoreRules(Vec<Layer>);

/// The rules of one file.
#[derive(Debug)]
struct Layer {
    file: IgnoreFile,
    /// Bytes to cut from a path to make it relative to the file's directory.
    offset: usize,
    rules: Rules,
}

/// The error for an ignore file that is too large to be honoured.
#[derive(Debug, PartialEq)]
pub(super) struct TooLarge;

impl IgnoreRules {
    /// Adds a file of `directory`, which lies in the directory of the last file added.
    pub(super) fn push(
        &mut self,
        directory: &VPath,
        file: IgnoreFile,
        text: &[u8],
    ) -> Result<(), TooLarge> {
        let rules = Rules::parse(text)?;
        if rules.rules.is_empty() {
            return Ok(());
        }
        let offset = directory.as_str().len() + usize::from(!directory.is_root());
        self.0.push(Layer {
            file,
            offset,
            rules,
        });
        Ok(())
    }

    /// Returns a mark for [`reset`](Self::reset).
    pub(super) fn mark(&self) -> usize {
        self.0.len()
    }

    /// Removes the files added since `mark`.
    pub(super) fn reset(&mut self, mark: usize) {
        self.0.truncate(mark);
    }

    /// Whether there are no rules.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether `path`, which lies beneath every directory added, is ignored.
    pub(super) fn is_ignored(&self, path: &VPath, is_directory: bool) -> bool {
        let of = |file: IgnoreFile| self.0.iter().rev().filter(move |layer| layer.file == file);
        let mut deepest_first = of(IgnoreFile::Plain).chain(of(IgnoreFile::Git));
        let decision = deepest_first.find_map(|layer| {
            let relative = path.as_str().get(layer.offset..).unwrap_or_default();
            layer.rules.decide(relative, is_directory)
        });
        decision.unwrap_or(false)
    }
}

/// The flags of a rule, without its glob.
#[derive(Debug, Clone, Copy)]
struct Rule {
    /// The line begins with `!`: matching paths are kept.
    keeps: bool,
    /// The line ends with `/`: it applies to directories only.
    directories_only: bool,
}

/// The rules of a file, the last line first, because the last match wins.
#[derive(Debug)]
struct Rules {
    globs: GlobSet,
    rules: Vec<Rule>,
}

impl Rules {
    /// Parses `text`. An invalid line is skipped, as git does.
    fn parse(text: &[u8]) -> Result<Self, TooLarge> {
        if text.len() > IGNORE_FILE_BYTES {
            return Err(TooLarge);
        }
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let lines = text.rsplit(|byte| *byte == b'\n').filter_map(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            std::str::from_utf8(line).ok()
        });
        let mut costly = 0;
        let mut globs = Vec::new();
        let mut rules = Vec::new();
        for (glob, rule) in lines.filter_map(parse_line) {
            if glob.as_str().matches(['*', '?', '[']).count() > 1 {
                costly += glob.as_str().len();
            }
            globs.push(glob);
            rules.push(rule);
        }
        if costly > COSTLY_BYTES {
            return Err(TooLarge);
        }
        let globs = GlobSet::made_quickly(globs);
        Ok(Self { globs, rules })
    }

    /// Whether `relative` is ignored; `None` if no rule matches it.
    fn decide(&self, relative: &str, is_directory: bool) -> Option<bool> {
        self.globs
            .matches(relative)
            .map(|at| self.rules[at])
            .find(|rule| is_directory || !rule.directories_only)
            .map(|rule| !rule.keeps)
    }
}

/// Parses a line into its glob and flags.
fn parse_line(line: &str) -> Option<(Glob, Rule)> {
    let line = trim(line);
    if line.starts_with('#') || line.len() > PATH_BYTES {
        return None;
    }
    let (keeps, line) = match line.strip_prefix('!') {
        Some(line) => (true, line),
        None => (false, line),
    };
    let (directories_only, line) = match line.strip_suffix('/') {
        Some(line) => (true, line),
        None => (false, line),
    };
    // A slash anchors a line to the directory of its file.
    let is_tied = line.contains('/');
    let line = line.strip_prefix('/').unwrap_or(line);
    // These match nothing for git; a glob would drop the component.
    if line.split('/').any(|name| matches!(name, "" | "." | "..")) {
        return None;
    }
    let slash = if is_tied { "/" } else { "" };
    let glob = Glob::new(&format!("{slash}{}", escape_braces(line))).ok()?;
    let rule = Rule {
        keeps,
        directories_only,
    };
    Some((glob, rule))
}

/// Removes the spaces at the end of `line`, but not one after a backslash.
fn trim(line: &str) -> &str {
    let trimmed = line.trim_end_matches(' ');
    let backslashes = trimmed.len() - trimmed.trim_end_matches('\\').len();
    match backslashes % 2 {
        1 => &line[..line.len().min(trimmed.len() + 1)],
        _ => trimmed,
    }
}

/// Escapes braces, which are literal in an ignore file but not in a glob.
fn escape_braces(line: &str) -> String {
    let mut escaped = String::with_capacity(line.len());
    let mut is_escaped = false;
    for c in line.chars() {
        if matches!(c, '{' | '}') && !is_escaped {
            escaped.push('\\');
        }
        escaped.push(c);
        is_escaped = c == '\\' && !is_escaped;
    }
    escaped
}

#[cfg(test)]
mod tests;
