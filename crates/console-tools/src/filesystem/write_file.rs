//! `write_file`: a whole file.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::WriteOptions;
use serde_json::Value;

use super::chars;
use super::model_path::ModelPath;
use super::read_file::other_error;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, Reply, ToolError, ToolResult};

pub(crate) struct WriteFileTool;

#[async_trait]
impl Builtin for WriteFileTool {
    type Args = args::WriteFileArgs;
    const NAME: &'static str = "write_file";
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
        format!("Write {} chars to {}", chars(&args.content), args.path)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let file = ModelPath::new(context, &args.path)?;
        let count = chars(&args.content);
        let options = WriteOptions::default();
        let written = context
            .backend
            .write(&file.path, args.content.into(), options);
        written.await.map_err(|error| {
            file.refusal(Self::NAME, &error)
                .unwrap_or_else(|| match error.kind() {
                    ErrorKind::IsADirectory => {
                        ToolError::fixable(format!("Not a file: {}", file.shown))
                    }
                    _ => other_error("write to", &file, error),
                })
        })?;
        let text = format!("Written {count} characters to {}", file.shown);
        Ok(Reply::text(text))
    }
}
