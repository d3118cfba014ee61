//! `delete_file`.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::DeleteOptions;
use serde_json::Value;

use super::model_path::ModelPath;
use super::read_file::other_error;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, Reply, ToolError, ToolResult};

pub(crate) struct DeleteFileTool;

#[async_trait]
impl Builtin for DeleteFileTool {
    type Args = args::DeleteFileArgs;
    const NAME: &'static str = "delete_file";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        None
    }

    fn call_description(args: &Self::Args) -> String {
        format!("Delete {}", args.path)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::new(context, &args.path)?;
        let shown = &file.shown;
        let deleted = context.backend.delete(&file.path, DeleteOptions::default());
        deleted.await.map_err(|error| {
            file.refusal(Self::NAME, &error)
                .unwrap_or_else(|| match error.kind() {
                    ErrorKind::NotFound | ErrorKind::NotADirectory => {
                        ToolError::fixable(format!("File not found: {shown}"))
                    }
                    // The working directory and its parents give `InvalidInput`.
                    ErrorKind::IsADirectory | ErrorKind::InvalidInput => ToolError::fixable(
                        format!("Cannot delete directory with delete_file: {shown}"),
                    ),
                    _ => other_error("delete", &file, error),
                })
        })?;
        Ok(Reply::text(format!("Deleted {shown}")))
    }
}
