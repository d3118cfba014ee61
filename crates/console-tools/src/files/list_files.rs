//! `list_files`: files by name.

mod pattern;

use async_trait::async_trait;
use backend_core::limits::GLOB_FILES;
use backend_core::ops::{GlobQuery, GlobResult};
use backend_core::search::Glob;
use backend_core::{ErrorKind, VPath};
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::char_window::json_bytes;
use super::model_path::ModelPath;
use super::output::json_text;
use crate::args::filesystem::ListFilesArgs;
use crate::context::Context;
use crate::reply::{Reply, ToolError, ToolResult, fixable};
use crate::tool::Builtin;

/// Bytes of the reply reserved for everything but the list.
const FRAME_BYTES: usize = 120;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct ListFilesOutput {
    /// The files, sorted.
    files: Vec<String>,
    /// Whether there are more.
    truncated: bool,
}

pub(crate) struct ListFilesTool;

#[async_trait]
impl Builtin for ListFilesTool {
    type Args = ListFilesArgs;
    type Output = ListFilesOutput;
    const TOOL: Tool = Tool::ListFiles;

    fn call_description(args: &Self::Args) -> String {
        format!("List file paths in {} matching {}", args.path, args.pattern)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let pattern = pattern::check(&args.pattern).map_err(ToolError::fixable)?;
        let directory = ModelPath::filesystem(context, &args.path)?;
        let start = start(context, &directory.path);
        let absolute = absolute(context, &start, &pattern);
        Glob::new(&absolute).map_err(|error| fixable!("pattern: {error}"))?;
        let query = GlobQuery::new(absolute, start)
            .hidden(true)
            .ignored(true)
            .limit(GLOB_FILES)
            .metadata(false);
        let found = match context.backend.glob(query).await {
            Ok(found) => found,
            Err(error) => match error.kind() {
                // A missing directory has no files.
                ErrorKind::NotFound | ErrorKind::NotADirectory => GlobResult::default(),
                _ => return Err(directory.explain_for((Self::TOOL, "list"), error, |_, _| None)),
            },
        };
        reply(found, context.options.limits.reply_bytes)
    }
}

/// Returns the root of the search: without mounts, `/` is the working directory.
fn start(context: &Context, path: &VPath) -> VPath {
    match &context.scope {
        None if path.is_root() => context.backend.working_dir(),
        _ => path.clone(),
    }
}

/// Makes the pattern absolute. At the root it covers every mount.
fn absolute(context: &Context, path: &VPath, pattern: &str) -> String {
    let roots = context.scope.as_ref().map(|scope| scope.readable_roots());
    match roots {
        // The guard hides unreadable files.
        Some([_, ..]) if path.is_root() && pattern::is_all(pattern) => format!("/{pattern}"),
        Some(roots @ [_, ..]) if path.is_root() => {
            pattern::beneath(roots.iter().map(VPath::as_str), pattern)
        }
        _ => pattern::beneath([path.as_str()], pattern),
    }
}

fn reply(result: GlobResult, budget: usize) -> ToolResult {
    let found = result.files.len();
    let mut left = budget.saturating_sub(FRAME_BYTES);
    let mut files = Vec::new();
    for entry in result.files {
        let path = entry.path.as_str();
        // Two quotes and a comma.
        let bytes = path.chars().map(json_bytes).sum::<usize>() + 3;
        let Some(rest) = left.checked_sub(bytes) else {
            break;
        };
        left = rest;
        files.push(path.to_owned());
    }
    let truncated = result.truncated || files.len() < found;
    let mut text = json_text(&files)?;
    if truncated {
        let shown = files.len();
        text.push_str(&format!(
            "\nOnly the first {shown} files are shown; give a deeper path or a narrower pattern."
        ));
    }
    Ok(Reply::text(text).data(&ListFilesOutput { files, truncated }))
}
