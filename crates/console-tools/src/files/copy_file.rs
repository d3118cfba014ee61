//! `copy_file`.

use async_trait::async_trait;
use backend_core::ops::{CopyOptions, ResolveOptions};
use backend_core::{Error, ErrorKind};
use permissions::Access;
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::tool::Tool;

use super::output::TransferOutput;
use super::transfer::{FilesystemTransfer, Transfer};
use crate::args::{console, filesystem};
use crate::context::Context;
use crate::reply::{ToolError, ToolResult, fixable};
use crate::tool::{Annotations, Builtin, Preview};

/// Copies a file, or a directory with its contents.
pub(crate) struct Console;

#[async_trait]
impl Builtin for Console {
    type Args = console::CopyFileArgs;
    type Output = TransferOutput;
    const TOOL: Tool = Tool::CopyFile;

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let transfer = Transfer::console(context, (&args.source, &args.destination))?;
        let (from, to) = transfer.paths();
        let tracker = &context.conversation.tracker;
        let _locks = tracker.lock_both(from, to).await;
        let options = CopyOptions::default()
            .overwrite(args.overwrite)
            .recursive(args.recursive);
        let copied = context.backend.copy(from, to, options).await;
        if let Err(error) = copied {
            return Err(match error.kind() {
                ErrorKind::IsADirectory => fixable!(
                    "'{}' is a directory; set recursive to copy it with its contents",
                    transfer.source.shown
                ),
                _ => transfer.explain(context, error).await,
            });
        }
        // The copy was never shown to the model, and the replaced file is gone.
        tracker.forget(to);
        Ok(transfer.reply("Copied").data(&transfer.output()))
    }
}

/// Copies a file to a path that does not exist.
pub(crate) struct Filesystem;

const TRANSFER: FilesystemTransfer = FilesystemTransfer {
    tool: Tool::CopyFile,
    verb: "copy",
    intent: Intent::copy,
    effect: Effect::copy,
};

#[async_trait]
impl Builtin for Filesystem {
    type Args = filesystem::CopyFileArgs;
    type Output = ();
    const TOOL: Tool = Console::TOOL;
    // Unlike the console's, it replaces nothing.
    const ANNOTATIONS: Annotations = Console::ANNOTATIONS.harmless();

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        TRANSFER.accesses(context, (&args.source, &args.destination))
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Copy {} to {}", args.source, args.destination)
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        let ends = (&*args.source, &*args.destination);
        TRANSFER.preview(context, ends).await
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        TRANSFER.explain_refusal(context, (&args.source, &args.destination), error)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let mut transfer = Transfer::filesystem(context, (&args.source, &args.destination))?;
        let backend = &context.backend;
        if TRANSFER.check_source(context, &transfer).await?.link {
            // A link is copied as the file that it points to.
            let options = ResolveOptions::default();
            let resolved = backend.resolve(&transfer.source.path, options).await;
            transfer.source.path = resolved.map_err(|error| TRANSFER.explain(&transfer, error))?;
        }
        let (from, to) = transfer.paths();
        if from == to {
            return Err(transfer.destination_exists());
        }
        let copied = backend.copy(from, to, CopyOptions::default()).await;
        copied.map_err(|error| TRANSFER.explain(&transfer, error))?;
        Ok(transfer.reply("Copied"))
    }
}
