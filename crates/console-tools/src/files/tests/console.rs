//! Tests of the console tools, and a conversation to run them in.

mod delete_move_copy;
mod edit_file;
mod hashline_edit;
mod read_before_edit;
mod read_file;

use std::sync::Arc;

use backend_core::{Backend, BackendExt as _};
use backend_state::StateBackend;
use serde_json::Value;

use crate::context::Context;
use crate::conversation::Conversation;
use crate::files::copy_file::Console as CopyFileTool;
use crate::files::delete_file::Console as DeleteFileTool;
use crate::files::edit_file::Console as EditFileTool;
use crate::files::hashline_edit::HashlineEditTool;
use crate::files::move_file::Console as MoveFileTool;
use crate::files::read_file::Console as ReadFileTool;
use crate::files::write_file::Console as WriteFileTool;
use crate::options::{EditFormat, Options};
use crate::reply::{FailureClass, Reply};
use crate::tool::Builtin;

/// A conversation over a backend in memory.
struct Bench {
    state: Arc<StateBackend>,
    context: Context,
}

impl Bench {
    fn new() -> Self {
        Self::with(|_| ())
    }

    fn hashline() -> Self {
        Self::with(|options| options.edit_format = EditFormat::Hashline)
    }

    /// Creates one whose options `change` has changed.
    fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut options = Options::default();
        change(&mut options);
        let state = Arc::new(StateBackend::builder().build());
        let backend: Arc<dyn Backend> = Arc::clone(&state) as _;
        Self {
            state,
            context: context(backend, options),
        }
    }

    /// Writes a file without the conversation knowing.
    async fn put(&self, path: &str, content: impl Into<Vec<u8>>) {
        let content: Vec<u8> = content.into();
        self.state.write_file(path, content).await.unwrap();
    }

    async fn get(&self, path: &str) -> String {
        self.state.read_to_string(path).await.unwrap()
    }

    async fn call<T: Builtin>(&self, args: Value) -> Reply {
        call::<T>(&self.context, args).await
    }

    /// Calls a tool and returns the text of its success.
    async fn ok<T: Builtin>(&self, args: Value) -> String {
        let reply = self.call::<T>(args).await;
        assert!(reply.is_success(), "{}", reply.text);
        reply.text
    }

    /// Calls a tool and returns the text of its fixable failure.
    async fn fails<T: Builtin>(&self, args: Value) -> String {
        let reply = self.call::<T>(args).await;
        assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
        let text = reply.text.strip_prefix("Error: ").unwrap();
        text.to_owned()
    }
}

fn context(backend: Arc<dyn Backend>, options: Options) -> Context {
    Context::new(
        backend,
        Arc::new(options),
        Arc::new(Conversation::default()),
    )
}

/// Calls a tool as the toolset does, and checks its data against its schema: an object
/// with the required fields and no unknown ones.
async fn call<T: Builtin>(context: &Context, args: Value) -> Reply {
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
