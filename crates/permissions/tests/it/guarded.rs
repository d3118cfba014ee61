//! Tests of every method of a guard: denied, asked about, allowed.

use std::sync::{Arc, Mutex};

use backend_core::ErrorKind::{self, PermissionDenied, Unsupported};
use backend_core::ops::Command;
use backend_core::{Backend, BackendExt as _};
use backend_state::StateBackend;
use backend_testkit::fails;
use backend_testkit::fake::Intercepted;
use permissions::approval::{ApprovalService, Grants, Question};
use permissions::audit::{Audit, Outcome};
use permissions::tool::{Tool, ToolSetting, ToolSettings};
use permissions::{Action, Answer, Guarded, Op, Policy, Preset, Refusal, Remember, Target};

use crate::support::scene;
use crate::support::scene::{METHODS, Person, call, furnish, guard, local, policy, snapshot};

const RUNNING: &[&str] = &["execute", "stream", "shell_start"];

/// Allows everything except one operation, which gets `action`.
fn all_but(op: Op, action: Action) -> Policy {
    let section = |each: Op| {
        let action = if each == op { action } else { Action::Allow };
        format!(r#""{each}": {{"default": "{action}"}}"#)
    };
    policy(&format!("{{ {} }}", Op::ALL.map(section).join(", ")))
}

fn rules_of(all: Action) -> Policy {
    policy(&format!(
        r#"{{ "default": "{all}", "move": {{"default": "{all}"}}, "copy": {{"default": "{all}"}},
              "execute": {{"default": "{all}"}} }}"#
    ))
}

#[tokio::test]
async fn what_is_denied_never_reaches_the_backend() {
    for (method, ops) in METHODS {
        for op in Op::ALL {
            let (backend, calls) = Intercepted::recording(StateBackend::new());
            furnish(&backend).await;
            let before = snapshot(backend.inner()).await;
            calls.taken();
            let person = Person::yes();
            let guarded = guard(backend.clone(), all_but(op, Action::Deny), &person);
            let answer = call(&guarded, method).await;
            if !ops.contains(&op) {
                assert!(answer.is_ok(), "{method} with {op} denied: {answer:?}");
                continue;
            }
            let error = answer.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{method} {op}");
            assert!(Refusal::of(&error).is_some(), "{method} {op}: {error}");
            assert!(error.path().is_some() && error.backend().is_some());
            assert_eq!(calls.taken(), [], "{method} with {op} denied");
            assert!(person.taken().is_empty(), "nobody is asked about a denial");
            assert_eq!(snapshot(backend.inner()).await, before);
        }
    }
}

#[tokio::test]
async fn what_is_asked_is_asked_once_and_then_done() {
    for (method, _) in METHODS {
        let bare = StateBackend::new();
        furnish(&bare).await;
        let expected = call(&bare, method).await.unwrap();
        let backend = StateBackend::new();
        furnish(&backend).await;
        let person = Person::yes();
        let guarded = guard(backend.clone(), rules_of(Action::Ask), &person);
        let answer = call(&guarded, method).await.unwrap();
        assert_eq!(person.taken().len(), 1, "{method}");
        assert_eq!(strip_times(&answer), strip_times(&expected), "{method}");
        assert_eq!(snapshot(&backend).await, snapshot(&bare).await, "{method}");
    }
}

/// Removes the timestamps from an answer.
fn strip_times(answer: &str) -> String {
    let mut parts = answer.split("SystemTime {");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(part.split_once('}').map_or("", |(_, rest)| rest));
    }
    text
}

#[tokio::test]
async fn a_no_is_a_refusal_and_nothing_happens() {
    for (method, _) in METHODS {
        let backend = StateBackend::new();
        furnish(&backend).await;
        let before = snapshot(&backend).await;
        let person = Person::no();
        let guarded = guard(backend.clone(), rules_of(Action::Ask), &person);
        let error = call(&guarded, method).await.unwrap_err();
        let refusal = Refusal::of(&error).unwrap();
        assert!(
            matches!(refusal, Refusal::Declined { .. }),
            "{method}: {error}"
        );
        assert_eq!(person.taken().len(), 1, "{method}");
        assert_eq!(snapshot(&backend).await, before, "{method}");

        let alone = Guarded::builder(backend.clone())
            .policy(rules_of(Action::Ask))
            .build();
        let error = call(&alone, method).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ApprovalRequired, "{method}");
        assert_eq!(snapshot(&backend).await, before, "{method}");
    }
}

#[tokio::test]
async fn commands_are_judged_in_the_foreground_and_the_background() {
    for method in RUNNING {
        let (directory, backend) = local();
        let ran = || directory.path().join("ran").exists();
        let person = Person::yes();
        let denied = guard(backend.clone(), all_but(Op::Execute, Action::Deny), &person);
        let error = call(&denied, method).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{method}");
        assert!(Refusal::of(&error).is_some());
        assert!(!ran() && person.taken().is_empty(), "{method}");

        let declined = guard(backend.clone(), rules_of(Action::Ask), &Person::no());
        let error = call(&declined, method).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{method}");
        assert!(!ran(), "{method}");

        let asked = guard(backend, rules_of(Action::Ask), &person);
        call(&asked, method).await.unwrap();
        let questions = person.taken();
        assert_eq!(questions.len(), 1, "{method}");
        assert!(questions[0].description.contains("touch ran"));
        assert!(ran(), "{method}");
    }
}

#[tokio::test]
async fn a_permit_is_accepted_for_what_was_asked_and_nothing_else() {
    let backend = StateBackend::new();
    furnish(&backend).await;
    let person = Person::yes();
    let service = ApprovalService::new(Arc::new(person.clone()), Grants::default());
    let guarded = Guarded::builder(backend)
        .policy(policy(
            r#"{"default":"ask","write":{"default":"ask","rules":[
                {"pattern":"/d/never","action":"deny"}]}}"#,
        ))
        .approval_service(service.clone())
        .build();
    let asked = |path| {
        let target = Target::Path(scene::path(path));
        vec![permissions::approval::Asked::new(Op::Write, target)]
    };
    let permit = service
        .authorize(Question::new("", asked("/d/a.txt")))
        .await;
    let never = service
        .authorize(Question::new("", asked("/d/never")))
        .await;
    assert_eq!(person.taken().len(), 2);
    let view = guarded
        .with_permit(permit.unwrap())
        .with_permit(never.unwrap());
    view.write_file("/d/a.txt", "x").await.unwrap();
    assert!(person.taken().is_empty(), "nobody is asked twice");
    view.write_file("/d/b.txt", "x").await.unwrap();
    assert_eq!(person.taken().len(), 1, "another path is another question");
    view.delete_file("/d/a.txt").await.unwrap();
    assert_eq!(person.taken().len(), 1, "another operation too");
    fails(PermissionDenied, view.write_file("/d/never", "x").await);
    guarded.write_file("/d/c", "x").await.unwrap();
    assert_eq!(person.taken().len(), 1, "the view alone holds the permit");
}

#[tokio::test]
async fn any_write_is_none_that_a_rule_asks_about() {
    for preset in [Preset::Default, Preset::Strict] {
        let person = Person::who(|_| Answer::yes().remember(Remember::Session));
        let policy = Policy::builder().ruleset(&preset.ruleset(), &scene::path("/"));
        let guarded = guard(StateBackend::new(), policy.build(), &person);
        let asks = async |path: &str| {
            guarded.write_file(path, "x").await.unwrap();
            person.taken().len()
        };
        assert_eq!(asks("/z1.txt").await, 1, "the default of write");
        assert_eq!(asks("/z2.txt").await, 0, "any write");
        assert_eq!(asks("/.git/hooks/pre-commit").await, 1, "its own rule");
        for other in ["/.git/hooks/post-commit", "/.mcp.json", "/.bashrc"] {
            assert_eq!(
                asks(other).await,
                0,
                "{other}: any write that rules ask about"
            );
        }
    }
}

#[tokio::test]
async fn any_command_is_none_that_a_rule_asks_about() {
    let (_directory, backend) = local();
    let person = Person::who(|_| Answer::yes().remember(Remember::Session));
    let rules = r#"{"default":"allow","execute":{"default":"ask","rules":[
        {"pattern":"true *","action":"ask"},{"pattern":"*","action":"ask"}]}}"#;
    let guarded = guard(backend, policy(rules), &person);
    let sandbox = guarded.as_sandbox().unwrap();
    for (line, questions) in [
        ("test a", 1),
        ("test b", 0),
        ("test a; true", 1),
        ("true b", 0),
    ] {
        sandbox.execute(Command::new(line)).await.unwrap();
        assert_eq!(person.taken().len(), questions, "{line}");
    }
}

#[tokio::test]
async fn tool_settings_count() {
    let backend = StateBackend::new();
    furnish(&backend).await;
    let tools = ToolSettings::default()
        .with(Tool::ReadFile, ToolSetting::action(Action::Ask))
        .with(Tool::WriteFile, ToolSetting::pre_approved())
        .with_custom("nosy", ToolSetting::action(Action::Deny));
    let rules = scene::rules(
        r#"{"default":"allow","write":{"default":"ask","rules":[
            {"pattern":"/d/never","action":"deny"}]}}"#,
    );
    let policy = Policy::builder()
        .ruleset(&rules, &backend.working_dir())
        .tools(tools)
        .build();
    let person = Person::yes();
    let guarded = guard(backend, policy, &person);
    guarded.read_bytes("/d/a.txt").await.unwrap();
    assert!(person.taken().is_empty());
    let tool = guarded.with_tool("read_file");
    tool.read_bytes("/d/a.txt").await.unwrap();
    let questions = person.taken();
    assert_eq!(questions[0].tool.as_deref(), Some("read_file"));
    let tool = guarded.with_tool("write_file");
    tool.write_file("/d/a.txt", "x").await.unwrap();
    assert!(person.taken().is_empty(), "approved beforehand");
    fails(PermissionDenied, tool.write_file("/d/never", "x").await);
    let nosy = guarded.with_tool("nosy");
    fails(PermissionDenied, nosy.read_bytes("/d/a.txt").await);
}

#[tokio::test]
async fn every_decision_is_told() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    let audit = Audit::new(move |event| {
        let line = format!("{}: {} {:?}", event.session, event.access, event.outcome);
        sink.lock().unwrap().push((line, event.outcome));
    });
    let backend = StateBackend::new();
    furnish(&backend).await;
    let person = Person::yes();
    let guarded = Guarded::builder(backend)
        .policy(policy(
            r#"{"default":"allow","write":{"default":"ask"},"delete":{"default":"deny"}}"#,
        ))
        .approver(person)
        .audit(audit)
        .session("s1")
        .build();
    guarded.read_bytes("/d/a.txt").await.unwrap();
    guarded.write_file("/d/a.txt", "x").await.unwrap();
    guarded.delete_file("/d/a.txt").await.unwrap_err();
    let told: Vec<_> = told.lock().unwrap().clone();
    assert_eq!(
        told,
        [
            ("s1: read /d/a.txt Allowed".to_owned(), Outcome::Allowed),
            (
                "s1: write /d/a.txt Permitted".to_owned(),
                Outcome::Permitted
            ),
            ("s1: delete /d/a.txt Refused".to_owned(), Outcome::Refused),
        ]
    );
}

#[tokio::test]
async fn a_guard_of_anything_is_a_sandbox_if_that_is_one() {
    let (_directory, backend) = local();
    let shared: Arc<dyn Backend> = Arc::new(backend);
    let guarded = Guarded::builder(Arc::clone(&shared)).build();
    assert_eq!(guarded.info(), shared.info());
    let (inner, outer) = (shared.as_sandbox().unwrap(), guarded.as_sandbox().unwrap());
    assert_eq!(inner.id(), outer.id());
    assert!(outer.is_alive().await.is_ok());
    let none = Guarded::builder(StateBackend::new()).build();
    assert!(none.as_sandbox().is_none());
    let error = backend_core::Sandbox::execute(&none, backend_core::ops::Command::new("true"));
    fails(Unsupported, error.await);
}
