//! Tests of the `filesystem` profile, and files in memory to run them on.

mod delete_move_copy;
mod edit_file;
mod list_files;
mod read_file;

use std::sync::Arc;

use backend_core::{Backend, BackendExt as _};
use backend_state::StateBackend;
use futures::executor::block_on;
use serde_json::Value;

use crate::context::Context;
use crate::conversation::Conversation;
use crate::files::copy_file::Filesystem as CopyFileTool;
use crate::files::delete_file::Filesystem as DeleteFileTool;
use crate::files::edit_file::Filesystem as EditFileTool;
use crate::files::list_files::ListFilesTool;
use crate::files::move_file::Filesystem as MoveFileTool;
use crate::files::read_file::Filesystem as ReadFileTool;
use crate::files::write_file::Filesystem as WriteFileTool;
use crate::options::{Options, Profile};
use crate::reply::{FailureClass, Reply};
use crate::tool::Builtin;

/// Creates a context over `backend` with the default options.
fn context(backend: impl Backend) -> Context {
    let options = Arc::new(Options::default());
    Context::new(
        Arc::new(backend),
        options,
        Arc::new(Conversation::default()),
    )
}

/// Creates a context over files in memory.
fn files(files: &[(&str, &[u8])]) -> Context {
    let state = StateBackend::new();
    for (path, content) in files {
        block_on(state.write_file(path, *content)).unwrap();
    }
    context(state)
}

/// Calls a tool with JSON, as a model does.
fn call<T: Builtin>(context: &Context, arguments: Value) -> Reply {
    let arguments = serde_json::from_value(arguments).expect("arguments of the right shape");
    Reply::for_profile(Profile::Filesystem, block_on(T::run(context, arguments)))
}

/// Calls a tool and returns the text of its success.
fn ok<T: Builtin>(context: &Context, arguments: Value) -> String {
    let reply = call::<T>(context, arguments);
    assert_eq!(reply.failure, None, "{}", reply.text);
    reply.text
}

/// Calls a tool and returns the text of its fixable failure.
fn fixable<T: Builtin>(context: &Context, arguments: Value) -> String {
    let reply = call::<T>(context, arguments);
    assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
    reply.text
}

/// Returns the content of a file.
fn content(context: &Context, path: &str) -> String {
    block_on(context.backend.read_to_string(path)).unwrap()
}
