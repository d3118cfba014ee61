//! [`RegisteredTool`]: a tool of a toolset, of any kind.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::sync::lock;
use backend_core::{Capabilities, Error, Quoted};
use permissions::tool::{Tool, Visibility, visible, visible_as};
use permissions::{Access, Op, OpClass, Policy, Question};
use serde_json::Value;

use super::gate::CallGate;
use crate::arguments;
use crate::context::Context;
use crate::custom::CustomTool;
use crate::kept_outputs::is_kept;
use crate::reply::{ToolError, ToolResult};
use crate::schema::schema_for;
use crate::tool::{Builtin, Definition, ToolHandler};

pub(crate) struct RegisteredTool {
    pub(crate) name: Arc<str>,
    /// Set for the tools of this crate.
    pub(crate) tool: Option<Tool>,
    pub(crate) operations: &'static [Op],
    pub(crate) definition: Definition,
    pub(crate) runner: Box<dyn ToolRunner>,
}

impl std::fmt::Debug for RegisteredTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RegisteredTool")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

#[async_trait]
pub(crate) trait ToolRunner: Send + Sync + 'static {
    /// Parses the arguments, passes the gate, and runs the tool, whose entry is `entry`.
    async fn call(&self, entry: &RegisteredTool, gate: &CallGate<'_>, raw: Value) -> ToolResult;
}

impl RegisteredTool {
    fn new(definition: Definition, operations: &'static [Op], runner: impl ToolRunner) -> Self {
        Self {
            name: definition.name.as_str().into(),
            tool: None,
            operations,
            definition,
            runner: Box::new(runner),
        }
    }

    /// Creates the entry of a tool of this crate. Its description is set later.
    pub(crate) fn builtin<T: Builtin>() -> Self {
        let schema = arguments_schema::<T>();
        let definition = Definition::new(T::TOOL.name(), "", schema, T::ANNOTATIONS);
        let definition = definition.generating(T::output_schema);
        let runner = BuiltinTool::<T>(PhantomData);
        Self {
            tool: Some(T::TOOL),
            ..Self::new(definition, T::TOOL.operations(), runner)
        }
    }

    pub(crate) fn custom<T: CustomTool>(tool: T) -> Self {
        const {
            assert!(
                !T::OPERATIONS.is_empty(),
                "a tool must have at least one operation"
            );
        };
        let schema = schema_for::<T::Args>();
        let definition = Definition::new(T::NAME, T::DESCRIPTION, schema, T::ANNOTATIONS);
        let definition = definition.generating(T::output_schema);
        Self::new(definition, T::OPERATIONS, TypedTool(tool))
    }

    pub(crate) fn handler(handler: Arc<dyn ToolHandler>) -> Self {
        let operations = handler.operations();
        Self::new(handler.definition(), operations, DynTool(handler))
    }

    /// Returns the accesses of a custom tool's call: the declared, or all its operations.
    fn judged(&self, named: Vec<Access>, context: &Context) -> Result<Vec<Access>, ToolError> {
        if named.is_empty() {
            let here = context.backend.working_dir();
            let access = |op: &Op| match op {
                Op::Execute | Op::Connect => Access::command(&*self.name),
                Op::Terminal => Access::terminal(&*self.name),
                op => Access::directory(*op, here.clone()),
            };
            return Ok(self.operations.iter().map(access).collect());
        }
        let is_beyond = |access: &&Access| !self.operations.contains(&access.op);
        match named.iter().find(is_beyond) {
            None => Ok(named),
            Some(access) => Err(ToolError::environment(format!(
                "{} would {} something, which it has not declared; \
                 use another tool and report it to the operator",
                self.name, access.op
            ))),
        }
    }
}

/// Decides which tools are offered under a policy.
pub(crate) fn offered(
    entries: &[RegisteredTool],
    policy: &Policy,
    capabilities: Capabilities,
) -> Vec<Visibility> {
    let each = |entry: &RegisteredTool| {
        let changes = |op: &Op| op.class() == OpClass::Write;
        if !capabilities.writable && entry.operations.iter().any(changes) {
            return Visibility::Hidden;
        }
        match entry.tool {
            Some(tool) => visible(tool, policy, capabilities.commands),
            None => visible_as(&entry.name, entry.operations, policy, capabilities.commands),
        }
    };
    entries.iter().map(each).collect()
}

/// Returns the schema of the arguments of a tool of this crate. It is cached, because
/// generating schemas takes most of the time of building a toolset.
fn arguments_schema<T: Builtin>() -> Arc<Value> {
    static MADE: Mutex<BTreeMap<TypeId, Arc<Value>>> = Mutex::new(BTreeMap::new());
    let mut made = lock(&MADE);
    let of_tool = made.entry(TypeId::of::<T>());
    Arc::clone(of_tool.or_insert_with(|| Arc::new(schema_for::<T::Args>())))
}

struct BuiltinTool<T>(PhantomData<fn() -> T>);

#[async_trait]
impl<T: Builtin> ToolRunner for BuiltinTool<T> {
    async fn call(&self, entry: &RegisteredTool, gate: &CallGate<'_>, raw: Value) -> ToolResult {
        let args: T::Args = arguments::typed(&entry.name, &raw, &entry.definition.input_schema)?;
        let (description, raw) = (T::call_description(&args), Arc::new(raw));
        let mut context = gate.context(&description, &raw);
        let mut accesses = T::accesses(&context, &args)?;
        // Kept outputs belong to the conversation and need no permission.
        accesses.retain(|access| access.path().is_none_or(|path| !is_kept(path)));
        if accesses.is_empty() || (T::IN_DOUBT_ONLY && !gate.is_in_doubt(&accesses)) {
            return T::run(&context, args).await;
        }
        // The preview must show the file as the earlier calls left it.
        let conversation = Arc::clone(&context.conversation);
        let changed = accesses
            .iter()
            .find(|access| access.op.class() == OpClass::Write);
        let locked_path = changed.and_then(Access::path).cloned();
        let _lock = match &locked_path {
            Some(path) => Some(conversation.tracker.lock(path).await),
            None => None,
        };
        let asked = (raw, description);
        let authorized = authorize::<T>(gate, &context, &args, accesses, asked).await;
        let authorized = authorized.map_err(|error| T::explain_refusal(&context, &args, error))?;
        context = authorized.unwrap_or(context);
        context.locked_path = locked_path;
        T::run(&context, args).await
    }
}

/// Judges all accesses of a call, and asks a single question if approval is needed.
/// Returns the context for the tool, or `None` if nothing was asked up front.
async fn authorize<T: Builtin>(
    gate: &CallGate<'_>,
    context: &Context,
    args: &T::Args,
    accesses: Vec<Access>,
    (raw, description): (Arc<Value>, String),
) -> Result<Option<Context>, Error> {
    let mut planned = gate.view.plan(accesses).await?;
    if !planned.asks() {
        return Ok(None);
    }
    let preview = T::preview(&gate.unguarded(context), args).await;
    if let Some(accesses) = preview.accesses {
        planned = gate.view.plan(accesses).await?;
        if !planned.asks() {
            return Ok(None);
        }
    }
    let describe = |mut question: Question| {
        question = question.args(Value::clone(&raw)).effect(preview.effect);
        if let Some((path, hash)) = preview.expected_content {
            question = question.bind(path, hash);
        }
        described(question, description)
    };
    gate.authorize(planned, Box::new(describe)).await.map(Some)
}

/// Passes the gate for a tool of the host, and returns the context to run it in.
async fn authorize_host_tool(
    entry: &RegisteredTool,
    gate: &CallGate<'_>,
    (context, accesses): (&Context, Vec<Access>),
    (raw, description): (Arc<Value>, impl FnOnce() -> String + Send),
) -> Result<Context, ToolError> {
    let accesses = entry.judged(accesses, context)?;
    let planned = gate.view.plan(accesses).await;
    let planned = planned.map_err(|error| gate.failed(error))?;
    let describe = |question: Question| described(question.args(Value::clone(&raw)), description());
    let context = gate.authorize(planned, Box::new(describe)).await;
    let context = context.map_err(|error| gate.failed(error))?;
    gate.before_host_code().await;
    Ok(context)
}

struct TypedTool<T>(T);

#[async_trait]
impl<T: CustomTool> ToolRunner for TypedTool<T> {
    async fn call(&self, entry: &RegisteredTool, gate: &CallGate<'_>, raw: Value) -> ToolResult {
        let args: T::Args = arguments::typed(&entry.name, &raw, &entry.definition.input_schema)?;
        let raw = Arc::new(raw);
        let context = gate.context("", &raw);
        let accesses = self.0.accesses(&context, &args)?;
        let asked = (raw, || self.0.description(&args));
        let context = authorize_host_tool(entry, gate, (&context, accesses), asked).await?;
        self.0.run(&context, args).await
    }
}

struct DynTool(Arc<dyn ToolHandler>);

#[async_trait]
impl ToolRunner for DynTool {
    async fn call(&self, entry: &RegisteredTool, gate: &CallGate<'_>, raw: Value) -> ToolResult {
        arguments::check(&entry.name, &raw, &entry.definition.input_schema)?;
        let shown = Arc::new(raw.clone());
        let context = gate.context("", &shown);
        let accesses = self.0.accesses(&context, &raw)?;
        let asked = (shown, String::new);
        let context = authorize_host_tool(entry, gate, (&context, accesses), asked).await?;
        self.0.call(&context, raw).await
    }
}

/// Describes a question: as given, else by its effect, else by what is asked.
fn described(question: Question, description: String) -> Question {
    let by_effect = question.effect.description();
    let description = match (description.is_empty(), by_effect.is_empty()) {
        (false, _) => description,
        (true, false) => by_effect,
        (true, true) => {
            let asked = question.asked.iter().take(3);
            let asked: Vec<String> = asked
                .map(|asked| format!("{} {}", asked.op, Quoted::new(&asked.target.to_string())))
                .collect();
            let tool = question.tool.as_deref().unwrap_or("call");
            format!("{tool}: {}", asked.join(", "))
        }
    };
    question.description(description)
}
