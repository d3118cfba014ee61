//! `write_file`: writes a whole file.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::{Content, StatOptions, WriteMode, WriteOptions, WriteOutcome};
use bytes::Bytes;
use permissions::tool::Tool;

use super::model_path::ModelPath;
use super::output::WriteOutput;
use super::read_before_edit;
use crate::args::{console, filesystem};
use crate::context::Context;
use crate::counted::counted;
use crate::reply::{Reply, ToolError, ToolResult, fixable};
use crate::tool::{Annotations, Builtin};
use crate::tracker::{SeenFile, count_lines};

/// Writes a whole file, unless it differs from what the conversation last saw.
pub(crate) struct Console;

#[async_trait]
impl Builtin for Console {
    type Args = console::WriteFileArgs;
    type Output = WriteOutput;
    const TOOL: Tool = Tool::WriteFile;
    const ANNOTATIONS: Annotations = Annotations::of(Self::TOOL.operations()).idempotent();

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::console(context, "path", &args.path)?;
        let max = context.options.limits.argument_bytes;
        if args.content.len() > max {
            return Err(fixable!(
                "content has {} bytes, more than the {max} of one call; write the beginning and \
                 add the rest with edits",
                args.content.len()
            ));
        }
        let content = Bytes::from(args.content);
        let _lock = context.lock_path(&file.path).await;
        let seen = read_before_edit::last_seen(context, &file).await?;
        let outcome = write(context, &file, &content, seen.as_ref()).await?;
        let lines = count_lines(&content);
        let tracker = &context.conversation.tracker;
        tracker.wrote(&file.path, SeenFile::hashed(&content, outcome.hash));
        let output = WriteOutput {
            path: file.path.as_str().to_owned(),
            lines,
            bytes: outcome.size,
            created: outcome.created,
        };
        let text = format!("Wrote {} to {}", counted(lines, "line"), file.shown);
        Ok(Reply::text(text).data(&output))
    }
}

/// Writes a whole file, whatever it holds.
pub(crate) struct Filesystem;

#[async_trait]
impl Builtin for Filesystem {
    type Args = filesystem::WriteFileArgs;
    type Output = ();
    const TOOL: Tool = Console::TOOL;
    const ANNOTATIONS: Annotations = Console::ANNOTATIONS;

    fn call_description(args: &Self::Args) -> String {
        let count = args.content.chars().count();
        format!("Write {count} chars to {}", args.path)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::filesystem(context, &args.path)?;
        let count = args.content.chars().count();
        let (content, options) = (args.content.into(), WriteOptions::default());
        let written = context.backend.write(&file.path, content, options).await;
        written.map_err(|error| {
            file.explain_for((Self::TOOL, "write to"), error, |shown, kind| {
                (kind == ErrorKind::IsADirectory).then(|| format!("Not a file: {shown}"))
            })
        })?;
        let text = format!("Written {count} characters to {}", file.shown);
        Ok(Reply::text(text))
    }
}

/// Replaces only the content that was seen or, if the options allow it, an unseen file.
async fn write(
    context: &Context,
    file: &ModelPath,
    content: &Bytes,
    seen: Option<&SeenFile>,
) -> Result<WriteOutcome, ToolError> {
    let mode = match (seen, seen.and_then(SeenFile::hash)) {
        (_, Some(hash)) => WriteMode::IfUnchanged(hash),
        (None, _) if context.options.require_read_before_edit => WriteMode::CreateNew,
        _ => WriteMode::Overwrite,
    };
    let write = |mode| {
        let options = WriteOptions::default().mode(mode);
        let content = Content::from(content.clone());
        context.backend.write(&file.path, content, options)
    };
    let mut written = write(mode).await;
    if let (WriteMode::IfUnchanged(_), Err(error)) = (mode, &written)
        && error.kind() == ErrorKind::Conflict
    {
        // If the file no longer exists there is nothing to lose.
        written = write(WriteMode::CreateNew).await;
    }
    match (written, seen) {
        (Ok(outcome), _) => Ok(outcome),
        (Err(error), _) if error.kind() == ErrorKind::IsADirectory => Err(is_a_directory(file)),
        (Err(error), Some(seen))
            if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::AlreadyExists) =>
        {
            Err(read_before_edit::changed_error(context, file, seen).await)
        }
        (Err(error), None) if error.kind() == ErrorKind::AlreadyExists => {
            Err(exists_unread(context, file).await)
        }
        (Err(error), _) => Err(file.explain(error)),
    }
}

fn is_a_directory(file: &ModelPath) -> ToolError {
    fixable!("'{}' is a directory; name a file in it", file.shown)
}

/// Returns the error for an existing path where only a new file may be written.
async fn exists_unread(context: &Context, file: &ModelPath) -> ToolError {
    let backend = &context.non_interactive;
    match backend.stat(&file.path, StatOptions::default()).await {
        Ok(entry) if entry.is_dir() => is_a_directory(file),
        _ => read_before_edit::unread_error(file),
    }
}
