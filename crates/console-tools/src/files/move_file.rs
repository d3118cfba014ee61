//! `move_file`.

use async_trait::async_trait;
use backend_core::Error;
use backend_core::ops::RenameOptions;
use permissions::Access;
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::tool::Tool;

use super::output::TransferOutput;
use super::transfer::{FilesystemTransfer, Transfer};
use crate::args::{console, filesystem};
use crate::context::Context;
use crate::reply::{ToolError, ToolResult};
use crate::tool::{Builtin, Preview};

/// Moves a file or a directory.
pub(crate) struct Console;

#[async_trait]
impl Builtin for Console {
    type Args = console::MoveFileArgs;
    type Output = TransferOutput;
    const TOOL: Tool = Tool::MoveFile;

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let transfer = Transfer::console(context, (&args.source, &args.destination))?;
        let (from, to) = transfer.paths();
        let tracker = &context.conversation.tracker;
        let _locks = tracker.lock_both(from, to).await;
        let options = RenameOptions::default().overwrite(args.overwrite);
        let moved = context.backend.rename(from, to, options).await;
        if let Err(error) = moved {
            return Err(transfer.explain(context, error).await);
        }
        tracker.moved(from, to);
        Ok(transfer.reply("Moved").data(&transfer.output()))
    }
}

/// Moves a file to a path that does not exist.
pub(crate) struct Filesystem;

const TRANSFER: FilesystemTransfer = FilesystemTransfer {
    tool: Tool::MoveFile,
    verb: "move",
    intent: Intent::rename,
    effect: Effect::rename,
};

#[async_trait]
impl Builtin for Filesystem {
    type Args = filesystem::MoveFileArgs;
    type Output = ();
    const TOOL: Tool = Console::TOOL;

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        TRANSFER.accesses(context, (&args.source, &args.destination))
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Move {} to {}", args.source, args.destination)
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        let ends = (&*args.source, &*args.destination);
        TRANSFER.preview(context, ends).await
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        TRANSFER.explain_refusal(context, (&args.source, &args.destination), error)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let transfer = Transfer::filesystem(context, (&args.source, &args.destination))?;
        TRANSFER.check_source(context, &transfer).await?;
        let (from, to) = transfer.paths();
        if from == to {
            return Err(transfer.destination_exists());
        }
        let options = RenameOptions::default();
        let moved = context.backend.rename(from, to, options).await;
        moved.map_err(|error| TRANSFER.explain(&transfer, error))?;
        Ok(transfer.reply("Moved"))
    }
}
