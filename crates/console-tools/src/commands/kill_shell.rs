//! `kill_shell`: ends a background shell.

use async_trait::async_trait;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::OwnShell;
use crate::args::commands::KillShellArgs;
use crate::context::Context;
use crate::reply::{Reply, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::{Annotations, Builtin};

pub(crate) struct KillShellTool;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct KillShellOutput {
    /// The shell's id.
    shell_id: String,
    /// Whether it still ran.
    killed: bool,
}

#[async_trait]
impl Builtin for KillShellTool {
    type Args = KillShellArgs;
    type Output = KillShellOutput;
    const TOOL: Tool = Tool::KillShell;
    const ANNOTATIONS: Annotations = Annotations {
        open_world: false,
        ..Annotations::of(Self::TOOL.operations()).idempotent()
    };

    fn call_description(args: &KillShellArgs) -> String {
        format!("End background shell {}", on_one_line(&args.shell_id))
    }

    async fn run(context: &Context, args: KillShellArgs) -> ToolResult {
        let shell = OwnShell::find(context, args.shell_id).await?;
        let id = &shell.id;
        let killed = shell.checked(shell.sandbox.shell_kill(id).await).await?;
        let text = if killed {
            format!("Killed background shell {id}.")
        } else {
            format!("Background shell {id} was already finished.")
        };
        let shell_id = id.to_string();
        Ok(Reply::text(text).data(&KillShellOutput { shell_id, killed }))
    }
}
