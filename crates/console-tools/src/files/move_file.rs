//! `move_file`.

use async_trait::async_trait;
use backend_core::ops::RenameOptions;
use serde_json::Value;

use super::output::{TransferOutput, schema};
use super::transfer::Transfer;
use crate::args::files as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, ToolResult};

/// Moves a file or a directory.
#[derive(Debug)]
pub(crate) struct MoveFileTool;

#[async_trait]
impl Builtin for MoveFileTool {
    type Args = args::MoveFileArgs;
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

    async fn run(context: &Context, args: args::MoveFileArgs) -> ToolResult {
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
