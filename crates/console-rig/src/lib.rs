#![doc = include_str!("../README.md")]

mod output;

use std::sync::Arc;

use backend_core::{Error, Result};
use console_tools::{Chat, Definition};
use rig_core::message::ToolName;
use rig_core::tool::DynamicTool;

/// The tools that are offered to a conversation, for rig's
/// `AgentBuilder::dynamic_tools`. Each call of one is a call of
/// [`Chat::call`]; to drop it is to cancel it.
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
/// What [`Chat::definitions`] fails with.
pub async fn tools(chat: &Chat) -> Result<Vec<DynamicTool>> {
    let definitions = chat.definitions().await?;
    definitions.iter().map(|each| tool(chat, each)).collect()
}

fn tool(chat: &Chat, definition: &Definition) -> Result<DynamicTool> {
    // A toolset has no tool without a name, which is all that rig asks for.
    let name = ToolName::new(definition.name.clone())
        .map_err(|error| Error::internal("rig takes no such name for a tool").with_source(error))?;
    let called: Arc<str> = definition.name.as_str().into();
    let chat = chat.clone();
    let (description, parameters) = (&definition.description, &definition.input_schema);
    let tool = DynamicTool::new(name, description, parameters.clone(), move |arguments| {
        let (chat, called) = (chat.clone(), Arc::clone(&called));
        Box::pin(async move { output::of(chat.call(&called, arguments).await) })
    });
    Ok(tool)
}
