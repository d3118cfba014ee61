//! A service that sends nonsense or too much.

use std::collections::BTreeMap;

use backend_core::{ErrorKind, Sandbox as _};
use backend_daytona::{Account, DaytonaSandbox, Mode, instances};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::within;

/// Serves the same answer to every request, after the configuration. An answer that ends
/// with `…` is repeated forever.
async fn serve(answer: &'static str) -> Account {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/api", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            tokio::spawn(async move {
                let mut request = vec![0; 64 * 1024];
                let read = connection.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..read]).into_owned();
                let config = r#"{"version":"v0","defaultSnapshot":"base"}"#;
                let (body, is_endless) = match request.contains("GET /api/config") {
                    true => (config, false),
                    false => (answer.trim_end_matches('…'), answer.ends_with('…')),
                };
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n";
                let _ = connection.write_all(head.as_bytes()).await;
                loop {
                    let sent = connection.write_all(body.as_bytes()).await;
                    if sent.is_err() || !is_endless {
                        break;
                    }
                }
            });
        }
    });
    Account::builder()
        .api_key("dtn_key")
        .url(url)
        .build()
        .unwrap()
}

#[tokio::test]
async fn an_answer_without_an_end_is_given_up() {
    let account = serve("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[…").await;
    let found = within("an end", instances::find(&account, "box")).await;
    assert_eq!(found.unwrap_err().kind(), ErrorKind::TooLarge);
    let listed = within("an end", instances::list(&account, &BTreeMap::new())).await;
    assert_eq!(listed.unwrap_err().kind(), ErrorKind::TooLarge);
}

#[tokio::test]
async fn nonsense_is_an_error_and_no_panic() {
    for answer in [
        "",
        "null",
        "7",
        "[]",
        "{}",
        "<html></html>",
        r#"{"id": 7}"#,
        r#"{"id": "../../x"}"#,
        r#"{"id": "x", "state": "started", "toolboxProxyUrl": "nowhere"}"#,
        r#"{"id": "x", "state": {"a": []}, "labels": 3, "items": {"a": 1}, "nextCursor": 9}"#,
    ] {
        let account = serve(answer).await;
        let _ = within(answer, instances::list(&account, &BTreeMap::new())).await;
        let _ = within(answer, instances::find(&account, "box")).await;
        let sandbox = DaytonaSandbox::builder()
            .account(account)
            .mode(Mode::Portable)
            .name("box")
            .start_timeout(std::time::Duration::from_millis(500))
            .reap_leftovers(false)
            .build()
            .unwrap();
        let error = within(answer, sandbox.start()).await.unwrap_err();
        assert!(!error.chain().to_string().contains("dtn_key"), "{error}");
    }
}

#[tokio::test]
async fn a_list_that_turns_in_circles_ends() {
    let account = serve(r#"{"items": [], "nextCursor": "again"}"#).await;
    let listed = within("a list", instances::list(&account, &BTreeMap::new())).await;
    assert_eq!(listed.unwrap(), []);
    let account = serve(r#"{"items": [{"id": "x"}], "nextCursor": "again"}"#).await;
    let listed = within("a list", instances::list(&account, &BTreeMap::new())).await;
    assert_eq!(listed.unwrap().len(), 2);
}
