//! A toolset from a file: which tools there are, how they edit, their limits, and what
//! they may do. Nothing of that is code.
//!
//! Look at `agent.toml`, change it, and run `cargo run --example capability -- FILE`.
//! Without a file it uses the one beside this program's source, and a script on loopback
//! plays the model.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{Capability, Toolset};
use examples::chat::script::replies;
use examples::chat::{Error, Model, Script, Turn, begin, print};
use permissions::approval::{ApproverError, Interactive};
use permissions::{Answer, Question};
use serde_json::json;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let text = match std::env::args_os().nth(1) {
        Some(file) => std::fs::read_to_string(file)?,
        None => include_str!("agent.toml").to_owned(),
    };
    let files = StateBackend::new();
    let toolset = toolset(&text, &files)?;
    println!("# The tools");
    for tool in toolset.definitions().iter() {
        println!("{}{}", tool.name, if tool.asks { " (asks)" } else { "" });
    }
    println!("\n# An agent with them");
    talk(&toolset, &files).await
}

fn toolset(text: &str, files: &StateBackend) -> Result<Toolset, Error> {
    let capability = Capability::from_toml(text)?;
    // Used if the file says `approver = "interactive"`.
    let approver = Arc::new(Interactive::new(answer));
    Ok(capability.toolset(Arc::new(files.clone()), Some(approver))?)
}

/// Stands for a user who is shown the question, and says yes.
async fn answer(question: Question) -> Result<Answer, ApproverError> {
    println!("  | {}", question.description);
    Ok(Answer::yes())
}

async fn talk(toolset: &Toolset, files: &StateBackend) -> Result<(), Error> {
    files
        .write_file("shop.py", "price = 1\ntax = 0.1\n")
        .await?;
    files.write_file("vendor/lib.py", "x = 1\n").await?;
    files.write_file(".env", "TOKEN=1\n").await?;
    let model = Model::scripted(script()).await?;
    let chat = toolset.conversation("capability");
    let mut messages = begin(&chat, "Raise the tax.").await?;
    model.converse(&chat, &mut messages, &mut print).await?;
    println!("\n\n# The file\n{}", files.read_to_string("shop.py").await?);
    Ok(())
}

/// Stands for a model that reads a line's hash and edits by it.
fn script() -> Script {
    let edit = |path: &str, line: u64, hash: &str, content: &str| json!({"path": path, "start_line": line, "start_hash": hash, "new_content": content});
    Script::new()
        .calls("read_file", json!({"path": "shop.py"}))
        .then(move |messages| {
            let reply = replies(messages).concat();
            let line = reply.lines().find_map(|line| line.strip_prefix("2:"));
            let (hash, _) = line
                .and_then(|line| line.split_once('|'))
                .unwrap_or_default();
            Turn::default().calls("hashline_edit", edit("shop.py", 2, hash, "tax = 0.2"))
        })
        .turn(
            Turn::says("The rest is not for me:")
                .calls("hashline_edit", edit("vendor/lib.py", 1, "00", "x = 2"))
                .calls("read_file", json!({"path": ".env"}))
                .calls("delete_file", json!({"path": "shop.py"})),
        )
        .calls(
            "write_file",
            json!({"path": "CHANGES", "content": "tax: 0.2\n"}),
        )
        .says("Done.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_file_decides() {
        let files = StateBackend::new();
        let toolset = toolset(include_str!("agent.toml"), &files).unwrap();
        let asks = |name: &str| toolset.definitions().get(name).map(|tool| tool.asks);
        assert_eq!(asks("hashline_edit"), Some(false));
        assert_eq!(asks("write_file"), Some(true));
        assert_eq!(asks("edit_file"), None);
        assert_eq!(asks("delete_file"), None);
        talk(&toolset, &files).await.unwrap();
        let text = |path| files.read_to_string(path);
        assert_eq!(text("shop.py").await.unwrap(), "price = 1\ntax = 0.2\n");
        assert_eq!(text("vendor/lib.py").await.unwrap(), "x = 1\n");
        assert_eq!(text("CHANGES").await.unwrap(), "tax: 0.2\n");
    }

    #[test]
    fn a_slip_is_an_error() {
        let text = include_str!("agent.toml").replace("read_lines", "read_line");
        let error = toolset(&text, &StateBackend::new()).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `read_line`"),
            "{error}"
        );
    }
}
