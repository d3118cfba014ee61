//! `copy_file`.

use async_trait::async_trait;
use backend_core::Error;
use backend_core::ops::{CopyOptions, ResolveOptions};
use permissions::access::Intent;
use permissions::approval::Effect;
use permissions::{Access, Kind};
use serde_json::Value;

use super::transfer::Transfer;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin, Preview};
use crate::{Context, Reply, ToolError, ToolResult};

pub(crate) struct CopyFileTool;

#[async_trait]
impl Builtin for CopyFileTool {
    type Args = args::CopyFileArgs;
    const NAME: &'static str = "copy_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: false,
        idempotent: false,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        None
    }

    fn accesses(context: &Context, args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        let transfer = Transfer::new(context, Self::NAME, &args.source, &args.destination)?;
        Ok(transfer.accesses(Intent::copy, Kind::Directory, None))
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Copy {} to {}", args.source, args.destination)
    }

    async fn preview(context: &Context, args: &Self::Args) -> Preview {
        match Transfer::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(transfer) => transfer.preview(context, Intent::copy, Effect::copy).await,
            Err(_) => Preview::default(),
        }
    }

    fn explain_refusal(context: &Context, args: &Self::Args, error: Error) -> ToolError {
        match Transfer::new(context, Self::NAME, &args.source, &args.destination) {
            Ok(transfer) => transfer.explain("copy", error),
            Err(other) => other,
        }
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let mut transfer = Transfer::new(context, Self::NAME, &args.source, &args.destination)?;
        let backend = &context.backend;
        if transfer.file(context, "copy").await?.link {
            // A link is copied as the file that it points to.
            let resolved = backend.resolve(&transfer.source.path, ResolveOptions::default());
            transfer.source.path = resolved
                .await
                .map_err(|error| transfer.explain("copy", error))?;
        }
        let (from, to) = (&transfer.source.path, &transfer.destination.path);
        if from == to {
            return Err(transfer.exists());
        }
        let copied = backend.copy(from, to, CopyOptions::default());
        copied
            .await
            .map_err(|error| transfer.explain("copy", error))?;
        let (source, destination) = transfer.shown();
        Ok(Reply::text(format!("Copied {source} to {destination}")))
    }
}
