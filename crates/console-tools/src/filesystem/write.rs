//! `write_file`: a whole file.

use async_trait::async_trait;
use backend_core::ErrorKind;
use backend_core::ops::WriteOptions;
use serde_json::Value;

use super::chars;
use super::place::Place;
use super::read::other;
use crate::args::filesystem as args;
use crate::tool::{Annotations, Builtin};
use crate::{Context, Reply, ToolError, ToolResult};

pub(crate) struct WriteFile;

#[async_trait]
impl Builtin for WriteFile {
    type Args = args::WriteFile;
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

    fn words(args: &Self::Args) -> String {
        format!("Write {} chars to {}", chars(&args.content), args.path)
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult {
        let place = Place::new(context, &args.path)?;
        let count = chars(&args.content);
        let options = WriteOptions::default();
        let written = context
            .backend
            .write(&place.path, args.content.into(), options);
        written.await.map_err(|error| {
            place
                .refusal(Self::NAME, &error)
                .unwrap_or_else(|| match error.kind() {
                    ErrorKind::IsADirectory => {
                        ToolError::fixable(format!("Not a file: {}", place.shown))
                    }
                    _ => other("write to", &place, error),
                })
        })?;
        let text = format!("Written {count} characters to {}", place.shown);
        Ok(Reply::text(text))
    }
}
