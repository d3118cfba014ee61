//! Permissions in code: rules of your own, an approver of your own that decides without a
//! person, settings of single tools, and a log of every decision.
//!
//! Run it with `cargo run --example custom_permissions`: a script on loopback plays the
//! model. `permissions` shows rules in TOML, and a person who is asked.
//!
//! Look at `rules`, and at `SmallChanges`: it sees the exact effect of a call before it
//! happens, and its note is what the model reads.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{Options, Toolset};
use examples::chat::{Error, Model, Script, Turn, begin, print};
use permissions::approval::{Approver, ApproverError, Effect};
use permissions::audit::{AuditLog, Outcome};
use permissions::rules::PatternError;
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Answer, Op, Question, Ruleset};
use serde_json::{Value, json};

/// The first rule that covers a path decides. What no rule covers is asked about, and
/// reading is allowed; both are the builder's defaults, and so is that secrets are denied.
fn rules() -> Result<Ruleset, PatternError> {
    let mut rules = Ruleset::builder();
    for op in [Op::Write, Op::Edit] {
        rules = rules
            .rule(op, "/drafts/**", Action::Allow, "nothing there is final")
            .rule(op, "/published/**", Action::Deny, "others rely on it");
    }
    rules.hide("/salaries/**", "not for agents").build()
}

/// Allows changes of a few lines.
#[derive(Debug)]
struct SmallChanges {
    lines: usize,
}

#[async_trait]
impl Approver for SmallChanges {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        let text = match &question.effect {
            // Only a change that is shown in full can be judged.
            effect if effect.unseen().is_some() => None,
            Effect::Diff { text, .. } | Effect::Write { text, .. } => Some(text),
            _ => None,
        };
        let is_changed = |line: &&str| line.starts_with(['+', '-']);
        let is_name = |line: &&str| line.starts_with("+++ ") || line.starts_with("--- ");
        Ok(match text {
            None => Answer::no().note("only changes of text files are allowed"),
            Some(text) => {
                let lines = text
                    .lines()
                    .filter(|line| is_changed(line) && !is_name(line));
                match lines.count() {
                    changed if changed <= self.lines => Answer::yes(),
                    changed => Answer::no().note(format!(
                        "{changed} changed lines are too many; change at most {} at once",
                        self.lines
                    )),
                }
            }
        })
    }
}

fn toolset(files: &StateBackend, log: &AuditLog) -> Result<Toolset, Error> {
    let mut options = Options::default();
    options.include_file_operations = true;
    let settings = ToolSettings::default()
        .with(Tool::DeleteFile, ToolSetting::action(Action::Deny))
        .with(Tool::Grep, ToolSetting::action(Action::Deny));
    let toolset = Toolset::builder(Arc::new(files.clone()))
        .options(options)
        .ruleset(rules()?)
        .tool_settings(settings)
        .approver(SmallChanges { lines: 3 })
        .audit(log.audit());
    Ok(toolset.build()?)
}

async fn files() -> Result<StateBackend, Error> {
    let files = StateBackend::new();
    files
        .write_file("notes.md", "one\ntwo\nthree\nfour\n")
        .await?;
    files.write_file("published/a.md", "final\n").await?;
    files.write_file("salaries/ada.md", "1\n").await?;
    Ok(files)
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (files, log) = (files().await?, AuditLog::new(100));
    let chat = toolset(&files, &log)?.conversation("custom");
    let model = Model::scripted(script()).await?;
    let mut messages = begin(&chat, "Tidy up.").await?;
    model.converse(&chat, &mut messages, &mut print).await?;

    println!("\n\n# What was decided");
    for record in log.records() {
        if record.outcome != Outcome::Allowed {
            let (op, target, reason) = (record.op, record.target, record.reason);
            println!("{}: {op} {target} ({reason})", record.outcome.as_str());
        }
    }
    Ok(())
}

fn edit(old: &str, new: &str) -> Value {
    json!({"path": "notes.md", "old_string": old, "new_string": new})
}

/// Stands for a model that tries everything.
fn script() -> Script {
    let write = |path: &str| json!({"path": path, "content": "1\n2\n3\n4\n5\n"});
    Script::new()
        .calls("glob", json!({"pattern": "**"}))
        .says("A draft needs no approval, a small change gets it.")
        .calls("write_file", write("drafts/plan.md"))
        .calls("edit_file", edit("two\n", "2\n"))
        .turn(
            Turn::says("None of these is small, allowed or there:")
                .calls("write_file", write("notes.md"))
                .calls("write_file", write("published/a.md"))
                .calls("read_file", json!({"path": "salaries/ada.md"}))
                .calls("delete_file", json!({"path": "notes.md"})),
        )
        .says("Done.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn small_changes_pass() {
        let (files, log) = (files().await.unwrap(), AuditLog::new(100));
        let toolset = toolset(&files, &log).unwrap();
        assert!(toolset.definitions().get("delete_file").is_none());
        assert!(toolset.definitions().get("grep").is_none());
        let chat = toolset.conversation("test");
        let large = json!({"path": "notes.md", "content": "1\n2\n3\n4\n5\n"});
        let refused = chat.call("write_file", large.clone()).await;
        assert!(
            refused.text.contains("change at most 3 at once"),
            "{}",
            refused.text
        );
        assert!(
            chat.call("edit_file", edit("two\n", "2\n"))
                .await
                .is_success()
        );
        assert!(
            !chat
                .call("edit_file", edit("one\n2\nthree\n", "1\n"))
                .await
                .is_success()
        );
        let mut draft = large;
        draft["path"] = json!("drafts/plan.md");
        assert!(chat.call("write_file", draft).await.is_success());
        let text = files.read_to_string("notes.md").await.unwrap();
        assert_eq!(text, "one\n2\nthree\nfour\n");

        let published = json!({"path": "published/a.md", "old_string": "final", "new_string": "x"});
        let refused = chat.call("edit_file", published).await;
        assert!(
            refused.text.contains("others rely on it"),
            "{}",
            refused.text
        );
        let listing = chat.call("glob", json!({"pattern": "**"})).await.text;
        assert!(!listing.contains("salaries/ada"), "{listing}");
        let outcomes = log.records().into_iter().map(|record| record.outcome);
        assert!(
            outcomes
                .clone()
                .any(|outcome| outcome == Outcome::Permitted)
        );
        assert!(outcomes.clone().any(|outcome| outcome == Outcome::Refused));
    }
}
