//! [`CustomTool`]: a host's own tool, behind the same gate.

use std::future::Future;

use permissions::{Access, Op};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;
use crate::reply::{ToolError, ToolResult};
use crate::tool::Annotations;

/// A tool of the host.
///
/// It is behind the same gate as the builtin tools. The accesses that
/// [`accesses`](Self::accesses) declares are judged, and asked about in one question,
/// before it runs. The backend in its context is guarded, so an access that was not
/// declared is judged when it happens. A tool whose operations a policy always denies
/// is not offered.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use backend_core::BackendExt as _;
/// use backend_state::StateBackend;
/// use console_tools::{Context, CustomTool, Reply, ToolError, ToolResult, Toolset};
/// use permissions::{Access, Op};
/// use schemars::JsonSchema;
/// use serde::Deserialize;
///
/// #[derive(Deserialize, JsonSchema)]
/// #[serde(deny_unknown_fields)]
/// struct Args {
///     /// The file whose lines are counted.
///     path: String,
/// }
///
/// struct CountLines;
///
/// impl CustomTool for CountLines {
///     type Args = Args;
///     const NAME: &'static str = "count_lines";
///     const DESCRIPTION: &'static str = "Counts the lines of a file.";
///     const OPERATIONS: &'static [Op] = &[Op::Read];
///
///     fn accesses(&self, context: &Context, args: &Args) -> Result<Vec<Access>, ToolError> {
///         Ok(vec![Access::file(Op::Read, context.path(&args.path)?)])
///     }
///
///     async fn run(&self, context: &Context, args: Args) -> ToolResult {
///         let text = context.backend.read_bytes(&args.path).await?;
///         let lines = text.iter().filter(|byte| **byte == b'\n').count();
///         Ok(Reply::text(format!("{lines} lines")))
///     }
/// }
///
/// let backend = StateBackend::new();
/// backend.write_file("/a", "1\n2\n").await?;
/// let toolset = Toolset::builder(Arc::new(backend)).tool(CountLines).build()?;
/// let reply = toolset.conversation("c1").call("count_lines", r#"{"path": "a"}"#).await;
/// assert_eq!(reply.text, "2 lines");
/// # Ok(()) }
/// ```
///
/// A tool without operations could not be judged by any rule. It does not compile:
///
/// ```compile_fail,E0080
/// # use std::sync::Arc;
/// # use backend_state::StateBackend;
/// # use console_tools::{Context, CustomTool, Reply, ToolResult, Toolset};
/// # use permissions::Op;
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Args {}
/// struct Nothing;
/// impl CustomTool for Nothing {
///     type Args = Args;
///     const NAME: &'static str = "nothing";
///     const DESCRIPTION: &'static str = "";
///     const OPERATIONS: &'static [Op] = &[];
///     async fn run(&self, _: &Context, _: Args) -> ToolResult {
///         Ok(Reply::text(""))
///     }
/// }
/// Toolset::builder(Arc::new(StateBackend::new())).tool(Nothing);
/// ```
pub trait CustomTool: Send + Sync + 'static {
    /// The arguments. The model reads their documentation.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;
    /// The name by which a model calls it: 1 to 64 letters, digits, `_` and `-`.
    const NAME: &'static str;
    /// The description for the model, unless the options replace it.
    const DESCRIPTION: &'static str;
    /// The operations of the tool. Must not be empty.
    const OPERATIONS: &'static [Op];
    /// Hints that a client may show to its user.
    const ANNOTATIONS: Annotations = Annotations::of(Self::OPERATIONS);

    /// Returns the schema of [`Reply::structured`](crate::Reply::structured).
    fn output_schema() -> Option<Value> {
        None
    }

    /// Returns the accesses of this call, in terms of [`OPERATIONS`](Self::OPERATIONS).
    /// A call that declares none is judged as if it applied all operations to the
    /// working directory, and ran a command with the tool's name if it runs any.
    ///
    /// # Errors
    ///
    /// Returns the message for the model if the arguments are not valid.
    fn accesses(&self, _context: &Context, _args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        Ok(Vec::new())
    }

    /// Describes the effect in one line. If empty, the question lists the accesses.
    fn description(&self, _args: &Self::Args) -> String {
        String::new()
    }

    /// Runs the tool.
    ///
    /// # Errors
    ///
    /// Returns the message for the model if the tool fails.
    fn run(&self, context: &Context, args: Self::Args) -> impl Future<Output = ToolResult> + Send;
}
