//! Ports of a sandbox, behind the proxy and as previews.

use std::time::{Duration, Instant};

use futures::{SinkExt as _, StreamExt as _};
use reqwest::StatusCode;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, json, refused};

/// Answers one request with its own text, and returns the port.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            request.push(stream.read_u8().await.unwrap());
        }
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
            request.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&request).await.unwrap();
    });
    port
}

/// Sends every message back, on one websocket. Returns the port.
async fn echo_messages() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut socket = tokio_tungstenite::accept_async(stream).await.unwrap();
        while let Some(Ok(message @ Message::Binary(_))) = socket.next().await {
            socket.send(message).await.unwrap();
        }
    });
    port
}

#[tokio::test]
async fn a_request_reaches_a_listener_without_its_key() {
    let client = Client::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let unused = listener.local_addr().unwrap().port();
    drop(listener);
    let nothing = refused(client.get(&format!("/proxy/{unused}/")).await).await;
    assert_eq!(nothing, (502, String::new()));
    let port = echo().await;
    let text = client
        .get(&format!("/proxy/{port}/a%20b/c?d=e"))
        .await
        .text()
        .await
        .unwrap();
    assert!(text.starts_with("GET /a%20b/c?d=e HTTP/1.1\r\n"), "{text}");
    assert!(!text.to_lowercase().contains("authorization"), "{text}");
    client.standin.close().await;
}

#[tokio::test]
async fn a_websocket_is_passed_on_with_the_latency_of_the_network() {
    let client = Client::new().await;
    let port = echo_messages().await;
    let mut socket = client
        .socket(&client.url(&format!("/proxy/{port}/")), &[])
        .await;
    let large = Message::binary(vec![7; 8 * 1024 * 1024]);
    socket.send(large.clone()).await.unwrap();
    assert_eq!(socket.next().await.unwrap().unwrap(), large);
    let before = client.standin.requests();
    client.standin.set_latency(Duration::from_millis(300));
    let start = Instant::now();
    for number in 0..8 {
        socket.send(Message::binary(vec![number])).await.unwrap();
    }
    for number in 0..8 {
        let message = socket.next().await.unwrap().unwrap();
        assert_eq!(message, Message::binary(vec![number]));
    }
    let took = start.elapsed();
    assert!(took >= Duration::from_millis(300), "{took:?}");
    assert!(
        took < Duration::from_millis(8 * 300),
        "one waited for the other: {took:?}"
    );
    assert_eq!(client.standin.requests().since(&before).total(), 0);
    client.standin.close().await;
}

#[tokio::test]
async fn a_half_closed_upgrade_still_brings_its_answer() {
    let client = Client::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        while !all.ends_with(b"\r\n\r\n") {
            all.push(stream.read_u8().await.unwrap());
        }
        let head =
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n";
        stream.write_all(head).await.unwrap();
        all.clear();
        stream.read_to_end(&mut all).await.unwrap();
        stream
            .write_all(all.len().to_string().as_bytes())
            .await
            .unwrap();
    });
    let url = client.url(&format!("/proxy/{port}/"));
    let (authority, path) = url
        .strip_prefix("http://")
        .unwrap()
        .split_once('/')
        .unwrap();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let key = client.standin.api_key();
    let request = format!(
        "GET /{path} HTTP/1.1\r\nHost: {authority}\r\nAuthorization: Bearer {key}\r\nConnection: Upgrade\r\nUpgrade: raw\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101 "));
    stream.write_all(&vec![1; 8 * 1024 * 1024]).await.unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert_eq!(answer, (8 * 1024 * 1024).to_string());
    client.standin.close().await;
}

#[tokio::test]
async fn a_preview_wants_a_key_or_a_token() {
    let client = Client::new().await;
    let port = echo().await;
    let preview = async |kind: &str| {
        let path = format!("/sandbox/{}/ports/{port}/{kind}", client.id);
        json(
            client
                .api(reqwest::Method::GET, &path)
                .send()
                .await
                .unwrap(),
        )
        .await
    };
    let preview_url = preview("preview-url").await;
    let url = format!("{}/x", preview_url["url"].as_str().unwrap());
    let http = reqwest::Client::builder().no_proxy();
    let http = http
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let closed = http.get(&url).send().await.unwrap();
    assert_eq!(closed.status(), StatusCode::TEMPORARY_REDIRECT);
    let token = preview_url["token"].as_str().unwrap();
    let opened = http
        .get(&url)
        .header("x-daytona-preview-token", token)
        .send();
    assert!(
        opened
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
            .starts_with("GET /x ")
    );
    let signed = preview("signed-preview-url").await;
    let nothing_listens = http
        .get(signed["url"].as_str().unwrap())
        .send()
        .await
        .unwrap();
    assert_eq!(nothing_listens.status(), StatusCode::BAD_GATEWAY);
    client.standin.close().await;
}

#[tokio::test]
async fn only_some_ports_are_looked_at() {
    let client = Client::new().await;
    assert_eq!(refused(client.get("/port/80/in-use").await).await.0, 400);
    let ports = json(client.get("/port").await).await["ports"].clone();
    let in_use = json(client.get("/port/3999/in-use").await).await;
    let is_listed = ports.as_array().unwrap().contains(&json!(3999));
    assert_eq!(in_use, json!({"isInUse": is_listed}));
    client.standin.close().await;
}

#[tokio::test]
async fn a_stream_that_says_so_is_no_activity() {
    let client = Client::new().await;
    let last = async || json(client.sandbox().await).await["lastActivityAt"].clone();
    let before = last().await;
    let quiet = client.toolbox(reqwest::Method::GET, "/work-dir");
    let quiet = quiet.header("x-daytona-skip-last-activity-update", "true");
    quiet.send().await.unwrap();
    assert_eq!(last().await, before);
    client.get("/work-dir").await;
    assert_ne!(last().await, before);
    client.standin.close().await;
}
