//! The command tools on a local directory.

mod shells;

use std::sync::Arc;

use backend_core::{Backend, BackendExt as _};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::conversation::Conversation;
use crate::options::Options;
use crate::reply::FailureClass;
use crate::test_run::Calls;
use crate::tool::Builtin;

/// Longer than any step here takes. A wait of this length has failed.
const PATIENCE: u64 = 60;

struct Fixture {
    directory: TempDir,
    backend: Arc<dyn Backend>,
    conversation: Arc<Conversation>,
    options: Options,
}

impl Fixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalBackend::builder(directory.path()).enable_execute(true);
        let local = Arc::new(local.open().unwrap());
        let conversation = Arc::new(Conversation::default());
        let backend = Arc::new(conversation.with_outputs(local));
        Self {
            directory,
            backend,
            conversation,
            options: Options::default(),
        }
    }

    fn on(backend: Arc<dyn Backend>) -> Self {
        Self {
            backend,
            ..Self::new()
        }
    }

    async fn error<T: Builtin>(&self, args: Value) -> (FailureClass, String) {
        let error = self.try_call::<T>(args).await.unwrap_err();
        (error.class(), error.to_string())
    }

    /// Creates a FIFO that a command can wait on.
    async fn fifo(&self, name: &str) {
        let line = format!("mkfifo {name}");
        assert_eq!(
            run!(self.text::<ExecuteTool>, {"command": line}),
            "(no output)"
        );
    }

    /// Reads until a shell has printed `wanted`, and returns all output.
    async fn follow(&self, id: &str, wanted: &str) -> String {
        let mut all = String::new();
        while !all.contains(wanted) {
            let args = json!({"shell_id": id, "wait_seconds": PATIENCE});
            let reply = self.call::<ReadOutputTool>(args).await;
            all.push_str(&reply.text);
            all.push('\n');
            let running = reply.structured.unwrap()["running"] == json!(true);
            assert!(running || all.contains(wanted), "it ended after {all}");
        }
        all
    }
}

impl Calls for Fixture {
    fn context(&self) -> Context {
        let (backend, conversation) = (Arc::clone(&self.backend), Arc::clone(&self.conversation));
        Context::new(backend, Arc::new(self.options.clone()), conversation)
    }
}

#[tokio::test]
async fn success_is_the_output_alone() {
    let fixture = Fixture::new();
    let reply =
        run!(fixture.call::<ExecuteTool>, {"command": "echo out; echo err >&2; printf end"});
    assert_eq!(reply.text, "out\nerr\nend");
    assert_eq!(
        reply.structured.unwrap(),
        json!({
            "output": "out\nerr\nend",
            "exit_code": 0,
            "timed_out": false,
            "output_limited": false,
            "leftovers": 0,
            "truncated": false,
        })
    );
    assert_eq!(
        run!(fixture.text::<ExecuteTool>, {"command": "true"}),
        "(no output)"
    );
    // Standard input is at its end.
    assert_eq!(
        run!(fixture.text::<ExecuteTool>, {"command": "cat; echo end"}),
        "end\n"
    );
}

#[tokio::test]
async fn a_failed_command_is_a_result() {
    let fixture = Fixture::new();
    let reply = run!(fixture.call::<ExecuteTool>, {"command": "echo why; exit 3"});
    assert_eq!(reply.text, "Command failed (exit code 3):\nwhy\n");
    assert_eq!(reply.structured.unwrap()["exit_code"], json!(3));
    let reply = run!(fixture.call::<ExecuteTool>, {"command": "kill -9 $$"});
    assert_eq!(reply.text, "Command was ended by signal 9:\n(no output)");
    let structured = reply.structured.unwrap();
    assert_eq!(
        (&structured["signal"], &structured["exit_code"]),
        (&json!(9), &Value::Null)
    );
}

#[tokio::test]
async fn what_was_printed_before_the_timeout_is_told() {
    let fixture = Fixture::new();
    fixture.fifo("never").await;
    let reply =
        run!(fixture.call::<ExecuteTool>, {"command": "echo begun; cat never", "timeout": 1});
    assert_eq!(
        reply.text,
        "Command timed out after 1 second and was ended; give it a longer timeout, or use \
         run_in_background. Output so far:\nbegun\n"
    );
    let structured = reply.structured.unwrap();
    assert_eq!(
        (&structured["timed_out"], &structured["exit_code"]),
        (&json!(true), &Value::Null)
    );
    // The default limit comes from the options.
    let mut fixture = fixture;
    fixture.options.limits.execute_seconds = 1;
    let text = run!(fixture.text::<ExecuteTool>, {"command": "cat never"});
    assert!(
        text.starts_with("Command timed out after 1 second"),
        "{text}"
    );
}

#[tokio::test]
async fn a_wrong_timeout_names_its_field() {
    let fixture = Fixture::new();
    for seconds in [0, -1, 86_401, i64::MAX, i64::MIN] {
        let args = json!({"command": "true", "timeout": seconds});
        let (class, text) = fixture.error::<ExecuteTool>(args).await;
        assert_eq!(class, FailureClass::Fixable);
        assert_eq!(
            text,
            format!("timeout must be from 1 to 86400 seconds, or null for none, not {seconds}")
        );
    }
    let text = run!(fixture.text::<ExecuteTool>, {"command": "echo", "timeout": null});
    assert_eq!(text, "\n");
    let (_, text) = run!(fixture.error::<ExecuteTool>, {"command": " \n"});
    assert_eq!(text, "command is empty; give the command to run");
    let (_, text) = run!(fixture.error::<ExecuteTool>, {"command": "a\0b"});
    assert!(text.contains("NUL"), "{text}");
}

#[tokio::test]
async fn a_command_runs_where_it_is_told() {
    let fixture = Fixture::new();
    fixture
        .backend
        .write_file("sub/file.txt", "x")
        .await
        .unwrap();
    let text = run!(fixture.text::<ExecuteTool>, {"command": "ls", "directory": "sub"});
    assert_eq!(text, "file.txt\n");
    let args = json!({"command": "ls", "directory": "nowhere"});
    let (class, text) = fixture.error::<ExecuteTool>(args).await;
    assert_eq!(class, FailureClass::Fixable);
    assert!(text.contains("nowhere"), "{text}");
    let (class, _) = run!(fixture.error::<ExecuteTool>, {"command": "ls", "directory": "../.."});
    assert_eq!(class, FailureClass::Fixable);
}

#[tokio::test]
async fn output_is_shown_as_a_terminal_shows_it() {
    let fixture = Fixture::new();
    let args = json!({"command": r"printf '\033[31mred\033[0m\n 1%%\r100%%\n\377'"});
    let text = fixture.text::<ExecuteTool>(args).await;
    assert_eq!(text, "red\n100%\n\u{fffd}");
}

#[tokio::test]
async fn long_output_can_be_read_and_searched_afterwards() {
    let mut fixture = Fixture::new();
    fixture.options.limits.output_bytes = 100;
    let reply = run!(fixture.call::<ExecuteTool>, {"command": "seq 1 5000"});
    assert!(reply.text.starts_with("1\n2\n3\n"), "{}", reply.text);
    assert!(reply.text.ends_with("\n4999\n5000\n"), "{}", reply.text);
    assert!(reply.text.contains("lines (2"), "{}", reply.text);
    let structured = reply.structured.unwrap();
    assert_eq!(structured["truncated"], json!(true));
    let file = structured["output_file"].as_str().unwrap();
    assert!(reply.text.contains(file));
    let whole = fixture.backend.read_to_string(file).await.unwrap();
    assert_eq!(whole.lines().count(), 5_000);
    let grep =
        json!({"pattern": "^42.$", "path": file, "output_mode": "content", "max_results": 1});
    let found = fixture.text::<crate::search::GrepTool>(grep).await;
    assert_eq!(
        found,
        format!("Matches for '^42.$':\n{file}\n  420: 420\n  ... and 9 more matches")
    );
    let listed =
        run!(fixture.text::<crate::search::LsTool>, {"path": crate::kept_outputs::OUTPUTS});
    assert_eq!(
        listed,
        format!(
            "Contents of {}:\n  1.txt ({} bytes)",
            crate::kept_outputs::OUTPUTS,
            whole.len()
        )
    );
    let globbed = fixture
        .text::<crate::search::GlobTool>(
            json!({"pattern": "*", "path": crate::kept_outputs::OUTPUTS}),
        )
        .await;
    assert!(globbed.ends_with(file), "{globbed}");
    // Another conversation does not see the file.
    let next = Conversation::default().with_outputs(Arc::clone(&fixture.backend));
    assert!(next.read_to_string(file).await.is_err());
}

#[tokio::test]
async fn a_dropped_output_says_so() {
    let mut fixture = Fixture::new();
    fixture.options.limits.output_bytes = 10;
    fixture.options.limits.spill_total_bytes = 10_000;
    for _ in 0..3 {
        run!(fixture.text::<ExecuteTool>, {"command": "seq 1 1000"});
    }
    let dropped = fixture
        .backend
        .read_to_string("/.agentbox/outputs/1.txt")
        .await
        .unwrap_err();
    assert!(
        dropped.message().contains("dropped to make room"),
        "{dropped}"
    );
    assert!(
        fixture
            .backend
            .read_to_string("/.agentbox/outputs/3.txt")
            .await
            .is_ok()
    );
}

#[tokio::test]
async fn what_a_command_leaves_running_is_told() {
    let fixture = Fixture::new();
    fixture.fifo("never").await;
    let reply = run!(fixture.call::<ExecuteTool>, {"command": "cat never & echo started"});
    assert_eq!(
        reply.text,
        "started\n(a process that it left running was ended; use run_in_background for processes \
         that should keep running)"
    );
    assert_eq!(reply.structured.unwrap()["leftovers"], json!(1));
}

#[tokio::test]
async fn a_command_whose_time_runs_out_can_go_on() {
    let mut fixture = Fixture::new();
    fixture.options.timeout_to_background = true;
    fixture.fifo("gate").await;
    // Part of a character, then the FIFO.
    let line = r"printf 'begun \303'; read go < gate; printf '\251\n'; exit 4";
    let reply = run!(fixture.call::<ExecuteTool>, {"command": line, "timeout": 1});
    let structured = reply.structured.unwrap();
    let id = structured["shell_id"].as_str().unwrap();
    assert_eq!(
        reply.text,
        format!(
            "Command is still running after 1 second and continues as background shell {id}.\n\
             Use read_output('{id}') to follow its output and kill_shell('{id}') to stop it.\nOutput \
             so far:\nbegun "
        )
    );
    assert_eq!(
        (&structured["timed_out"], &structured["exit_code"]),
        (&json!(true), &Value::Null)
    );
    // A command that ends in time gives an ordinary result. Its standard input is at
    // its end.
    let text = run!(fixture.text::<ExecuteTool>, {"command": "cat; echo go > gate; exit 2"});
    assert_eq!(text, "Command failed (exit code 2):\n(no output)");
    let all = fixture.follow(id, "exited (code 4)").await;
    assert!(all.contains('é'), "{all}");
}

#[tokio::test]
async fn a_backend_without_commands_says_so() {
    let off = Fixture::new();
    let off = LocalBackend::builder(off.directory.path()).open().unwrap();
    let backends: [Arc<dyn Backend>; 2] = [Arc::new(StateBackend::new()), Arc::new(off)];
    for backend in backends {
        let fixture = Fixture::on(backend);
        let (class, text) = run!(fixture.error::<ExecuteTool>, {"command": "true"});
        assert_eq!(
            (class, &text[..]),
            (
                FailureClass::Environment,
                "Backend does not support command execution"
            )
        );
        let (class, text) = run!(fixture.error::<ListShellsTool>, {});
        assert_eq!(
            (class, &text[..]),
            (
                FailureClass::Environment,
                "Backend does not support background processes"
            )
        );
    }
}
