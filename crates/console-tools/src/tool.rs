//! [`ToolHandler`] and [`Definition`]: what a tool is.

mod preview;

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, Error};
use permissions::{Access, Op, OpClass};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

pub(crate) use preview::Preview;

use crate::{Context, ToolError, ToolResult};

/// What a client may tell its user about a tool, as in MCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Annotations {
    /// It changes nothing.
    pub read_only: bool,
    /// It may destroy something.
    pub destructive: bool,
    /// Calling it twice does what calling it once does.
    pub idempotent: bool,
    /// It may reach beyond the backend.
    pub open_world: bool,
}

impl Annotations {
    /// What can be said about a tool of which only the operations are known:
    /// one that looks changes nothing, any other may destroy something, and one
    /// that runs commands may reach anywhere.
    pub const fn of(operations: &[Op]) -> Self {
        let mut read_only = true;
        let mut open_world = false;
        let mut index = 0;
        while index < operations.len() {
            match operations[index].class() {
                OpClass::Read => {}
                OpClass::Write => read_only = false,
                OpClass::Execute => {
                    read_only = false;
                    open_world = true;
                }
            }
            index += 1;
        }
        Self {
            read_only,
            destructive: !read_only,
            idempotent: read_only,
            open_world,
        }
    }

    /// The same for a tool that adds and never destroys.
    #[must_use]
    pub const fn harmless(mut self) -> Self {
        self.destructive = false;
        self
    }

    /// The same for a tool of which a second call changes nothing more.
    #[must_use]
    pub const fn idempotent(mut self) -> Self {
        self.idempotent = true;
        self
    }

    /// The same for a tool that reaches beyond the backend.
    #[must_use]
    pub const fn open_world(mut self) -> Self {
        self.open_world = true;
        self
    }
}

/// What a model is told about a tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Definition {
    /// Its name.
    pub name: String,
    /// What it is for and how it is used.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of [`Reply::structured`](crate::Reply::structured).
    pub output_schema: Option<Value>,
    /// What a client may tell its user.
    pub annotations: Annotations,
    /// Whether a call may have to wait for somebody's yes.
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

    /// The same with the schema of what programs get.
    #[must_use]
    pub fn output_schema(mut self, schema: impl Into<Option<Value>>) -> Self {
        self.output_schema = schema.into();
        self
    }

    /// The same for a tool that shows pictures or documents.
    #[must_use]
    pub fn shows_blocks(mut self) -> Self {
        self.blocks = true;
        self
    }
}

/// Something a model can call, known only when the program runs. A tool that is
/// known when it is compiled is better a [`CustomTool`](crate::CustomTool).
///
/// It stands behind the same gate as every other tool: what
/// [`accesses`](Self::accesses) names is judged, and asked about in one question,
/// before it runs, and the backend of its context is guarded.
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
    /// What the model is told. Asked once, when the toolset is built.
    fn definition(&self) -> Definition;

    /// What it does; never empty. A tool that a policy denies is not offered.
    fn operations(&self) -> &'static [Op];

    /// What this call is going to do, in terms of [`operations`](Self::operations).
    /// A call that names nothing is judged as if it did all of them to the working
    /// directory, and ran a command of the tool's name if it runs any.
    ///
    /// # Errors
    ///
    /// What the model is told if the arguments mean nothing.
    fn accesses(&self, _context: &Context, _arguments: &Value) -> Result<Vec<Access>, ToolError> {
        Ok(Vec::new())
    }

    /// Does it. `arguments` is an object within the limit on its size, and has
    /// the types and bounds of the schema's `properties`.
    ///
    /// # Errors
    ///
    /// What the model is told instead.
    async fn call(&self, context: &Context, arguments: Value) -> ToolResult;
}

/// A tool of this crate. The toolset makes a [`ToolHandler`] of it: it reads the
/// arguments, says precisely what is wrong with them, and takes the description
/// from the profile in use.
#[async_trait]
pub(crate) trait Builtin: Send + Sync + 'static {
    /// Its arguments. Their documentation is what the model reads.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;
    /// The name by which a model calls it; that of a
    /// [`Tool`](permissions::tool::Tool).
    const NAME: &'static str;
    /// What a client may tell its user.
    const ANNOTATIONS: Annotations;

    /// The schema of what [`Reply::structured`](crate::Reply::structured) holds.
    fn output_schema() -> Option<Value>;

    /// Whether the guard alone asks once, unless what [`accesses`](Self::accesses)
    /// names has to be asked about: then links need not be followed beforehand.
    const ONE_STEP: bool = false;

    /// What the call is going to do, if that takes more than one operation of the
    /// backend: all of it is asked about in one question before
    /// [`run`](Self::run). Empty if one operation does it all: the guard then asks
    /// by itself, and can show more.
    fn accesses(_context: &Context, _args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        Ok(Vec::new())
    }

    /// In one line, what would happen, for the one who is asked. If empty, the
    /// question says what it finds out.
    fn words(_args: &Self::Args) -> String {
        String::new()
    }

    /// What is shown to the one who is asked about
    /// [`accesses`](Self::accesses). `context` is not guarded: nothing it says may
    /// reach the model, and nothing may be changed.
    async fn preview(_context: &Context, _args: &Self::Args) -> Preview {
        Preview::default()
    }

    /// What the model is told if the gate does not open.
    fn refused(_context: &Context, _args: &Self::Args, error: Error) -> ToolError {
        error.into()
    }

    /// Does it.
    async fn run(context: &Context, args: Self::Args) -> ToolResult;
}

/// The backend of a context that nobody guards, for a [`Builtin::preview`].
pub(crate) fn unguarded(context: &Context, backend: Arc<dyn Backend>) -> Context {
    let mut bare = context.clone();
    bare.quiet = Arc::clone(&backend);
    bare.backend = backend;
    bare
}
