//! [`Definitions`]: descriptions of the tools for a model, in the formats of clients.

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::tool::Definition;

/// The definitions of the tools for a model. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use console_tools::Toolset;
///
/// let toolset = Toolset::builder(Arc::new(StateBackend::new())).build()?;
/// let definitions = toolset.definitions();
/// let anthropic = definitions.anthropic();
/// assert_eq!(anthropic.as_array().map(Vec::len), Some(definitions.len()));
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Definitions(Arc<[Definition]>);

impl Definitions {
    pub(crate) fn new(all: Vec<Definition>) -> Self {
        Self(all.into())
    }

    /// Returns the definition of this name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.iter().find(|definition| definition.name == name)
    }

    /// Returns `true` if both share one allocation, so nothing was recomputed.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the `tools` of an MCP server. A tool whose every call needs approval
    /// says so in `_meta`.
    ///
    /// There is no `outputSchema`: many clients show a model only the structured part
    /// of a result if there is one, and [`Reply::structured`](crate::Reply::structured)
    /// says less than the text.
    pub fn mcp(&self) -> Value {
        self.each(|definition| {
            let hints = &definition.annotations;
            let mut tool = json!({
                "name": definition.name,
                "description": definition.description,
                "inputSchema": definition.input_schema,
                "annotations": {
                    "readOnlyHint": hints.read_only,
                    "destructiveHint": hints.destructive,
                    "idempotentHint": hints.idempotent,
                    "openWorldHint": hints.open_world,
                },
            });
            if let (true, Some(tool)) = (definition.asks, tool.as_object_mut()) {
                tool.insert("_meta".to_owned(), json!({"console-tools/asks": true}));
            }
            tool
        })
    }

    /// Returns the `tools` of OpenAI's chat completions and compatible APIs.
    pub fn openai(&self) -> Value {
        self.each(|definition| {
            json!({
                "type": "function",
                "function": {
                    "name": definition.name,
                    "description": definition.description,
                    "parameters": definition.input_schema,
                },
            })
        })
    }

    /// Returns the `tools` of OpenAI's responses. Arguments can be omitted.
    pub fn openai_responses(&self) -> Value {
        self.each(|definition| {
            json!({
                "type": "function",
                "name": definition.name,
                "description": definition.description,
                "parameters": definition.input_schema,
                "strict": false,
            })
        })
    }

    /// Returns the `tools` of Anthropic's messages.
    pub fn anthropic(&self) -> Value {
        self.each(|definition| {
            json!({
                "name": definition.name,
                "description": definition.description,
                "input_schema": definition.input_schema,
            })
        })
    }

    fn each(&self, shape: impl Fn(&Definition) -> Value) -> Value {
        self.iter().map(shape).collect()
    }
}

impl Deref for Definitions {
    type Target = [Definition];

    fn deref(&self) -> &[Definition] {
        &self.0
    }
}
