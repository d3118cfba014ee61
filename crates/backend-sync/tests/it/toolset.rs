//! The tools through blocking calls.
use std::sync::Arc;

use backend_core::{BackendExt as _, ErrorKind};
use backend_state::StateBackend;
use backend_sync::{Cancel, Engine, SyncChat, SyncToolset};
use backend_testkit::fails;
use console_tools::{Caller, FailureClass, Options, Toolset};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};

fn toolset(backend: &StateBackend) -> SyncToolset {
    let toolset = Toolset::builder(Arc::new(backend.clone())).build().unwrap();
    SyncToolset::new(toolset)
}

fn works(chat: &SyncChat) {
    let arguments = json!({"path": "a.md", "content": "hello\n"});
    let reply = chat.call("write_file", arguments).unwrap();
    assert!(reply.is_success(), "{}", reply.text);
    let reply = chat.call("read_file", r#"{"path": "a.md"}"#).unwrap();
    assert!(reply.text.contains("hello"), "{}", reply.text);
    // A mistake of the model is a reply, not an error.
    let reply = chat.call("reed_file", "{").unwrap();
    assert_eq!(reply.failure, Some(FailureClass::Fixable));
}

#[test]
fn tools_are_called_from_threads_and_runtimes() {
    let backend = StateBackend::new();
    let toolset = toolset(&backend);
    works(&toolset.conversation("one"));
    let chat = toolset.conversation_of(Caller::new("two").user("alice"));
    let runtime = Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { works(&chat) });
    let kept = futures::executor::block_on(backend.read_to_string("a.md"));
    assert_eq!(kept.unwrap(), "hello\n");
    assert_eq!(chat.caller().user.as_deref(), Some("alice"));
    assert_eq!(chat.close().unwrap(), 0);
}

#[test]
fn what_is_offered_is_known() {
    let toolset = toolset(&StateBackend::new());
    let chat = toolset.conversation("one");
    let names = |definitions: console_tools::Definitions| {
        let names = definitions.iter().map(|tool| tool.name.to_string());
        names.collect::<Vec<_>>()
    };
    assert_eq!(
        names(toolset.definitions()),
        names(chat.definitions().unwrap())
    );
    assert_eq!(toolset.prompt(), chat.prompt().unwrap());
    assert!(std::ptr::eq(toolset.options(), chat.options()));
    assert!(std::ptr::eq(toolset.options(), toolset.inner().options()));
}

#[test]
fn a_preview_says_what_would_be_asked() {
    let backend = StateBackend::new();
    let mut options = Options::default();
    options.require_write_approval = true;
    let toolset = Toolset::builder(Arc::new(backend.clone())).options(options);
    let chat = SyncToolset::new(toolset.build().unwrap()).conversation("one");
    for preview in [
        chat.preview("write_file", r#"{"path": "a", "content": "b"}"#),
        chat.preview("write_file", json!({"path": "a", "content": "b"})),
    ] {
        let preview = preview.unwrap();
        assert_eq!(preview.questions().len(), 1, "{preview:?}");
    }
    assert!(chat.preview("ls", "{}").unwrap().is_allowed());
    let read = futures::executor::block_on(backend.read_to_string("a"));
    fails(ErrorKind::NotFound, read);
}

#[test]
fn only_what_could_not_be_called_is_an_error() {
    let runtime = Runtime::new().unwrap();
    let engine = Engine::borrowed(runtime.handle()).unwrap();
    let chat = toolset(&StateBackend::new())
        .on(&engine)
        .conversation("one");
    works(&chat);
    let inside = chat.clone();
    let error = runtime.block_on(async move { inside.call("ls", "{}").unwrap_err() });
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let cancel = Cancel::new();
    cancel.cancel();
    let error = chat.cancelled_by(&cancel).call("ls", "{}").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Cancelled);
}
