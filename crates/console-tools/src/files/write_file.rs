//! `write_file`: writes a whole file.

use async_trait::async_trait;
use backend_core::ops::{Content, StatOptions, WriteMode, WriteOptions, WriteOutcome};
use backend_core::{Error, ErrorKind};
use bytes::Bytes;
use serde_json::Value;

use super::output::{WriteOutput, schema, value};
use super::{ModelPath, read_before_edit};
use crate::args::files as args;
use crate::counted::counted;
use crate::tool::{Annotations, Builtin};
use crate::tracker::{Seen, count_lines};
use crate::{Context, Reply, ToolError, ToolResult};

/// Writes a whole file.
#[derive(Debug)]
pub(crate) struct WriteFileTool;

#[async_trait]
impl Builtin for WriteFileTool {
    type Args = args::WriteFileArgs;
    const NAME: &'static str = "write_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema::<WriteOutput>()
    }

    async fn run(context: &Context, args: args::WriteFileArgs) -> ToolResult {
        let file = ModelPath::new(context, "path", &args.path)?;
        let max = context.options.limits.argument_bytes;
        if args.content.len() > max {
            return Err(ToolError::fixable(format!(
                "content has {} bytes, more than the {max} of one call; write the beginning and \
                 add the rest with edits",
                args.content.len()
            )));
        }
        let content = Bytes::from(args.content);
        let _lock = context.lock_path(&file.path).await;
        let seen = read_before_edit::last_seen(context, &file).await?;
        let outcome = write(context, &file, &content, seen.as_ref()).await?;
        let lines = count_lines(&content);
        let tracker = &context.conversation.tracker;
        tracker.wrote(&file.path, Seen::whole(&content));
        let output = WriteOutput {
            path: file.path.as_str().to_owned(),
            lines,
            bytes: outcome.size,
            created: outcome.created,
        };
        let text = format!("Wrote {} to {}", counted(lines, "line"), file.shown);
        Ok(Reply::text(text).structured(value(&output)))
    }
}

/// Replaces only the content that was seen. A file that was never seen is replaced
/// unless the options forbid it.
async fn write(
    context: &Context,
    file: &ModelPath,
    content: &Bytes,
    seen: Option<&Seen>,
) -> Result<WriteOutcome, ToolError> {
    let mode = match (seen, seen.and_then(Seen::hash)) {
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
    if let WriteMode::IfUnchanged(_) = mode
        && is(&written, ErrorKind::Conflict)
    {
        // If the file no longer exists there is nothing to lose.
        written = write(WriteMode::CreateNew).await;
    }
    match (written, seen) {
        (Ok(outcome), _) => Ok(outcome),
        (Err(error), _) if error.kind() == ErrorKind::IsADirectory => Err(ToolError::fixable(
            format!("'{}' is a directory; name a file in it", file.shown),
        )),
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

fn is(written: &Result<WriteOutcome, Error>, kind: ErrorKind) -> bool {
    written.as_ref().is_err_and(|error| error.kind() == kind)
}

/// Returns the error for an existing path where only a new file may be written.
async fn exists_unread(context: &Context, file: &ModelPath) -> ToolError {
    let found = context
        .non_interactive
        .stat(&file.path, StatOptions::default());
    match found.await {
        Ok(entry) if entry.is_dir() => ToolError::fixable(format!(
            "'{}' is a directory; name a file in it",
            file.shown
        )),
        _ => read_before_edit::unread_error(file),
    }
}
