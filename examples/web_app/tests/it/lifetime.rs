//! Sessions that come back: after an idle time, and after the server.

use std::time::{Duration, SystemTime};

use examples::web::tester::{Server, Turn, json_of};
use reqwest::StatusCode;
use serde_json::json;

use crate::APP;
use crate::chat::answer;

#[tokio::test]
async fn an_idle_session_ends_and_comes_back_with_its_files() {
    let data = tempfile::tempdir().unwrap();
    let mut server = APP.start(data.path(), &["--idle", "1"]).await;
    let session = server.session().await;
    server.execute(&session, "echo kept > a.txt").await;
    server.line("has a sandbox").await;
    server.line("was idle; its files stay").await;
    assert_eq!(server.names(&session).await, ["a.txt"]);
    let done = server.execute(&session, "cat a.txt").await;
    assert_eq!(done["stdout"], "kept\n");
}

#[tokio::test]
async fn sessions_outlast_the_server() {
    let data = tempfile::tempdir().unwrap();
    let first = APP.start(data.path(), &[]).await;
    let session = first.session().await;
    let mut whole = Turn::begin(&first, &session, "run echo one").await;
    let asked = whole.events().await;
    let yes = answer(&first, &session, &asked, json!({"approve": true})).await;
    assert_eq!(yes, StatusCode::NO_CONTENT);
    whole.events().await;
    let mut half = Turn::begin(&first, &session, "run echo two").await;
    half.events().await;
    let put = first.put(&format!("{session}/files/a.txt"), "kept\n").await;
    assert_eq!(put, StatusCode::NO_CONTENT);
    first.kill().await;

    let second = APP.start(data.path(), &[]).await;
    let found = second.get(&session).await;
    assert_eq!(found.status(), StatusCode::OK);
    let events = json_of(found).await["events"].clone();
    let types = events.as_array().unwrap().iter();
    let types: Vec<_> = types.map(|event| &event["type"]).collect();
    assert_eq!(types, ["user", "text", "call", "reply", "text", "user"]);
    assert_eq!(events[3]["text"], "one\n");
    assert_eq!(second.names(&session).await, ["a.txt"]);
    let done = second.execute(&session, "cat a.txt").await;
    assert_eq!(done["stdout"], "kept\n");
}

#[tokio::test]
async fn what_is_not_used_for_long_is_deleted() {
    let data = tempfile::tempdir().unwrap();
    let server = APP.start(data.path(), &[]).await;
    let old = server.session().await;
    server.execute(&old, "touch a.txt").await;
    server.stop().await;
    let stored = std::fs::read_dir(data.path().join("conversations")).unwrap();
    let stored = stored.map(|entry| entry.unwrap().path()).next().unwrap();
    let file = std::fs::File::options().write(true).open(&stored).unwrap();
    let age = Duration::from_secs(31 * 24 * 3600);
    file.set_modified(SystemTime::now() - age).unwrap();

    let mut server = APP.start(data.path(), &[]).await;
    server.line("was not used for long").await;
    assert_eq!(server.get(&old).await.status(), StatusCode::NOT_FOUND);
    let name = stored.file_stem().unwrap();
    assert!(!data.path().join("files").join(name).exists());
}

#[tokio::test]
async fn a_conversation_has_an_end() {
    let data = tempfile::tempdir().unwrap();
    let server = APP.start(data.path(), &[]).await;
    let session = server.session().await;
    server.kill().await;
    let stored = std::fs::read_dir(data.path().join("conversations")).unwrap();
    let stored = stored.map(|entry| entry.unwrap().path()).next().unwrap();
    let long = json!([{"role": "user", "content": "x".repeat(5 * 1024 * 1024)}]);
    std::fs::write(stored, long.to_string()).unwrap();

    let server = APP.start(data.path(), &[]).await;
    let chat = format!("{session}/chat");
    let refused = server.post(&chat, &json!({"text": "run true"})).await;
    assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn without_docker_commands_are_confined_and_the_page_says_so() {
    let data = tempfile::tempdir().unwrap();
    let nowhere = format!("unix://{}/docker.sock", data.path().display());
    let mut program = APP.program(data.path());
    let server = Server::launch(program.env("DOCKER_HOST", nowhere)).await;
    let session = server.session().await;
    let told = json_of(server.get(&session).await).await;
    let place = "a confined directory of the server, because there is no Docker daemon";
    assert_eq!(told["sandbox"], place);
    assert_eq!(told["scripted"], true);
    let done = server.execute(&session, "cat /etc/shadow").await;
    assert_eq!(
        (&done["success"], &done["stdout"]),
        (&json!(false), &json!(""))
    );
}
