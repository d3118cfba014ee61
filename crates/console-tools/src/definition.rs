//! [`Definitions`]: what a model is told about its tools, in the shapes that
//! clients want.

mod schema;

use std::ops::Deref;
use std::sync::Arc;

use serde_json::{Value, json};

pub use schema::schema_for;
pub(crate) use schema::schema_of_data;

use crate::Definition;

/// What a model is told about its tools. Cheap to clone.
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

    /// The one of this name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.iter().find(|definition| definition.name == name)
    }

    /// Whether both are one: nothing was computed anew.
    pub fn same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// As the `tools` of an MCP server. A tool that may have to wait for
    /// somebody's yes says so in `_meta`.
    ///
    /// There is no `outputSchema`: many clients show a model only the structured
    /// part of a result where there is one, and [`Reply::structured`](crate::Reply::structured)
    /// does not say all that the text says.
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

    /// As the `tools` of OpenAI's chat completions, and of everything that is
    /// compatible with them.
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

    /// As the `tools` of OpenAI's responses. Not strict: arguments can be left
    /// out.
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

    /// As the `tools` of Anthropic's messages.
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
