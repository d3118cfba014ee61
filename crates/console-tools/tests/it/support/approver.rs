//! A scripted approver, and custom tools.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::ops::GlobQuery;
use backend_core::{Backend as _, BackendExt as _, VPath};
use backend_state::StateBackend;
use console_tools::{Context, CustomTool, Reply, ToolError, ToolResult};
use permissions::approval::{Approver, ApproverError};
use permissions::{Access, Answer, Op, Question};
use schemars::JsonSchema;
use serde::Deserialize;

/// Gives every question the same answer and records it. Clones share their state.
#[derive(Debug, Clone)]
pub(crate) struct RecordingApprover {
    yes: Arc<AtomicBool>,
    asked: Arc<Mutex<Vec<Question>>>,
}

impl RecordingApprover {
    pub(crate) fn new(yes: bool) -> Self {
        Self {
            yes: Arc::new(AtomicBool::new(yes)),
            asked: Arc::default(),
        }
    }

    /// Changes the answer.
    pub(crate) fn say(&self, yes: bool) {
        self.yes.store(yes, Ordering::SeqCst);
    }

    pub(crate) fn taken(&self) -> Vec<Question> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

#[async_trait]
impl Approver for RecordingApprover {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.asked.lock().unwrap().push(question.clone());
        Ok(if self.yes.load(Ordering::SeqCst) {
            Answer::yes()
        } else {
            Answer::no().note("not today")
        })
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwapArgs {
    /// One file.
    pub(crate) one: String,
    /// The other.
    pub(crate) two: String,
    /// How often.
    #[serde(default)]
    #[schemars(range(min = 1, max = 9))]
    #[expect(dead_code, reason = "only its schema is looked at")]
    pub(crate) times: Option<u32>,
}

/// Swaps two files: four operations, one action.
pub(crate) struct Swap;

impl CustomTool for Swap {
    type Args = SwapArgs;
    const NAME: &'static str = "swap";
    const DESCRIPTION: &'static str = "Swaps the contents of two files.";
    const OPERATIONS: &'static [Op] = &[Op::Read, Op::Write];

    fn accesses(&self, context: &Context, args: &SwapArgs) -> Result<Vec<Access>, ToolError> {
        let mut all = Vec::new();
        for path in [&args.one, &args.two] {
            let path = context.path(path)?;
            all.extend(
                Self::OPERATIONS
                    .iter()
                    .map(|op| Access::file(*op, path.clone())),
            );
        }
        Ok(all)
    }

    fn description(&self, args: &SwapArgs) -> String {
        format!("swap {} and {}", args.one, args.two)
    }

    async fn run(&self, context: &Context, args: SwapArgs) -> ToolResult {
        let one = context.backend.read_bytes(&args.one).await?;
        let two = context.backend.read_bytes(&args.two).await?;
        context.backend.write_file(&args.one, two).await?;
        context.backend.write_file(&args.two, one).await?;
        Ok(Reply::text("swapped"))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArgs {}

/// Creates a backend with two files.
pub(crate) async fn store() -> StateBackend {
    let backend = StateBackend::new();
    backend.write_file("/a", "1").await.unwrap();
    backend.write_file("/b", "2").await.unwrap();
    backend
}

/// Returns all files and their contents.
pub(crate) async fn snapshot(backend: &StateBackend) -> Vec<(String, Vec<u8>)> {
    let query = GlobQuery::new("**/*", VPath::root())
        .hidden(true)
        .ignored(true);
    let found = backend.glob(query).await.unwrap();
    let mut all = Vec::new();
    for entry in found.files {
        let path = entry.path.to_string();
        let bytes = backend.read_bytes(&path).await.unwrap();
        all.push((path, bytes.to_vec()));
    }
    all
}
