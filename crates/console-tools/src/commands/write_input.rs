//! `write_input`: writes to a background shell's standard input.

use async_trait::async_trait;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::{OwnShell, keys};
use crate::args::commands::WriteInputArgs;
use crate::context::Context;
use crate::counted::counted;
use crate::reply::{Reply, ToolError, ToolResult, fixable};
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
        let what = typed(&args.input, &args.keys);
        match (what, args.close) {
            (None, _) => format!("Close the input of background shell {id}"),
            (Some(what), true) => {
                format!("Write {what} to background shell {id} and close its input")
            }
            (Some(what), false) => format!("Write {what} to background shell {id}"),
        }
    }

    async fn run(context: &Context, args: WriteInputArgs) -> ToolResult {
        let Some(what) = typed(&args.input, &args.keys).or(args.close.then(String::new)) else {
            return Err(ToolError::fixable(
                "input is empty; give text to write or keys to press, or set close to true",
            ));
        };
        let shell = OwnShell::find(context, args.shell_id).await?;
        let id = &shell.id;
        let mut text = args.input;
        if !args.keys.is_empty() {
            let terminals = &context.conversation.terminals;
            let application = terminals.application_cursor_keys(&shell.sandbox.id(), id);
            let Some(application) = application else {
                return Err(fixable!(
                    "background shell {id} has no terminal, so it takes no keys; write text, or \
                     start the command with terminal set to true"
                ));
            };
            text.push_str(&keys::encode(&args.keys, application)?);
        }
        let bytes = text.len();
        let typed = (bytes > 0).then(|| text.into());
        let written = shell.sandbox.shell_write(id, typed).await;
        shell.checked(written).await?;
        if bytes > 0
            && args.close
            && let Some(non_interactive) = context.non_interactive.as_sandbox()
        {
            // If the write was approved, the approval covers closing the input.
            non_interactive.shell_write(id, None).await?;
        }
        let terminals = &context.conversation.terminals;
        let sandbox = shell.sandbox.id();
        let has_terminal = terminals.application_cursor_keys(&sandbox, id).is_some();
        let text = match (bytes, args.close) {
            // A terminal cannot be closed; its key for the end of input is pressed.
            (0, _) if has_terminal => format!("Pressed Ctrl-D in background shell {id}."),
            (_, true) if has_terminal => {
                format!("Wrote {what} to background shell {id} and pressed Ctrl-D.")
            }
            (0, _) => format!("Closed the standard input of background shell {id}."),
            (_, true) => {
                format!("Wrote {what} to background shell {id} and closed its standard input.")
            }
            (_, false) => format!("Wrote {what} to background shell {id}."),
        };
        let written = WriteInputOutput {
            shell_id: id.to_string(),
            bytes,
            closed: args.close,
        };
        Ok(Reply::text(text).data(&written))
    }
}

/// Describes the input, unless there is none.
fn typed(text: &str, keys: &[String]) -> Option<String> {
    let bytes = (!text.is_empty()).then(|| counted(text.len() as u64, "byte"));
    let keys = (!keys.is_empty()).then(|| counted(keys.len() as u64, "key"));
    match (bytes, keys) {
        (Some(bytes), Some(keys)) => Some(format!("{bytes} and {keys}")),
        (bytes, keys) => bytes.or(keys),
    }
}
