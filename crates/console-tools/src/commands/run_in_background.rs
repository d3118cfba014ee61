//! `run_in_background`: starts a command that keeps running.

use async_trait::async_trait;
use backend_core::ops::TerminalSize;
use permissions::tool::Tool;
use schemars::JsonSchema;
use serde::Serialize;

use super::{command, shells};
use crate::args::commands::RunInBackgroundArgs;
use crate::context::Context;
use crate::reply::{Reply, ToolResult};
use crate::tool::Builtin;

pub(crate) struct RunInBackgroundTool;

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RunInBackgroundOutput {
    /// The shell's id.
    shell_id: String,
    /// Its process id inside the sandbox, where there is one.
    pid: Option<u32>,
}

#[async_trait]
impl Builtin for RunInBackgroundTool {
    type Args = RunInBackgroundArgs;
    type Output = RunInBackgroundOutput;
    const TOOL: Tool = Tool::RunInBackground;

    async fn run(context: &Context, args: RunInBackgroundArgs) -> ToolResult {
        let sandbox = shells(context)?;
        let mut command = command(context, args.command, args.directory.as_deref())?;
        let size = TerminalSize::default();
        if args.terminal {
            command = command.terminal(size);
        }
        let shell = sandbox.shell_start(command).await?;
        let shells = &context.conversation.shells;
        let backend = &context.non_interactive;
        shells.record(backend, sandbox.id(), shell.id.clone());
        if args.terminal {
            let terminals = &context.conversation.terminals;
            terminals.insert_screen(&sandbox.id(), &shell.id, size);
        }
        shells.prune(&**backend, &sandbox.id()).await;
        let id = &shell.id;
        let pid = shell
            .pid
            .map_or_else(String::new, |pid| format!(" (pid {pid})"));
        let follow = match args.terminal {
            true => "see its screen, write_input to type,",
            false => "follow its output",
        };
        let text = format!(
            "Started background shell {id}{pid}.\n\
             Use read_output('{id}') to {follow} and kill_shell('{id}') to stop it."
        );
        let started = RunInBackgroundOutput {
            shell_id: id.to_string(),
            pid: shell.pid,
        };
        Ok(Reply::text(text).data(&started))
    }
}
