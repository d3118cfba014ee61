//! Pins the replies of each command tool: the text of successes and of every failure
//! that a model can cause.
//!
//! Also checks the structured data against the tool's own schema. A missing or
//! differing snapshot fails. `INSTA_UPDATE=always` writes it.

use std::sync::Arc;

use backend_local::LocalBackend;
use serde_json::{Value, json};

use crate::support::script::Script;

/// Creates a directory in which commands run.
fn local(options: Value, tool: &'static str) -> (tempfile::TempDir, Script) {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path()).enable_execute(true);
    let script = Script::on(Arc::new(backend.open().unwrap()), options).of(tool);
    (directory, script)
}

#[tokio::test]
async fn execute() {
    let (_directory, mut script) = local(json!({"limits": {"output_bytes": 40}}), "execute");
    script
        .call(json!({"command": "echo out; echo err >&2"}))
        .await;
    script.call(json!({"command": "true"})).await;
    script.call(json!({"command": "echo why; exit 3"})).await;
    script
        .call(json!({"command": "printf 'half\\rdone\\n\\033[31mred\\033[0m\\n'"}))
        .await;
    script.call(json!({"command": "seq 1 50"})).await;
    script.call(json!({"command": "kill -KILL $$"})).await;
    script
        .call(json!({"command": "echo first; tail -f /dev/null", "timeout": 1}))
        .await;
    script
        .call(json!({"command": "tail -f /dev/null & echo started"}))
        .await;
    script
        .call(json!({"command": "mkdir d; echo in", "timeout": null}))
        .await;
    script
        .call(json!({"command": "basename \"$PWD\"", "directory": "d"}))
        .await;
    script
        .call(json!({"command": "true", "directory": "nowhere"}))
        .await;
    script
        .call(json!({"command": "true", "directory": "../.."}))
        .await;
    script.call(json!({"command": " "})).await;
    script.call(json!({"command": "a\u{0}b"})).await;
    script.call(json!({"command": "true", "timeout": 0})).await;
    script
        .call(json!({"command": "true", "timeout": 86401}))
        .await;
    script.call(json!({"command": ["true"]})).await;
    script.call(json!({})).await;
    insta::assert_snapshot!("execute", script.end());
}

#[tokio::test]
async fn execute_without_background() {
    let options = json!({"include_background": false, "timeout_to_background": true});
    let (_directory, mut script) = local(options, "execute");
    script
        .call(json!({"command": "echo first; tail -f /dev/null", "timeout": 1}))
        .await;
    script
        .call(json!({"command": "tail -f /dev/null & echo started"}))
        .await;
    let text = script.end();
    assert!(!text.contains("run_in_background"), "{text}");
    insta::assert_snapshot!("execute_without_background", text);
}

#[tokio::test]
async fn execute_into_background() {
    let options = json!({"timeout_to_background": true});
    let (_directory, mut script) = local(options, "execute");
    script
        .call(json!({"command": "echo first; cat; tail -f /dev/null", "timeout": 1}))
        .await;
    script
        .call_other("kill_shell", json!({"shell_id": "bg_1"}))
        .await;
    insta::assert_snapshot!("execute_into_background", script.end());
}

/// The five tools for background shells are pinned together, because they need each
/// other.
#[tokio::test]
async fn background() {
    let (_directory, mut script) = local(json!({}), "run_in_background");
    script.call_other("list_shells", json!({})).await;
    script
        .call_other("read_output", json!({"shell_id": "bg_1"}))
        .await;
    script.call(json!({"command": "cat"})).await;
    script
        .call_other("read_output", json!({"shell_id": "bg_1"}))
        .await;
    script
        .call_other(
            "write_input",
            json!({"shell_id": "bg_1", "input": "hello\n"}),
        )
        .await;
    let read = json!({"shell_id": "bg_1", "wait_seconds": 60});
    script.call_other("read_output", read.clone()).await;
    script
        .call_other(
            "write_input",
            json!({"shell_id": "bg_1", "input": "", "close": true}),
        )
        .await;
    script.call_other("read_output", read.clone()).await;
    script
        .call_other(
            "write_input",
            json!({"shell_id": "bg_1", "input": "late\n"}),
        )
        .await;
    script
        .call_other("kill_shell", json!({"shell_id": "bg_1"}))
        .await;
    script.call(json!({"command": "cat"})).await;
    script.call_other("list_shells", json!({})).await;
    script
        .call_other("kill_shell", json!({"shell_id": "bg_2"}))
        .await;
    script
        .call_other("kill_shell", json!({"shell_id": "bg_9"}))
        .await;
    script
        .call_other("read_output", json!({"shell_id": "bg_9"}))
        .await;
    script
        .call_other("write_input", json!({"shell_id": "bg_9", "input": "x"}))
        .await;
    script
        .call_other("write_input", json!({"shell_id": "bg_1", "input": ""}))
        .await;
    script
        .call_other(
            "read_output",
            json!({"shell_id": "bg_1", "wait_seconds": 601}),
        )
        .await;
    script
        .call_other("read_output", json!({"id": "bg_1"}))
        .await;
    script.call_other("list_shells", json!({"all": true})).await;
    script.call(json!({"command": ""})).await;
    script
        .call(json!({"command": "true", "directory": "nowhere"}))
        .await;
    insta::assert_snapshot!("background", script.end());
}
