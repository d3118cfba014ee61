//! Named tokens: clients are told apart, and none reaches the MCP session of another.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend_core::{Error, ErrorKind};
use backend_state::StateBackend;
use console_mcp::{Client, Connect, HttpSettings, Token};
use console_tools::Toolset;
use serde_json::json;

use crate::support::client::failed;
use crate::support::http::{HttpClient, TestServer};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Records the clients that connect.
#[derive(Debug, Clone, Default)]
struct Recording(Arc<Mutex<Vec<Client>>>);

#[async_trait]
impl Connect for Recording {
    fn check(&self, client: &Client) -> backend_core::Result<()> {
        match client.session.as_deref() {
            Some("of-another") => Err(Error::new(ErrorKind::PermissionDenied, "not yours")),
            Some("") => Err(Error::invalid_input("not an id")),
            _ => Ok(()),
        }
    }

    async fn connect(&self, client: &Client) -> backend_core::Result<Toolset> {
        self.0.lock().unwrap().push(client.clone());
        let toolset = Toolset::builder(Arc::new(StateBackend::new())).build();
        toolset.map_err(|error| Error::internal(error.to_string()))
    }
}

fn two_tokens() -> HttpSettings {
    let mut settings = HttpSettings::without_token(([127, 0, 0, 1], 0).into());
    settings.tokens = vec![
        Token::named("alice", "token-of-alice"),
        Token::named("bob", "token-of-bob"),
    ];
    settings
}

fn with_token(server: &TestServer, token: &str) -> HttpClient {
    HttpClient::new(server.address).with("authorization", &format!("Bearer {token}"))
}

#[tokio::test]
async fn clients_are_told_apart_by_their_tokens() {
    let connect = Recording::default();
    let server = TestServer::start(connect.clone(), two_tokens()).await;
    for wrong in ["", "token-of-alic", "token-of-alice2", "alice"] {
        let answer = with_token(&server, wrong).send("POST", PING).await;
        assert_eq!(answer.status, 401, "{wrong}");
    }
    let none = HttpClient::new(server.address);
    let other = none.clone().with("authorization", "Basic token-of-alice");
    let unknown = with_token(&server, "token-of-alic");
    for (client, about) in [
        (none, "a bearer token is needed"),
        (other, "a bearer token is needed"),
        (unknown, "unknown token"),
    ] {
        let answer = client.send("POST", PING).await;
        assert_eq!(answer.status, 401);
        let text = answer.text().await;
        assert!(text.starts_with(about), "{text}");
    }
    let mut alice = with_token(&server, "token-of-alice");
    alice.initialize(json!({})).await;
    let mut bob = with_token(&server, "token-of-bob").with("agentbox-session", "second");
    bob.initialize(json!({})).await;
    let clients = connect.0.lock().unwrap().clone();
    let seen = clients
        .iter()
        .map(|client| (client.name.as_deref(), client.session.as_deref()));
    let expected = [(Some("alice"), None), (Some("bob"), Some("second"))];
    assert_eq!(seen.collect::<Vec<_>>(), expected);
    server.stop().await;
}

#[tokio::test]
async fn a_session_belongs_to_the_token_it_began_with() {
    let server = TestServer::start(Recording::default(), two_tokens()).await;
    let mut alice = with_token(&server, "token-of-alice");
    alice.initialize(json!({})).await;
    let written = alice.call("write_file", json!({"path": "a", "content": "mine"}));
    assert!(!failed(&written.await));
    let thief = alice.clone().with("authorization", "Bearer token-of-bob");
    for method in ["POST", "GET", "DELETE"] {
        let answer = thief.send(method, PING).await;
        assert_eq!(answer.status, 404, "{method}");
    }
    let read = alice.call("read_file", json!({"path": "a"})).await;
    assert!(!failed(&read), "{read}");
    server.stop().await;
}

#[tokio::test]
async fn a_session_is_asked_for_once() {
    let server = TestServer::start(Recording::default(), two_tokens()).await;
    let mut twice = with_token(&server, "token-of-alice");
    for id in ["one", "two"] {
        let header = ("agentbox-session".to_owned(), id.to_owned());
        twice.headers.push(header);
    }
    assert_eq!(twice.send("POST", PING).await.status, 400);
    server.stop().await;
}

#[tokio::test]
async fn a_client_is_refused_before_its_session_begins() {
    let connect = Recording::default();
    let server = TestServer::start(connect.clone(), two_tokens()).await;
    for (session, status, text) in [("of-another", 403, "not yours\n"), ("", 400, "not an id\n")] {
        let mut alice = with_token(&server, "token-of-alice").with("agentbox-session", session);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}});
        let (_, answer) = alice.begin("initialize", params).await;
        assert_eq!(answer.status, status, "{session}");
        assert_eq!(answer.header("mcp-session-id"), None);
        assert_eq!(answer.text().await, text);
    }
    assert!(connect.0.lock().unwrap().is_empty());
    server.stop().await;
}

#[tokio::test]
async fn the_session_of_a_connection_does_not_change() {
    let server = TestServer::start(Recording::default(), two_tokens()).await;
    for (begun, same) in [(None, "alice"), (Some("alice.b"), "alice.b")] {
        let mut alice = with_token(&server, "token-of-alice");
        if let Some(begun) = begun {
            alice = alice.with("agentbox-session", begun);
        }
        alice.initialize(json!({})).await;
        let other = alice.clone().with("agentbox-session", "alice.c");
        for method in ["POST", "GET", "DELETE"] {
            let answer = other.send(method, PING).await;
            assert_eq!(answer.status, 400, "{method}");
            let text = answer.text().await;
            assert!(text.contains("read at 'initialize'"), "{text}");
        }
        let mut again = alice.clone().with("agentbox-session", same);
        again.ask("ping", json!({})).await;
        // Without the header, it is the session of the beginning.
        again.headers.retain(|(name, _)| name != "agentbox-session");
        again.ask("ping", json!({})).await;
    }
    server.stop().await;
}

#[tokio::test]
async fn one_name_does_not_take_the_place_of_another() {
    let mut settings = two_tokens();
    settings.sessions = 3;
    let server = TestServer::start(Recording::default(), settings).await;
    for _ in 0..2 {
        with_token(&server, "token-of-alice")
            .initialize(json!({}))
            .await;
    }
    let further = with_token(&server, "token-of-alice");
    assert_eq!(further.send("POST", PING).await.status, 503);
    let mut bob = with_token(&server, "token-of-bob");
    bob.initialize(json!({})).await;
    server.stop().await;
}
