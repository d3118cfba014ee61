//! Terminals over websockets.

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, LONG, Socket, json, refused};

/// Returns the next message.
async fn next(socket: &mut Socket) -> Message {
    let message = timeout(LONG, socket.next()).await.unwrap();
    message.unwrap().unwrap()
}

/// Types a line.
async fn type_in(socket: &mut Socket, line: &str) {
    let line = format!("{line}\n").into_bytes();
    socket.send(Message::binary(line)).await.unwrap();
}

/// Reads until some text was printed.
async fn until(socket: &mut Socket, text: &str) -> String {
    let mut printed = String::new();
    while !printed.contains(text) {
        match next(socket).await {
            Message::Binary(bytes) => printed += &String::from_utf8_lossy(&bytes),
            other => panic!("{other:?} after {printed:?}"),
        }
    }
    printed
}

/// Reads to the end, and returns the last control message, the code of the end and its
/// reason.
async fn end(socket: &mut Socket) -> (Option<Value>, u16, Value) {
    let mut control = None;
    loop {
        match next(socket).await {
            Message::Binary(_) => {}
            Message::Text(text) => control = Some(serde_json::from_str(&text).unwrap()),
            Message::Close(Some(frame)) => {
                let reason = serde_json::from_str(&frame.reason).unwrap();
                return (control, frame.code.into(), reason);
            }
            other => panic!("{other:?}"),
        }
    }
}

fn connected() -> Message {
    Message::text(json!({"type": "control", "status": "connected"}).to_string())
}

#[tokio::test]
async fn a_terminal_outlives_its_clients_until_its_shell_exits() {
    let client = Client::new().await;
    let request = json!({"id": "p", "cols": 80, "rows": 24, "lazyStart": true});
    let created = client.post("/process/pty", request.clone()).await;
    assert_eq!(created.status(), 201);
    assert_eq!(json(created).await, json!({"sessionId": "p"}));
    assert_eq!(
        refused(client.post("/process/pty", request).await).await.0,
        409
    );
    let url = client.url("/process/pty/p/connect");
    let mut socket = client.socket(&url, &[]).await;
    assert_eq!(next(&mut socket).await, connected());
    type_in(&mut socket, "v=kept; tty; stty size; echo $((40 + 2))").await;
    let printed = until(&mut socket, "42").await;
    assert!(
        printed.contains("/dev/pts/") && printed.contains("24 80"),
        "{printed}"
    );
    drop(socket);
    let resized = client
        .post("/process/pty/p/resize", json!({"cols": 100, "rows": 30}))
        .await;
    assert_eq!(json(resized).await["cols"], 100);
    let listed = json(client.get("/process/pty").await).await;
    assert_eq!(listed["sessions"][0]["active"], true);
    let mut socket = client.socket(&url, &[]).await;
    assert_eq!(next(&mut socket).await, connected());
    type_in(&mut socket, "stty size; echo [$v]").await;
    let printed = until(&mut socket, "[kept]").await;
    assert!(printed.contains("30 100"), "{printed}");
    type_in(&mut socket, "exit 3").await;
    let (control, code, reason) = end(&mut socket).await;
    assert_eq!((control, code), (None, 1011));
    assert_eq!(
        reason,
        json!({"exitCode": 3, "exitReason": "non-zero exit"})
    );
    client.standin.close().await;
}

#[tokio::test]
async fn a_terminal_is_created_and_connected_in_one_request() {
    let client = Client::new().await;
    // {"A":"one"}
    let environment = "X-Daytona-Pty-Envs~eyJBIjoib25lIn0";
    let url = client.url("/process/pty/create-connect?id=q&cols=80&rows=24&cwd=%2Ftmp");
    let mut socket = client
        .socket(&url, &["X-Daytona-Pty-Exit-Control", environment])
        .await;
    assert_eq!(next(&mut socket).await, connected());
    type_in(&mut socket, "echo $A-$PWD").await;
    until(&mut socket, "one-/tmp").await;
    type_in(&mut socket, "exit").await;
    let (control, code, reason) = end(&mut socket).await;
    let exited = json!({"type": "control", "status": "exited", "exitCode": 0});
    assert_eq!((control, code), (Some(exited), 1000));
    assert_eq!(reason, json!({"exitCode": 0}));
    client.standin.close().await;
}

#[tokio::test]
async fn an_unknown_terminal_is_an_error_and_a_deleted_one_ends() {
    let client = Client::new().await;
    let mut socket = client
        .socket(&client.url("/process/pty/none/connect"), &[])
        .await;
    let Message::Text(text) = next(&mut socket).await else {
        panic!("no control message");
    };
    let control: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(control["status"], "error");
    client.post("/process/pty", json!({"id": "p"})).await;
    let mut socket = client
        .socket(&client.url("/process/pty/p/connect"), &[])
        .await;
    assert_eq!(next(&mut socket).await, connected());
    assert_eq!(client.delete("/process/pty/p").await.status(), 200);
    let (_, _, reason) = end(&mut socket).await;
    assert_eq!(reason["exitCode"], 137);
    assert_eq!(refused(client.get("/process/pty/p").await).await.0, 404);
    client.standin.close().await;
}
