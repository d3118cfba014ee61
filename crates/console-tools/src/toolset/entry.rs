//! [`Entry`]: a tool of a toolset, of any kind.

use std::any::TypeId;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use backend_core::{Error, Quoted};
use permissions::tool::Tool;
use permissions::{Access, Op, OpClass, Question};
use serde_json::Value;

use super::door::Door;
use crate::spill::is_kept;
use crate::tool::{Builtin, unguarded};
use crate::{
    Context, CustomTool, Definition, ToolError, ToolHandler, ToolResult, arguments, custom,
    schema_for,
};

/// A tool of a toolset.
pub(crate) struct Entry {
    pub(crate) name: Arc<str>,
    /// Set for the tools of this crate.
    pub(crate) tool: Option<Tool>,
    pub(crate) operations: &'static [Op],
    pub(crate) definition: Definition,
    pub(crate) callable: Box<dyn Callable>,
}

impl std::fmt::Debug for Entry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The interface that all kinds of tools share.
#[async_trait]
pub(crate) trait Callable: Send + Sync {
    /// Parses the arguments, passes the gate, and runs the tool.
    async fn call(&self, door: &Door<'_>, arguments: Value) -> ToolResult;
}

impl Entry {
    /// Creates the entry of a tool of this crate. Its description is set later. Returns
    /// `None` if its name is not that of a known tool, which a test rules out.
    pub(crate) fn builtin<T: Builtin>() -> Option<Self> {
        let tool: Tool = T::NAME.parse().ok()?;
        let (input, output) = schemas_of::<T>();
        let definition = Definition::new(T::NAME, "", input, T::ANNOTATIONS).output_schema(output);
        Some(Self {
            name: T::NAME.into(),
            tool: Some(tool),
            operations: tool.operations(),
            definition,
            callable: Box::new(OfCrate::<T>(PhantomData)),
        })
    }

    pub(crate) fn custom<T: CustomTool>(tool: T) -> Self {
        let definition = Definition::new(
            T::NAME,
            T::DESCRIPTION,
            schema_for::<T::Args>(),
            T::ANNOTATIONS,
        );
        Self {
            name: T::NAME.into(),
            tool: None,
            operations: custom::operations::<T>(),
            definition: definition.output_schema(T::output_schema()),
            callable: Box::new(OfHost(tool)),
        }
    }

    pub(crate) fn handler(handler: Arc<dyn ToolHandler>) -> Self {
        let definition = handler.definition();
        Self {
            name: definition.name.as_str().into(),
            tool: None,
            operations: handler.operations(),
            definition,
            callable: Box::new(Dynamic(handler)),
        }
    }

    /// Returns the accesses by which a call that declares none is judged.
    fn all_operations(&self, context: &Context) -> Vec<Access> {
        let here = context.backend.working_dir();
        let access = |op: &Op| match op {
            Op::Execute => Access::command(&*self.name),
            op => Access::directory(*op, here.clone()),
        };
        self.operations.iter().map(access).collect()
    }

    /// Returns the accesses by which a call of a custom tool is judged.
    fn judged(&self, named: Vec<Access>, context: &Context) -> Result<Vec<Access>, ToolError> {
        if named.is_empty() {
            return Ok(self.all_operations(context));
        }
        let beyond = named
            .iter()
            .find(|access| !self.operations.contains(&access.op));
        match beyond {
            None => Ok(named),
            Some(access) => Err(ToolError::environment(format!(
                "{} is going to {} something, which it is not declared to do; \
                 use another tool and tell whoever runs this",
                self.name, access.op
            ))),
        }
    }
}

/// The schemas of the arguments and of the structured result.
type Schemas = (Value, Option<Value>);

/// Returns the schemas of a tool of this crate. They are cached, because generating
/// them takes most of the time of building a toolset.
fn schemas_of<T: Builtin>() -> Schemas {
    static MADE: Mutex<Option<HashMap<TypeId, Schemas>>> = Mutex::new(None);
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let made = made.get_or_insert_with(HashMap::new);
    let of_tool = made.entry(TypeId::of::<T>());
    of_tool
        .or_insert_with(|| (schema_for::<T::Args>(), T::output_schema()))
        .clone()
}

struct OfCrate<T>(PhantomData<fn() -> T>);

#[async_trait]
impl<T: Builtin> Callable for OfCrate<T> {
    async fn call(&self, door: &Door<'_>, arguments: Value) -> ToolResult {
        let schema = &door.entry.definition.input_schema;
        let args: T::Args = arguments::typed(T::NAME, &arguments, schema)?;
        let (words, arguments) = (T::words(&args), Arc::new(arguments));
        let mut context = door.context(&words, &arguments);
        let mut accesses = T::accesses(&context, &args)?;
        // Kept outputs belong to the conversation and need no permission.
        accesses.retain(|access| access.path().is_none_or(|path| !is_kept(path)));
        if accesses.is_empty() || (T::ONE_STEP && !door.is_in_doubt(&accesses)) {
            return T::run(&context, args).await;
        }
        // The preview must show the file as the earlier calls left it.
        let conversation = Arc::clone(&context.conversation);
        let changed = accesses
            .iter()
            .find(|access| access.op.class() == OpClass::Write);
        let held = changed.and_then(Access::path).cloned();
        let _turn = match &held {
            Some(path) => Some(conversation.tracker.lock(path).await),
            None => None,
        };
        let opened = open::<T>(door, &context, &args, accesses, (arguments, words)).await;
        let opened = opened.map_err(|error| T::refused(&context, &args, error))?;
        context = opened.unwrap_or(context);
        context.held = held;
        T::run(&context, args).await
    }
}

/// Judges all accesses of a call, and asks a single question if approval is needed.
/// Returns the context for the tool, or `None` if nothing was asked up front.
async fn open<T: Builtin>(
    door: &Door<'_>,
    context: &Context,
    args: &T::Args,
    accesses: Vec<Access>,
    (arguments, words): (Arc<Value>, String),
) -> Result<Option<Context>, Error> {
    let mut considered = door.consider(accesses).await?;
    if !considered.asks() {
        return Ok(None);
    }
    let bare = unguarded(context, door.unguarded());
    let preview = T::preview(&bare, args).await;
    if let Some(instead) = preview.instead {
        considered = door.consider(instead).await?;
        if !considered.asks() {
            return Ok(None);
        }
    }
    let words = |mut question: Question| {
        question = question.args(Value::clone(&arguments));
        question = question.effect(preview.effect);
        if let Some((path, hash)) = preview.holds {
            question = question.bind(path, hash);
        }
        described(question, words)
    };
    door.authorize(considered, words).await.map(Some)
}

struct OfHost<T>(T);

#[async_trait]
impl<T: CustomTool> Callable for OfHost<T> {
    async fn call(&self, door: &Door<'_>, arguments: Value) -> ToolResult {
        let schema = &door.entry.definition.input_schema;
        let args: T::Args = arguments::typed(T::NAME, &arguments, schema)?;
        let arguments = Arc::new(arguments);
        let context = door.context("", &arguments);
        let accesses = self.0.accesses(&context, &args)?;
        let accesses = door.entry.judged(accesses, &context)?;
        let considered = door.consider(accesses).await;
        let considered = considered.map_err(|error| door.failed(error))?;
        let words = |question: Question| {
            let description = self.0.description(&args);
            described(question.args(Value::clone(&arguments)), description)
        };
        let context = door.authorize(considered, words).await;
        let context = context.map_err(|error| door.failed(error))?;
        door.runs().await;
        self.0.run(&context, args).await
    }
}

struct Dynamic(Arc<dyn ToolHandler>);

#[async_trait]
impl Callable for Dynamic {
    async fn call(&self, door: &Door<'_>, arguments: Value) -> ToolResult {
        let schema = &door.entry.definition.input_schema;
        arguments::check(&door.entry.name, &arguments, schema)?;
        let shown = Arc::new(arguments.clone());
        let context = door.context("", &shown);
        let accesses = self.0.accesses(&context, &arguments)?;
        let accesses = door.entry.judged(accesses, &context)?;
        let considered = door.consider(accesses).await;
        let considered = considered.map_err(|error| door.failed(error))?;
        let words =
            |question: Question| described(question.args(Value::clone(&shown)), String::new());
        let context = door.authorize(considered, words).await;
        let context = context.map_err(|error| door.failed(error))?;
        door.runs().await;
        self.0.call(&context, arguments).await
    }
}

/// Sets the description of a question: the given words, else those of its effect, else
/// a list of what is asked.
fn described(question: Question, words: String) -> Question {
    let by_effect = question.effect.description();
    let words = match (words.is_empty(), by_effect.is_empty()) {
        (false, _) => words,
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
    question.description(words)
}
