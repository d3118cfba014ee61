//! Tools without a model: six calls on a real directory, one of which fails and is
//! fixed, and one of which the user refuses.
//!
//! Run it with `cargo run --example agent_tools`.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use backend_local::LocalBackend;
use console_tools::{Chat, FailureClass, Toolset};
use permissions::approval::{ApproverError, Asked, Interactive};
use permissions::{Answer, Preset, Question, Target};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Must come first: this program is also the supervisor of its commands.
    backend_local::supervisor::run_if_asked();
    tokio::runtime::Runtime::new()?.block_on(show())
}

async fn show() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let backend = LocalBackend::builder(directory.path())
        .enable_execute(true)
        .open()?;
    let toolset = Toolset::builder(Arc::new(backend))
        .ruleset(Preset::Default.ruleset())
        .approver(Interactive::new(answer))
        .build()?;
    let chat = toolset.conversation("tour");

    println!("# What the model is told");
    let definitions = chat.definitions().await?;
    let bytes = definitions.openai().to_string().len();
    println!("{} tools, {bytes} bytes of JSON", definitions.len());
    println!("{}", chat.prompt().await?);

    println!("\n# It writes, misses, and mends what it missed");
    let script = "for n in 1 2 3; do\n  echo \"line $n\"\ndone\n";
    let write = json!({"path": "count.sh", "content": script});
    call(&chat, "write_file", write).await;
    let edit = |old: &str| json!({"path": "count.sh", "old_string": old, "new_string": "for n in 1 2; do"});
    let missed = call(&chat, "edit_file", edit("for n in 1 2 3 ; do")).await;
    assert_eq!(missed, Some(FailureClass::Fixable));
    let mended = call(&chat, "edit_file", edit("for n in 1 2 3; do")).await;
    assert_eq!(mended, None);

    println!("\n# It runs a command; the user refuses another one");
    call(&chat, "execute", json!({"command": "sh count.sh"})).await;
    let refused = call(&chat, "execute", json!({"command": "rm count.sh"})).await;
    assert_eq!(refused, Some(FailureClass::Refused));

    println!("\n# It searches, which needs no approval");
    let grep = json!({"pattern": "LINE", "case": "insensitive", "output_mode": "content"});
    call(&chat, "grep", grep).await;
    Ok(())
}

/// Makes a call like a model would, and prints it.
async fn call(chat: &Chat, name: &str, arguments: Value) -> Option<FailureClass> {
    println!("\n> {name} {arguments}");
    let reply = chat.call(name, arguments).await;
    println!("{}", reply.text.trim_end());
    reply.failure
}

/// Stands for a user who is shown the question. This one never allows a deletion.
async fn answer(question: Question) -> Result<Answer, ApproverError> {
    for line in question.to_string().lines() {
        println!("  | {line}");
    }
    let removes = |asked: &Asked| match &asked.target {
        Target::Command(line) => line.starts_with("rm "),
        _ => false,
    };
    Ok(if question.asked.iter().any(removes) {
        Answer::no().note("it is still needed")
    } else {
        Answer::yes()
    })
}
