//! `kill_shell`.

use async_trait::async_trait;
use backend_core::ops::ShellId;
use schemars::JsonSchema;
use serde::Serialize;

use super::{check_own, shell_error, shells};
use crate::args::commands::KillShellArgs;
use crate::context::Context;
use crate::reply::{Reply, ToolResult};
use crate::terminal::on_one_line;
use crate::tool::{Annotations, Builtin};

/// Ends a background shell.
#[derive(Debug)]
pub(crate) struct KillShellTool;

/// The result of `kill_shell`.
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
    const NAME: &'static str = "kill_shell";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };

    fn call_description(args: &KillShellArgs) -> String {
        format!("End background shell {}", on_one_line(&args.shell_id))
    }

    async fn run(context: &Context, args: KillShellArgs) -> ToolResult {
        let sandbox = shells(context)?;
        let id = ShellId::new(args.shell_id);
        check_own(context, sandbox, &id).await?;
        let killed = match sandbox.shell_kill(&id).await {
            Ok(killed) => killed,
            Err(error) => return Err(shell_error(context, sandbox, &id, error).await),
        };
        let text = if killed {
            format!("Killed background shell {id}.")
        } else {
            format!("Background shell {id} was already finished.")
        };
        let shell_id = id.to_string();
        Ok(Reply::text(text).data(&KillShellOutput { shell_id, killed }))
    }
}
