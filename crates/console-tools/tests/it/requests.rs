//! Tests of how often a tool asks the backend: in a container, each call of the backend is
//! a request to the agent and its answer.

use std::sync::Arc;

use backend_core::Operation;
use backend_local::LocalBackend;
use backend_testkit::fake::Intercepted;
use console_tools::{Options, Toolset};
use permissions::{Policy, Preset, Ruleset};
use serde_json::Value;

/// Calls a tool on a backend with links, as those in containers have, and returns what the
/// backend was asked.
async fn asked(ruleset: Option<&Ruleset>, calls: &[(&str, Value)]) -> Vec<Vec<Operation>> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a"), "one\ntwo\n").unwrap();
    let backend = LocalBackend::open(directory.path()).unwrap();
    let (backend, seen) = Intercepted::recording(backend);
    let tools = Toolset::builder(Arc::new(backend)).options(Options::default());
    let tools = match ruleset {
        Some(ruleset) => tools.ruleset(ruleset.clone()),
        None => tools.policy(Policy::allow_all()),
    };
    let chat = tools.build().unwrap().conversation("c");
    // What is looked up once for the whole conversation.
    chat.definitions().await.unwrap();
    seen.taken();
    let mut asked = Vec::new();
    for (tool, arguments) in calls {
        let reply = chat.call(tool, arguments.clone()).await;
        assert!(reply.is_success(), "{tool} {arguments}: {}", reply.text);
        asked.push(
            seen.taken()
                .into_iter()
                .map(|call| call.operation)
                .collect(),
        );
    }
    asked
}

#[tokio::test]
async fn reading_and_changing_a_file_is_one_request_each() {
    let calls = calls! {
        read_file {"path": "a"} => Operation::Read;
        edit_file {"path": "a", "old_string": "one", "new_string": "1"} => Operation::Edit;
        edit_file {"path": "a", "old_string": "1", "new_string": "one"} => Operation::Edit;
        write_file {"path": "a", "content": "x"} => Operation::Write;
        write_file {"path": "new", "content": "x"} => Operation::Write;
        write_file {"path": "new", "content": "y"} => Operation::Write;
        read_file {"path": "new", "limit": 1} => Operation::Read;
    };
    let expected = calls.clone().map(|(.., operation)| vec![operation]);
    let calls = calls.map(|(tool, arguments, _)| (tool, arguments));
    let permissive = Preset::Permissive.ruleset();
    for ruleset in [None, Some(&permissive)] {
        assert_eq!(asked(ruleset, &calls).await, expected);
    }
}
