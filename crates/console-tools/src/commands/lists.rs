//! `kill_shell` and `list_shells`.

use async_trait::async_trait;
use backend_core::ops::{ShellId, ShellInfo, ShellState};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::ending::{exit_code, short_state};
use super::{about_shell, check_own, shells};
use crate::args::commands::{KillShellArgs, ListShellsArgs};
use crate::structured::{schema_of, to_value};
use crate::terminal::visible;
use crate::tool::{Annotations, Builtin};
use crate::{Context, Reply, ToolResult};

/// Maximum number of characters of a command line in a list.
const LINE_CHARS: usize = 200;

/// Ends a background shell.
#[derive(Debug)]
pub(crate) struct KillShellTool;

/// The result of `kill_shell`.
#[derive(Debug, Serialize, JsonSchema)]
struct Killed {
    /// The shell's id.
    shell_id: String,
    /// Whether it still ran.
    killed: bool,
}

#[async_trait]
impl Builtin for KillShellTool {
    type Args = KillShellArgs;
    const NAME: &'static str = "kill_shell";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: false,
        destructive: true,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema_of::<Killed>()
    }

    fn words(args: &KillShellArgs) -> String {
        format!("End background shell {}", short(&args.shell_id))
    }

    async fn run(context: &Context, args: KillShellArgs) -> ToolResult {
        let sandbox = shells(context)?;
        let id = ShellId::new(args.shell_id);
        check_own(context, sandbox, &id).await?;
        let killed = match sandbox.shell_kill(&id).await {
            Ok(killed) => killed,
            Err(error) => return Err(about_shell(context, sandbox, &id, error).await),
        };
        let text = match killed {
            true => format!("Killed background shell {id}."),
            false => format!("Background shell {id} was already finished."),
        };
        let shell_id = id.to_string();
        Ok(Reply::text(text).structured(to_value(&Killed { shell_id, killed })))
    }
}

/// Lists the background shells of the conversation.
#[derive(Debug)]
pub(crate) struct ListShellsTool;

/// The result of `list_shells`.
#[derive(Debug, Serialize, JsonSchema)]
struct Shells {
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
    const NAME: &'static str = "list_shells";
    const ANNOTATIONS: Annotations = Annotations {
        read_only: true,
        destructive: false,
        idempotent: true,
        open_world: false,
    };

    fn output_schema() -> Option<Value> {
        schema_of::<Shells>()
    }

    fn words(_: &ListShellsArgs) -> String {
        "List background shells".to_owned()
    }

    async fn run(context: &Context, _: ListShellsArgs) -> ToolResult {
        let sandbox = shells(context)?;
        let listed = sandbox.shell_list().await?;
        let listed = context.conversation.shells.of(&sandbox.id(), listed);
        let lines: Vec<String> = listed.iter().map(line).collect();
        let text = match lines.as_slice() {
            [] => "No background shells.".to_owned(),
            lines => lines.join("\n"),
        };
        let shells = listed.iter().map(|shell| ListedShell {
            shell_id: shell.id.to_string(),
            command: short(&shell.line),
            running: shell.state == ShellState::Running,
            exit_code: match shell.state {
                ShellState::Ended(status) => exit_code(status),
                _ => None,
            },
        });
        let shells = shells.collect();
        Ok(Reply::text(text).structured(to_value(&Shells { shells })))
    }
}

fn line(shell: &ShellInfo) -> String {
    let state = short_state(shell.state);
    format!("{}  {state}  {}", shell.id, short(&shell.line))
}

/// Formats a text on one line, truncated if it is long.
pub(super) fn short(line: &str) -> String {
    let mut shown: String = line.chars().take(LINE_CHARS).map(visible).collect();
    if line.chars().nth(LINE_CHARS).is_some() {
        shown.push('…');
    }
    shown
}
