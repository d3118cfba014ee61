//! The arguments of `ls`, `glob` and `grep`.

use schemars::JsonSchema;
use serde::Deserialize;

fn here() -> String {
    ".".into()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LsArgs {
    /// The directory to list.
    #[serde(default = "here")]
    pub(crate) path: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobArgs {
    /// A glob such as `*.py`, `src/**/*.ts` or `*.{yml,yaml}`. Understands `**`, `*`,
    /// `?`, `[a-z]`, `[!a]` and `{a,b}`; `*` does not cross `/`.
    pub(crate) pattern: String,
    /// The directory to search.
    #[serde(default = "here")]
    pub(crate) path: String,
    /// `path`: sorted by path. `newest`: the last changed first. Default: `path`.
    #[serde(default)]
    pub(crate) order: Order,
    /// Find hidden files (names beginning with a dot) too. Those that the pattern
    /// names are found anyway.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Find files that `.gitignore` and `.ignore` exclude too, and those in generated
    /// directories such as `node_modules` or `build`. A generated directory that
    /// `path` or `pattern` names is searched anyway.
    #[serde(default)]
    pub(crate) ignored: bool,
}

/// The order of a glob's result.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum Order {
    #[default]
    Path,
    Newest,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepArgs {
    /// A regular expression (Rust syntax: no look-around, no backreferences), or
    /// plain text with `literal`.
    pub(crate) pattern: String,
    /// The directory or file to search. Default: the working directory.
    pub(crate) path: Option<String>,
    /// Search only files that match this glob, such as `*.py` or `src/**/*.ts`.
    /// Default: all files.
    pub(crate) glob_pattern: Option<String>,
    /// `files_with_matches`: the paths of files that match. `content`: the lines
    /// that match, with their numbers. `count`: how many lines match. Default:
    /// `files_with_matches`.
    #[serde(default)]
    pub(crate) output_mode: OutputMode,
    /// Leave out hidden files (names beginning with a dot). Default:
    /// {ignore_hidden}.
    pub(crate) ignore_hidden: Option<bool>,
    /// Search files that `.gitignore` and `.ignore` exclude too, and those in
    /// generated directories such as `node_modules` or `build`. A generated directory
    /// that `path` or `glob_pattern` names is searched anyway.
    #[serde(default)]
    pub(crate) ignored: bool,
    /// `sensitive`, `insensitive`, or `smart`: insensitive unless the pattern
    /// holds an upper-case letter. Default: `sensitive`.
    #[serde(default)]
    pub(crate) case: CaseRule,
    /// The pattern is plain text and not a regular expression.
    #[serde(default)]
    pub(crate) literal: bool,
    /// Lines to show before each match, with `output_mode` `content`. Default: 0.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) before: Option<i64>,
    /// Lines to show after each match, with `output_mode` `content`. Default: 0.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) after: Option<i64>,
    /// Lines to show before and after each match, unless `before` or `after` is given.
    /// Default: 0.
    #[schemars(range(min = 0, max = 100))]
    pub(crate) context: Option<i64>,
    /// A match may span lines; `.` then still needs `(?s)` to match a newline.
    #[serde(default)]
    pub(crate) multi_line: bool,
    /// Maximum number of files or matching lines. Default: {grep_results}.
    #[schemars(range(min = 1, max = 1000))]
    pub(crate) max_results: Option<i64>,
}

/// The form of grep's result.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum OutputMode {
    #[default]
    FilesWithMatches,
    Content,
    Count,
}

/// The case sensitivity of a search.
#[derive(Debug, Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum CaseRule {
    #[default]
    Sensitive,
    Insensitive,
    Smart,
}
