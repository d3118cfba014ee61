//! `grep`: finds lines by content.

use async_trait::async_trait;
use backend_core::Error;
use backend_core::limits::{GREP_CONTEXT_LINES, GREP_MATCHES};
use backend_core::ops::{Case, FileMatches, GrepQuery, GrepResult, LineKind};
use backend_core::search::Glob;
use permissions::Access;
use permissions::access::Intent;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::line_cutter::LineCutter;
use super::skipped::{self, Reach};
use super::{Lines, SearchRoot, about_pattern};
use crate::args::search::{CaseRule, GrepArgs, OutputMode};
use crate::context::Context;
use crate::counted::counted_at_least;
use crate::number_bounds::within;
use crate::reply::{Reply, ToolError, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::Builtin;

pub(crate) struct GrepTool;

/// Maximum number of results that a call may request.
const MAX_RESULTS: usize = 1_000;

/// Maximum number of matching lines to count in modes that show only files or totals.
const COUNTED_MATCHES: usize = 200_000;

/// Bytes of a line that are kept, to find and show the match in it.
const SHOWN_LINE_BYTES: usize = 64 * 1024;

/// Maximum total size of the lines for one reply, in bytes.
const CONTENT_BYTES: usize = 8 * 1024 * 1024;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct GrepOutput {
    /// The files shown, in order.
    files: Vec<GrepFile>,
    /// How many lines match, as far as was counted.
    matches: usize,
    /// Whether something is not shown.
    truncated: bool,
    /// Whether there may be more than `matches`.
    matches_is_minimum: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GrepFile {
    /// From the working directory or absolute, as the searched path was given.
    path: String,
    /// How many of its lines match, as far as was counted.
    matches: usize,
    /// The lines, with `output_mode` `content`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    lines: Vec<GrepLine>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct GrepLine {
    /// Counted from 1.
    number: u64,
    /// The line, or a part of it around the match.
    text: String,
    /// Whether it matches; otherwise it is context.
    matches: bool,
}

#[async_trait]
impl Builtin for GrepTool {
    type Args = GrepArgs;
    type Output = GrepOutput;
    const TOOL: Tool = Tool::Grep;

    // To count, a search may run twice.
    const IN_DOUBT_ONLY: bool = true;

    fn accesses(context: &Context, args: &GrepArgs) -> Result<Vec<Access>, ToolError> {
        let root = SearchRoot::new(context, args.path.as_deref().unwrap_or("."))?;
        Ok(Intent::grep(root.path).accesses().collect())
    }

    fn call_description(args: &GrepArgs) -> String {
        let path = on_one_line(args.path.as_deref().unwrap_or("."));
        format!("Search {path} for {}", on_one_line(&args.pattern))
    }

    async fn run(context: &Context, args: GrepArgs) -> ToolResult {
        let typed = args.path.as_deref().unwrap_or(".");
        let root = SearchRoot::new(context, typed)?;
        let shown = match args.max_results {
            Some(value) => within("max_results", value, 1..=MAX_RESULTS)?,
            None => context.options.limits.grep_results.max(1),
        };
        let query = query(context, &args, &root)?;
        let search = Search {
            context,
            reach: Reach::new(&root.path, query.hidden, query.files.as_deref()),
            root,
            pattern: on_one_line(&args.pattern),
            shown,
        };
        match args.output_mode {
            OutputMode::FilesWithMatches => search.files(query).await,
            OutputMode::Content => search.content(query).await,
            OutputMode::Count => search.count(query).await,
        }
    }
}

/// Builds the query for the arguments, without its match limit.
fn query(
    context: &Context,
    args: &GrepArgs,
    root: &SearchRoot<'_>,
) -> Result<GrepQuery, ToolError> {
    let around = |field: &str, value: Option<i64>| {
        let value = value.map(|value| within(field, value, 0..=GREP_CONTEXT_LINES));
        value.transpose()
    };
    let both = around("context", args.context)?;
    let before = around("before", args.before)?.or(both).unwrap_or(0);
    let after = around("after", args.after)?.or(both).unwrap_or(0);
    let case = match args.case {
        CaseRule::Sensitive => Case::Sensitive,
        CaseRule::Insensitive => Case::Insensitive,
        CaseRule::Smart => Case::Smart,
    };
    let ignore_hidden = args.ignore_hidden;
    let ignore_hidden = ignore_hidden.unwrap_or(context.options.default_ignore_hidden);
    let mut query = GrepQuery::new(args.pattern.as_str(), root.path.clone())
        .case(case)
        .literal(args.literal)
        .multi_line(args.multi_line)
        .context(before, after)
        .hidden(!ignore_hidden)
        .ignored(args.ignored)
        .generated(root.generated(context));
    query.files.clone_from(&args.glob_pattern);
    Ok(query)
}

/// Converts the error of a failed search, and says which of the two patterns is bad.
fn failed(query: &GrepQuery, error: Error) -> ToolError {
    let files_are_good = query.files.as_deref().is_none_or(|files| {
        Glob::new(files).is_ok_and(|glob| glob.check_start(&query.path).is_ok())
    });
    let field = if files_are_good {
        "pattern"
    } else {
        "glob_pattern"
    };
    about_pattern(field, error)
}

struct Search<'a> {
    context: &'a Context,
    root: SearchRoot<'a>,
    reach: Reach,
    pattern: String,
    /// Maximum number of results to show.
    shown: usize,
}

impl Search<'_> {
    /// Runs a search whose lines are only counted.
    async fn counted(&self, query: &GrepQuery, most: usize) -> Result<GrepResult, ToolError> {
        let query = query
            .clone()
            .context(0, 0)
            .max_matches(most)
            .max_line_bytes(1);
        let found = self.context.backend.grep(query.clone()).await;
        found.map_err(|error| failed(&query, error))
    }

    /// Finishes a reply: if nothing was found it says so, else it says what was skipped.
    async fn reply(&self, found: &GrepResult, text: &str, output: GrepOutput) -> Reply {
        let (skipped, truncated) = (&found.skipped, found.truncated);
        let names = self
            .reach
            .generated_names(self.context, skipped, truncated)
            .await;
        if found.files.is_empty() {
            let skipped = skipped::note(skipped, &names, "ignore_hidden=false");
            let text = format!("No matches for '{}'{skipped}", self.pattern);
            return Reply::text(text).data(&GrepOutput::default());
        }
        let warning = skipped::warning(skipped, &names);
        Reply::text(format!("{text}{warning}")).data(&output)
    }

    fn file(&self, file: &FileMatches) -> GrepFile {
        GrepFile {
            path: self.root.shown(&file.path).to_owned(),
            matches: file.matches,
            lines: Vec::new(),
        }
    }

    async fn files(&self, query: GrepQuery) -> ToolResult {
        let mut found = self.counted(&query, GREP_MATCHES).await?;
        if found.truncated && found.files.len() <= self.shown {
            // The limit was reached before the other files.
            found = self.counted(&query, COUNTED_MATCHES).await?;
        }
        let first = format!("Files containing '{}':", self.pattern);
        let mut lines = Lines::new(self.context, &first);
        let mut files = Vec::new();
        for file in found.files.iter().take(self.shown) {
            if !lines.add("  ", self.root.shown(&file.path)) {
                break;
            }
            files.push(self.file(file));
        }
        let more = found.files.len() - files.len();
        let closing = match (more, found.truncated) {
            (0, false) => String::new(),
            (0, true) => format!(
                "\n  ... the search ended after {} matches; narrow the pattern or the path to see other files",
                found.matches
            ),
            (more, truncated) => {
                let more = counted_at_least(more, truncated, ("more file", "more files"));
                format!("\n  ... and {more}")
            }
        };
        lines.text.push_str(&closing);
        let grepped = GrepOutput {
            files,
            matches: found.matches,
            truncated: more > 0 || found.truncated,
            matches_is_minimum: found.truncated,
        };
        Ok(self.reply(&found, &lines.text, grepped).await)
    }

    async fn count(&self, query: GrepQuery) -> ToolResult {
        let found = self.counted(&query, COUNTED_MATCHES).await?;
        let more = found.truncated;
        let text = format!(
            "Found {} for '{}' in {}",
            counted_at_least(found.matches, more, ("match", "matches")),
            self.pattern,
            counted_at_least(found.files.len(), more, ("file", "files")),
        );
        let files = found.files.iter().take(self.shown);
        let grepped = GrepOutput {
            files: files.map(|file| self.file(file)).collect(),
            matches: found.matches,
            truncated: found.truncated || found.files.len() > self.shown,
            matches_is_minimum: found.truncated,
        };
        Ok(self.reply(&found, &text, grepped).await)
    }

    async fn content(&self, query: GrepQuery) -> ToolResult {
        let lines = query
            .clone()
            .max_matches(self.shown)
            .max_line_bytes(SHOWN_LINE_BYTES)
            .max_bytes(CONTENT_BYTES);
        let found = self.context.backend.grep(lines).await;
        let found = found.map_err(|error| failed(&query, error))?;
        if found.files.is_empty() {
            return Ok(self.reply(&found, "", GrepOutput::default()).await);
        }
        let mut text = Lines::new(self.context, &format!("Matches for '{}':", self.pattern));
        let mut cutter = LineCutter::new(&query, self.context.options.limits.grep_line_chars);
        let with_context = query.before + query.after > 0;
        let mut files = Vec::new();
        for file in &found.files {
            let mut shown = self.file(file);
            shown.matches = 0;
            let full = !self.add_file(&mut text, &mut cutter, file, with_context, &mut shown);
            if !shown.lines.is_empty() {
                files.push(shown);
            }
            if full {
                break;
            }
        }
        let shown: usize = files.iter().map(|file| file.matches).sum();
        let (total, is_minimum) = if found.truncated {
            let counted = self.counted(&query, GREP_MATCHES).await?;
            (counted.matches.max(shown), counted.truncated)
        } else {
            (found.matches, false)
        };
        let more = total - shown;
        if more > 0 || is_minimum {
            let words = ("more match", "more matches");
            let closing = format!("\n  ... and {}", counted_at_least(more, is_minimum, words));
            text.text.push_str(&closing);
        }
        let grepped = GrepOutput {
            files,
            matches: total,
            truncated: more > 0 || is_minimum,
            matches_is_minimum: is_minimum,
        };
        Ok(self.reply(&found, &text.text, grepped).await)
    }

    /// Adds the lines of a file, with `--` in place of omitted lines. Returns `true` if
    /// the reply had room for all of them.
    fn add_file(
        &self,
        text: &mut Lines,
        cutter: &mut LineCutter<'_>,
        file: &FileMatches,
        with_context: bool,
        shown: &mut GrepFile,
    ) -> bool {
        if !text.add("", &shown.path) {
            return false;
        }
        let mut last = None;
        for line in file.lines() {
            let gap = last.is_some_and(|last| line.number > last + 1);
            if gap && with_context && !text.add("  ", "--") {
                return false;
            }
            last = Some(line.number);
            let matches = line.kind == LineKind::Match;
            let mark = if matches { ':' } else { '-' };
            let cut = cutter.show(&line);
            if !text.add("  ", &format!("{}{mark} {cut}", line.number)) {
                return false;
            }
            shown.matches += usize::from(matches);
            shown.lines.push(GrepLine {
                number: line.number,
                text: cut,
                matches,
            });
        }
        true
    }
}
