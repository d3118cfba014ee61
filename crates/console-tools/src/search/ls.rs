//! `ls`: lists a directory.

use async_trait::async_trait;
use backend_core::ops::{Entry, FileKind, LsOptions};
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::{Lines, SearchRoot};
use crate::args::search::LsArgs;
use crate::context::Context;
use crate::counted::counted;
use crate::reply::{Reply, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::Builtin;

pub(crate) struct LsTool;

#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct LsOutput {
    /// The entries shown, directories first.
    entries: Vec<LsEntry>,
    /// How many entries there are.
    total: usize,
    /// Whether some are not shown.
    truncated: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
struct LsEntry {
    /// Its name in the directory.
    name: String,
    /// `file`, `directory`, `link` (broken) or `other`.
    kind: &'static str,
    /// Bytes, of a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    /// Whether it is a symbolic link.
    link: bool,
}

#[async_trait]
impl Builtin for LsTool {
    type Args = LsArgs;
    type Output = LsOutput;
    const TOOL: Tool = Tool::Ls;

    fn call_description(args: &LsArgs) -> String {
        format!("List {}", on_one_line(&args.path))
    }

    async fn run(context: &Context, args: LsArgs) -> ToolResult {
        let root = SearchRoot::new(context, &args.path)?;
        let limit = context.options.limits.ls_entries.max(1);
        let options = LsOptions::default().limit(limit);
        let listing = context.backend.ls(&root.path, options).await?;
        let typed = on_one_line(root.typed);
        let not_utf8 = listing.skipped.not_utf8;
        if listing.entries.is_empty() {
            let mut text = format!("Directory '{typed}' is empty");
            if not_utf8 > 0 {
                text.push_str(&format!(", except for {not_utf8} names that are not UTF-8"));
            }
            return Ok(Reply::text(text).data(&LsOutput::default()));
        }
        let mut lines = Lines::new(context, &format!("Contents of {typed}:"));
        let mut entries = Vec::new();
        for entry in &listing.entries {
            if !lines.add("  ", &line(entry)) {
                break;
            }
            entries.push(LsEntry {
                name: entry.name().to_owned(),
                kind: kind(entry),
                size: entry.size,
                link: entry.link,
            });
        }
        let more = listing.total.saturating_sub(entries.len());
        if more > 0 {
            lines.text.push_str(&format!(
                "\n  ... and {more} more; use glob with a pattern to find them"
            ));
        }
        if not_utf8 > 0 {
            lines.text.push_str(&format!(
                "\n  ({not_utf8} names that are not UTF-8 are not shown)"
            ));
        }
        let listed = LsOutput {
            entries,
            total: listing.total,
            truncated: more > 0,
        };
        Ok(Reply::text(lines.text).data(&listed))
    }
}

fn kind(entry: &Entry) -> &'static str {
    match entry.kind {
        FileKind::File => "file",
        FileKind::Directory => "directory",
        FileKind::Link => "link",
        _ => "other",
    }
}

fn line(entry: &Entry) -> String {
    let name = entry.name();
    let link = if entry.link { ", link" } else { "" };
    match (entry.kind, entry.size) {
        (FileKind::Directory, _) if entry.link => format!("{name}/ (link)"),
        (FileKind::Directory, _) => format!("{name}/"),
        (FileKind::File, Some(size)) => format!("{name} ({}{link})", counted(size, "byte")),
        (FileKind::File, None) if entry.link => format!("{name} (link)"),
        (FileKind::File, None) => name.to_owned(),
        (FileKind::Link, _) => format!("{name} (broken link)"),
        _ => format!("{name} (not a regular file)"),
    }
}
