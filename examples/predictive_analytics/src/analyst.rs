//! [`Analyst`]: the agent that computes. It owns a sandbox with Python, and its only way out
//! is a result that was checked.

use std::sync::Arc;

use backend_core::ops::ReadOptions;
use backend_core::{Backend as _, BackendExt as _, ErrorKind, Sandbox as _};
use console_tools::{Context, CustomTool, Observer, Reply, ToolError, ToolResult, Toolset};
use examples::chat::{Event, Model, brief};
use examples::web::{Error, Sandboxes};
use permissions::{Access, Op, Preset};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sessions::{SessionManager, SessionResolver};

use crate::finding::{Finding, Kind, RESULT_BYTES};

const INSTRUCTIONS: &str = "You are a data analyst with a sandbox. \
sales.csv has the data: month (2024-11), shop, revenue. \
analysis.py computes tables, predictions and charts from it; its beginning says how it is asked, \
and its functions show the results that are accepted. \
Write other programs if it does not do what you need. Do not install packages: there is no network. \
Write the result as a JSON file and return it with return_result. If it is refused, correct it. \
End with one sentence.\n\n";

const ANALYSIS: &str = include_str!("../analysis/analysis.py");

/// Lines that are shown of what the analyst writes and reads.
const SHOWN_LINES: usize = 12;

/// The analyst. Clones are the same one.
#[derive(Debug, Clone)]
pub(crate) struct Analyst(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    model: Model,
    toolset: Toolset,
    manager: SessionManager,
    data: String,
}

impl Analyst {
    pub(crate) fn new(model: Model, sandboxes: &Sandboxes, data: String) -> Result<Self, Error> {
        let manager = sandboxes.manager.clone();
        let resolver = SessionResolver::new(manager.clone());
        // The sandbox is its own: nothing in it needs approval, and nothing leads out.
        let toolset = Toolset::resolving(Arc::new(resolver))
            .ruleset(Preset::Permissive.ruleset())
            .tool(ReturnResult)
            .build()?;
        Ok(Self(Arc::new(Inner {
            model,
            toolset,
            manager,
            data,
        })))
    }

    /// Has a task done in the sandbox of a session. What happens is shown to the observer.
    pub(crate) async fn ask(
        &self,
        session: &str,
        kind: Kind,
        task: &str,
        observer: Option<&Arc<dyn Observer>>,
    ) -> Result<Finding, ToolError> {
        self.prepare(session).await?;
        // Each task is a conversation of its own, in the same sandbox.
        let chat = self.0.toolset.conversation(session);
        let prompt = format!("{INSTRUCTIONS}{}", chat.prompt().await?);
        let mut messages = vec![
            json!({"role": "system", "content": prompt}),
            json!({"role": "user", "content": task}),
        ];
        let mut work = Work::new(observer);
        let mut show = |event: Event<'_>| work.event(event);
        let talk = self.0.model.converse(&chat, &mut messages, &mut show);
        talk.await.map_err(|error| {
            ToolError::environment(format!("the analyst cannot be asked: {error}"))
        })?;
        let found = work
            .found
            .and_then(|found| serde_json::from_value(found).ok());
        match found {
            Some(found) if Finding::kind(&found) == kind => Ok(found),
            _ => {
                let said = brief(&work.said, SHOWN_LINES);
                Err(ToolError::environment(format!(
                    "the analyst returned no such result. It says: {said}"
                )))
            }
        }
    }

    /// Puts the data and the program into a sandbox, which may have lost or changed them.
    async fn prepare(&self, session: &str) -> backend_core::Result<()> {
        let sandbox = self.0.manager.get_or_create(session).await?;
        sandbox.start().await?;
        sandbox.write_file("sales.csv", self.0.data.clone()).await?;
        sandbox.write_file("analysis.py", ANALYSIS).await?;
        Ok(())
    }
}

/// A task, as it is followed.
struct Work<'o> {
    observer: Option<&'o Arc<dyn Observer>>,
    /// The last result that was accepted.
    found: Option<Value>,
    /// The text since the last call.
    said: String,
    /// Whether the output of the last call was shown.
    has_output: bool,
}

impl<'o> Work<'o> {
    fn new(observer: Option<&'o Arc<dyn Observer>>) -> Self {
        Self {
            observer,
            found: None,
            said: String::new(),
            has_output: false,
        }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Text(text) => {
                self.said.push_str(text);
                self.tell(text);
            }
            Event::Call(call) => {
                self.said.clear();
                self.has_output = false;
                self.tell(&format!(
                    "\n> {} {}\n",
                    call.name,
                    brief(&call.arguments, 1)
                ));
            }
            Event::Output(_, text) => {
                self.has_output = true;
                self.tell(text);
            }
            Event::Reply(call, reply) => {
                if call.name == ReturnResult::NAME && reply.is_success() {
                    self.found.clone_from(&reply.structured);
                }
                if !self.has_output || !reply.is_success() {
                    self.tell(&format!("{}\n", brief(&reply.text, SHOWN_LINES)));
                }
            }
        }
    }

    fn tell(&self, text: &str) {
        if let Some(observer) = self.observer {
            observer.output(text.as_bytes());
        }
    }
}

/// Returns a result to the agent that gave the task.
struct ReturnResult;

/// The arguments of `return_result`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ReturnArgs {
    /// The kind of result that the task asks for.
    kind: Kind,
    /// The JSON file with the result.
    path: String,
}

impl CustomTool for ReturnResult {
    type Args = ReturnArgs;
    const NAME: &'static str = "return_result";
    const DESCRIPTION: &'static str = "Returns the result of the task from a JSON file. \
        It is checked first: correct what is refused, and return it again.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    fn accesses(&self, context: &Context, args: &ReturnArgs) -> Result<Vec<Access>, ToolError> {
        Ok(vec![Access::file(Op::Read, context.path(&args.path)?)])
    }

    async fn run(&self, context: &Context, args: ReturnArgs) -> ToolResult {
        let path = context.path(&args.path)?;
        // One byte more shows that there is more.
        let options = ReadOptions::default().range(0..RESULT_BYTES + 1);
        let json = match context.backend.read(&path, options).await {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let why = format!("there is no {}; write the result first", args.path);
                return Err(ToolError::fixable(why));
            }
            read => read?.data,
        };
        if json.len() as u64 > RESULT_BYTES {
            let why = format!("the result has more than {RESULT_BYTES} bytes; sum it up");
            return Err(ToolError::fixable(why));
        }
        let found = Finding::read(args.kind, &json);
        let found = found.map_err(|refusal| ToolError::fixable(refusal.to_string()))?;
        let structured = serde_json::to_value(&found).unwrap_or_default();
        Ok(Reply::text("The result is accepted.").structured(structured))
    }
}
