//! Tests of judging and asking about all accesses of a tool at once.

use backend_core::ops::{Command, StopMode};
use backend_core::{BackendExt as _, ErrorKind, Sandbox as _};
use backend_state::StateBackend;
use backend_testkit::fails;
use bytes::Bytes;
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Access, Action, Guarded, Op, Policy};

use crate::support::scene::{Person, guard, link, local, path, policy};

const ASK: &str = r#"{ "default": "ask",
    "write": {"default": "ask", "rules": [{"pattern": "/deny/**", "action": "deny"}]},
    "read": {"default": "allow", "rules": [{"pattern": "/deny/**", "action": "deny"}]} }"#;

#[tokio::test]
async fn several_accesses_are_one_question_and_one_permit() {
    let person = Person::yes();
    let guarded = guard(StateBackend::new(), policy(ASK), &person);
    let accesses = [
        Access::file(Op::Read, path("/a")),
        Access::file(Op::Write, path("/a")),
        Access::file(Op::Write, path("/b")),
        Access::command("make all"),
    ];
    let planned = guarded.plan(accesses).await.unwrap();
    assert!(planned.asks());
    let permit = planned.authorize(|question| question.description("build"));
    let permit = permit.await.unwrap().unwrap();
    let asked = person.taken();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].description, "build");
    let of: Vec<String> = asked[0].asked.iter().map(ToString::to_string).collect();
    assert_eq!(of, ["write /a", "write /b", "execute make all"]);
    let view = guarded.with_permit(permit);
    view.write_file("/a", "1").await.unwrap();
    view.write_file("/b", "1").await.unwrap();
    assert!(person.taken().is_empty());
    view.write_file("/c", "1").await.unwrap();
    assert_eq!(person.taken().len(), 1, "nobody said yes to that");
}

#[tokio::test]
async fn what_is_denied_is_never_asked() {
    let person = Person::yes();
    let guarded = guard(StateBackend::new(), policy(ASK), &person);
    let accesses = ["/a", "/deny/b"].map(|at| Access::file(Op::Write, path(at)));
    fails(ErrorKind::PermissionDenied, guarded.plan(accesses).await);
    assert!(person.taken().is_empty());
    let free = [Access::file(Op::Read, path("/a"))];
    let planned = guarded.plan(free).await.unwrap();
    assert!(!planned.asks());
    let permit = planned.authorize(|question| question).await.unwrap();
    assert!(permit.is_none());
}

#[tokio::test]
async fn links_are_judged_where_they_lead() {
    let (directory, backend) = local();
    backend.write_file("/deny/secret", "x").await.unwrap();
    backend.write_file("/ok/file", "x").await.unwrap();
    link(directory.path(), "out", "deny/secret");
    link(directory.path(), "in", "ok/file");
    let person = Person::yes();
    let guarded = guard(backend, policy(ASK), &person);
    let out = guarded.plan([Access::file(Op::Read, path("/out"))]).await;
    let error = fails(ErrorKind::PermissionDenied, out);
    assert!(!error.to_string().contains("deny/secret"), "{error}");
    // Deleting a link does not touch its target.
    let kept = guarded.plan([Access::file(Op::Delete, path("/out"))]).await;
    kept.unwrap();
    let planned = guarded.plan([Access::file(Op::Write, path("/in"))]).await;
    let permit = planned.unwrap().authorize(|question| question).await;
    assert_eq!(person.taken().len(), 1);
    let view = guarded.with_permit(permit.unwrap().unwrap());
    view.write_file("/in", "y").await.unwrap();
    assert!(person.taken().is_empty(), "the target was asked about too");
}

/// A tool that needs approval asks only once about its input.
#[tokio::test]
async fn typing_is_one_question() {
    let (_directory, backend) = local();
    let person = Person::yes();
    let ask = ToolSetting::action(Action::Ask);
    let tools = ToolSettings::default().with(Tool::WriteInput, ask);
    let policy = Policy::builder().tools(tools).build();
    let guarded: Guarded<_> = guard(backend.clone(), policy, &person);
    let cat = guarded.shell_start(Command::new("cat")).await.unwrap().id;
    let typing = guarded.with_tool("write_input");
    let input = Bytes::from_static(b"hello\n");
    typing.shell_write(&cat, Some(input)).await.unwrap();
    assert_eq!(person.taken().len(), 1);
    typing.shell_write(&cat, None).await.unwrap();
    assert_eq!(person.taken().len(), 1);
    backend.stop(StopMode::Keep).await.unwrap();
}

#[tokio::test]
async fn a_view_asks_in_its_own_words_and_shows_as_much() {
    let person = Person::yes();
    let guarded = guard(StateBackend::new(), policy(ASK), &person);
    let view = guarded.with_description("keep a note");
    view.write_file("/a", "1").await.unwrap();
    guarded.write_file("/b", "1").await.unwrap();
    let asked = person.taken();
    assert_eq!(asked[0].description, "keep a note");
    assert!(asked[0].to_string().contains("+1"), "{}", asked[0]);
    assert_eq!(asked[1].description, "Write 1 char to /b");
    let person = Person::no();
    let guarded = guard(StateBackend::new(), policy(ASK), &person).with_description("keep a note");
    let refused = guarded.write_file("/a", "1").await.unwrap_err();
    assert!(refused.to_string().contains("keep a note"), "{refused}");
}

#[tokio::test]
async fn a_view_with_another_policy_is_bound_by_that_policy_alone() {
    let person = Person::yes();
    let guarded = guard(StateBackend::new(), policy(ASK), &person);
    let narrow = guarded.with_policy(policy(r#"{ "default": "deny" }"#));
    let denied = narrow.write_file("/a", "1").await;
    fails(ErrorKind::PermissionDenied, denied);
    let wide = guarded.with_policy(Policy::allow_all());
    wide.write_file("/deny/a", "1").await.unwrap();
    assert!(person.taken().is_empty());
    guarded.write_file("/a", "1").await.unwrap();
    assert_eq!(person.taken().len(), 1, "the guard itself keeps its policy");
    // The settings of the view's tool are those of the new policy.
    let deny = ToolSetting::action(Action::Deny);
    let tools = ToolSettings::default().with(Tool::WriteFile, deny);
    let tool = guarded.with_tool("write_file");
    let view = tool.with_policy(Policy::builder().tools(tools).build());
    fails(
        ErrorKind::PermissionDenied,
        view.write_file("/b", "1").await,
    );
    tool.write_file("/b", "1").await.unwrap();
}
