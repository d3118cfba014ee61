//! Both ends of a websocket, and peers that play the other one.

mod hostile;

use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role};
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

use super::client::OPEN_TIMEOUT;
use super::connection::PING_INTERVAL;
use super::*;
use crate::machine::{OutputChunk, Process};

const PIPE: usize = 256 * 1024;

/// A request for a websocket, as in RFC 6455.
const REQUEST: &[u8] = b"GET /any HTTP/1.1\r\nHost: sandbox\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";

fn token() -> Token {
    Token::new("0123456789abcdef".repeat(2)).unwrap()
}

fn token_message() -> Message {
    Message::binary(token().as_str().to_owned().into_bytes())
}

fn goodbye(code: CloseCode, reason: &'static str) -> Message {
    let reason = Utf8Bytes::from_static(reason);
    Message::Close(Some(CloseFrame { code, reason }))
}

/// Attaches a client to a peer that plays the agent and has said "hello".
async fn attached() -> (Process, WebSocketStream<DuplexStream>) {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let greet = async move {
        let mut peer = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
        assert_eq!(peer.next().await.unwrap().unwrap(), token_message());
        peer.send(Message::binary(&b"hello"[..])).await.unwrap();
        peer
    };
    let token = token();
    let (process, peer) = tokio::join!(attach(ours, &token), greet);
    (process.unwrap(), peer)
}

/// Accepts a peer that plays the client and has sent the token, over a pipe of this size.
async fn accepted(
    pipe: usize,
) -> (
    DuplexStream,
    Accepted<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>,
) {
    let (ours, mut theirs) = tokio::io::duplex(pipe);
    let (reader, writer) = tokio::io::split(ours);
    let knock = async move {
        theirs.write_all(REQUEST).await.unwrap();
        let answer = read_head(&mut theirs).await;
        // The answer to the sample key in RFC 6455.
        assert!(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="), "{answer}");
        let first = hostile::frame(0x82, token().as_str().as_bytes());
        theirs.write_all(&first).await.unwrap();
        theirs
    };
    let token = token();
    let (connection, theirs) = tokio::join!(accept(reader, writer, &token), knock);
    (theirs, connection.unwrap())
}

/// Reads the head of a request or an answer, and nothing after it.
async fn read_head(stream: &mut DuplexStream) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    String::from_utf8(head).unwrap()
}

/// Reads the output until it ends.
async fn rest(process: &mut Process) -> (Vec<u8>, Option<Error>) {
    let mut bytes = Vec::new();
    while let Some(piece) = process.output.next().await {
        match piece {
            Ok(OutputChunk::Stdout(piece)) => bytes.extend_from_slice(&piece),
            Ok(OutputChunk::Stderr(piece)) => panic!("{piece:?}"),
            Err(error) => return (bytes, Some(error)),
        }
    }
    (bytes, None)
}

#[tokio::test]
async fn bytes_go_both_ways_at_once() {
    const BYTES: usize = 4 * 1024 * 1024;
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(theirs);
    let echo = tokio::spawn(async move {
        let connection = accept(reader, writer, &token()).await.unwrap();
        let (mut reader, mut writer) = tokio::io::split(connection);
        writer.write_all(b"hello").await.unwrap();
        writer.flush().await.unwrap();
        tokio::io::copy(&mut reader, &mut writer).await.unwrap();
    });
    let request = UpgradeRequest::new("sandbox", "/");
    let mut process = connect(ours, &request, &token()).await.unwrap();
    let mut stdin = process.stdin.take().unwrap();
    let mut expected = b"hello".to_vec();
    expected.extend((0..BYTES).map(|at| (at % 251) as u8));
    let write = async {
        stdin.write_all(&expected[5..]).await.unwrap();
        stdin.flush().await.unwrap();
    };
    let mut received = Vec::new();
    let read = async {
        while received.len() < expected.len() {
            match process.output.next().await.unwrap().unwrap() {
                OutputChunk::Stdout(piece) => received.extend_from_slice(&piece),
                OutputChunk::Stderr(piece) => panic!("{piece:?}"),
            }
        }
    };
    tokio::join!(write, read);
    assert!(received == expected);
    // A goodbye is the end of the stream.
    stdin.shutdown().await.unwrap();
    echo.await.unwrap();
}

#[tokio::test]
async fn messages_are_binary_and_small() {
    let (mut process, mut peer) = attached().await;
    let mut stdin = process.stdin.take().unwrap();
    let write = async {
        stdin.write_all(&vec![1; 10 * MESSAGE_BYTES]).await.unwrap();
        stdin.flush().await.unwrap();
    };
    let read = async {
        let mut received = 0;
        while received < 10 * MESSAGE_BYTES {
            match peer.next().await.unwrap().unwrap() {
                Message::Binary(bytes) => {
                    assert!(bytes.len() <= MESSAGE_BYTES);
                    received += bytes.len();
                }
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::join!(write, read);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_says_why() {
    let cases = [
        (None, Some("without a goodbye")),
        (Some(Message::Close(None)), None),
        (Some(goodbye(CloseCode::Normal, "done")), None),
        (
            Some(goodbye(CloseCode::Away, "")),
            Some("serves another connection"),
        ),
        (Some(goodbye(CloseCode::Policy, "no more")), Some("no more")),
        (Some(goodbye(CloseCode::Error, "a fault")), Some("1011")),
        (Some(Message::text("words")), Some("text")),
        (
            Some(Message::binary(vec![0; MESSAGE_BYTES + 1])),
            Some("too long"),
        ),
    ];
    for (last, expected) in cases {
        let (mut process, mut peer) = attached().await;
        let shown = format!("{last:.80?}");
        let say = async move {
            if let Some(last) = last {
                peer.send(last).await.unwrap();
            }
        };
        let ((), (bytes, error)) = tokio::join!(say, rest(&mut process));
        assert_eq!(bytes, b"hello");
        match expected {
            None => assert!(error.is_none(), "{shown}: {error:?}"),
            Some(expected) => {
                let error = error.unwrap();
                assert_eq!(error.kind(), ErrorKind::Unavailable);
                assert!(error.message().contains(expected), "{shown}: {error}");
            }
        }
        assert!(process.output.next().await.is_none());
        let refused = process.stdin.unwrap().write_all(b"more").await.unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::BrokenPipe, "{shown}");
        let exit = process.exit.await.unwrap_err();
        assert_eq!(exit.kind(), ErrorKind::Unavailable);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_says_goodbye() {
    let (process, mut peer) = attached().await;
    drop(process);
    let last = peer.next().await.unwrap().unwrap();
    assert_eq!(last, goodbye(CloseCode::Normal, ""));

    let (mut process, mut peer) = attached().await;
    process.stdin.as_mut().unwrap().shutdown().await.unwrap();
    let last = peer.next().await.unwrap().unwrap();
    assert_eq!(last, Message::Close(None));

    let (theirs, mut connection) = accepted(PIPE).await;
    let mut peer = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    peer.send(goodbye(CloseCode::Normal, "")).await.unwrap();
    let mut nothing = Vec::new();
    assert_eq!(connection.read_to_end(&mut nothing).await.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_ends_says_so() {
    let (theirs, connection) = accepted(PIPE).await;
    let mut peer = WebSocketStream::from_raw_socket(theirs, Role::Client, None).await;
    drop(connection);
    let last = peer.next().await.unwrap().unwrap();
    assert_eq!(last, goodbye(CloseCode::Away, ""));
}

#[tokio::test(start_paused = true)]
async fn pings_keep_a_silent_connection_open() {
    let (mut process, mut peer) = attached().await;
    let began = Instant::now();
    assert!(process.output.next().await.unwrap().is_ok());
    let pings = async {
        for _ in 0..20 {
            let message = peer.next().await.unwrap().unwrap();
            assert_eq!(message, Message::Ping(Bytes::new()));
        }
    };
    tokio::select! {
        () = pings => {}
        more = process.output.next() => panic!("{more:?}"),
    }
    assert!(began.elapsed() >= 20 * PING_INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_says_nothing_is_given_up() {
    let (ours, _theirs) = tokio::io::duplex(PIPE);
    let began = Instant::now();
    let error = attach(ours, &token()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(error.message().contains("20 s"), "{error}");
    assert!(began.elapsed() >= OPEN_TIMEOUT);

    let (ours, theirs) = tokio::io::duplex(PIPE);
    drop(theirs);
    let error = attach(ours, &token()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn a_wrong_token_is_an_error_of_credentials_at_both_ends() {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(theirs);
    let (request, other) = (UpgradeRequest::new("sandbox", "/"), Token::generate());
    let (other, token) = (other.unwrap(), token());
    let (connected, accepted) = tokio::join!(
        connect(ours, &request, &other),
        accept(reader, writer, &token)
    );
    let error = connected.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Auth);
    assert!(error.message().contains("the token is wrong"), "{error}");
    assert_eq!(accepted.unwrap_err().kind(), ErrorKind::Auth);
}

/// Lets a server answer a request, and returns the request and what the client made of it.
async fn answered(request: &UpgradeRequest, answer: &str) -> (String, Result<Process>) {
    let (ours, mut theirs) = tokio::io::duplex(PIPE);
    let serve = async move {
        let head = read_head(&mut theirs).await;
        theirs.write_all(answer.as_bytes()).await.unwrap();
        head
    };
    let token = token();
    tokio::join!(serve, connect(ours, request, &token))
}

#[tokio::test(start_paused = true)]
async fn answers_that_open_no_websocket() {
    let request = UpgradeRequest::new("proxy:1", "/toolbox/1/proxy/2/?a=b")
        .header("Authorization", "Bearer secret");
    assert!(!format!("{request:?}").contains("secret"));
    for (answer, kind) in [
        ("401 Unauthorized", ErrorKind::Auth),
        ("403 Forbidden", ErrorKind::Auth),
        ("429 Too Many Requests", ErrorKind::RateLimited),
        ("502 Bad Gateway", ErrorKind::Unavailable),
        ("200 OK", ErrorKind::Unavailable),
        ("101 Switching Protocols", ErrorKind::Unavailable),
    ] {
        let answer = format!("HTTP/1.1 {answer}\r\nContent-Length: 0\r\n\r\n");
        let (head, connected) = answered(&request, &answer).await;
        assert!(
            head.starts_with("GET /toolbox/1/proxy/2/?a=b HTTP/1.1\r\n"),
            "{head}"
        );
        for header in ["Host: proxy:1\r\n", "authorization: Bearer secret\r\n"] {
            assert!(head.contains(header), "{head}");
        }
        let error = connected.unwrap_err();
        assert_eq!(error.kind(), kind, "{answer}: {error}");
        assert!(!format!("{error:?}").contains("secret"));
    }
    let (_, connected) = answered(&request, "no HTTP at all\r\n\r\n").await;
    assert_eq!(connected.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn requests_that_cannot_be_sent() {
    for request in [
        UpgradeRequest::new("host", "no/slash"),
        UpgradeRequest::new("two words", "/"),
        UpgradeRequest::new("host", "/").header("two words", "x"),
        UpgradeRequest::new("host", "/").header("x", "a\r\nb"),
    ] {
        let (ours, _theirs) = tokio::io::duplex(PIPE);
        let error = connect(ours, &request, &token()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{request:?}");
    }
}

#[test]
fn a_handshake_is_checked() {
    let handshake = Handshake::new();
    let headers = handshake.headers();
    let key = headers[3].1;
    assert_ne!(key, Handshake::new().headers()[3].1);
    let right = tokio_tungstenite::tungstenite::handshake::derive_accept_key(key.as_bytes());
    handshake.check(101, Some(&right)).unwrap();
    let kind = |status, accept| handshake.check(status, accept).unwrap_err().kind();
    assert_eq!(kind(101, None), ErrorKind::Unavailable);
    assert_eq!(kind(101, Some(key)), ErrorKind::Unavailable);
    assert_eq!(kind(200, Some(&right)), ErrorKind::Unavailable);
    assert_eq!(kind(401, None), ErrorKind::Auth);
}
