#![doc = include_str!("../README.md")]

mod output;

use std::sync::Arc;

use backend_core::{Error, Result};
use console_tools::{Chat, Definition};
use rig_core::message::ToolName;
use rig_core::tool::DynamicTool;

/// Returns the tools offered to a conversation, for rig's
/// `AgentBuilder::dynamic_tools`. Each call goes through [`Chat::call`]. Dropping its
/// future cancels it.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use console_tools::Toolset;
///
/// let toolset = Toolset::builder(Arc::new(StateBackend::new())).build()?;
/// let tools = console_rig::tools(&toolset.conversation("conversation-1")).await?;
/// let ls = tools.iter().find(|tool| tool.name().as_str() == "ls").ok_or("no ls")?;
///
/// let output = ls.execute(serde_json::json!({"path": "."})).await?;
/// assert!(output.as_text().is_some());
/// let error = ls.execute(serde_json::json!({"path": 5})).await.unwrap_err();
/// assert!(error.model_feedback().is_some_and(|text| text.contains("path")));
/// # Ok(()) }
/// ```
///
/// # Errors
///
/// The errors of [`Chat::definitions`].
pub async fn tools(chat: &Chat) -> Result<Vec<DynamicTool>> {
    let definitions = chat.definitions().await?;
    definitions.iter().map(|each| tool(chat, each)).collect()
}

fn tool(chat: &Chat, definition: &Definition) -> Result<DynamicTool> {
    // The name is never empty in a toolset, and that is all rig requires.
    let name = ToolName::new(definition.name.clone())
        .map_err(|error| Error::internal("rig takes no such name for a tool").with_source(error))?;
    let called: Arc<str> = definition.name.as_str().into();
    let chat = chat.clone();
    let description = &definition.description;
    let parameters = (*definition.input_schema).clone();
    let tool = DynamicTool::new(name, description, parameters, move |arguments| {
        let (chat, called) = (chat.clone(), Arc::clone(&called));
        Box::pin(async move { output::of(chat.call(&called, arguments).await) })
    });
    Ok(tool)
}
