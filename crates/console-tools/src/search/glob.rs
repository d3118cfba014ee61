//! `glob`: finds files by name.

use async_trait::async_trait;
use backend_core::limits::GLOB_FILES;
use backend_core::ops::{GlobOrder, GlobQuery};
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::skipped::{self, Reach};
use super::{Lines, SearchRoot, about_pattern};
use crate::args::search::{GlobArgs, Order};
use crate::context::Context;
use crate::counted::counted_at_least;
use crate::reply::{Reply, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::Builtin;

pub(crate) struct GlobTool;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct GlobOutput {
    /// The files shown; from the working directory or absolute, as the searched
    /// path was given.
    files: Vec<String>,
    /// How many were found.
    total: usize,
    /// Whether some are not shown.
    truncated: bool,
    /// Whether there may be more than `total`.
    total_is_minimum: bool,
}

#[async_trait]
impl Builtin for GlobTool {
    type Args = GlobArgs;
    type Output = GlobOutput;
    const TOOL: Tool = Tool::Glob;

    fn call_description(args: &GlobArgs) -> String {
        let (path, pattern) = (on_one_line(&args.path), on_one_line(&args.pattern));
        format!("List file paths in {path} matching {pattern}")
    }

    async fn run(context: &Context, args: GlobArgs) -> ToolResult {
        let root = SearchRoot::new(context, &args.path)?;
        let order = match args.order {
            Order::Path => GlobOrder::Path,
            Order::Newest => GlobOrder::NewestFirst,
        };
        let shown = context.options.limits.glob_files.max(1);
        // Asks for more than is shown, to report the total.
        let query = GlobQuery::new(args.pattern.as_str(), root.path.clone())
            .order(order)
            .limit(GLOB_FILES.max(shown))
            .hidden(args.hidden)
            .ignored(args.ignored)
            .generated(root.generated(context))
            .metadata(false);
        let found = context.backend.glob(query).await;
        let found = found.map_err(|error| about_pattern("pattern", error))?;
        let pattern = on_one_line(&args.pattern);
        let reach = Reach::new(&root.path, args.hidden, Some(&args.pattern));
        let names = reach
            .generated_names(context, &found.skipped, found.truncated)
            .await;
        if found.files.is_empty() {
            let skipped = skipped::note(&found.skipped, &names, "hidden=true");
            let root = on_one_line(root.typed);
            let text = format!("No files matching '{pattern}' in {root}{skipped}");
            return Ok(Reply::text(text).data(&GlobOutput::default()));
        }
        let total = found.files.len();
        let plus = if found.truncated { "+" } else { "" };
        let found_files = counted_at_least(total, found.truncated, ("file", "files"));
        let first = format!("Found {found_files} matching '{pattern}':");
        let mut lines = Lines::new(context, &first);
        let mut files = Vec::new();
        for entry in found.files.iter().take(shown) {
            let path = root.shown(&entry.path);
            if !lines.add("  ", path) {
                break;
            }
            files.push(path.to_owned());
        }
        let more = total - files.len();
        if more > 0 {
            let text = format!(
                "\n  ... and {more}{plus} more; narrow the pattern or the path to see them"
            );
            lines.text.push_str(&text);
        }
        let warning = skipped::warning(&found.skipped, &names);
        let globbed = GlobOutput {
            files,
            total,
            truncated: more > 0 || found.truncated,
            total_is_minimum: found.truncated,
        };
        Ok(Reply::text(lines.text + &warning).data(&globbed))
    }
}
