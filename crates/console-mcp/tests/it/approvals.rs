//! Questions are put to the client's user if the client supports that.

use std::time::Duration;

use console_mcp::Settings;
use serde_json::{Value, json};

use crate::support::client::{Client, TestBackend, failed, soon, text};

fn backend(directory: &std::path::Path) -> TestBackend {
    TestBackend {
        asks: true,
        ..TestBackend::local(directory)
    }
}

async fn asking(directory: &std::path::Path) -> Client {
    let able = json!({"elicitation": {"form": {}}});
    Client::new(backend(directory), Settings::default(), able).await
}

fn run(command: &str) -> Value {
    json!({"command": command})
}

fn write(path: &str) -> Value {
    json!({"path": path, "content": "x"})
}

fn accept(decision: &str) -> Value {
    json!({"action": "accept", "content": {"decision": decision}})
}

#[tokio::test]
async fn a_yes_is_done_once() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = asking(directory.path()).await;
    for _ in 0..2 {
        let (_, answer) = client.begin_call("execute", run("echo done")).await;
        let event = client.event("elicitation/create").await;
        let message = event["params"]["message"].as_str().unwrap();
        assert!(message.contains("echo done"), "{message}");
        let schema = &event["params"]["requestedSchema"];
        assert_eq!(schema["required"], json!(["decision"]), "{event}");
        let choices = schema["properties"]["decision"]["enum"].as_array().unwrap();
        assert_eq!(choices.len(), 4, "{event}");
        client.answer(&event["id"], accept("allow once")).await;
        let answer = soon(answer).await.unwrap();
        assert_eq!(text(&answer["result"]), "done\n");
    }
    client.leave().await;
}

#[tokio::test]
async fn a_no_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = asking(directory.path()).await;
    for answer in [
        accept("deny"),
        accept("allow everything"),
        json!({"action": "accept"}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let (_, result) = client.begin_call("write_file", write("a.txt")).await;
        let (id, question) = client.question().await;
        assert!(question.contains("a.txt"), "{question}");
        client.answer(&id, answer.clone()).await;
        let result = &soon(result).await.unwrap()["result"];
        assert!(failed(result), "{answer}: {result}");
        assert!(text(result).contains("not approved"), "{result}");
    }
    assert!(!directory.path().join("a.txt").exists());
    client.leave().await;
}

#[tokio::test]
async fn an_answer_for_the_session_is_remembered_for_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = asking(directory.path()).await;
    let (_, result) = client.begin_call("execute", run("echo same")).await;
    let (id, question) = client.question().await;
    let scopes = "(this: the same command; everything of this kind: execute unless a rule asks)";
    assert!(question.ends_with(scopes), "{question}");
    client
        .answer(&id, accept("allow this for the session"))
        .await;
    soon(result).await.unwrap();
    // The same command runs, another one is asked about.
    let again = client.call("execute", run("echo same")).await;
    assert_eq!(text(&again), "same\n");
    let (_, result) = client.begin_call("execute", run("echo other")).await;
    let (id, _) = client.question().await;
    client
        .answer(&id, accept("allow everything of this kind for the session"))
        .await;
    soon(result).await.unwrap();
    let third = client.call("execute", run("echo third")).await;
    assert_eq!(text(&third), "third\n");
    // Another kind is still asked about.
    let (_, result) = client.begin_call("write_file", write("a")).await;
    let (id, question) = client.question().await;
    let scopes = "(this: the same operation on the same path; everything of this kind: write \
                  unless a rule asks)";
    assert!(question.ends_with(scopes), "{question}");
    client.answer(&id, accept("deny")).await;
    assert!(failed(&soon(result).await.unwrap()["result"]));
    client.leave().await;
}

#[tokio::test]
async fn everything_of_a_kind_is_nothing_that_a_rule_asks_about() {
    let directory = tempfile::tempdir().unwrap();
    let backend = TestBackend {
        ruleset: Some(permissions::Preset::Default.ruleset()),
        ..TestBackend::local(directory.path())
    };
    let able = json!({"elicitation": {"form": {}}});
    let mut client = Client::new(backend, Settings::default(), able).await;
    let all = accept("allow everything of this kind for the session");
    let (_, result) = client.begin_call("write_file", write("a.txt")).await;
    let (id, _) = client.question().await;
    client.answer(&id, all.clone()).await;
    assert!(!failed(&soon(result).await.unwrap()["result"]));
    assert!(!failed(&client.call("write_file", write("b.txt")).await));

    let (_, result) = client.begin_call("write_file", write(".bashrc")).await;
    let (id, question) = client.question().await;
    let scopes = "(this: the same operation on the same path; everything of this kind: write)";
    assert!(question.ends_with(scopes), "{question}");
    client.answer(&id, all).await;
    assert!(!failed(&soon(result).await.unwrap()["result"]));
    assert!(!failed(
        &client.call("write_file", write(".mcp.json")).await
    ));
    client.leave().await;
}

#[tokio::test]
async fn a_client_that_cannot_ask_gets_a_refusal_that_says_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    for able in [json!({}), json!({"elicitation": {"url": {}}})] {
        let mut client = Client::new(backend(directory.path()), Settings::default(), able).await;
        let result = client.call("execute", run("echo done")).await;
        assert!(failed(&result), "{result}");
        let said = text(&result);
        assert!(
            said.contains("elicitation") && said.contains("permissions"),
            "{said}"
        );
        client.leave().await;
    }
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.answer_timeout = Duration::from_millis(50);
    let able = json!({"elicitation": {}});
    let mut client = Client::new(backend(directory.path()), settings, able).await;
    let result = client.call("execute", run("echo done")).await;
    assert!(
        failed(&result) && text(&result).contains("no answer within"),
        "{result}"
    );
    // The question is withdrawn.
    let (id, _) = client.question().await;
    let withdrawn = client.event("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], id);
    // A late answer is too late.
    client.answer(&id, accept("allow once")).await;
    client.ask("ping", json!({})).await;
    client.leave().await;
}

#[tokio::test]
async fn a_cancelled_call_withdraws_its_question() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = asking(directory.path()).await;
    let (call, _) = client.begin_call("write_file", write("a")).await;
    let (id, _) = client.question().await;
    client
        .notify("notifications/cancelled", json!({"requestId": call}))
        .await;
    let withdrawn = client.event("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], id);
    client.answer(&id, accept("allow once")).await;
    client.ask("ping", json!({})).await;
    assert!(!directory.path().join("a").exists());
    client.leave().await;
}

#[tokio::test]
async fn a_client_that_goes_while_it_is_asked_allows_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = asking(directory.path()).await;
    let _ = client.begin_call("write_file", write("a")).await;
    client.question().await;
    client.leave().await;
    assert!(!directory.path().join("a").exists());
}

#[tokio::test]
async fn the_toolsets_own_approver_can_stay() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.ask_client = false;
    let able = json!({"elicitation": {}});
    let mut client = Client::new(backend(directory.path()), settings, able).await;
    let result = client.call("execute", run("echo done")).await;
    assert!(failed(&result), "{result}");
    assert!(client.events.try_recv().is_err(), "the client was asked");
    client.leave().await;
}

#[tokio::test]
async fn questions_hold_no_other_call_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.concurrent_calls = 1;
    let able = json!({"elicitation": {}});
    let mut client = Client::new(backend(directory.path()), settings, able).await;
    let mut waiting = Vec::new();
    for name in ["one", "two"] {
        let (_, answer) = client.begin_call("write_file", write(name)).await;
        waiting.push((client.question().await, answer));
    }
    let listed = client.call("ls", json!({"path": "/"})).await;
    assert!(!failed(&listed), "{listed}");
    // The approved calls take their slots again.
    for ((id, _), answer) in waiting {
        client.answer(&id, accept("allow once")).await;
        assert!(!failed(&soon(answer).await.unwrap()["result"]));
    }
    let listed = client.call("ls", json!({"path": "/"})).await;
    assert!(text(&listed).contains("two"), "{listed}");
    client.leave().await;
}
