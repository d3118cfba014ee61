//! Support for the tests of the file tools.

use std::sync::Arc;

use backend_core::{Backend, BackendExt as _};
use backend_state::StateBackend;
use serde_json::Value;

use crate::tool::Builtin;
use crate::{Class, Context, Conversation, EditFormat, Options, Reply};

/// A conversation over a backend in memory.
pub(crate) struct Bench {
    pub(crate) state: Arc<StateBackend>,
    pub(crate) context: Context,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self::with(Options::default())
    }

    pub(crate) fn hashline() -> Self {
        Self::with(Options {
            edit_format: EditFormat::Hashline,
            ..Options::default()
        })
    }

    pub(crate) fn with(options: Options) -> Self {
        let state = Arc::new(StateBackend::builder().build());
        let backend: Arc<dyn Backend> = Arc::clone(&state) as _;
        Self {
            state,
            context: context(backend, options),
        }
    }

    /// Writes a file without the conversation knowing.
    pub(crate) async fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        let content: Vec<u8> = content.into();
        self.state.write_file(path, content).await.unwrap();
    }

    pub(crate) async fn get(&self, path: &str) -> String {
        self.state.read_to_string(path).await.unwrap()
    }

    pub(crate) async fn call<T: Builtin>(&self, args: Value) -> Reply {
        call::<T>(&self.context, args).await
    }

    /// Calls a tool and returns the text of its success.
    pub(crate) async fn ok<T: Builtin>(&self, args: Value) -> String {
        let reply = self.call::<T>(args).await;
        assert!(reply.is_success(), "{}", reply.text);
        reply.text
    }

    /// Calls a tool and returns the text of its fixable failure.
    pub(crate) async fn fails<T: Builtin>(&self, args: Value) -> String {
        let reply = self.call::<T>(args).await;
        assert_eq!(reply.failure, Some(Class::Fixable), "{}", reply.text);
        let text = reply.text.strip_prefix("Error: ").unwrap();
        text.to_owned()
    }
}

pub(crate) fn context(backend: Arc<dyn Backend>, options: Options) -> Context {
    Context::new(backend, Arc::new(options), Arc::new(Conversation::new()))
}

/// Calls a tool as the toolset does, and checks its data against its schema: an object
/// with the required fields and no unknown ones.
pub(crate) async fn call<T: Builtin>(context: &Context, args: Value) -> Reply {
    let args = serde_json::from_value(args).unwrap();
    let reply = T::run(context, args).await.unwrap_or_else(Reply::from);
    assert!(reply.text.len() <= context.options.limits.reply_bytes);
    if reply.is_success() {
        let schema = T::output_schema().unwrap();
        let fields = reply.structured.as_ref().unwrap().as_object().unwrap();
        let known = schema["properties"].as_object().unwrap();
        assert!(fields.keys().all(|field| known.contains_key(field)));
        let required = schema["required"].as_array().unwrap();
        let has = |field: &Value| fields.contains_key(field.as_str().unwrap());
        assert!(required.iter().all(has), "{fields:?}");
    }
    reply
}
