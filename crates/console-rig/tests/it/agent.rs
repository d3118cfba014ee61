//! A rig agent with the tools of a conversation, against a scripted model on
//! loopback.

mod model;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend_core::{Backend, BackendExt as _};
use backend_state::StateBackend;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_tools::{Caller, Capability, Chat, Resolver, Toolset};
use model::{Model, calls, says};
use rig_agent::agent::{
    InvalidToolCallAction, InvalidToolCallContext, InvalidToolCallReason, OutcomeAction,
    OutcomeEvent,
};
use rig_agent::{AgentHook, HookContext};
use serde_json::{Value, json};
use tokio::sync::{Barrier, Notify};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(60);

/// An image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The approver denies everything, and only locks need approval.
const SPEC: &str = r#"
approver = "strict"

[permissions]
default = "allow"

[permissions.write]
default = "allow"
rules = [{ pattern = "**/*.lock", action = "ask" }]

[options]
image_support = true
"#;

/// Returns the content that a request gives the model for the call with this id.
fn told(request: &Value, id: &str) -> Value {
    let messages = request["messages"].as_array().unwrap();
    let mut of = messages
        .iter()
        .filter(|message| message["tool_call_id"] == id);
    let message = of.next().expect("an answer to the call");
    assert_eq!(message["role"], "tool");
    assert!(of.next().is_none(), "one answer to {id}");
    message["content"].clone()
}

fn text(request: &Value, id: &str) -> String {
    let content = told(request, id);
    content.as_str().expect("text alone").to_owned()
}

/// Answers calls of unknown tools, as in the README.
struct Misnamed(Chat);

impl AgentHook for Misnamed {
    async fn on_invalid_tool_call(
        &self,
        _: &HookContext,
        event: &InvalidToolCallContext,
    ) -> Option<InvalidToolCallAction> {
        if event.reason != InvalidToolCallReason::UnknownTool {
            return None;
        }
        let reply = self.0.call(&event.tool_name, "").await;
        Some(InvalidToolCallAction::skip(reply.text))
    }
}

/// Records rig's own status of each reply, by call id.
#[derive(Clone, Default)]
struct Outcomes(Arc<Mutex<BTreeMap<String, &'static str>>>);

impl AgentHook for Outcomes {
    async fn on_outcome(&self, _: &HookContext, event: OutcomeEvent<'_>) -> OutcomeAction {
        if let (Some(id), Some(result)) = (event.call_id, event.tool_result()) {
            let mut all = self.0.lock().unwrap();
            all.insert(id.to_string(), result.status_name());
        }
        OutcomeAction::proceed()
    }
}

/// One success and three failures at once, one of them fixed later. Then invalid JSON,
/// an unknown tool and an image.
fn script() -> Vec<Value> {
    vec![
        calls(&[
            (
                "new",
                "write_file",
                r#"{"path": "n/a.txt", "content": "\u00e9"}"#,
            ),
            (
                "lock",
                "write_file",
                r#"{"path": "Cargo.lock", "content": ""}"#,
            ),
            (
                "miss",
                "edit_file",
                r#"{"path": "main.rs", "old_string": "old() ;", "new_string": "new();"}"#,
            ),
            ("type", "read_file", r#"{"path": 5}"#),
        ]),
        calls(&[
            (
                "mend",
                "edit_file",
                r#"{"path": "main.rs", "old_string": "old();", "new_string": "new();"}"#,
            ),
            ("json", "read_file", r#"{"path": "main"#),
        ]),
        calls(&[("name", "reed_file", r#"{"path": "dot.png"}"#)]),
        calls(&[("seen", "read_file", r#"{"path": "dot.png"}"#)]),
        says("done"),
    ]
}

#[tokio::test]
async fn an_agent_works_and_recovers() {
    let files = StateBackend::new();
    files
        .write_file("main.rs", "fn main() {\n    old();\n}\n")
        .await
        .unwrap();
    files
        .write_file("dot.png", STANDARD.decode(PNG).unwrap())
        .await
        .unwrap();
    let capability = Capability::from_toml(SPEC).unwrap();
    let toolset = capability.toolset(Arc::new(files.clone()), None).unwrap();
    let chat = toolset.conversation("c");

    let model = Model::start(script()).await;
    let outcomes = Outcomes::default();
    let prompt = chat.prompt().await.unwrap();
    let agent = model
        .agent(&prompt, console_rig::tools(&chat).await.unwrap())
        .add_hook(Misnamed(chat.clone()))
        .add_hook(outcomes.clone())
        .build();
    let response = agent
        .prompt("Work.")
        .max_turns(9)
        .tool_concurrency(4)
        .await
        .unwrap();

    assert_eq!(response.output(), "done");
    assert_eq!(files.read_to_string("n/a.txt").await.unwrap(), "\u{e9}");
    assert_eq!(
        files.read_to_string("main.rs").await.unwrap(),
        "fn main() {\n    new();\n}\n"
    );
    assert!(!files.exists("Cargo.lock").await.unwrap());
    let seen = outcomes.0.lock().unwrap().clone();
    let expected = [
        ("lock", "denied"),
        ("mend", "success"),
        ("miss", "error"),
        ("new", "success"),
        ("seen", "success"),
        ("type", "error"),
    ];
    assert!(
        seen.iter()
            .map(|(id, outcome)| (&**id, *outcome))
            .eq(expected),
        "{seen:?}"
    );

    let asked = model.asked();
    assert_eq!(asked.len(), 5);
    assert_eq!(
        asked[0]["tools"],
        chat.definitions().await.unwrap().openai()
    );
    let preamble = json!([{"type": "text", "text": prompt}]);
    assert_eq!(
        asked[0]["messages"][0],
        json!({"role": "system", "content": preamble})
    );
    for (id, expected) in [
        ("new", "n/a.txt"),
        ("lock", "not approved"),
        ("miss", "    old();"),
        ("type", "path"),
    ] {
        let text = text(&asked[1], id);
        assert!(text.contains(expected), "{id}: {text}");
        assert_eq!(text.starts_with("Error: "), id != "new", "{id}: {text}");
    }
    assert!(!text(&asked[2], "mend").starts_with("Error: "));
    assert!(text(&asked[2], "json").contains("JSON"));
    assert!(text(&asked[3], "name").contains("did you mean read_file?"));
    assert!(text(&asked[4], "seen").starts_with("Image dot.png"));
    // Since a tool result cannot hold an image, rig shows it right after.
    let shown = asked[4]["messages"].as_array().unwrap().last().unwrap();
    assert_eq!(shown["role"], "user");
    let url = format!("data:image/png;base64,{PNG}");
    assert_eq!(shown["content"][1]["image_url"]["url"], url);
}

/// Blocks each call until the other arrives.
#[derive(Debug)]
struct Together {
    backend: Arc<dyn Backend>,
    barrier: Barrier,
    begun: AtomicBool,
}

#[async_trait]
impl Resolver for Together {
    async fn resolve(&self, _: &Caller) -> backend_core::Result<Arc<dyn Backend>> {
        // The first time it resolves for the definitions.
        if self.begun.swap(true, Ordering::Relaxed) {
            self.barrier.wait().await;
        }
        Ok(Arc::clone(&self.backend))
    }
}

#[tokio::test]
async fn calls_run_side_by_side() {
    let resolver = Together {
        backend: Arc::new(StateBackend::new()),
        barrier: Barrier::new(2),
        begun: AtomicBool::new(false),
    };
    let toolset = Toolset::resolving(Arc::new(resolver)).build().unwrap();
    let tools = console_rig::tools(&toolset.conversation("c"))
        .await
        .unwrap();
    let one = |id| (id, "ls", r#"{"path": "."}"#);
    let model = Model::start(vec![calls(&[one("a"), one("b")]), says("done")]).await;
    let agent = model.agent("", tools).build();
    let run = agent.prompt("Look.").max_turns(3).tool_concurrency(2);
    let run = tokio::time::timeout(LONG, run.into_future()).await;
    assert_eq!(
        run.expect("one call after the other").unwrap().output(),
        "done"
    );
    assert_eq!(told(&model.asked()[1], "a"), told(&model.asked()[1], "b"));
}

/// Never answers once it has begun, and reports when it is dropped.
#[derive(Debug, Default)]
struct Stuck {
    begun: AtomicBool,
    waiting: Notify,
    let_go: Arc<Notify>,
}

struct Tell(Arc<Notify>);

impl Drop for Tell {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[async_trait]
impl Resolver for Stuck {
    async fn resolve(&self, _: &Caller) -> backend_core::Result<Arc<dyn Backend>> {
        if self.begun.swap(true, Ordering::Relaxed) {
            let _tell = Tell(Arc::clone(&self.let_go));
            self.waiting.notify_one();
            std::future::pending::<()>().await;
        }
        Ok(Arc::new(StateBackend::new()))
    }
}

#[tokio::test]
async fn a_run_that_is_dropped_cancels_its_call() {
    let stuck = Arc::new(Stuck::default());
    let toolset = Toolset::resolving(Arc::<Stuck>::clone(&stuck))
        .build()
        .unwrap();
    let tools = console_rig::tools(&toolset.conversation("c"))
        .await
        .unwrap();
    let model = Model::start(vec![calls(&[("a", "ls", "{}")])]).await;
    let agent = model.agent("", tools).build();
    let run = agent.prompt("Look.").max_turns(3).into_future();
    let run = async {
        tokio::select! {
            _ = run => unreachable!("the call never ends"),
            () = stuck.waiting.notified() => {}
        }
        // Everything the run holds is dropped here.
    };
    tokio::time::timeout(LONG, run)
        .await
        .expect("the call begins");
    let let_go = stuck.let_go.notified();
    tokio::time::timeout(LONG, let_go)
        .await
        .expect("the call is dropped");
}

#[tokio::test]
async fn without_a_backend_there_are_no_tools() {
    #[derive(Debug)]
    struct Nobody;
    #[async_trait]
    impl Resolver for Nobody {
        async fn resolve(&self, _: &Caller) -> backend_core::Result<Arc<dyn Backend>> {
            Err(backend_core::Error::unavailable("not yet"))
        }
    }
    let toolset = Toolset::resolving(Arc::new(Nobody)).build().unwrap();
    let error = console_rig::tools(&toolset.conversation("c"))
        .await
        .unwrap_err();
    assert_eq!(error.message(), "not yet");
}
