//! Tests of commands and background shells: one question each, ownership, the end of
//! shells, and live output.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::Backend;
use backend_core::ops::{Command, ShellId, ShellState};
use backend_local::LocalBackend;
use console_tools::{Chat, FailureClass, Observer, Options, Toolset};
use futures::executor::block_on;
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Policy, Preset};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Notify;

use crate::support::approver::RecordingApprover;

/// Longer than any step here takes. A wait of this length has failed.
const PATIENCE: Duration = Duration::from_secs(60);

struct Place {
    directory: TempDir,
    backend: Arc<dyn Backend>,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalBackend::builder(directory.path()).enable_execute(true);
        let backend = Arc::new(local.open().unwrap());
        Self { directory, backend }
    }

    fn toolset(&self, options: Options) -> Toolset {
        let builder = Toolset::builder(Arc::clone(&self.backend)).options(options);
        builder.policy(Policy::allow_all()).build().unwrap()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Creates a FIFO that a command can wait on.
    async fn fifo(&self, name: &str) {
        let sandbox = self.backend.as_sandbox().unwrap();
        let made = sandbox.execute(Command::new(format!("mkfifo {name}")));
        made.await.unwrap();
        assert!(self.path(name).exists());
    }

    /// Waits until a shell has ended.
    async fn ended(&self, id: &str) {
        let sandbox = self.backend.as_sandbox().unwrap();
        let id = ShellId::new(id);
        loop {
            let read = sandbox.shell_read(&id, PATIENCE).await.unwrap();
            if read.state != ShellState::Running {
                return;
            }
            let silent = read.stdout.is_empty() && read.stderr.is_empty();
            assert!(!silent, "it still runs");
        }
    }

    async fn runs(&self, id: &str) -> bool {
        let sandbox = self.backend.as_sandbox().unwrap();
        let listed = sandbox.shell_list().await.unwrap();
        let shell = listed.iter().find(|shell| shell.id.as_str() == id);
        shell.is_some_and(|shell| shell.state == ShellState::Running)
    }
}

fn in_background() -> Options {
    let mut options = Options::default();
    options.timeout_to_background = true;
    options
}

async fn start(chat: &Chat, line: &str) -> String {
    let reply = chat
        .call("run_in_background", json!({ "command": line }))
        .await;
    let started = reply.structured.expect("it started");
    started["shell_id"].as_str().unwrap().to_owned()
}

/// Starts a conversation in which everything needs approval: through the rules, or
/// through the settings of the tools.
fn asking(place: &Place, by_rules: bool, options: Options, person: &RecordingApprover) -> Chat {
    let builder = Toolset::builder(Arc::clone(&place.backend)).options(options);
    let builder = if by_rules {
        builder.ruleset(Preset::Strict.ruleset())
    } else {
        let ask = ToolSetting::action(Action::Ask);
        let tools = Tool::ALL.iter();
        builder.tool_settings(tools.fold(ToolSettings::default(), |all, tool| all.with(*tool, ask)))
    };
    let builder = builder.approver(person.clone());
    builder.build().unwrap().conversation("c")
}

#[tokio::test]
async fn a_command_asks_once_and_shows_itself() {
    for (by_rules, options) in [
        (true, Options::default()),
        (false, Options::default()),
        (true, in_background()),
        (false, in_background()),
    ] {
        let place = Place::new();
        std::fs::create_dir(place.path("sub")).unwrap();
        let person = RecordingApprover::new(false);
        let chat = asking(&place, by_rules, options, &person);
        for (tool, arguments, shown) in calls! {
            execute {"command": "echo 1 > made; cat made"} => "echo 1 > made; cat made";
            execute {"command": "touch made", "directory": "sub"} => "cd \"/sub\" && touch made";
            run_in_background {"command": "touch made"} => "touch made";
        } {
            let what = format!("{tool} {arguments} {by_rules}");
            let made = match arguments.get("directory") {
                Some(_) => place.path("sub/made"),
                None => place.path("made"),
            };
            person.say(false);
            let reply = chat.call(tool, arguments.clone()).await;
            assert_eq!(
                reply.failure,
                Some(FailureClass::Refused),
                "{what}: {}",
                reply.text
            );
            let asked = person.taken();
            assert_eq!(asked.len(), 1, "{what}: {asked:?}");
            assert!(asked[0].effect.to_string().contains(shown), "{what}");
            assert!(!made.exists(), "{what}");

            person.say(true);
            let reply = chat.call(tool, arguments).await;
            assert!(reply.is_success(), "{what}: {}", reply.text);
            assert_eq!(person.taken().len(), 1, "{what}");
            if tool == "run_in_background" {
                place
                    .ended(reply.structured.unwrap()["shell_id"].as_str().unwrap())
                    .await;
            }
            assert!(made.exists(), "{what}");
            std::fs::remove_file(made).unwrap();
        }
    }
}

#[tokio::test]
async fn dealing_with_a_shell_asks_at_most_once() {
    for by_rules in [true, false] {
        let place = Place::new();
        let person = RecordingApprover::new(true);
        let chat = asking(&place, by_rules, Options::default(), &person);
        let id = start(&chat, "cat > typed").await;
        person.taken();
        let id = id.as_str();
        let typed = json!({"shell_id": id, "input": "text\n", "close": true});
        for (tool, arguments, description) in [
            (
                "list_shells",
                json!({}),
                "List background shells".to_owned(),
            ),
            (
                "read_output",
                json!({ "shell_id": id }),
                format!("Read the output of background shell {id}"),
            ),
            (
                "write_input",
                typed,
                format!("Write 5 bytes to background shell {id} and close its input"),
            ),
            (
                "kill_shell",
                json!({ "shell_id": id }),
                format!("End background shell {id}"),
            ),
        ] {
            // The rules allow these: the start was judged, and `cat` runs nothing.
            let questions = usize::from(!by_rules);
            if !by_rules {
                person.say(false);
                let reply = chat.call(tool, arguments.clone()).await;
                assert_eq!(
                    reply.failure,
                    Some(FailureClass::Refused),
                    "{tool}: {}",
                    reply.text
                );
                assert_eq!(person.taken().len(), 1, "{tool}");
                let typed = std::fs::read(place.path("typed")).unwrap_or_default();
                assert!(tool == "kill_shell" || typed.is_empty(), "{tool}");
                person.say(true);
            }
            let reply = chat.call(tool, arguments).await;
            assert!(reply.is_success(), "{tool}: {}", reply.text);
            let asked = person.taken();
            assert_eq!(asked.len(), questions, "{tool}");
            assert!(
                asked.iter().all(|asked| asked.description == description),
                "{asked:?}"
            );
            if tool == "write_input" {
                place.ended(id).await;
            }
        }
        assert_eq!(std::fs::read(place.path("typed")).unwrap(), b"text\n");
        // Nothing is asked about a shell that does not exist.
        let wrong = json!({"shell_id": "bg_99", "input": "x"});
        let reply = chat.call("write_input", wrong).await;
        assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
        assert!(person.taken().is_empty());
    }
}

#[tokio::test]
async fn what_a_conversation_keeps_is_its_own_to_read() {
    for by_rules in [true, false] {
        let place = Place::new();
        let person = RecordingApprover::new(true);
        let mut options = Options::default();
        options.limits.output_bytes = 100;
        let chat = asking(&place, by_rules, options, &person);
        let reply = chat.call("execute", json!({"command": "seq 1 1000"})).await;
        let file = reply.structured.unwrap()["output_file"].clone();
        assert_eq!(person.taken().len(), 1);
        for (tool, arguments) in [
            ("read_file", json!({ "path": file })),
            ("grep", json!({"pattern": "99", "path": file})),
            ("ls", json!({"path": console_tools::OUTPUTS})),
        ] {
            let reply = chat.call(tool, arguments).await;
            assert!(reply.is_success(), "{tool}: {}", reply.text);
            assert!(person.taken().is_empty(), "{tool}");
        }
    }
}

#[tokio::test]
async fn a_conversation_reaches_only_its_own_shells() {
    let place = Place::new();
    let toolset = place.toolset(Options::default());
    let (one, two) = (toolset.conversation("same"), toolset.conversation("same"));
    let id = start(&one, "echo secret; read go").await;
    assert_eq!(
        two.call("list_shells", "{}").await.text,
        "No background shells."
    );
    for (tool, arguments) in [
        ("read_output", json!({ "shell_id": id })),
        ("kill_shell", json!({ "shell_id": id })),
        ("write_input", json!({"shell_id": id, "input": "x\n"})),
    ] {
        let reply = two.call(tool, arguments).await;
        assert_eq!(reply.failure, Some(FailureClass::Fixable), "{tool}");
        assert_eq!(
            reply.text,
            format!(
                "Error: there is no background shell '{id}'; there are none; start one with \
                 run_in_background"
            )
        );
    }
    let listed = one.clone().call("list_shells", "{}").await.text;
    assert!(listed.starts_with(&id), "{listed}");
    let wait = json!({"shell_id": id, "wait_seconds": PATIENCE.as_secs()});
    let read = one.call("read_output", wait).await.text;
    assert!(read.contains("secret"), "{read}");
}

#[tokio::test]
async fn closing_ends_the_shells_of_the_conversation_and_drops_its_outputs() {
    let place = Place::new();
    let mut options = in_background();
    options.limits.output_bytes = 100;
    let toolset = place.toolset(options);
    let (one, two) = (toolset.conversation("one"), toolset.conversation("two"));
    place.fifo("never").await;
    let other = start(&two, "read go").await;
    let started = start(&one, "read go").await;
    let moved = json!({"command": "seq 1 1000; cat never", "timeout": 1});
    let moved = one.call("execute", moved).await.structured.unwrap();
    let (moved, file) = (moved["shell_id"].as_str().unwrap(), &moved["output_file"]);
    let read = json!({ "path": file });
    assert!(one.call("read_file", read.clone()).await.is_success());

    assert_eq!(one.close().await.unwrap(), 2);
    for id in [started.as_str(), moved] {
        assert!(!place.runs(id).await, "{id}");
    }
    assert!(place.runs(&other).await);
    assert!(!one.call("read_file", read).await.is_success());
    assert_eq!(one.close().await.unwrap(), 0);
    // The conversation can continue.
    start(&one, "read go").await;
    assert_eq!(one.close().await.unwrap(), 1);
}

#[test]
fn shells_end_with_the_last_clone_without_a_runtime() {
    let place = Place::new();
    let chat = place.toolset(Options::default()).conversation("c");
    let id = block_on(start(&chat, "read go"));
    let clone = chat.clone();
    drop(chat);
    assert!(block_on(place.runs(&id)));
    drop(clone);
    block_on(place.ended(&id));
}

/// Notifies when `wanted` was printed, and records all output.
#[derive(Debug)]
struct Listener {
    wanted: &'static str,
    printed: Mutex<Vec<u8>>,
    heard: Notify,
}

impl Listener {
    fn new(wanted: &'static str) -> Arc<Self> {
        Arc::new(Self {
            wanted,
            printed: Mutex::default(),
            heard: Notify::new(),
        })
    }

    fn printed(&self) -> String {
        String::from_utf8(self.printed.lock().unwrap().clone()).unwrap()
    }
}

impl Observer for Listener {
    fn output(&self, bytes: &[u8]) {
        self.printed.lock().unwrap().extend_from_slice(bytes);
        if self.printed().contains(self.wanted) {
            self.heard.notify_one();
        }
    }
}

/// Unblocks a command that reads from a FIFO. Waits for the reader.
fn let_go(fifo: &Path) -> std::thread::JoinHandle<()> {
    let fifo = fifo.to_owned();
    std::thread::spawn(move || std::fs::write(fifo, "gone\n").unwrap())
}

#[tokio::test]
async fn output_is_heard_before_the_command_ends() {
    for options in [Options::default(), in_background()] {
        let place = Place::new();
        let chat = place.toolset(options).conversation("c");
        place.fifo("go").await;
        let listener = Listener::new("first");
        let command = json!({
            "command": "printf '\\033[1mfirst\\033[0m\\n'; cat go; echo last >&2",
            "timeout": PATIENCE.as_secs(),
        });
        let call = chat.call_observed("execute", command, Arc::<Listener>::clone(&listener));
        let call = async {
            let reply = call.await;
            // Wakes the other branch even if the output never came.
            listener.heard.notify_one();
            reply
        };
        let hear = async {
            listener.heard.notified().await;
            let so_far = listener.printed();
            let_go(&place.path("go"));
            so_far
        };
        let (reply, so_far) = tokio::join!(call, hear);
        // Raw output, with escape codes.
        assert_eq!(so_far, "\u{1b}[1mfirst\u{1b}[0m\n");
        assert_eq!(reply.text, "first\ngone\nlast\n");
        assert_eq!(listener.printed(), format!("{so_far}gone\nlast\n"));
    }
}

#[tokio::test]
async fn what_goes_on_in_the_background_was_heard_so_far() {
    let place = Place::new();
    let chat = place.toolset(in_background()).conversation("c");
    place.fifo("go").await;
    let listener = Listener::new("begun");
    let command = json!({"command": "echo begun; cat go; echo last", "timeout": 1});
    let call = chat.call_observed("execute", command, Arc::<Listener>::clone(&listener));
    let reply = call.await;
    assert!(
        reply.text.contains("continues as background shell"),
        "{}",
        reply.text
    );
    assert_eq!(listener.printed(), "begun\n");
    // Later output is left for read_output.
    let id = reply.structured.unwrap()["shell_id"].clone();
    let_go(&place.path("go")).join().unwrap();
    place_ended(&place, &id).await;
    let rest = chat.call("read_output", json!({ "shell_id": id })).await;
    assert!(!rest.text.contains("begun"), "{}", rest.text);
    assert_eq!(listener.printed(), "begun\n");
}

/// Waits until a shell has ended, without reading its output.
async fn place_ended(place: &Place, id: &Value) {
    while place.runs(id.as_str().unwrap()).await {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_ends_its_command() {
    for options in [Options::default(), in_background()] {
        let place = Place::new();
        let background = options.timeout_to_background;
        let chat = place.toolset(options).conversation("c");
        place.fifo("go").await;
        let listener = Listener::new("up");
        let command = json!({"command": "echo up; cat go; touch survived", "timeout": 60});
        let call = chat.call_observed("execute", command, Arc::<Listener>::clone(&listener));
        tokio::select! {
            reply = call => panic!("it ended: {}", reply.text),
            () = listener.heard.notified() => {}
        }
        if background {
            place.ended("bg_1").await;
            assert_eq!(
                chat.call("list_shells", "{}").await.text,
                "No background shells."
            );
        }
        assert!(!place.path("survived").exists());
    }
}
