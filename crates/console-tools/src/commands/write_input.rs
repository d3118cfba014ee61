//! `write_input`: writes to a background shell's standard input.

use async_trait::async_trait;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::OwnShell;
use crate::args::commands::WriteInputArgs;
use crate::context::Context;
use crate::counted::counted;
use crate::reply::{Reply, ToolError, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::Builtin;

pub(crate) struct WriteInputTool;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WriteInputOutput {
    /// The shell's id.
    shell_id: String,
    /// How many bytes were written.
    bytes: usize,
    /// Whether the standard input was closed.
    closed: bool,
}

#[async_trait]
impl Builtin for WriteInputTool {
    type Args = WriteInputArgs;
    type Output = WriteInputOutput;
    const TOOL: Tool = Tool::WriteInput;

    fn call_description(args: &WriteInputArgs) -> String {
        let id = on_one_line(&args.shell_id);
        let bytes = counted(args.input.len() as u64, "byte");
        match (args.input.is_empty(), args.close) {
            (true, _) => format!("Close the input of background shell {id}"),
            (false, true) => format!("Write {bytes} to background shell {id} and close its input"),
            (false, false) => format!("Write {bytes} to background shell {id}"),
        }
    }

    async fn run(context: &Context, args: WriteInputArgs) -> ToolResult {
        if args.input.is_empty() && !args.close {
            return Err(ToolError::fixable(
                "input is empty; give text to write, or set close to true",
            ));
        }
        let shell = OwnShell::find(context, args.shell_id).await?;
        let id = &shell.id;
        let bytes = args.input.len();
        let typed = (bytes > 0).then(|| args.input.into());
        let written = shell.sandbox.shell_write(id, typed).await;
        shell.checked(written).await?;
        if bytes > 0
            && args.close
            && let Some(non_interactive) = context.non_interactive.as_sandbox()
        {
            // If the write was approved, the approval covers closing the input.
            non_interactive.shell_write(id, None).await?;
        }
        let wrote = counted(bytes as u64, "byte");
        let text = match (bytes, args.close) {
            (0, _) => format!("Closed the standard input of background shell {id}."),
            (_, true) => {
                format!("Wrote {wrote} to background shell {id} and closed its standard input.")
            }
            (_, false) => format!("Wrote {wrote} to background shell {id}."),
        };
        let written = WriteInputOutput {
            shell_id: id.to_string(),
            bytes,
            closed: args.close,
        };
        Ok(Reply::text(text).data(&written))
    }
}
