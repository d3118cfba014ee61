//! `delete_file`.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::DeleteOptions;
use serde_json::Value;

use super::ModelPath;
use super::output::{DeleteOutput, schema, value};
use crate::args::files as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, Reply, ToolError, ToolResult};

/// Deletes a file, or a directory with its contents.
#[derive(Debug)]
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
        schema::<DeleteOutput>()
    }

    async fn run(context: &Context, args: args::DeleteFileArgs) -> ToolResult {
        let file = ModelPath::new(context, "path", &args.path)?;
        let tracker = &context.conversation.tracker;
        let _lock = tracker.lock(&file.path).await;
        let options = DeleteOptions::default().recursive(args.recursive);
        let deleted = context.backend.delete(&file.path, options).await;
        deleted.map_err(|error| match error.kind() {
            ErrorKind::IsADirectory => ToolError::fixable(format!(
                "'{}' is a directory; set recursive to delete it with its contents",
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
