//! `list_shells`: lists the background shells of the conversation.

use async_trait::async_trait;
use backend_core::ops::{ShellInfo, ShellState};
use permissions::Op;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::{shells, state};
use crate::args::commands::ListShellsArgs;
use crate::context::Context;
use crate::reply::{Reply, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::{Annotations, Builtin};

pub(crate) struct ListShellsTool;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ListShellsOutput {
    /// In the order in which they were started.
    shells: Vec<ListedShell>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ListedShell {
    /// The shell's id.
    shell_id: String,
    /// The beginning of its command line.
    command: String,
    /// Whether it still runs.
    running: bool,
    /// Its exit code, if it ended by itself.
    exit_code: Option<i32>,
}

#[async_trait]
impl Builtin for ListShellsTool {
    type Args = ListShellsArgs;
    type Output = ListShellsOutput;
    const TOOL: Tool = Tool::ListShells;
    const ANNOTATIONS: Annotations = Annotations::of(&[Op::Read]);

    fn call_description(_: &ListShellsArgs) -> String {
        "List background shells".to_owned()
    }

    async fn run(context: &Context, _: ListShellsArgs) -> ToolResult {
        let sandbox = shells(context)?;
        let listed = sandbox.shell_list().await?;
        let listed = context.conversation.shells.filter(&sandbox.id(), listed);
        let (lines, shells): (Vec<_>, Vec<_>) = listed.iter().map(shown).unzip();
        let text = match lines.as_slice() {
            [] => "No background shells.".to_owned(),
            lines => lines.join("\n"),
        };
        Ok(Reply::text(text).data(&ListShellsOutput { shells }))
    }
}

fn shown(shell: &ShellInfo) -> (String, ListedShell) {
    let (state, exit_code) = state(shell.state, "(");
    let command = on_one_line(&shell.line);
    let listed = ListedShell {
        shell_id: shell.id.to_string(),
        running: shell.state == ShellState::Running,
        exit_code,
        command,
    };
    let line = format!("{}  {state}  {}", shell.id, listed.command);
    (line, listed)
}
