//! `move_file`.

use async_trait::async_trait;
use backend_core::Error;
use backend_core::ops::RenameOptions;
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::{Access, Kind};
use serde_json::Value;

use super::transfer::Transfer;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin, Preview};
use crate::{Context, Reply, ToolError, ToolResult};

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
        None
    }

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let transfer = Transfer::new(context, Self::NAME, &args.source, &args.destination)?;
        Ok(transfer.accesses(Intent::rename, Kind::Directory, None))
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Move {} to {}", args.source, args.destination)
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match Transfer::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(transfer) => {
                transfer
                    .preview(context, Intent::rename, Effect::rename)
                    .await
            }
            Err(_) => Preview::default(),
        }
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match Transfer::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(transfer) => transfer.explain("move", error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let transfer = Transfer::new(context, Self::NAME, &args.source, &args.destination)?;
        transfer.file(context, "move").await?;
        let (from, to) = (&transfer.source.path, &transfer.destination.path);
        if from == to {
            return Err(transfer.exists());
        }
        let moved = context.backend.rename(from, to, RenameOptions::default());
        moved
            .await
            .map_err(|error| transfer.explain("move", error))?;
        let (source, destination) = transfer.shown();
        Ok(Reply::text(format!("Moved {source} to {destination}")))
    }
}
