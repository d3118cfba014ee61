//! Programs on a loopback server that opens streams as an API server does.

use std::net::SocketAddr;

use backend_core::ErrorKind;
use futures::{SinkExt as _, StreamExt as _};
use sandbox_wire::OutputChunk;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{Request as Asked, Response};

use super::*;
use crate::cluster::tests::cluster_at;

const SUCCESS: &[u8] = b"\x03{\"status\":\"Success\"}";

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

async fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Accepts a stream. Returns it with the path and query of its request.
#[allow(
    clippy::result_large_err,
    reason = "the type of the callback is not ours"
)]
async fn accept(listener: &TcpListener, protocol: &str) -> (WebSocketStream<TcpStream>, String) {
    let (connection, _) = listener.accept().await.unwrap();
    let mut asked = String::new();
    let socket = tokio_tungstenite::accept_hdr_async(
        connection,
        |request: &Asked, mut response: Response| {
            asked = request.uri().to_string();
            let headers = response.headers_mut();
            headers.insert("sec-websocket-protocol", protocol.parse().unwrap());
            Ok(response)
        },
    );
    (socket.await.unwrap(), asked)
}

#[tokio::test]
async fn a_program_runs_on_a_stream_of_its_own() {
    let (listener, address) = listen().await;
    let cluster = cluster_at(&format!("http://{address}")).await;
    let serve = async {
        let (mut socket, asked) = accept(&listener, "v5.channel.k8s.io").await;
        while let Some(Ok(message)) = socket.next().await {
            match &message.into_data()[..] {
                [0, input @ ..] => {
                    let echo = [&[1][..], input].concat();
                    socket.send(Message::binary(echo)).await.unwrap();
                }
                [255, 0] => socket.send(Message::binary(SUCCESS)).await.unwrap(),
                _ => {}
            }
        }
        asked
    };
    let run = async {
        let program = words(&["cat", "a b", "ä&="]);
        let process = exec(&cluster, "box", &program, true).await.unwrap();
        let mut stdin = process.stdin.unwrap();
        stdin.write_all(b"hello").await.unwrap();
        stdin.shutdown().await.unwrap();
        let chunks: Vec<_> = process.output.map(Result::unwrap).collect().await;
        assert_eq!(chunks, [OutputChunk::Stdout("hello".into())]);
        assert_eq!(process.exit.await.unwrap(), 0);
    };
    let (asked, ()) = tokio::join!(serve, run);
    let expected = "/api/v1/namespaces/work/pods/box/exec?&stdin=true&stdout=true&stderr=true&container=sandbox&command=cat&command=a+b&command=%C3%A4%26%3D";
    assert_eq!(asked, expected);
}

#[tokio::test]
async fn a_long_command_line_goes_in_over_the_input() {
    let long = "x".repeat(LINE_BYTES);
    for (program, is_unlogged) in [
        (words(&["echo", &long]), false),
        (words(&["echo", "KEY=hunter2"]), true),
    ] {
        over_the_input(&program, is_unlogged).await;
    }
}

/// Runs a program whose arguments must not be in the request.
async fn over_the_input(program: &[String], is_unlogged: bool) {
    let (listener, address) = listen().await;
    let cluster = cluster_at(&format!("http://{address}")).await;
    let serve = async {
        let (mut socket, asked) = accept(&listener, "v5.channel.k8s.io").await;
        assert!(
            asked.len() < 1024 && asked.contains("command=sh") && !asked.contains("hunter"),
            "{asked}"
        );
        let mut input = Vec::new();
        while let Some(Ok(message)) = socket.next().await {
            match &message.into_data()[..] {
                [0, piece @ ..] => input.extend_from_slice(piece),
                [255, 0] => socket.send(Message::binary(SUCCESS)).await.unwrap(),
                _ => {}
            }
        }
        String::from_utf8(input).unwrap()
    };
    let run = async {
        let process = match is_unlogged {
            true => exec_unlogged(&cluster, "box", program, false).await,
            false => exec(&cluster, "box", program, false).await,
        };
        let process = process.unwrap();
        assert!(process.stdin.is_none());
        assert_eq!(process.output.count().await, 0);
        assert_eq!(process.exit.await.unwrap(), 0);
    };
    let (input, ()) = tokio::join!(serve, run);
    assert_eq!(input, line(program));
}

#[tokio::test(start_paused = true)]
async fn input_never_follows_a_part_of_a_command_line() {
    let (mut input, pod) = tokio::io::duplex(4);
    let error = send_line(&mut input, "'echo' 'x'\n").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    drop(pod);
    // It has ended: its exit code is told.
    send_line(&mut input, "'echo' 'x'\n").await.unwrap();
}

#[tokio::test]
async fn a_cluster_that_cannot_end_the_input_is_too_old() {
    let (listener, address) = listen().await;
    let cluster = cluster_at(&format!("http://{address}")).await;
    let program = words(&["cat"]);
    let run = exec(&cluster, "box", &program, true);
    let (run, _) = tokio::join!(run, accept(&listener, "v4.channel.k8s.io"));
    assert_eq!(run.unwrap_err().kind(), ErrorKind::Unsupported);
}

#[tokio::test]
async fn a_missing_pod_is_not_found() {
    let (listener, address) = listen().await;
    let cluster = cluster_at(&format!("http://{address}")).await;
    let serve = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"\r\n\r\n") {
            connection.read_buf(&mut request).await.unwrap();
        }
        let body = r#"{"kind":"Status","status":"Failure","message":"pods \"box\" not found","reason":"NotFound","code":404}"#;
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
        );
        connection.write_all(answer.as_bytes()).await.unwrap();
        connection
    };
    let program = words(&["true"]);
    let (run, _) = tokio::join!(exec(&cluster, "box", &program, false), serve);
    assert_eq!(run.unwrap_err().kind(), ErrorKind::NotFound);
}

#[tokio::test]
async fn names_and_arguments_that_cannot_be_sent_are_refused() {
    let cluster = cluster_at("http://127.0.0.1:1").await;
    let program = words(&["true"]);
    let error = exec(&cluster, "a/../b", &program, false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Config);
    let nul = words(&["echo", "a\0b"]);
    let error = exec(&cluster, "box", &nul, false).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    let error = exec_unlogged(&cluster, "box", &nul, false).await;
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidInput);
}

#[test]
fn a_shell_reads_the_arguments_back() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    let arguments = [
        "",
        "a b",
        "it's",
        "two\nlines\n",
        "$HOME `x` \\ \"",
        "-n",
        "ä",
    ];
    let mut program = words(&["printf", "<%s>"]);
    program.extend(words(&arguments));
    let mut shell = Command::new("sh")
        .args(["-c", READ_ARGUMENTS])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    stdin.write_all(line(&program).as_bytes()).unwrap();
    drop(stdin);
    let output = shell.wait_with_output().unwrap();
    let expected = arguments.map(|argument| format!("<{argument}>")).concat();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn the_size_in_a_request_is_counted_as_it_is_encoded() {
    assert_eq!(encoded_bytes(&words(&["ab", "a b/"])), 2 * 9 + 2 + 6);
    assert_eq!(encoded_bytes(&[]), 0);
}
