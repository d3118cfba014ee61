//! [`ToolHandler`] and [`Definition`]: the interface and the description of a tool.

mod preview;

use async_trait::async_trait;
use backend_core::Error;
use permissions::tool::Tool;
use permissions::{Access, Op, OpClass};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use preview::Preview;

use crate::context::Context;
use crate::reply::{ToolError, ToolResult};
use crate::schema::schema_of_data;

/// Hints about a tool that a client may show to its user, as in MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Annotations {
    /// The tool changes nothing.
    pub read_only: bool,
    /// The tool may destroy data.
    pub destructive: bool,
    /// A second identical call has no further effect.
    pub idempotent: bool,
    /// The tool may reach beyond the backend.
    pub open_world: bool,
}

impl Annotations {
    /// Derives the annotations from the operations alone: a tool that only reads
    /// changes nothing, any other may destroy data, and one that runs commands may
    /// reach anywhere.
    pub const fn of(operations: &[Op]) -> Self {
        let (mut read_only, mut open_world) = (true, false);
        let mut index = 0;
        while index < operations.len() {
            let class = operations[index].class();
            read_only &= matches!(class, OpClass::Read);
            open_world |= matches!(class, OpClass::Execute);
            index += 1;
        }
        Self {
            read_only,
            destructive: !read_only,
            idempotent: read_only,
            open_world,
        }
    }

    /// Marks a tool that only adds and never destroys.
    #[must_use]
    pub const fn harmless(mut self) -> Self {
        self.destructive = false;
        self
    }

    /// Marks a tool whose second identical call has no further effect.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// Marks a tool that reaches beyond the backend.
    #[must_use]
    pub const fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }
}

/// The description of a tool for a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Definition {
    /// The name of the tool.
    pub name: String,
    /// The purpose and usage of the tool.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of [`Reply::structured`](crate::Reply::structured).
    pub output_schema: Option<Value>,
    /// Hints that a client may show to its user.
    pub annotations: Annotations,
    /// Whether every call needs approval. A call of another tool may need it too, as
    /// its target decides.
    pub asks: bool,
    /// Whether a reply may have [`blocks`](crate::Reply::blocks).
    pub blocks: bool,
}

impl Definition {
    /// Describes a tool with these arguments.
    pub fn new(
        name: impl Into<String>,
        description: impl Into<String>,
        input_schema: Value,
        annotations: Annotations,
    ) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            input_schema,
            output_schema: None,
            annotations,
            asks: false,
            blocks: false,
        }
    }

    /// Sets the schema of the structured result.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Option<Value>>) -> Self {
        self.output_schema = schema.into();
        self
    }

    /// Marks a tool that shows pictures or documents.
    #[must_use]
    pub fn shows_blocks(mut self) -> Self {
        self.blocks = true;
        self
    }
}

/// A tool that is defined at run time. A tool that is known at compile time should
/// rather be a [`CustomTool`](crate::CustomTool).
///
/// It is behind the same gate as every other tool: the accesses that
/// [`accesses`](Self::accesses) declares are judged, and asked about in one question,
/// before it runs. The backend of its context is guarded.
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn call(&self, context: &Context, arguments: Value) -> ToolResult;
/// ```
#[async_trait]
pub trait ToolHandler: std::fmt::Debug + Send + Sync + 'static {
    /// Returns the description for the model. Called once, when the toolset is built.
    fn definition(&self) -> Definition;

    /// Returns the operations of the tool, at least one. If one is denied, it is hidden.
    fn operations(&self) -> &'static [Op];

    /// Returns the accesses of this call, in terms of [`operations`](Self::operations).
    /// One that declares none is judged as
    /// [`CustomTool::accesses`](crate::CustomTool::accesses) says.
    ///
    /// # Errors
    ///
    /// Returns the message for the model if the arguments are not valid.
    fn accesses(&self, _context: &Context, _arguments: &Value) -> Result<Vec<Access>, ToolError> {
        Ok(Vec::new())
    }

    /// Runs the tool. `arguments` is an object within the size limit, with the types
    /// and bounds of the schema's `properties`.
    ///
    /// # Errors
    ///
    /// Returns the message for the model if the tool fails.
    async fn call(&self, context: &Context, arguments: Value) -> ToolResult;
}

/// A tool of this crate. The toolset parses its arguments and describes it.
#[async_trait]
pub(crate) trait Builtin: Send + Sync + 'static {
    /// The arguments. The model reads their documentation.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;
    /// The structured data of a success, or `()` if there is none.
    type Output: JsonSchema;
    /// Its identity in policies, which has the name by which a model calls it.
    const TOOL: Tool;
    /// Hints that a client may show to its user.
    const ANNOTATIONS: Annotations = Annotations::of(Self::TOOL.operations());

    /// Returns the schema of [`Reply::structured`](crate::Reply::structured).
    fn output_schema() -> Option<Value> {
        let schema = schema_of_data::<Self::Output>();
        let is_object = schema.get("type").and_then(Value::as_str) == Some("object");
        is_object.then_some(schema)
    }

    /// Whether only a call with an access that is not plainly allowed for the path as
    /// given is authorized up front. For others the guard asks at most once by itself,
    /// and links need not be resolved beforehand.
    const IN_DOUBT_ONLY: bool = false;

    /// Returns the accesses of a call that takes more than one backend operation. All
    /// of them are asked about in one question before [`run`](Self::run). Empty if a
    /// single operation suffices: the guard then asks by itself, and can show more.
    fn accesses(_context: &Context, _args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        Ok(Vec::new())
    }

    /// Describes the effect in one line for the approver. May be empty.
    fn call_description(_args: &Self::Args) -> String {
        String::new()
    }

    /// Builds the preview that the approver sees with [`accesses`](Self::accesses).
    /// `context` is not guarded: nothing read through it may reach the model, and
    /// nothing may be changed.
    async fn preview(_context: &Context, _args: &Self::Args) -> Preview {
        Preview::default()
    }

    /// Converts an error of the gate for the model.
    fn explain_refusal(_context: &Context, _args: &Self::Args, error: Error) -> ToolError {
        error.into()
    }

    async fn run(context: &Context, args: Self::Args) -> ToolResult;
}
