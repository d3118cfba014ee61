//! Named directories of this machine, each with its own rules, and approvals that come
//! later: the question is put aside, and the call is made once there is an answer.
//!
//! Run it with `cargo run --example mounts_approval`.
//!
//! Look at `MOUNTS`, and at `resume`: a fingerprint is all that has to be stored, in a
//! queue or a database. It covers the exact effect, so an answer about an edit does not
//! count for a file that has changed since.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::sync::Arc;

use backend_mounts::{MountTree, Opener};
use console_tools::{Chat, Toolset};
use examples::chat::Error;
use permissions::Answer;
use permissions::approval::{Deferred, Fingerprint};
use serde_json::{Value, json};

const MOUNTS: &str = r#"
[paths.input]              # /input: to be read
root = "input"

[paths.output]             # /output: small texts, written after a yes
root = "output"
mode = "rw"
suffixes = [".md", ".txt"]
max_file_bytes = 1_000

[paths.config]             # /config: read after a yes
root = "config"
read_approval = true

[paths.scratch]            # /scratch: anything
root = "scratch"
mode = "rw"
write_approval = false
"#;

fn tree(base: &Path) -> Result<MountTree, Error> {
    for (name, text) in [
        ("input/data.csv", "a,b\n1,2\n"),
        ("config/app.toml", "port = 1\n"),
    ] {
        let file = base.join(name);
        std::fs::create_dir_all(file.parent().unwrap_or(base))?;
        std::fs::write(file, text)?;
    }
    Ok(Opener::from_toml(MOUNTS)?.base(base).open()?)
}

/// The toolset is the guard in front of the mounts. Questions are answered by decisions
/// that were made before; without one, the answer is no.
fn agent(tree: &MountTree, decisions: &Deferred) -> Result<Chat, Error> {
    let toolset = Toolset::builder(Arc::new(tree.unguarded().clone()))
        .policy(tree.policy())
        .approver(decisions.clone());
    Ok(toolset.build()?.conversation("mounts"))
}

/// A call that waits for an answer.
struct Waiting {
    tool: &'static str,
    arguments: Value,
    /// As stored: text.
    fingerprint: String,
}

/// Makes a call, or puts it aside if it needs approval.
async fn attempt(
    chat: &Chat,
    tool: &'static str,
    arguments: Value,
) -> Result<Option<Waiting>, Error> {
    println!("\n> {tool} {arguments}");
    let preview = chat.preview(tool, arguments.clone()).await;
    let Some(question) = preview.questions().first() else {
        println!("{}", chat.call(tool, arguments).await.text);
        return Ok(None);
    };
    println!("put aside: {}", question.description);
    let fingerprint = serde_json::to_string(&question.fingerprint())?;
    Ok(Some(Waiting {
        tool,
        arguments,
        fingerprint,
    }))
}

/// Makes a call that was put aside, in a new conversation: the program may have been
/// restarted meanwhile.
async fn resume(tree: &MountTree, waiting: &Waiting, answer: Answer) -> Result<String, Error> {
    let decisions = Deferred::new();
    let fingerprint: Fingerprint = serde_json::from_str(&waiting.fingerprint)?;
    decisions.decide(fingerprint, answer);
    let chat = agent(tree, &decisions)?;
    Ok(chat
        .call(waiting.tool, waiting.arguments.clone())
        .await
        .text)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let base = tempfile::tempdir()?;
    let tree = tree(base.path())?;
    let chat = agent(&tree, &Deferred::new())?;

    println!("# Each mount has its own rules");
    let write = |path: &str| json!({"path": path, "content": "# Report\n"});
    for (tool, arguments) in [
        ("read_file", json!({"path": "/input/data.csv"})),
        ("write_file", write("/scratch/work.bin")),
        ("write_file", write("/input/data.csv")),
        ("write_file", write("/output/run.sh")),
        ("write_file", write("/elsewhere.md")),
    ] {
        attempt(&chat, tool, arguments).await?;
    }

    println!("\n# What needs approval waits for it");
    let mut waiting = Vec::new();
    for (tool, arguments) in [
        ("write_file", write("/output/report.md")),
        ("read_file", json!({"path": "/config/app.toml"})),
    ] {
        waiting.extend(attempt(&chat, tool, arguments).await?);
    }

    println!("\n# The answers arrive");
    let answers = [Answer::yes(), Answer::no().note("it holds keys")];
    for (waiting, answer) in waiting.iter().zip(answers) {
        let reply = resume(&tree, waiting, answer).await?;
        println!("\n> {} {}\n{reply}", waiting.tool, waiting.arguments);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_counts_for_what_was_asked() {
        let base = tempfile::tempdir().unwrap();
        let tree = tree(base.path()).unwrap();
        let chat = agent(&tree, &Deferred::new()).unwrap();
        let file = base.path().join("output/a.md");
        std::fs::write(&file, "old\n").unwrap();
        let read = || std::fs::read_to_string(&file).unwrap();

        let edit = json!({"path": "/output/a.md", "old_string": "old", "new_string": "new"});
        let waiting = attempt(&chat, "edit_file", edit).await.unwrap().unwrap();
        assert_eq!(read(), "old\n", "it waits");
        let no = Answer::no().note("not today");
        let refused = resume(&tree, &waiting, no).await.unwrap();
        assert!(refused.contains("not today"), "{refused}");
        assert_eq!(read(), "old\n");

        std::fs::write(&file, "old, by another hand\n").unwrap();
        let late = resume(&tree, &waiting, Answer::yes()).await.unwrap();
        assert!(late.starts_with("Error: "), "{late}");
        assert_eq!(read(), "old, by another hand\n");

        std::fs::write(&file, "old\n").unwrap();
        let done = resume(&tree, &waiting, Answer::yes()).await.unwrap();
        assert!(done.starts_with("Edited"), "{done}");
        assert_eq!(read(), "new\n");
    }

    #[tokio::test]
    async fn mounts_differ() {
        let base = tempfile::tempdir().unwrap();
        let tree = tree(base.path()).unwrap();
        let chat = agent(&tree, &Deferred::new()).unwrap();
        let write = |path: &str| json!({"path": path, "content": "x\n"});
        for (tool, arguments, expected) in [
            ("read_file", json!({"path": "/input/data.csv"}), Some(true)),
            ("read_file", json!({"path": "/config/app.toml"}), None),
            ("write_file", write("/scratch/a.bin"), Some(true)),
            ("write_file", write("/output/a.md"), None),
            ("write_file", write("/output/a.sh"), Some(false)),
            ("write_file", write("/input/a.md"), Some(false)),
            ("write_file", write("/elsewhere.md"), Some(false)),
        ] {
            let preview = chat.preview(tool, arguments.clone()).await;
            let found = match preview.questions() {
                [] => Some(preview.is_allowed()),
                _ => None,
            };
            assert_eq!(found, expected, "{tool} {arguments}: {preview:?}");
        }
    }
}
