//! Searching: glob and grep queries and their results.

use crate::limits::{GLOB_FILES, GREP_BYTES, GREP_MATCHES, LINE_BYTES};
use crate::ops::links::Links;
use crate::ops::list::{Entry, Skipped};
use crate::path::VPath;
use crate::search::exclude::Exclude;
use crate::setters::setters;

/// The order of the files that `glob` returns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum GlobOrder {
    /// Byte order of the path.
    #[default]
    Path,
    /// Most recently changed first, then by path. Files without a time come last.
    NewestFirst,
}

/// A request to find files by name.
///
/// ```
/// use backend_core::{VPath, ops::GlobQuery};
/// let query = GlobQuery::new("src/**/*.{rs,toml}", VPath::root()).limit(50);
/// assert!(query.compile().is_ok());
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GlobQuery {
    /// The pattern, relative to `path`, or absolute if it begins with `/`.
    pub pattern: String,
    /// The directory to search.
    pub path: VPath,
    /// Order of the result.
    pub order: GlobOrder,
    /// Most files to return: the head of the complete, ordered result. Zero is
    /// `InvalidInput`.
    pub limit: usize,
    /// Whether to find hidden files too.
    pub hidden: bool,
    /// Whether to find files that `.gitignore` and `.ignore` exclude, and files in
    /// generated directories.
    pub ignored: bool,
    /// Whether to find files in [generated
    /// directories](crate::search::GENERATED_DIRECTORIES) too.
    pub generated: bool,
    /// Treatment of symbolic links on the way to `path`. Links beneath it are never followed.
    pub links: Links,
    /// Entries to leave out, before the limit is applied.
    pub exclude: Exclude,
    /// Whether the files need their size, time and mode. Otherwise these may be missing,
    /// and a search in path order is quicker. Files that are ordered by their time have
    /// it in any case.
    pub metadata: bool,
}

impl GlobQuery {
    /// Creates a query for files that match `pattern` beneath `path`.
    pub fn new(pattern: impl Into<String>, path: VPath) -> Self {
        Self {
            pattern: pattern.into(),
            path,
            order: GlobOrder::default(),
            limit: GLOB_FILES,
            hidden: false,
            ignored: false,
            generated: false,
            links: Links::default(),
            exclude: Exclude::none(),
            metadata: true,
        }
    }

    setters! {
        /// Sets the order of the result.
        order: GlobOrder,
        /// Sets the most files to return.
        limit: usize,
        /// Sets whether to find hidden files too.
        hidden: bool,
        /// Sets whether to find ignored files and files in generated directories too.
        ignored: bool,
        /// Sets whether to find files in generated directories too.
        generated: bool,
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the entries to leave out.
        exclude: Exclude,
        /// Sets whether the files need their size, time and mode.
        metadata: bool,
    }
}

/// The result of `glob`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GlobResult {
    /// Regular files only, in the requested order.
    pub files: Vec<Entry>,
    /// Whether there are more files than were returned.
    pub truncated: bool,
    /// Counts of what the search skipped.
    pub skipped: Skipped,
}

/// Case sensitivity of a search.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Case {
    /// Upper and lower case differ.
    #[default]
    Sensitive,
    /// Upper and lower case are equal.
    Insensitive,
    /// Upper and lower case differ only if the pattern has an upper-case letter.
    Smart,
}

/// A request to find lines in files.
///
/// ```
/// use backend_core::{VPath, ops::GrepQuery};
/// let query = GrepQuery::new(r"fn \w+", VPath::root()).files("*.rs").context(2, 2);
/// assert!(query.compile().is_ok());
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct GrepQuery {
    /// A regular expression in the dialect of the `regex` crate.
    pub pattern: String,
    /// The directory or file to search. A file is searched even if it is hidden
    /// or ignored or [`files`](Self::files) does not match it.
    pub path: VPath,
    /// Case sensitivity.
    pub case: Case,
    /// Whether the pattern is plain text, not a regular expression.
    pub literal: bool,
    /// Whether a match may span lines.
    pub multi_line: bool,
    /// Lines of context to return before each match.
    pub before: usize,
    /// Lines of context to return after each match.
    pub after: usize,
    /// A glob that a file must match to be searched, relative to `path`. An
    /// absolute glob outside of `path` is `InvalidInput`.
    pub files: Option<String>,
    /// Most matching lines to return: the head of the complete result. Zero is
    /// `InvalidInput`.
    pub max_matches: usize,
    /// Most bytes of lines to return.
    pub max_bytes: usize,
    /// Width in bytes at which a line is cut.
    pub max_line_bytes: usize,
    /// Whether to search hidden files too.
    pub hidden: bool,
    /// Whether to search files that `.gitignore` and `.ignore` exclude, and files
    /// in generated directories.
    pub ignored: bool,
    /// Whether to search files in [generated
    /// directories](crate::search::GENERATED_DIRECTORIES) too.
    pub generated: bool,
    /// Treatment of symbolic links on the way to `path`. Links beneath it are never followed.
    pub links: Links,
    /// Entries to leave out, before any maximum is applied.
    pub exclude: Exclude,
}

impl GrepQuery {
    /// Creates a query for lines that match `pattern` beneath `path`.
    pub fn new(pattern: impl Into<String>, path: VPath) -> Self {
        Self {
            pattern: pattern.into(),
            path,
            case: Case::default(),
            literal: false,
            multi_line: false,
            before: 0,
            after: 0,
            files: None,
            max_matches: GREP_MATCHES,
            max_bytes: GREP_BYTES,
            max_line_bytes: LINE_BYTES,
            hidden: false,
            ignored: false,
            generated: false,
            links: Links::default(),
            exclude: Exclude::none(),
        }
    }

    setters! {
        /// Sets the case sensitivity.
        case: Case,
        /// Sets whether the pattern is plain text.
        literal: bool,
        /// Sets whether a match may span lines.
        multi_line: bool,
        /// Sets the most matching lines to return.
        max_matches: usize,
        /// Sets the most bytes of lines to return.
        max_bytes: usize,
        /// Sets the width in bytes at which a line is cut.
        max_line_bytes: usize,
        /// Sets whether to search hidden files too.
        hidden: bool,
        /// Sets whether to search ignored files and files in generated directories too.
        ignored: bool,
        /// Sets whether to search files in generated directories too.
        generated: bool,
        /// Sets how to treat symbolic links.
        links: Links,
        /// Sets the entries to leave out.
        exclude: Exclude,
    }

    crate::setters! {
        /// Sets the lines of context before and after each match.
        fn context(self, before: usize, after: usize) {
            self.before = before;
            self.after = after;
        }

        /// Sets a glob that a file must match to be searched.
        fn files(self, files: impl Into<String>) { self.files = Some(files.into()) }
    }
}
