//! An agent built with rig that works on files: `console_rig::tools` turns a conversation
//! into rig's tools, and everything else is rig's.
//!
//! Run it with `cargo run --example rig_agent`: a script on loopback plays the model.
//!
//! Look at `agent`, and at `Misnamed`: without it, rig ends a run at the first tool that
//! does not exist; with it, the model is told which one was meant.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::sync::Arc;

use backend_core::BackendExt as _;
use backend_state::StateBackend;
use console_tools::{Chat, Toolset};
use examples::chat::{Endpoint, Error, Script, Server, Turn, client};
use permissions::Preset;
use permissions::approval::ApproveAll;
use rig_agent::agent::{InvalidToolCallAction, InvalidToolCallContext, InvalidToolCallReason};
use rig_agent::{AgentBuilder, AgentHook, HookContext};
use rig_core::providers::openai::OpenAIConfig;
use rig_reqwest::ReqwestClient;
use serde_json::json;

/// Answers calls of tools that do not exist.
struct Misnamed(Chat);

impl AgentHook for Misnamed {
    async fn on_invalid_tool_call(
        &self,
        _: &HookContext,
        event: &InvalidToolCallContext,
    ) -> Option<InvalidToolCallAction> {
        if event.reason != InvalidToolCallReason::UnknownTool {
            return None;
        }
        let reply = self.0.call(&event.tool_name, "").await;
        Some(InvalidToolCallAction::skip(reply.text))
    }
}

/// Lets rig run a task with the tools of a conversation. Returns the model's last words.
async fn agent(endpoint: &Endpoint, chat: &Chat, task: &str) -> Result<String, Error> {
    let http = client().no_proxy().build()?;
    let server = OpenAIConfig::new(endpoint.key.clone().unwrap_or_default())
        .with_base_url(endpoint.base_url.trim_end_matches('/'))
        .connect(ReqwestClient::from(http));
    let agent = AgentBuilder::new(server.chat(&endpoint.model))
        .preamble(chat.prompt().await?)
        .dynamic_tools(console_rig::tools(chat).await?)
        .add_hook(Misnamed(chat.clone()))
        .build();
    let response = agent.prompt(task).max_turns(20).tool_concurrency(8).await?;
    Ok(response.output().to_string())
}

/// Returns the files that the agent leaves, and its last words.
async fn show() -> Result<(StateBackend, String), Error> {
    let files = StateBackend::new();
    files.write_file("a.md", "# A\n").await?;
    let toolset = Toolset::builder(Arc::new(files.clone()))
        .ruleset(Preset::Default.ruleset())
        .approver(ApproveAll) // or an approver that asks the user
        .build()?;
    let server = Server::play(script()).await?;
    let chat = toolset.conversation("rig");
    let said = agent(&server.endpoint(), &chat, "Write an index of the notes.").await?;
    Ok((files, said))
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let (files, said) = show().await?;
    println!("{said}\n\n# index.md");
    print!("{}", files.read_to_string("index.md").await?);
    Ok(())
}

/// Stands for a model: it misnames a tool, makes two calls at once, and uses a result.
fn script() -> Script {
    let index = json!({"path": "index.md", "content": "- [A](a.md)\n- [B](b.md)\n"});
    Script::new()
        .calls("list_dir", json!({"path": "."}))
        .turn(
            Turn::says("I write what is missing.")
                .calls("write_file", json!({"path": "b.md", "content": "# B\n"}))
                .calls("write_file", index),
        )
        .then(|messages| {
            let asked = messages.iter().filter(|message| message["role"] == "tool");
            Turn::says(format!("I made {} calls.", asked.count()))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn rig_runs_the_tools_and_a_wrong_name_ends_nothing() {
        let (files, said) = show().await.unwrap();
        assert_eq!(said, "I made 3 calls.");
        let index = files.read_to_string("index.md").await.unwrap();
        assert_eq!(index, "- [A](a.md)\n- [B](b.md)\n");
        assert!(files.exists("b.md").await.unwrap());
    }
}
