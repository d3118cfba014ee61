//! Streamable HTTP: access control, and sessions that are isolated from each other.

use std::time::Duration;

use console_mcp::{HttpSettings, ServeError, Settings, serve_http};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::client::{TestBackend, failed, gone, soon, text};
use crate::support::http;
use crate::support::http::{HttpClient, TestServer};

pub(crate) fn here() -> HttpSettings {
    HttpSettings::without_token(([127, 0, 0, 1], 0).into())
}

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

#[tokio::test]
async fn tools_work_and_sessions_share_nothing() {
    let server = TestServer::start(TestBackend::default(), here()).await;
    let mut one = server.client(json!({})).await;
    let mut two = server.client(json!({})).await;
    assert_ne!(one.headers, two.headers);
    one.call("write_file", json!({"path": "a", "content": "mine"}))
        .await;
    two.call("write_file", json!({"path": "b", "content": "yours"}))
        .await;
    assert!(failed(&two.call("read_file", json!({"path": "a"})).await));
    assert!(text(&one.call("read_file", json!({"path": "a"})).await).contains("mine"));
    let listed = one.ask("resources/list", json!({})).await;
    assert_eq!(
        listed["result"]["resources"].as_array().unwrap().len(),
        1,
        "{listed}"
    );
    // A session that has ended is gone, and its files with it.
    assert_eq!(one.send("DELETE", "").await.status, 204);
    assert_eq!(one.send("POST", PING).await.status, 404);
    assert!(!failed(&two.call("read_file", json!({"path": "b"})).await));
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_tries_a_newer_protocol_is_told_which_there_are() {
    let server = TestServer::start(TestBackend::default(), here()).await;
    let newer = HttpClient::new(server.address).with("mcp-protocol-version", "2026-07-28");
    let discover = json!({"jsonrpc": "2.0", "id": "a", "method": "server/discover", "params": {}});
    let answer = newer.post(&discover).await;
    assert_eq!(answer.status, 400);
    let answer: Value = serde_json::from_str(&answer.text().await).unwrap();
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!("a"), &json!(-32022))
    );
    assert_eq!(answer["error"]["data"]["supported"][3], "2025-11-25");
    // `initialize` negotiates a version.
    let hello = json!({
        "protocolVersion": "2026-07-28", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    let begin = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let agreed = newer.post(&begin).await;
    assert_eq!(agreed.status, 200);
    let agreed = agreed.answer().await;
    assert_eq!(
        agreed["result"]["protocolVersion"], "2025-11-25",
        "{agreed}"
    );
    server.stop().await;
}

#[tokio::test]
async fn nobody_gets_in_without_the_token() {
    let settings = HttpSettings::new(([127, 0, 0, 1], 0).into(), "right-token");
    let server = TestServer::start(TestBackend::default(), settings).await;
    let stranger = HttpClient::new(server.address);
    for authorization in [
        None,
        Some("Bearer wrong-token"),
        Some("Bearer right-toke"),
        Some("Bearer right-token2"),
        Some("Bearer "),
        Some("right-token"),
        Some("Basic right-token"),
    ] {
        let client = match authorization {
            Some(value) => stranger.clone().with("authorization", value),
            None => stranger.clone(),
        };
        for method in ["POST", "GET", "DELETE", "OPTIONS", "PUT"] {
            let response = client.send(method, PING).await;
            assert_eq!(response.status, 401, "{method} {authorization:?}");
            assert_eq!(response.header("www-authenticate"), Some("Bearer"));
        }
    }
    // Two `Authorization` headers are refused.
    let mut both = stranger.clone().with("authorization", "Bearer right-token");
    both.headers
        .push(("authorization".to_owned(), "Bearer other".to_owned()));
    assert_eq!(both.send("POST", PING).await.status, 401);
    let mut known = stranger.with("authorization", "bearer right-token");
    let answer = known.initialize(json!({})).await;
    assert!(answer["result"].is_object(), "{answer}");
    // Another client's session id does not help without a token.
    let session = known
        .headers
        .iter()
        .find(|(name, _)| name == "mcp-session-id")
        .unwrap();
    let thief = HttpClient::new(server.address).with("mcp-session-id", &session.1);
    assert_eq!(thief.send("POST", PING).await.status, 401);
    server.stop().await;
}

#[tokio::test]
async fn web_pages_of_others_are_kept_out() {
    let mut settings = here();
    settings.origins = vec!["https://good.example:443".to_owned()];
    let server = TestServer::start(TestBackend::default(), settings).await;
    let client = server.client(json!({})).await;
    for (origin, status) in [
        ("https://evil.example", 403),
        ("http://localhost.evil.example", 403),
        ("http://good.example", 403),
        ("null", 403),
        ("file://", 403),
        ("nonsense", 403),
        ("https://good.example", 200),
        // Any program on this machine can serve a page there.
        ("http://localhost:8080", 403),
        ("http://127.0.0.1", 403),
        ("http://[::1]:1", 403),
        (&format!("http://{}", server.address), 403),
    ] {
        let page = client.clone().with("origin", origin);
        let response = page.send("POST", PING).await;
        assert_eq!(response.status, status, "{origin}");
        let allowed = response.header("access-control-allow-origin");
        assert_eq!(allowed.is_some(), status == 200, "{origin}");
        let preflight = page.with("access-control-request-method", "POST");
        let status = if status == 200 { 204 } else { 403 };
        assert_eq!(
            preflight.send("OPTIONS", "").await.status,
            status,
            "{origin}"
        );
    }
    // Browsers send a preflight request first, without a token.
    let page = HttpClient::new(server.address).with("origin", "https://good.example");
    let preflight = page.clone().with("access-control-request-method", "POST");
    let response = preflight.send("OPTIONS", "").await;
    assert_eq!(response.status, 204);
    let allowed = response.header("access-control-allow-origin");
    assert_eq!(allowed, Some("https://good.example"));
    let headers = response.header("access-control-allow-headers").unwrap();
    assert!(headers.contains("authorization"), "{headers}");
    let stranger = preflight.with("origin", "https://evil.example");
    let response = stranger.send("OPTIONS", "").await;
    assert_eq!(response.status, 403);
    assert_eq!(response.header("access-control-allow-origin"), None);
    let told = response.text().await;
    assert!(told.contains("--origin"), "{told}");
    for (host, status) in [
        ("evil.example", 403),
        ("evil.example:80", 403),
        ("evil@localhost", 400),
        ("localhost:80:80", 400),
        ("127.0.0.1:1", 200),
    ] {
        let other = client.clone().with("host", host);
        assert_eq!(other.send("POST", PING).await.status, status, "{host}");
        // It does not learn the supported protocol versions either.
        let newer = HttpClient::new(server.address).with("host", host);
        let newer = newer.with("mcp-protocol-version", "2026-07-28");
        let status = if status == 200 { 400 } else { status };
        let answer = newer.send("POST", PING).await;
        assert_eq!(answer.status, status, "{host}");
        let told = answer.text().await.contains("2025-11-25");
        assert_eq!(told, host == "127.0.0.1:1");
    }
    server.stop().await;
}

/// Opens a connection and sends only half of a request's head.
async fn half_sent(server: &TestServer) -> TcpStream {
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let half = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuth";
    stream.write_all(half.as_bytes()).await.unwrap();
    stream
}

/// Waits until the server has closed a connection.
async fn closed(mut stream: TcpStream) {
    // It may be reset, because the server did not read everything.
    let mut rest = Vec::new();
    let _ = soon(stream.read_to_end(&mut rest)).await;
}

#[tokio::test]
async fn half_sent_requests_lock_nobody_out() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = HttpSettings::new(([127, 0, 0, 1], 0).into(), "right-token");
    settings.unauthenticated_per_address = 100;
    let backend = TestBackend::local(directory.path());
    let server = TestServer::start(backend, settings).await;
    let mut client = HttpClient::new(server.address).with("authorization", "Bearer right-token");
    client.initialize(json!({})).await;
    let wait = "until test -e go; do sleep 0.01; done; echo done";
    let call = json!({"name": "execute", "arguments": {"command": wait}});
    let (_, answer) = client.begin("tools/call", call).await;
    let mut half = std::collections::VecDeque::new();
    for _ in 0..300 {
        half.push_back(half_sent(&server).await);
    }
    // Only some of them fit, so the oldest were closed.
    for _ in 0..200 {
        closed(half.pop_front().unwrap()).await;
    }
    let mut other = HttpClient::new(server.address).with("authorization", "Bearer right-token");
    other.initialize(json!({})).await;
    let done = other.call("write_file", json!({"path": "go", "content": ""}));
    assert!(!failed(&done.await));
    // A client that had shown its token kept its connection.
    assert_eq!(text(&answer.answer().await["result"]), "done\n");
    server.stop().await;
}

#[tokio::test]
async fn a_head_that_never_ends_is_given_up() {
    let mut settings = here();
    settings.header_timeout = Duration::from_millis(50);
    let server = TestServer::start(TestBackend::default(), settings).await;
    closed(half_sent(&server).await).await;
    closed(TcpStream::connect(server.address).await.unwrap()).await;
    server.stop().await;
}

#[tokio::test]
async fn a_stranger_gets_one_answer_on_a_connection() {
    let settings = HttpSettings::new(([127, 0, 0, 1], 0).into(), "right-token");
    let server = TestServer::start(TestBackend::default(), settings).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let ask = "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n";
    stream.write_all(ask.repeat(3).as_bytes()).await.unwrap();
    let mut all = Vec::new();
    let _ = soon(stream.read_to_end(&mut all)).await;
    let all = String::from_utf8(all).unwrap();
    assert_eq!(all.matches("HTTP/1.1 401").count(), 1, "{all}");
    server.stop().await;
}

#[tokio::test]
async fn other_machines_need_a_token() {
    let open = HttpSettings::without_token(([0, 0, 0, 0], 0).into());
    let backend = std::sync::Arc::new(TestBackend::default());
    let ready = |_| panic!("it listens");
    let error = serve_http(
        backend,
        Settings::default(),
        open,
        ready,
        std::future::pending(),
    )
    .await;
    let error = error.unwrap_err();
    assert!(matches!(error, ServeError::Config(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("set one, or listen on 127.0.0.1"),
        "{error}"
    );
}

#[tokio::test]
async fn a_cancelled_command_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start(TestBackend::local(directory.path()), here()).await;
    let mut client = server.client(json!({})).await;
    let (pid, id, _stream) = for_ever(&mut client).await;
    client
        .notify("notifications/cancelled", json!({"requestId": id}))
        .await;
    gone(&pid).await;
    let alive = client
        .call("execute", json!({"command": "echo alive"}))
        .await;
    assert_eq!(text(&alive), "alive\n");
    server.stop().await;
}

/// Starts a command that never ends. Returns its process id, the id of the call and the
/// response stream.
pub(crate) async fn for_ever(client: &mut HttpClient) -> (String, u64, http::Response) {
    let call = json!({"name": "execute", "arguments": {"command": "echo $$; exec sleep 1000"},
        "_meta": {"progressToken": 7}});
    let (id, mut stream) = client.begin("tools/call", call).await;
    let progress = stream.event("notifications/progress").await;
    assert_eq!(progress["params"]["progressToken"], 7);
    let pid = progress["params"]["message"].as_str().unwrap();
    (pid.to_owned(), id, stream)
}

#[tokio::test]
async fn what_nobody_listens_to_ends() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = here();
    settings.linger = Duration::from_millis(50);
    let server = TestServer::start(TestBackend::local(directory.path()), settings).await;
    let mut client = server.client(json!({})).await;
    let (pid, _, stream) = for_ever(&mut client).await;
    drop(stream);
    gone(&pid).await;
    server.stop().await;
}

#[tokio::test]
async fn the_end_of_the_server_ends_everything() {
    let directory = tempfile::tempdir().unwrap();
    let server = TestServer::start(TestBackend::local(directory.path()), here()).await;
    let mut client = server.client(json!({})).await;
    let (pid, _, _stream) = for_ever(&mut client).await;
    server.stop().await;
    gone(&pid).await;
}

#[tokio::test]
async fn questions_find_their_way() {
    let directory = tempfile::tempdir().unwrap();
    let backend = TestBackend {
        asks: true,
        ..TestBackend::local(directory.path())
    };
    let mut settings = Settings::default();
    settings.host_root = Some(directory.path().to_owned());
    let server = TestServer::new(backend, settings, here()).await;
    let able = json!({"elicitation": {}, "roots": {}});
    let mut client = server.client(able).await;
    let call = json!({"name": "execute", "arguments": {"command": "echo done"}});
    let (_, mut stream) = client.begin("tools/call", call).await;
    let roots = stream.event("roots/list").await;
    let answer = json!({"jsonrpc": "2.0", "id": roots["id"], "result": {"roots": []}});
    assert_eq!(client.post(&answer).await.status, 202);
    let question = stream.event("elicitation/create").await;
    let yes = json!({"action": "accept", "content": {"decision": "allow once"}});
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": yes});
    assert_eq!(client.post(&answer).await.status, 202);
    assert_eq!(text(&stream.answer().await["result"]), "done\n");
    server.stop().await;
}

#[tokio::test]
async fn there_is_room_for_so_many() {
    let mut settings = here();
    settings.sessions = 2;
    let server = TestServer::start(TestBackend::default(), settings).await;
    let one = server.client(json!({})).await;
    let mut two = server.client(json!({})).await;
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}});
    let refused = HttpClient::new(server.address).post(&hello).await;
    assert_eq!(refused.status, 503);
    assert!(refused.header("retry-after").is_some());
    assert!(!failed(&two.call("ls", json!({"path": "/"})).await));
    // A client that leaves makes room.
    assert!(one.send("DELETE", "").await.status < 300);
    let welcome = async {
        while HttpClient::new(server.address).post(&hello).await.status != 200 {
            tokio::task::yield_now().await;
        }
    };
    soon(welcome).await;
    server.stop().await;
}

#[tokio::test]
async fn bad_requests_are_refused() {
    let mut settings = Settings::default();
    settings.frame_bytes = 10_000;
    let server = TestServer::new(TestBackend::default(), settings, here()).await;
    let client = server.client(json!({})).await;
    assert_eq!(client.send("POST", &"x".repeat(20_000)).await.status, 413);
    for body in ["garbage", "", "[]", "17", "{}"] {
        let status = client.send("POST", body).await.status;
        assert!((400..500).contains(&status), "{body}: {status}");
    }
    assert_eq!(client.send("PUT", PING).await.status, 405);
    let plain = client.clone().with("accept", "text/plain");
    assert_eq!(plain.send("POST", PING).await.status, 406);
    let form = client.clone().with("content-type", "text/plain");
    assert_eq!(form.send("POST", PING).await.status, 415);
    let nobody = HttpClient::new(server.address);
    assert!((400..500).contains(&nobody.send("POST", PING).await.status));
    let guessed = nobody.with("mcp-session-id", "00000000-0000-0000-0000-000000000000");
    assert_eq!(guessed.send("POST", PING).await.status, 404);
    assert_eq!(guessed.send("GET", "").await.status, 404);
    assert_eq!(client.send("POST", PING).await.status, 200);
    // Protocols without sessions are not supported; their clients fall back.
    let discover = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}}});
    let newer = HttpClient::new(server.address)
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "server/discover");
    let response = newer.post(&discover).await;
    assert_eq!(response.status, 400);
    assert!(response.text().await.contains("-32022"));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_calls_at_once_are_all_answered() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    let backend = TestBackend::local(directory.path());
    let server = TestServer::start(backend, here()).await;
    let client = server.client(json!({})).await;
    let mut calls = tokio::task::JoinSet::new();
    for id in 100..400 {
        let client = client.clone();
        calls.spawn(async move {
            let arguments = match id % 10 {
                0 => json!({"name": "execute", "arguments": {"command": "echo one"}}),
                _ => json!({"name": "read_file", "arguments": {"path": "a.txt"}}),
            };
            let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
                "params": arguments});
            let answer = client.post(&call).await.answer().await;
            assert_eq!(answer["id"], id);
            assert!(text(&answer["result"]).contains("one"), "{answer}");
        });
    }
    while let Some(done) = soon(calls.join_next()).await {
        done.unwrap();
    }
    server.stop().await;
}
