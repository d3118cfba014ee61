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
        .calls([
            json!({"command": "echo out; echo err >&2"}),
            json!({"command": "true"}),
            json!({"command": "echo why; exit 3"}),
            json!({"command": "printf 'half\\rdone\\n\\033[31mred\\033[0m\\n'"}),
            json!({"command": "seq 1 50"}),
            json!({"command": "kill -KILL $$"}),
            json!({"command": "echo first; tail -f /dev/null", "timeout": 1}),
            json!({"command": "tail -f /dev/null & echo started"}),
            json!({"command": "mkdir d; echo in", "timeout": null}),
            json!({"command": "basename \"$PWD\"", "directory": "d"}),
            json!({"command": "true", "directory": "nowhere"}),
            json!({"command": "true", "directory": "../.."}),
            json!({"command": " "}),
            json!({"command": "a\u{0}b"}),
            json!({"command": "true", "timeout": 0}),
            json!({"command": "true", "timeout": 86401}),
            json!({"command": ["true"]}),
            json!({}),
        ])
        .await;
    insta::assert_snapshot!("execute", script.end());
}

#[tokio::test]
async fn execute_without_background() {
    let options = json!({"include_background": false, "timeout_to_background": true});
    let (_directory, mut script) = local(options, "execute");
    script
        .calls([
            json!({"command": "echo first; tail -f /dev/null", "timeout": 1}),
            json!({"command": "tail -f /dev/null & echo started"}),
        ])
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
    let of = |id: &str| json!({"shell_id": id});
    let input = |id: &str, input: &str| json!({"shell_id": id, "input": input});
    let read = |seconds: u64| json!({"shell_id": "bg_1", "wait_seconds": seconds});
    let close = json!({"shell_id": "bg_1", "input": "", "close": true});
    let nowhere = json!({"command": "true", "directory": "nowhere"});
    script
        .calls_of([
            ("list_shells", json!({})),
            ("read_output", of("bg_1")),
            ("run_in_background", json!({"command": "cat"})),
            ("read_output", of("bg_1")),
            ("write_input", input("bg_1", "hello\n")),
            ("read_output", read(60)),
            ("write_input", close),
            ("read_output", read(60)),
            ("write_input", input("bg_1", "late\n")),
            ("kill_shell", of("bg_1")),
            ("run_in_background", json!({"command": "cat"})),
            ("list_shells", json!({})),
            ("kill_shell", of("bg_2")),
            ("kill_shell", of("bg_9")),
            ("read_output", of("bg_9")),
            ("write_input", input("bg_9", "x")),
            ("write_input", input("bg_1", "")),
            ("read_output", read(601)),
            ("read_output", json!({"id": "bg_1"})),
            ("list_shells", json!({"all": true})),
            ("run_in_background", json!({"command": ""})),
            ("run_in_background", nowhere),
        ])
        .await;
    insta::assert_snapshot!("background", script.end());
}
