//! Tests of the gate, with small builtin tools.

use std::sync::Mutex as StdMutex;

use async_trait::async_trait;
use backend_core::BackendExt as _;
use backend_core::ops::{ContentHash, WriteMode, WriteOptions};
use backend_state::StateBackend;
use permissions::access::Intent;
use permissions::approval::{ApproverError, Effect};
use permissions::tool::Tool;
use permissions::{Access, Answer, Approver, Op, Preset, Question};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::*;
use crate::context::Context;
use crate::options::EditFormat;
use crate::reply::{FailureClass, Reply, ToolError, ToolResult};
use crate::tool::{Builtin, Preview};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PathArgs {
    path: String,
}

struct ReadFile;

#[async_trait]
impl Builtin for ReadFile {
    type Args = PathArgs;
    type Output = ();
    const TOOL: Tool = Tool::ReadFile;

    async fn run(context: &Context, args: PathArgs) -> ToolResult {
        let path = context.path(&args.path)?;
        let bytes = context.backend.read_bytes(path.as_str()).await?;
        Ok(Reply::text(String::from_utf8_lossy(&bytes)))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct EditArgs {
    path: String,
    text: String,
}

/// Reads, then edits: two operations, one question.
struct Edit;

#[async_trait]
impl Builtin for Edit {
    type Args = EditArgs;
    type Output = ();
    const TOOL: Tool = Tool::HashlineEdit;

    fn accesses(context: &Context, args: &EditArgs) -> Result<Vec<Access>, ToolError> {
        Ok(Intent::edit(context.path(&args.path)?).accesses().collect())
    }

    async fn preview(context: &Context, args: &EditArgs) -> Preview {
        let Ok(path) = context.path(&args.path) else {
            return Preview::default();
        };
        let Ok(before) = context.backend.read_bytes(path.as_str()).await else {
            return Preview::default();
        };
        let effect = Effect::diff(path.as_str(), &before, args.text.as_bytes());
        Preview {
            effect,
            expected_content: Some((path, ContentHash::of(&before))),
            accesses: None,
        }
    }

    async fn run(context: &Context, args: EditArgs) -> ToolResult {
        let path = context.path(&args.path)?;
        let before = context.backend.read_bytes(path.as_str()).await?;
        let before = String::from_utf8_lossy(&before).into_owned();
        let edit = backend_core::Edit::new(before, args.text);
        context
            .backend
            .edit(&path, &[edit], Default::default())
            .await?;
        Ok(Reply::text("edited"))
    }
}

/// Counts the questions and gives each the same answer.
#[derive(Debug, Clone)]
struct Counting {
    asked: Arc<StdMutex<Vec<Question>>>,
    yes: bool,
}

impl Counting {
    fn new(yes: bool) -> Self {
        Self {
            asked: Arc::default(),
            yes,
        }
    }

    fn asked(&self) -> Vec<Question> {
        self.asked.lock().unwrap().clone()
    }
}

#[async_trait]
impl Approver for Counting {
    async fn ask(&self, question: &Question) -> Result<Answer, ApproverError> {
        self.asked.lock().unwrap().push(question.clone());
        Ok(if self.yes {
            Answer::yes()
        } else {
            Answer::no()
        })
    }
}

async fn state() -> StateBackend {
    let backend = StateBackend::new();
    backend.write_file("/a", "one\n").await.unwrap();
    backend
}

fn hashline() -> Options {
    Options {
        edit_format: EditFormat::Hashline,
        ..Options::default()
    }
}

fn tools(backend: &StateBackend) -> ToolsetBuilder {
    Toolset::builder(Arc::new(backend.clone()))
        .options(hashline())
        .builtin::<ReadFile>()
        .builtin::<Edit>()
}

#[tokio::test]
async fn two_operations_are_one_question_that_shows_the_change() {
    let backend = state().await;
    let person = Counting::new(true);
    let toolset = tools(&backend).ruleset(Preset::Strict.ruleset());
    let toolset = toolset.approver(person.clone()).build().unwrap();
    let chat = toolset.conversation("c");
    let reply = chat
        .call("hashline_edit", json!({"path": "a", "text": "two\n"}))
        .await;
    assert_eq!(reply, Reply::text("edited"));
    let asked = person.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    let question = &asked[0];
    assert_eq!(question.tool.as_deref(), Some("hashline_edit"));
    assert_eq!(question.args, json!({"path": "a", "text": "two\n"}));
    let shown = question.to_string();
    assert!(shown.contains("-one") && shown.contains("+two"), "{shown}");
    assert!(shown.contains("read /a; edit /a"), "{shown}");
    assert_eq!(&backend.read_bytes("/a").await.unwrap()[..], b"two\n");
}

#[tokio::test]
async fn a_no_changes_nothing_and_is_final() {
    let backend = state().await;
    let person = Counting::new(false);
    let toolset = tools(&backend).ruleset(Preset::Default.ruleset());
    let toolset = toolset.approver(person.clone()).build().unwrap();
    let chat = toolset.conversation("c");
    let reply = chat
        .call("hashline_edit", json!({"path": "a", "text": "two\n"}))
        .await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    assert!(reply.text.contains("was not approved"), "{}", reply.text);
    assert!(!reply.text.contains("one"), "{}", reply.text);
    assert_eq!(person.asked().len(), 1);
    assert_eq!(&backend.read_bytes("/a").await.unwrap()[..], b"one\n");
}

#[tokio::test]
async fn what_changes_while_somebody_thinks_is_not_overwritten() {
    #[derive(Debug)]
    struct Meddling(StateBackend);
    #[async_trait]
    impl Approver for Meddling {
        async fn ask(&self, _: &Question) -> Result<Answer, ApproverError> {
            self.0.write_file("/a", "other\n").await.unwrap();
            Ok(Answer::yes())
        }
    }
    let backend = state().await;
    let toolset = tools(&backend)
        .ruleset(Preset::Default.ruleset())
        .approver(Meddling(backend.clone()))
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    let reply = chat
        .call("hashline_edit", json!({"path": "a", "text": "two\n"}))
        .await;
    assert_eq!(reply.failure, Some(FailureClass::Fixable), "{}", reply.text);
    assert_eq!(&backend.read_bytes("/a").await.unwrap()[..], b"other\n");
}

#[tokio::test]
async fn without_rules_the_options_approvals_hold() {
    let backend = state().await;
    let person = Counting::new(true);
    let edit = json!({"path": "a", "text": "two\n"});
    let toolset = tools(&backend).approver(person.clone()).build().unwrap();
    assert!(!toolset.definitions().get("hashline_edit").unwrap().asks);
    assert!(
        toolset
            .conversation("c")
            .call("hashline_edit", edit)
            .await
            .is_success()
    );
    assert_eq!(person.asked().len(), 0);

    let options = Options {
        require_write_approval: true,
        ..hashline()
    };
    let toolset = tools(&backend).options(options).approver(person.clone());
    let toolset = toolset.build().unwrap();
    let definitions = toolset.definitions();
    assert!(definitions.get("hashline_edit").unwrap().asks);
    assert!(!definitions.get("read_file").unwrap().asks);
    let chat = toolset.conversation("c");
    let edit = json!({"path": "a", "text": "three\n"});
    assert!(chat.call("hashline_edit", edit).await.is_success());
    assert_eq!(person.asked().len(), 1);
    assert!(
        chat.call("read_file", json!({"path": "a"}))
            .await
            .is_success()
    );
    assert_eq!(person.asked().len(), 1);
}

#[tokio::test]
async fn what_can_only_be_denied_is_not_offered() {
    let backend = state().await;
    let toolset = tools(&backend)
        .ruleset(Preset::Readonly.ruleset())
        .build()
        .unwrap();
    let definitions = toolset.definitions();
    assert!(definitions.get("read_file").is_some());
    assert!(definitions.get("hashline_edit").is_none());
    let chat = toolset.conversation("c");
    let reply = chat
        .call("hashline_edit", json!({"path": "a", "text": "x"}))
        .await;
    assert_eq!(reply.failure, Some(FailureClass::Refused));
    assert_eq!(
        reply.text,
        "Error: Permission denied: 'hashline_edit' is not offered here; call one of read_file"
    );
}

#[tokio::test]
async fn a_denied_path_is_refused_however_it_is_spelt() {
    let backend = state().await;
    backend.write_file("/x/.env", "SECRET").await.unwrap();
    let toolset = tools(&backend)
        .ruleset(Preset::Permissive.ruleset())
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    for path in ["/x/.env", "x/.env", "x//./.env", "x/y/../.env"] {
        let reply = chat.call("read_file", json!({"path": path})).await;
        assert_eq!(
            reply.failure,
            Some(FailureClass::Refused),
            "{path}: {}",
            reply.text
        );
        let edit = json!({"path": path, "text": "x"});
        let reply = chat.call("hashline_edit", edit).await;
        assert_eq!(
            reply.failure,
            Some(FailureClass::Refused),
            "{path}: {}",
            reply.text
        );
        assert!(!reply.text.contains("SECRET"));
    }
}

#[tokio::test]
async fn the_filesystem_profile_keeps_its_words() {
    use backend_mounts::{Mount, MountConfig, Scope};
    let mount = Mount::new("/nowhere", "/docs").unwrap();
    let mounts = MountConfig::new(vec![mount]).build().unwrap();
    let policy = Policy::builder().layer(Scope::new(mounts)).build();
    let options = Options {
        profile: crate::options::Profile::Filesystem,
        ..Options::default()
    };
    let backend = state().await;
    let toolset = tools(&backend)
        .options(options)
        .policy(policy)
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    let reply = chat
        .call("hashline_edit", json!({"path": "/a", "text": "x"}))
        .await;
    assert!(!reply.is_success());
    let gate = chat
        .environment()
        .await
        .unwrap()
        .guard
        .with_tool("read_file");
    let error = gate
        .plan([Access::file(Op::Read, VPath::parse("/a").unwrap())])
        .await;
    let error = error.map(|_| ()).unwrap_err();
    let text =
        ToolError::for_profile(crate::options::Profile::Filesystem, "read_file", error).to_string();
    assert_eq!(
        text,
        "Cannot access '/a': path is outside sandbox.\nReadable paths: /docs"
    );
}

#[tokio::test]
async fn writes_after_the_answer_are_bound_to_what_was_shown() {
    // A direct write through the guard keeps the binding as well.
    let backend = state().await;
    let person = Counting::new(true);
    let toolset = tools(&backend)
        .ruleset(Preset::Strict.ruleset())
        .approver(person)
        .build()
        .unwrap();
    let chat = toolset.conversation("c");
    let environment = chat.environment().await.unwrap();
    let path = VPath::parse("/a").unwrap();
    let access = Access::file(Op::Write, path.clone());
    let planned = environment.guard.plan([access]).await.unwrap();
    let old = ContentHash::of(b"older\n");
    let permit = planned
        .authorize(|question| question.bind(path.clone(), old))
        .await;
    let view = environment.guard.with_permit(permit.unwrap().unwrap());
    let options = WriteOptions::default().mode(WriteMode::Overwrite);
    view.write(&path, "new".into(), options).await.unwrap_err();
    assert_eq!(&backend.read_bytes("/a").await.unwrap()[..], b"one\n");
}
