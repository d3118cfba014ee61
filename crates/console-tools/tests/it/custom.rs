//! Tests of custom tools, which are behind the same gate.

use std::sync::Arc;

use async_trait::async_trait;
use backend_core::{Backend, BackendExt as _};
use backend_state::StateBackend;
use console_tools::{
    Annotations, BuildError, Context, CustomTool, Definition, FailureClass, Options, Reply,
    ToolHandler, ToolResult, Toolset,
};
use permissions::tool::{ToolSetting, ToolSettings};
use permissions::{Access, Action, Op, Preset};
use serde_json::{Value, json};

use crate::support::approver::{NoArgs, RecordingApprover, Swap, snapshot, store};

#[tokio::test]
async fn one_action_is_one_question() {
    let backend = store().await;
    let person = RecordingApprover::new(true);
    let toolset = Toolset::builder(Arc::new(backend.clone()))
        .ruleset(Preset::Strict.ruleset())
        .approver(person.clone())
        .tool(Swap)
        .build()
        .unwrap();
    assert!(toolset.definitions().get("swap").unwrap().asks);
    let chat = toolset.conversation("c");
    let reply = chat.call("swap", json!({"one": "a", "two": "/b"})).await;
    assert_eq!(reply, Reply::text("swapped"));
    let asked = person.taken();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert_eq!(asked[0].description, "swap a and /b");
    assert_eq!(asked[0].asked.len(), 4);
    assert_eq!(&*asked[0].session, "c");
    assert_eq!(&backend.read_bytes("/a").await.unwrap()[..], b"2");
}

#[tokio::test]
async fn a_no_stops_it_before_it_runs() {
    let backend = store().await;
    let before = snapshot(&backend).await;
    let person = RecordingApprover::new(false);
    let toolset = Toolset::builder(Arc::new(backend.clone()))
        .ruleset(Preset::Default.ruleset())
        .approver(person.clone())
        .tool(Swap)
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    let reply = chat.call("swap", json!({"one": "a", "two": "b"})).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    assert!(reply.text.contains("swap a and b") && reply.text.contains("not today"));
    // A denied access is not even asked about.
    person.taken();
    let reply = chat.call("swap", json!({"one": "a", "two": ".env"})).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    assert!(person.taken().is_empty());
    assert_eq!(snapshot(&backend).await, before);
}

/// Declares no accesses, so it is judged by all of its operations.
struct Deploy(Op);

#[derive(Debug)]
struct Named(&'static str, &'static [Op]);

#[async_trait]
impl ToolHandler for Named {
    fn definition(&self) -> Definition {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        Definition::new(self.0, "Does it.", schema, Annotations::of(self.1))
    }

    fn operations(&self) -> &'static [Op] {
        self.1
    }

    async fn call(&self, _: &Context, arguments: Value) -> ToolResult {
        Ok(Reply::text("done").structured(arguments))
    }
}

impl CustomTool for Deploy {
    type Args = NoArgs;
    const NAME: &'static str = "deploy";
    const DESCRIPTION: &'static str = "Deploys.";
    const OPERATIONS: &'static [Op] = &[Op::Write];

    fn accesses(
        &self,
        context: &Context,
        _: &NoArgs,
    ) -> Result<Vec<Access>, console_tools::ToolError> {
        match self.0 {
            Op::Write => Ok(Vec::new()),
            op => Ok(vec![Access::file(op, context.path("x")?)]),
        }
    }

    async fn run(&self, _: &Context, _: NoArgs) -> ToolResult {
        Ok(Reply::text("deployed"))
    }
}

fn shared(backend: &Arc<StateBackend>) -> Arc<dyn Backend> {
    Arc::<StateBackend>::clone(backend)
}

#[tokio::test]
async fn what_names_nothing_is_judged_by_all_it_may_do() {
    let backend = Arc::new(store().await);
    let person = RecordingApprover::new(true);
    let toolset = Toolset::builder(shared(&backend))
        .ruleset(Preset::Default.ruleset())
        .approver(person.clone())
        .tool(Deploy(Op::Write))
        .handler(Arc::new(Named("look", &[Op::Read])))
        .handler(Arc::new(Named("look_and_write", &[Op::Read, Op::Write])))
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    for (name, questions) in [("deploy", 1), ("look", 0), ("look_and_write", 1)] {
        let reply = chat.call(name, "").await;
        assert!(reply.is_success(), "{name}: {}", reply.text);
        assert_eq!(person.taken().len(), questions, "{name}");
        let asks = toolset.definitions().get(name).unwrap().asks;
        assert_eq!(asks, questions > 0, "{name}");
    }
    // It cannot do more than it declares.
    let toolset = Toolset::builder(backend).tool(Deploy(Op::Delete));
    let chat = toolset.build().unwrap().conversation("c");
    let reply = chat.call("deploy", "{}").await;
    assert_eq!(reply.failure, Some(FailureClass::Environment));
    assert!(reply.text.contains("not declared"), "{}", reply.text);
}

#[tokio::test]
async fn settings_count_for_custom_tools() {
    let backend = Arc::new(store().await);
    let settings =
        |action| ToolSettings::default().with_custom("swap", ToolSetting::action(action));
    let person = RecordingApprover::new(true);
    let toolset = Toolset::builder(shared(&backend))
        .tool_settings(settings(Action::Ask))
        .approver(person.clone())
        .tool(Swap);
    let toolset = toolset.build().unwrap();
    assert!(toolset.definitions().get("swap").unwrap().asks);
    let args = json!({"one": "a", "two": "b"});
    assert!(
        toolset
            .conversation("c")
            .call("swap", args.clone())
            .await
            .is_success()
    );
    assert_eq!(person.taken().len(), 1);

    let toolset = Toolset::builder(shared(&backend)).tool_settings(settings(Action::Deny));
    let toolset = toolset.tool(Swap).build().unwrap();
    assert!(toolset.definitions().get("swap").is_none());
    let reply = toolset.conversation("c").call("swap", args.clone()).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));

    // There is no approver.
    let toolset = Toolset::builder(backend).tool_settings(settings(Action::Ask));
    let toolset = toolset.tool(Swap).build().unwrap();
    let reply = toolset.conversation("c").call("swap", args).await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    assert!(reply.text.contains("needs approval"), "{}", reply.text);
}

#[tokio::test]
async fn a_builder_says_what_to_change() {
    let backend = Arc::new(store().await);
    let builder = || Toolset::builder(shared(&backend));
    let named = |name, operations| Arc::new(Named(name, operations));
    let error = |builder: console_tools::ToolsetBuilder| builder.build().unwrap_err();
    for name in ["", "a b", "ä", "a.b", &"x".repeat(65)] {
        let name: &'static str = String::from(name).leak();
        let handler = named(name, &[Op::Read]);
        assert!(matches!(
            error(builder().handler(handler)),
            BuildError::InvalidName(_)
        ));
    }
    for name in ["read_file", "execute", "list_files", "swap"] {
        let builder = builder().tool(Swap).handler(named(name, &[Op::Read]));
        let error = error(builder);
        assert_eq!(
            error.to_string(),
            format!("another tool is called '{name}'; give one of them another name")
        );
    }
    let nothing = error(builder().handler(named("nothing", &[])));
    assert!(matches!(nothing, BuildError::NoOperations(_)));

    let mut options = Options::default();
    options.descriptions.insert("swap".into(), "S.".into());
    options.descriptions.insert("read_file".into(), "R.".into());
    let toolset = builder()
        .options(options.clone())
        .tool(Swap)
        .build()
        .unwrap();
    assert_eq!(toolset.definitions().get("swap").unwrap().description, "S.");
    let unknown = error(builder().options(options.clone()));
    let text = unknown.to_string();
    assert!(
        text.starts_with("a description is given for an unknown tool: swap;"),
        "{text}"
    );
    assert!(
        text.contains("ls, read_file,") && text.contains("list_shells"),
        "{text}"
    );
    assert!(!text.contains("list_files"), "{text}");

    let misspelt = ToolSettings::default().with_custom("swpa", ToolSetting::action(Action::Deny));
    let unknown = error(builder().tool(Swap).tool_settings(misspelt));
    assert_eq!(
        unknown.to_string(),
        "settings are given for an unknown custom tool: swpa; the custom tools are swap"
    );
    let two = builder()
        .policy(Default::default())
        .ruleset(Preset::Strict.ruleset());
    assert_eq!(error(two), BuildError::TwoPolicies);
}
