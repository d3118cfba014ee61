//! The steps of the tour.

use console_tools::EditFormat;
use serde_json::{Value, json};

use super::stage::Stage;
use crate::exit::Failure;
use crate::output;

const PROGRAM: &str = "\
name = \"world\"

def greet(name):
    return \"hello \" + name

print(greet(name))
";

/// A server that needs only the shell.
const SERVER: &str = "echo ready; while read -r name; do echo \"hello $name\"; done";

pub(super) async fn all(stage: &mut Stage) -> Result<(), Failure> {
    output::print(
        "agentbox gives an AI agent files and commands. These are the calls that a model \
         would make, and what it would read, in a temporary directory.",
    )?;
    editing(stage).await?;
    hashline(stage).await?;
    searching(stage).await?;
    commands(stage).await?;
    background(stage).await?;
    confinement(stage).await?;
    approval(stage).await?;
    output::print(
        "\nThat was the tour, and its directory is gone.\n\n  \
         agentbox                         the same tools in a console\n  \
         agentbox mcp-config CLIENT       the same tools in Claude, Cursor, VS Code, Zed, ...\n  \
         agentbox doctor                  what this machine can host",
    )
}

async fn editing(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.without_approval(EditFormat::StrReplace)?;
    let about = "Missing directories are created; readers see the old file or the new one.";
    stage.step("Write a file", about).await?;
    let write = json!({"path": "src/app.py", "content": PROGRAM});
    stage.call(&chat, "write_file", write).await?;
    let about = "A model remembers a line wrongly. The reply says what is there instead.";
    stage
        .step("An edit that fails, and is mended", about)
        .await?;
    let edit = |old: &str| {
        json!({
            "path": "src/app.py", "old_string": old,
            "new_string": "    return f\"hello {name}!\"",
        })
    };
    let wrong = edit("    return 'hello ' + name");
    stage.call(&chat, "edit_file", wrong).await?;
    let right = edit("    return \"hello \" + name");
    stage.call(&chat, "edit_file", right).await.map(drop)
}

async fn hashline(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.without_approval(EditFormat::Hashline)?;
    let about = "Each line has a short hash. Nothing has to be repeated, and a line that changed meanwhile is noticed.";
    stage
        .step("Edits by line and hash (--edit-format hashline)", about)
        .await?;
    let read = json!({"path": "src/app.py"});
    let reply = stage.call(&chat, "read_file", read).await?;
    let hash = hash_of(&reply.text, 1);
    let edit = |hash: &str| {
        json!({
            "path": "src/app.py", "start_line": 1, "start_hash": hash,
            "new_content": "name = \"agent\"",
        })
    };
    stage.call(&chat, "hashline_edit", edit(&hash)).await?;
    output::print("\n  The same edit again, with the hash of the old line:")?;
    stage
        .call(&chat, "hashline_edit", edit(&hash))
        .await
        .map(drop)
}

/// Returns the hash of a line as `read_file` shows it: `N:HH|line`.
fn hash_of(text: &str, line: usize) -> String {
    let start = format!("{line}:");
    let mut lines = text.lines().map(str::trim_start);
    let found = lines.find_map(|text| text.strip_prefix(&start)?.split_once('|'));
    found.map_or_else(String::new, |(hash, _)| hash.to_owned())
}

async fn searching(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.without_approval(EditFormat::StrReplace)?;
    let about = "ripgrep's engine, in this process; results are in order and bounded.";
    stage.step("Search", about).await?;
    let grep = json!({"pattern": "gre+t", "output_mode": "content"});
    stage.call(&chat, "grep", grep).await.map(drop)
}

async fn commands(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.without_approval(EditFormat::StrReplace)?;
    let about = "Exit codes are results. What a command leaves running ends with it.";
    stage.step("A command", about).await?;
    let run = json!({"command": "wc -l src/app.py; sleep 1000 & exit 3", "timeout": 10});
    stage.call(&chat, "execute", run).await.map(drop)
}

async fn background(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.without_approval(EditFormat::StrReplace)?;
    let about = "It stays while the model works, can be written to and read from, and is stopped.";
    stage.step("A server in the background", about).await?;
    let start = json!({"command": SERVER});
    let started = stage.call(&chat, "run_in_background", start).await?;
    let data = started.structured.unwrap_or_default();
    let shell = data.get("shell_id").and_then(Value::as_str);
    let shell = shell.unwrap_or("bg_1");
    let look = json!({"shell_id": shell, "wait_seconds": 5});
    stage.call(&chat, "read_output", look.clone()).await?;
    let input = json!({"shell_id": shell, "input": "agent\n"});
    stage.call(&chat, "write_input", input).await?;
    stage.call(&chat, "read_output", look).await?;
    let kill = json!({"shell_id": shell});
    stage.call(&chat, "kill_shell", kill).await.map(drop)
}

async fn confinement(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.without_approval(EditFormat::StrReplace)?;
    let about =
        "The directory is the whole world of the file tools: by name, and also through a link.";
    stage.step("Paths that lead out", about).await?;
    let up = json!({"path": "../../etc/passwd"});
    stage.call(&chat, "read_file", up).await?;
    let link = json!({"command": "ln -s /etc/passwd users"});
    stage.call(&chat, "execute", link).await?;
    let through = json!({"path": "users"});
    stage.call(&chat, "read_file", through).await.map(drop)
}

async fn approval(stage: &mut Stage) -> Result<(), Failure> {
    let chat = stage.with_approval()?;
    let about = "Looking is free, changing is asked about, and secrets are out of reach whatever the answer.";
    stage
        .step("Permissions (--permissions default)", about)
        .await?;
    let edit = json!({
        "path": "src/app.py", "old_string": "hello", "new_string": "good morning",
    });
    stage.call(&chat, "edit_file", edit).await?;
    let secret = json!({"path": ".env", "content": "TOKEN=1\n"});
    stage.call(&chat, "write_file", secret).await.map(drop)
}
