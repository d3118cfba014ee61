//! `delete_file`.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::DeleteOptions;
use permissions::tool::Tool;

use super::model_path::ModelPath;
use super::output::DeleteOutput;
use crate::args::{console, filesystem};
use crate::context::Context;
use crate::reply::{Reply, ToolResult, fixable};
use crate::tool::{Annotations, Builtin};

/// Deletes a file, or a directory with its contents.
pub(crate) struct Console;

#[async_trait]
impl Builtin for Console {
    type Args = console::DeleteFileArgs;
    type Output = DeleteOutput;
    const TOOL: Tool = Tool::DeleteFile;
    const ANNOTATIONS: Annotations = Annotations::of(Self::TOOL.operations()).idempotent();

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::console(context, "path", &args.path)?;
        let tracker = &context.conversation.tracker;
        let _lock = tracker.lock(&file.path).await;
        let options = DeleteOptions::default().recursive(args.recursive);
        let deleted = context.backend.delete(&file.path, options).await;
        deleted.map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => fixable!(
                "'{}' is a directory; set recursive to delete it with its contents",
                file.shown
            ),
            _ => file.explain(error),
        })?;
        // Not after a failure: the remaining files of a directory may have been read.
        tracker.forget(&file.path);
        let output = DeleteOutput {
            path: file.path.as_str().to_owned(),
        };
        Ok(Reply::text(format!("Deleted {}", file.shown)).data(&output))
    }
}

/// Deletes a file.
pub(crate) struct Filesystem;

#[async_trait]
impl Builtin for Filesystem {
    type Args = filesystem::DeleteFileArgs;
    type Output = ();
    const TOOL: Tool = Console::TOOL;
    const ANNOTATIONS: Annotations = Console::ANNOTATIONS;

    fn call_description(args: &Self::Args) -> String {
        format!("Delete {}", args.path)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::filesystem(context, &args.path)?;
        let options = DeleteOptions::default();
        let deleted = context.backend.delete(&file.path, options).await;
        deleted.map_err(|error| {
            file.explain_for((Self::TOOL, "delete"), error, |shown, kind| match kind {
                ErrorKind::NotFound | ErrorKind::NotADirectory => {
                    Some(format!("File not found: {shown}"))
                }
                // The working directory and its parents give `InvalidInput`.
                ErrorKind::IsADirectory | ErrorKind::InvalidInput => {
                    Some(format!("Cannot delete directory with delete_file: {shown}"))
                }
                _ => None,
            })
        })?;
        Ok(Reply::text(format!("Deleted {}", file.shown)))
    }
}
