//! `copy_file`.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::CopyOptions;
use serde_json::Value;

use super::output::{TransferOutput, schema};
use super::transfer::Transfer;
use crate::args::files as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, ToolError, ToolResult};

/// Copies a file, or a directory with its contents.
#[derive(Debug)]
pub(crate) struct CopyFileTool;

#[async_trait]
impl Builtin for CopyFileTool {
    type Args = args::CopyFileArgs;
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

    async fn run(context: &Context, args: args::CopyFileArgs) -> ToolResult {
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
                    "'{}' is a directory; set recursive to copy it with its contents",
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
