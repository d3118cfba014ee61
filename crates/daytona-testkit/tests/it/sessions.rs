//! Sessions, and their traps.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, HOLD, LONG, json, refused};

/// Long enough to see that something does not end.
const A_WHILE: Duration = Duration::from_millis(500);

async fn client() -> Client {
    let client = Client::new().await;
    create(&client, "s").await;
    client
}

async fn create(client: &Client, name: &str) {
    let created = client
        .post("/process/session", json!({"sessionId": name}))
        .await;
    assert_eq!(created.status(), 201);
}

async fn execute(client: &Client, command: &str) -> Value {
    let request = json!({"command": command});
    json(client.post("/process/session/s/exec", request).await).await
}

/// Starts a command and returns the path of its routes.
async fn start(client: &Client, command: &str, is_quiet: bool) -> String {
    let request = json!({"command": command, "runAsync": true, "suppressInputEcho": is_quiet});
    let answer = client.post("/process/session/s/exec", request).await;
    assert_eq!(answer.status(), 202);
    let answer = json(answer).await;
    assert!(answer["exitCode"].is_null());
    format!(
        "/process/session/s/command/{}",
        answer["cmdId"].as_str().unwrap()
    )
}

/// Waits for a command's exit code.
async fn exit_code(client: &Client, command: &str) -> Value {
    let ended = async {
        loop {
            let shown = json(client.get(command).await).await;
            if let Some(code) = shown.get("exitCode") {
                return code.clone();
            }
        }
    };
    timeout(LONG, ended).await.unwrap()
}

#[tokio::test]
async fn a_session_keeps_its_state_and_marks_its_streams() {
    let client = client().await;
    execute(&client, "cd /tmp; export A=1").await;
    let answer = execute(&client, "echo $A $PWD; printf 'e\\0f' >&2; (exit 7)").await;
    assert_eq!(
        (&answer["stdout"], &answer["stderr"]),
        (&json!("1 /tmp\n"), &json!("ef\n"))
    );
    assert_eq!(answer["exitCode"], 7);
    let output = answer["output"].as_str().unwrap();
    assert!(output.contains("\u{1}\u{1}\u{1}1 /tmp\n"), "{output:?}");
    assert_eq!(execute(&client, "if then").await["exitCode"], 2);
    assert_eq!(execute(&client, "cat; echo eof").await["stdout"], "eof\n");
    let listed = json(client.get("/process/session").await).await;
    assert_eq!(listed[0]["sessionId"], "s");
    assert_eq!(listed[0]["commands"].as_array().unwrap().len(), 4);
    client.standin.close().await;
}

#[tokio::test]
async fn the_version_of_the_client_decides_over_the_form_of_output() {
    let client = client().await;
    let exec = client.url("/process/session/s/exec");
    let ask = async |version: Option<&str>| {
        let mut request = client
            .http
            .post(&exec)
            .bearer_auth(client.standin.api_key());
        if let Some(version) = version {
            request = request.header("x-daytona-sdk-version", version);
        }
        json(
            request
                .json(&json!({"command": "echo o"}))
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    for version in [None, Some("0.1.0")] {
        let answer = ask(version).await;
        assert_eq!(
            (&answer["output"], &answer["stdout"]),
            (&json!("o\n"), &Value::Null)
        );
    }
    assert_eq!(ask(Some("0.0.0-dev")).await["stdout"], "o\n");
    assert_eq!(ask(Some("new")).await["output"], "\u{1}\u{1}\u{1}o\n");
    client.standin.close().await;
}

#[tokio::test]
async fn a_command_that_ends_the_shell_is_never_answered() {
    let client = client().await;
    let request = client.toolbox(Method::POST, "/process/session/s/exec");
    let request = request
        .json(&json!({"command": "echo last; exit 3"}))
        .send();
    assert!(timeout(A_WHILE, request).await.is_err());
    let refusal = async {
        loop {
            let request = json!({"command": "true", "runAsync": true});
            let answer = client.post("/process/session/s/exec", request).await;
            if answer.status() != 202 {
                return refused(answer).await;
            }
        }
    };
    let (status, body) = timeout(LONG, refusal).await.unwrap();
    assert_eq!(status, 500);
    assert!(body.contains("broken pipe"), "{body}");
    let shown = json(client.get("/process/session/s").await).await;
    let first = &shown["commands"][0];
    assert!(first.get("exitCode").is_none());
    let logs = format!(
        "/process/session/s/command/{}/logs",
        first["id"].as_str().unwrap()
    );
    assert_eq!(json(client.get(&logs).await).await["stdout"], "last\n");
    client.standin.close().await;
}

#[tokio::test]
async fn a_program_that_keeps_the_output_open_delays_the_next_command() {
    let client = client().await;
    let first = start(&client, "sleep 1 & echo started", true).await;
    let answer = execute(&client, "echo next").await;
    assert_eq!(answer["stdout"], "next\n");
    assert_eq!(json(client.get(&first).await).await["exitCode"], 0);
    client.standin.close().await;
}

#[tokio::test]
async fn a_command_takes_input_while_it_runs() {
    let client = client().await;
    let command = start(&client, "read a; read b; echo $b $a", false).await;
    for data in ["one", "two"] {
        let sent = client
            .post(&format!("{command}/input"), json!({"data": data}))
            .await;
        assert_eq!(sent.status(), 204);
    }
    assert_eq!(exit_code(&client, &command).await, 0);
    let logs = json(client.get(&format!("{command}/logs")).await).await;
    assert_eq!(logs["stdout"], "one\ntwo\ntwo one\n");
    let late = client
        .post(&format!("{command}/input"), json!({"data": "x"}))
        .await;
    assert_eq!(refused(late).await.0, 410);
    client.standin.close().await;
}

#[tokio::test]
async fn a_log_is_followed_from_its_beginning_to_its_end() {
    let client = client().await;
    let command = start(
        &client,
        "echo 1; read x; echo 2 >&2; exit_later() { return 5; }; exit_later",
        true,
    )
    .await;
    let url = client.url(&format!("{command}/logs?follow=true"));
    let mut socket = client.socket(&url, &[]).await;
    let first = timeout(LONG, socket.next())
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(first, Message::binary(&b"\x01\x01\x011\n"[..]));
    client
        .post(&format!("{command}/input"), json!({"data": ""}))
        .await;
    let mut rest = Vec::new();
    let code = loop {
        match timeout(LONG, socket.next()).await.unwrap() {
            Some(Ok(Message::Binary(bytes))) => rest.extend(bytes),
            Some(Ok(Message::Close(Some(frame)))) => break u16::from(frame.code),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!((rest.as_slice(), code), (&b"\x02\x02\x022\n"[..], 1000));
    assert_eq!(exit_code(&client, &command).await, 5);
    client.standin.close().await;
}

#[tokio::test]
async fn deleting_a_session_ends_its_processes_and_keeps_no_log() {
    let client = client().await;
    let command = start(&client, &format!("echo partial; {HOLD} & sleep 602"), true).await;
    let logs = format!("{command}/logs");
    client.until_held(true).await;
    assert_eq!(json(client.get(&logs).await).await["stdout"], "partial\n");
    let pending = client.toolbox(Method::POST, "/process/session/s/exec");
    let pending = tokio::spawn(pending.json(&json!({"command": "true"})).send());
    while json(client.get("/process/session/s").await).await["commands"]
        .as_array()
        .unwrap()
        .len()
        < 2
    {}
    assert_eq!(client.delete("/process/session/s").await.status(), 204);
    let (status, body) = refused(pending.await.unwrap().unwrap()).await;
    assert_eq!(status, 500);
    assert!(body.contains("session cancelled"), "{body}");
    assert_eq!(refused(client.get(&logs).await).await.0, 404);
    client.until_held(false).await;
    client.standin.close().await;
}

#[tokio::test]
async fn a_process_that_ignores_the_signal_is_killed() {
    let client = client().await;
    start(&client, &format!("trap '' TERM; {HOLD}"), true).await;
    client.until_held(true).await;
    assert_eq!(client.delete("/process/session/s").await.status(), 204);
    client.until_held(false).await;
    client.standin.close().await;
}

#[tokio::test]
async fn unknown_sessions_are_refused_in_two_ways() {
    let client = client().await;
    let again = client
        .post("/process/session", json!({"sessionId": "s"}))
        .await;
    assert_eq!(refused(again).await.0, 409);
    let exec = client
        .post("/process/session/none/exec", json!({"command": "true"}))
        .await;
    let (status, body) = refused(exec).await;
    assert_eq!(status, 500);
    assert!(
        body.contains("failed to execute command: not found: session not found"),
        "{body}"
    );
    assert_eq!(
        refused(client.get("/process/session/none").await).await.0,
        404
    );
    assert_eq!(
        refused(client.delete("/process/session/none").await)
            .await
            .0,
        404
    );
    assert_eq!(
        refused(client.get("/process/session/s/command/none").await)
            .await
            .0,
        404
    );
    client.standin.close().await;
}
