//! Tests of calls: any input results in a reply.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use backend_core::{Backend, BackendExt as _, Error, Result};
use backend_state::StateBackend;
use console_tools::{
    Caller, Context, CustomTool, FailureClass, Limits, Options, Reply, Resolver, ToolResult,
    Toolset,
};
use permissions::tool::{ToolSetting, ToolSettings};
use permissions::{Action, Op, Policy, Preset};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::approver::{NoArgs, RecordingApprover, Swap, store};

struct Panics;

impl CustomTool for Panics {
    type Args = NoArgs;
    const NAME: &'static str = "panics";
    const DESCRIPTION: &'static str = "Panics.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    async fn run(&self, _: &Context, _: NoArgs) -> ToolResult {
        panic!("a secret reason")
    }
}

struct Long;

impl CustomTool for Long {
    type Args = NoArgs;
    const NAME: &'static str = "long";
    const DESCRIPTION: &'static str = "Says much.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    async fn run(&self, _: &Context, _: NoArgs) -> ToolResult {
        Ok(Reply::text("ö".repeat(10_000)).structured(json!(vec![1; 10_000])))
    }
}

#[tokio::test]
async fn a_panic_is_a_reply_and_the_toolset_goes_on() {
    let toolset = Toolset::builder(Arc::new(store().await));
    let chat = toolset
        .tool(Panics)
        .tool(Swap)
        .build()
        .unwrap()
        .conversation("c");
    for _ in 0..2 {
        let reply = chat.call("panics", "{}").await;
        assert_eq!(reply.failure, Some(FailureClass::Environment));
        assert_eq!(
            reply.text,
            "Error: 'panics' crashed; try a different approach"
        );
    }
    let reply = chat.call("swap", json!({"one": "a", "two": "b"})).await;
    assert!(reply.is_success());
}

#[tokio::test]
async fn every_reply_is_within_the_budget() {
    let mut options = Options::default();
    options.limits.reply_bytes = 101;
    let toolset = Toolset::builder(Arc::new(store().await)).options(options);
    let reply = toolset
        .tool(Long)
        .build()
        .unwrap()
        .conversation("c")
        .call("long", "")
        .await;
    assert!(reply.is_success());
    let cut = "\n[cut: 100 of 20000 bytes are shown; ask for less at a time]";
    assert_eq!(reply.text, format!("{}{cut}", "ö".repeat(50)));
    assert_eq!(reply.structured, None);
}

#[tokio::test]
async fn an_unknown_tool_names_the_nearest() {
    let toolset = Toolset::builder(Arc::new(store().await));
    let toolset = toolset.tool(Swap).tool(Long).build().unwrap();
    let chat = toolset.conversation("c");
    for name in ["swp", "SWAP", "swpa"] {
        let reply = chat.call(name, "{}").await;
        assert_eq!(reply.failure, Some(FailureClass::Fixable));
        assert!(reply.text.contains("did you mean swap?"), "{}", reply.text);
    }
    let reply = chat.call("quite_something_else", "{}").await;
    assert!(!reply.text.contains("did you mean"), "{}", reply.text);
    assert!(reply.text.contains("swap"), "{}", reply.text);
    for name in ["", "\0", &"ä".repeat(100_000), "a\nb"] {
        let reply = chat.call(name, "{}").await;
        assert_eq!(reply.failure, Some(FailureClass::Fixable));
        assert!(reply.text.len() < 2_000 && !reply.text.contains(['\0', '\n']));
    }
}

#[derive(Debug)]
struct Homes {
    alice: Arc<dyn Backend>,
    bob: Arc<dyn Backend>,
    asked: AtomicUsize,
}

#[async_trait]
impl Resolver for Homes {
    async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        match caller.user.as_deref() {
            Some("alice") => Ok(Arc::clone(&self.alice)),
            Some("bob") => Ok(Arc::clone(&self.bob)),
            Some("panic") => panic!("resolver"),
            _ => Err(Error::invalid_input("this user has no files")),
        }
    }
}

#[tokio::test]
async fn one_toolset_serves_many_and_mixes_nothing() {
    let (alice, bob) = (store().await, store().await);
    let homes = Arc::new(Homes {
        alice: Arc::new(alice.clone()),
        bob: Arc::new(bob.clone()),
        asked: AtomicUsize::new(0),
    });
    let (one, two) = (RecordingApprover::new(true), RecordingApprover::new(false));
    let toolset = Toolset::resolving(Arc::<Homes>::clone(&homes))
        .ruleset(Preset::Default.ruleset())
        .tool(Swap);
    let toolset = toolset.build().unwrap();
    let chat = |user: &str| toolset.conversation_of(Caller::new("same id").user(user));
    let (of_alice, of_bob) = (
        chat("alice").approver(one.clone()),
        chat("bob").approver(two.clone()),
    );
    let args = json!({"one": "a", "two": "b"});
    assert!(of_alice.call("swap", args.clone()).await.is_success());
    assert_eq!(
        of_bob.call("swap", args.clone()).await.failure,
        Some(FailureClass::Refused)
    );
    assert_eq!((one.taken().len(), two.taken().len()), (1, 1));
    assert_eq!(&alice.read_bytes("/a").await.unwrap()[..], b"2");
    assert_eq!(&bob.read_bytes("/a").await.unwrap()[..], b"1");
    assert_eq!(homes.asked.load(Ordering::Relaxed), 2);

    // The policy of one conversation does not apply to another.
    let free = of_bob.policy(Policy::allow_all());
    assert!(free.call("swap", args.clone()).await.is_success());
    assert_eq!(
        of_bob.call("swap", args.clone()).await.failure,
        Some(FailureClass::Refused)
    );

    let reply = chat("carol").call("swap", args.clone()).await;
    assert!(reply.text.contains("no files"), "{}", reply.text);
    let reply = chat("panic").call("swap", args).await;
    assert_eq!(reply.failure, Some(FailureClass::Environment));
    assert!(
        chat("alice")
            .definitions()
            .await
            .unwrap()
            .get("swap")
            .is_some()
    );
    assert!(chat("carol").definitions().await.is_err());
}

#[tokio::test]
async fn definitions_are_computed_once_for_each_set() {
    let backend: Arc<dyn Backend> = Arc::new(store().await);
    let toolset = Toolset::builder(Arc::clone(&backend))
        .tool(Swap)
        .build()
        .unwrap();
    let first = toolset.definitions();
    assert!(first.ptr_eq(&toolset.definitions()));
    let chat = toolset.conversation("c");
    assert!(first.ptr_eq(&chat.definitions().await.unwrap()));
    let readonly = Policy::builder()
        .ruleset(&Preset::Readonly.ruleset(), &backend.working_dir())
        .build();
    let other = toolset.conversation("d").policy(readonly);
    let none = other.definitions().await.unwrap();
    assert!(!first.ptr_eq(&none) && none.get("swap").is_none());
    assert!(none.ptr_eq(&other.definitions().await.unwrap()));
}

/// Waits for a notification.
struct Waits(Arc<Notify>, Arc<AtomicUsize>);

impl CustomTool for Waits {
    type Args = NoArgs;
    const NAME: &'static str = "waits";
    const DESCRIPTION: &'static str = "Waits.";
    const OPERATIONS: &'static [Op] = &[Op::Read];

    async fn run(&self, _: &Context, _: NoArgs) -> ToolResult {
        self.1.fetch_add(1, Ordering::SeqCst);
        self.0.notified().await;
        self.1.fetch_add(100, Ordering::SeqCst);
        Ok(Reply::text("waited"))
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_over_and_calls_do_not_wait_for_each_other() {
    let (go, count) = (Arc::new(Notify::new()), Arc::new(AtomicUsize::new(0)));
    let toolset = Toolset::builder(Arc::new(store().await)).tool(Swap);
    let toolset = toolset
        .tool(Waits(Arc::clone(&go), Arc::clone(&count)))
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    {
        let mut waiting = Box::pin(chat.call("waits", "{}"));
        assert!(futures::poll!(&mut waiting).is_pending());
        let swapped = chat.call("swap", json!({"one": "a", "two": "b"})).await;
        assert!(swapped.is_success());
    }
    assert_eq!(count.load(Ordering::SeqCst), 1);
    go.notify_one();
    assert_eq!(chat.call("waits", "{}").await, Reply::text("waited"));
    assert_eq!(count.load(Ordering::SeqCst), 102);
}

#[tokio::test]
async fn what_was_granted_holds_for_the_conversation_and_its_policy() {
    use permissions::Remember;
    use permissions::approval::Interactive;
    let count = Arc::new(AtomicUsize::new(0));
    let counting = Arc::clone(&count);
    let person = Interactive::new(move |_| {
        counting.fetch_add(1, Ordering::SeqCst);
        async { Ok(permissions::Answer::yes().remember(Remember::Session)) }
    });
    let ask = ToolSettings::default().with_custom("swap", ToolSetting::action(Action::Ask));
    let toolset = Toolset::builder(Arc::new(store().await))
        .tool_settings(ask)
        .approver(person)
        .tool(Swap);
    let toolset = toolset.build().unwrap();
    let args = || json!({"one": "a", "two": "b"});
    for (session, questions) in [("c", 1), ("c", 1), ("d", 2), ("c", 2)] {
        assert!(
            toolset
                .conversation(session)
                .call("swap", args())
                .await
                .is_success()
        );
        assert_eq!(count.load(Ordering::SeqCst), questions, "{session}");
    }
}

#[tokio::test]
async fn arguments_have_a_limit() {
    let limits = {
        let mut limits = Limits::default();
        limits.argument_bytes = 1_000;
        limits
    };
    let mut options = Options::default();
    options.limits = limits;
    let backend = StateBackend::new();
    let toolset = Toolset::builder(Arc::new(backend))
        .options(options)
        .tool(Swap);
    let chat = toolset.build().unwrap().conversation("c");
    let long = "x".repeat(1_001);
    let raw = format!(r#"{{"one": "{long}", "two": "b"}}"#);
    for reply in [
        chat.call("swap", &raw).await,
        chat.call("swap", json!({"one": long, "two": "b"})).await,
    ] {
        assert_eq!(reply.failure, Some(FailureClass::Fixable));
        assert!(reply.text.contains("more than the 1000"), "{}", reply.text);
    }
}
