//! `delete_file`, `move_file` and `copy_file`.

use async_trait::async_trait;
use backend_core::ops::{CopyOptions, DeleteOptions, RenameOptions, StatOptions};
use backend_core::{Error, ErrorKind};
use serde_json::Value;

use super::Target;
use super::output::{DeleteOutput, TransferOutput, schema, value};
use crate::args::files as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, Reply, ToolError, ToolResult};

/// Deletes a file, or a directory with its contents.
#[derive(Debug)]
pub(crate) struct DeleteFile;

#[async_trait]
impl Builtin for DeleteFile {
    type Args = args::DeleteFile;
    const NAME: &'static str = "delete_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema::<DeleteOutput>()
    }

    async fn run(context: &Context, args: args::DeleteFile) -> ToolResult {
        let file = Target::new(context, "path", &args.path)?;
        let tracker = &context.conversation.tracker;
        let _lock = tracker.lock(&file.path).await;
        let options = DeleteOptions::default().recursive(args.recursive);
        let deleted = context.backend.delete(&file.path, options).await;
        deleted.map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => ToolError::fixable(format!(
                "'{}' is a directory; set recursive to delete it with all it holds",
                file.shown
            )),
            _ => file.explain(error),
        })?;
        // Not after a failure: the remaining files of a directory may have been read.
        tracker.forget(&file.path);
        let output = DeleteOutput {
            path: file.path.as_str().to_owned(),
        };
        Ok(Reply::text(format!("Deleted {}", file.shown)).structured(value(&output)))
    }
}

/// Moves a file or a directory.
#[derive(Debug)]
pub(crate) struct MoveFile;

#[async_trait]
impl Builtin for MoveFile {
    type Args = args::MoveFile;
    const NAME: &'static str = "move_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema::<TransferOutput>()
    }

    async fn run(context: &Context, args: args::MoveFile) -> ToolResult {
        let transfer = Transfer::new(context, &args.source, &args.destination)?;
        let (from, to) = (&transfer.source.path, &transfer.destination.path);
        let tracker = &context.conversation.tracker;
        let _locks = tracker.lock_both(from, to).await;
        let options = RenameOptions::default().overwrite(args.overwrite);
        let moved = context.backend.rename(from, to, options).await;
        if let Err(error) = moved {
            return Err(transfer.explain(context, error).await);
        }
        tracker.moved(from, to);
        Ok(transfer.reply("Moved"))
    }
}

/// Copies a file, or a directory with its contents.
#[derive(Debug)]
pub(crate) struct CopyFile;

#[async_trait]
impl Builtin for CopyFile {
    type Args = args::CopyFile;
    const NAME: &'static str = "copy_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: false,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema::<TransferOutput>()
    }

    async fn run(context: &Context, args: args::CopyFile) -> ToolResult {
        let transfer = Transfer::new(context, &args.source, &args.destination)?;
        let (from, to) = (&transfer.source.path, &transfer.destination.path);
        let tracker = &context.conversation.tracker;
        let _locks = tracker.lock_both(from, to).await;
        let options = CopyOptions::default()
            .overwrite(args.overwrite)
            .recursive(args.recursive);
        let copied = context.backend.copy(from, to, options).await;
        if let Err(error) = copied {
            return Err(match error.kind() {
                ErrorKind::IsADirectory => ToolError::fixable(format!(
                    "'{}' is a directory; set recursive to copy it with all it holds",
                    transfer.source.shown
                )),
                _ => transfer.explain(context, error).await,
            });
        }
        // The copy was never shown to the model, and the replaced file is gone.
        tracker.forget(to);
        Ok(transfer.reply("Copied"))
    }
}

/// The source and destination of a move or copy.
struct Transfer {
    source: Target,
    destination: Target,
}

impl Transfer {
    fn new(context: &Context, source: &str, destination: &str) -> Result<Self, ToolError> {
        Ok(Self {
            source: Target::new(context, "source", source)?,
            destination: Target::new(context, "destination", destination)?,
        })
    }

    async fn explain(&self, context: &Context, error: Error) -> ToolError {
        let (from, to) = (&self.source, &self.destination);
        match error.kind() {
            ErrorKind::AlreadyExists => {
                if is_directory(context, to).await {
                    let name = from.path.file_name().unwrap_or("name");
                    let shown = to.shown.trim_end_matches('/');
                    ToolError::fixable(format!(
                        "'{shown}' is a directory; give the whole new path, such as \
                         '{shown}/{name}'"
                    ))
                } else if is_directory(context, from).await {
                    to.explain(error)
                } else {
                    ToolError::fixable(format!(
                        "'{}' exists already; set overwrite to replace it, or choose another \
                         destination",
                        to.shown
                    ))
                }
            }
            ErrorKind::NotADirectory => to.explain(error),
            _ => from.explain(error),
        }
    }

    fn reply(&self, verb: &str) -> Reply {
        let (from, to) = (&self.source, &self.destination);
        let output = TransferOutput {
            source: from.path.as_str().to_owned(),
            destination: to.path.as_str().to_owned(),
        };
        Reply::text(format!("{verb} {} to {}", from.shown, to.shown)).structured(value(&output))
    }
}

async fn is_directory(context: &Context, target: &Target) -> bool {
    let found = context.quiet.stat(&target.path, StatOptions::default());
    found.await.is_ok_and(|entry| entry.is_dir())
}
