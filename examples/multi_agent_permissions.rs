//! Several agents on one backend, each with its own permissions: a permissive writer, a
//! reviewer that only reads, and a helper of the writer that gets a part of its files.
//!
//! Run it with `cargo run --example multi_agent_permissions`: scripts on loopback play the
//! models.
//!
//! Look at:
//! - `agent`: one tree, a toolset for each agent, and the rules and the scope that differ;
//! - `main`: `derive` narrows a scope for a sub-agent. What the scope does not have, no
//!   sub-agent can be given, and a part of a part is never more than the first part.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;
use std::sync::Arc;

use backend_core::VPath;
use backend_mounts::{Derive, MountTree, Opener};
use console_tools::{Chat, Toolset};
use examples::chat::{Error, Model, Script, Turn, begin, print};
use permissions::{Policy, Preset};
use serde_json::json;

const MOUNTS: &str = r#"
[paths.src]
root = "src"
mode = "rw"
write_approval = false

[paths.notes]
root = "notes"
mode = "rw"
write_approval = false

[paths.spec]               # for everyone to read
root = "spec"
"#;

fn tree(base: &Path) -> Result<MountTree, Error> {
    std::fs::create_dir_all(base.join("src/parser"))?;
    std::fs::create_dir(base.join("spec"))?;
    std::fs::write(base.join("spec/parser.md"), "It parses.\n")?;
    Ok(Opener::from_toml(MOUNTS)?.base(base).open()?)
}

/// Creates an agent on a tree. The scope of the tree and the rules both apply: the
/// stronger verdict counts.
fn agent(name: &str, tree: &MountTree, preset: Preset) -> Result<Chat, Error> {
    let policy = Policy::builder()
        .ruleset(&preset.ruleset(), &VPath::root())
        .layer(tree.scope().clone())
        .build();
    let toolset = Toolset::builder(Arc::new(tree.unguarded().clone())).policy(policy);
    Ok(toolset.build()?.conversation(name))
}

/// Lets an agent do a task.
async fn run(chat: &Chat, task: &str, script: Script) -> Result<(), Error> {
    println!("\n# The {}: {task}", chat.caller().session);
    let model = Model::scripted(script).await?;
    let mut messages = begin(chat, task).await?;
    model.converse(chat, &mut messages, &mut print).await?;
    println!();
    Ok(())
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let base = tempfile::tempdir()?;
    let whole = tree(base.path())?;
    let writer = agent("writer", &whole, Preset::Permissive)?;
    let write = |path: &str| json!({"path": path, "content": "fn parse() {}\n"});
    let script = Script::new()
        .calls("write_file", write("/src/parser/mod.rs"))
        .calls("write_file", write("/notes/plan.md"))
        .says("It is written.");
    run(&writer, "write the parser", script).await?;

    // The same files, and no way to change them: not by the rules, not by the scope.
    let readable = whole.derive(Derive::new().inherit().readonly()).await?;
    let reviewer = agent("reviewer", &readable, Preset::Readonly)?;
    let script = Script::new()
        .calls(
            "grep",
            json!({"pattern": "fn ", "path": "/", "output_mode": "content"}),
        )
        .calls("write_file", write("/src/parser/mod.rs"))
        .says("I would have mended it.");
    run(&reviewer, "review it", script).await?;

    // The writer hands a part of its files to a helper.
    let part = Derive::new()
        .read(["/spec", "/src/parser"])
        .write(["/src/parser"]);
    let part = whole.derive(part).await?;
    let helper = agent("helper", &part, Preset::Permissive)?;
    let script = Script::new()
        .calls("read_file", json!({"path": "/spec/parser.md"}))
        .turn(
            Turn::says("And now the rest.")
                .calls("write_file", write("/src/parser/tests.rs"))
                .calls("write_file", write("/src/main.rs"))
                .calls("read_file", json!({"path": "/notes/plan.md"}))
                .calls("write_file", write("/spec/parser.md")),
        )
        .says("I did my part.");
    run(&helper, "write its tests", script).await?;

    println!("\n# A part of a part is never more");
    if let Err(error) = part.derive(Derive::new().write(["/notes"])).await {
        println!("{error}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns which of these calls succeed, made one after the other.
    async fn allowed(chat: &Chat, calls: &[(&str, &str)]) -> Vec<bool> {
        let mut allowed = Vec::new();
        for (tool, path) in calls {
            let arguments = match *tool {
                "write_file" => json!({"path": path, "content": "x\n"}),
                _ => json!({"path": path}),
            };
            allowed.push(chat.call(tool, arguments).await.is_success());
        }
        allowed
    }

    #[tokio::test]
    async fn each_agent_can_do_only_its_part() {
        let base = tempfile::tempdir().unwrap();
        let whole = tree(base.path()).unwrap();
        let calls = [
            ("write_file", "/src/parser/a.rs"),
            ("write_file", "/src/b.rs"),
            ("write_file", "/notes/plan.md"),
            ("write_file", "/spec/parser.md"),
            ("read_file", "/src/parser/a.rs"),
            ("read_file", "/notes/plan.md"),
            ("read_file", "/spec/parser.md"),
        ];
        let writer = agent("writer", &whole, Preset::Permissive).unwrap();
        let expected = [true, true, true, false, true, true, true];
        assert_eq!(allowed(&writer, &calls).await, expected);

        let readable = Derive::new().inherit().readonly();
        let readable = whole.derive(readable).await.unwrap();
        for preset in [Preset::Readonly, Preset::Permissive] {
            let reviewer = agent("reviewer", &readable, preset).unwrap();
            let expected = [false, false, false, false, true, true, true];
            assert_eq!(allowed(&reviewer, &calls).await, expected);
        }

        let part = Derive::new()
            .read(["/spec", "/src/parser"])
            .write(["/src/parser"]);
        let part = whole.derive(part).await.unwrap();
        let helper = agent("helper", &part, Preset::Permissive).unwrap();
        let expected = [true, false, false, false, true, false, true];
        assert_eq!(allowed(&helper, &calls).await, expected);
        for more in [
            Derive::new().write(["/notes"]),
            Derive::new().write(["/spec"]),
        ] {
            assert!(part.derive(more).await.is_err());
        }
    }

    #[test]
    fn it_runs() {
        main().unwrap();
    }
}
