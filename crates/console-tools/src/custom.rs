//! [`CustomTool`]: a host's own tool, behind the same gate.

use std::future::Future;
use std::marker::PhantomData;

use permissions::tool::operations_of;
use permissions::{Access, Op};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{Annotations, Context, ToolError, ToolResult};

/// A host's own tool.
///
/// It stands behind the same gate as the others. What
/// [`accesses`](Self::accesses) names is judged, and asked about in one question,
/// before it runs; the backend in its context is guarded, so that what it did not
/// name is judged when it happens. A tool whose operations a policy can only deny
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
/// A tool that stands for no operation would be judged by nobody. It does not
/// compile:
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
    /// Its arguments. Their documentation is what the model reads.
    type Args: DeserializeOwned + JsonSchema + Send + Sync;
    /// The name by which a model calls it: letters, digits, `_` and `-`, at most
    /// 64 of them.
    const NAME: &'static str;
    /// What the model is told, unless the options tell it something else.
    const DESCRIPTION: &'static str;
    /// What it does. Must not be empty.
    const OPERATIONS: &'static [Op];
    /// What a client may tell its user.
    const ANNOTATIONS: Annotations = Annotations::of(Self::OPERATIONS);

    /// The schema of what [`Reply::structured`](crate::Reply::structured) holds.
    fn output_schema() -> Option<Value> {
        None
    }

    /// What this call is going to do, in terms of [`OPERATIONS`](Self::OPERATIONS).
    /// A call that names nothing is judged as if it did all of them to the working
    /// directory, and ran a command of the tool's name if it runs any.
    ///
    /// # Errors
    ///
    /// What the model is told if the arguments mean nothing.
    fn accesses(&self, _context: &Context, _args: &Self::Args) -> Result<Vec<Access>, ToolError> {
        Ok(Vec::new())
    }

    /// In one line, what would happen, for the one who is asked. If empty, the
    /// question lists what is asked.
    fn description(&self, _args: &Self::Args) -> String {
        String::new()
    }

    /// Does it.
    ///
    /// # Errors
    ///
    /// What the model is told instead.
    fn run(&self, context: &Context, args: Self::Args) -> impl Future<Output = ToolResult> + Send;
}

/// A custom tool in the eyes of the rules.
struct Judged<T>(PhantomData<T>);

impl<T: CustomTool> permissions::tool::CustomTool for Judged<T> {
    const NAME: &'static str = T::NAME;
    const OPERATIONS: &'static [Op] = T::OPERATIONS;
}

/// What a custom tool does; one that does nothing does not compile.
pub(crate) fn operations<T: CustomTool>() -> &'static [Op] {
    operations_of::<Judged<T>>()
}
