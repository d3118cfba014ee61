//! A stream and a peer that plays the API server.

mod fuzz;

use std::time::Duration;

use backend_core::ErrorKind;
use bytes::Bytes;
use futures::SinkExt as _;
use sandbox_wire::OutputChunk;
use tokio::io::{AsyncWriteExt as _, DuplexStream};
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;

use super::driver::{PING_INTERVAL, SILENCE_TIMEOUT};
use super::*;
use crate::start_slots::StartSlots;

const SUCCESS: &[u8] = br#"{"metadata":{},"status":"Success"}"#;

/// The API server's end of a stream.
type Peer = WebSocketStream<DuplexStream>;

/// Connects a program to a peer. The driver runs on the test's runtime and its clock.
async fn program(stdin: bool) -> (Process, Peer) {
    let (ours, theirs) = tokio::io::duplex(256 * 1024);
    let slot = StartSlots::default().take("pod").await.unwrap();
    let (process, driver) = open(ours, stdin, slot).await;
    tokio::spawn(driver.run());
    let peer = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
    (process, peer)
}

fn message(channel: u8, content: &[u8]) -> Message {
    Message::binary([&[channel][..], content].concat())
}

async fn say(peer: &mut Peer, channel: u8, content: &[u8]) {
    peer.send(message(channel, content)).await.unwrap();
}

/// Reads messages until one has bytes of a channel.
async fn hear(peer: &mut Peer) -> Bytes {
    loop {
        if let Message::Binary(bytes) = peer.next().await.unwrap().unwrap() {
            return bytes;
        }
    }
}

/// Reads the output until it ends.
async fn printed(process: &mut Process) -> (Vec<u8>, Vec<u8>, Option<Error>) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    while let Some(chunk) = process.output.next().await {
        match chunk {
            Ok(OutputChunk::Stdout(bytes)) => out.extend_from_slice(&bytes),
            Ok(OutputChunk::Stderr(bytes)) => err.extend_from_slice(&bytes),
            Err(error) => return (out, err, Some(error)),
        }
    }
    (out, err, None)
}

/// Checks that a stream ends as one whose connection was lost.
async fn assert_lost(mut process: Process) {
    let (_, _, error) = printed(&mut process).await;
    assert_eq!(error.unwrap().kind(), ErrorKind::Unavailable);
    assert!(process.output.next().await.is_none());
    let error = process.exit.await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[tokio::test(start_paused = true)]
async fn output_and_exit_code() {
    let (mut process, mut peer) = program(false).await;
    assert!(process.stdin.is_none());
    for channel in [1, 2, 3] {
        say(&mut peer, channel, b"").await;
    }
    say(&mut peer, 1, b"one ").await;
    say(&mut peer, 2, b"error").await;
    say(&mut peer, 1, b"two").await;
    say(&mut peer, 255, b"\x01").await;
    say(&mut peer, 3, SUCCESS).await;
    let (out, err, error) = printed(&mut process).await;
    assert_eq!((&out[..], &err[..]), (&b"one two"[..], &b"error"[..]));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(process.exit.await.unwrap(), 0);
    // The stream is closed in good order.
    assert!(matches!(peer.next().await, Some(Ok(Message::Close(_)))));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_leaves_the_output_open() {
    let (mut process, mut peer) = program(true).await;
    let mut stdin = process.stdin.take().unwrap();
    let cat = tokio::spawn(async move {
        let mut seen = Vec::new();
        loop {
            let bytes = hear(&mut peer).await;
            match bytes[0] {
                0 => seen.extend_from_slice(&bytes[1..]),
                255 => break,
                other => panic!("channel {other}"),
            }
        }
        say(&mut peer, 1, &seen).await;
        say(&mut peer, 3, SUCCESS).await;
        peer
    });
    stdin.write_all(b"a line\n").await.unwrap();
    stdin.shutdown().await.unwrap();
    let (out, _, error) = printed(&mut process).await;
    assert_eq!(out, b"a line\n");
    assert!(error.is_none(), "{error:?}");
    assert_eq!(process.exit.await.unwrap(), 0);
    cat.await.unwrap();
}

#[tokio::test]
async fn both_directions_at_once() {
    const BYTES: usize = 8 * 1024 * 1024;
    let (mut process, mut peer) = program(true).await;
    let mut stdin = process.stdin.take().unwrap();
    let echo = tokio::spawn(async move {
        loop {
            let bytes = hear(&mut peer).await;
            if bytes[0] == 255 {
                break;
            }
            assert!(bytes.len() <= 1 + INPUT_BYTES);
            for piece in bytes[1..].chunks(32 * 1024) {
                say(&mut peer, 1, piece).await;
            }
        }
        say(&mut peer, 3, SUCCESS).await;
        peer
    });
    let content: Vec<u8> = (0..BYTES).map(|at| (at % 251) as u8).collect();
    let write = async {
        stdin.write_all(&content).await.unwrap();
        stdin.shutdown().await.unwrap();
    };
    let ((out, _, error), ()) = tokio::join!(printed(&mut process), write);
    assert!(error.is_none(), "{error:?}");
    assert!(out == content);
    echo.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_program_that_cannot_be_run_ends_as_in_a_shell() {
    let (mut process, mut peer) = program(false).await;
    let status = br#"{"status":"Failure","message":"failed to start exec \"1\": exec: \"x\": executable file not found in $PATH"}"#;
    say(&mut peer, 3, status).await;
    let (_, err, error) = printed(&mut process).await;
    assert!(String::from_utf8(err).unwrap().contains("not found"));
    assert!(error.is_none(), "{error:?}");
    assert_eq!(process.exit.await.unwrap(), 127);
}

#[tokio::test(start_paused = true)]
async fn a_failure_of_the_cluster_is_no_exit_code() {
    let (process, mut peer) = program(false).await;
    let status = br#"{"status":"Failure","code":500,"message":"error dialing backend"}"#;
    say(&mut peer, 3, status).await;
    assert_lost(process).await;
}

#[tokio::test(start_paused = true)]
async fn a_broken_connection_ends_everything() {
    let (mut process, mut peer) = program(true).await;
    let mut stdin = process.stdin.take().unwrap();
    say(&mut peer, 1, b"half").await;
    assert!(matches!(process.output.next().await, Some(Ok(_))));
    drop(peer);
    assert_lost(process).await;
    let refused = loop {
        if let Err(error) = stdin.write_all(b"more").await {
            break error;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::BrokenPipe);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_closed_without_a_status_is_lost() {
    let (process, mut peer) = program(false).await;
    peer.close(None).await.unwrap();
    assert_lost(process).await;
}

#[tokio::test(start_paused = true)]
async fn messages_of_no_api_server_end_the_stream() {
    let hostile = [
        Message::text("text"),
        Message::binary(Vec::<u8>::new()),
        message(3, &[b' '; 64 * 1024 + 1]),
        message(1, &[0; MESSAGE_BYTES]),
        message(3, b"no status"),
    ];
    for hostile in hostile {
        let (process, mut peer) = program(false).await;
        let send = async {
            // A message that is too long is not even read to its end.
            let _ = peer.send(hostile).await;
        };
        let ((), ()) = tokio::join!(send, assert_lost(process));
    }
}

#[tokio::test(start_paused = true)]
async fn pings_keep_a_silent_stream_open() {
    let (mut process, mut peer) = program(true).await;
    let serve = tokio::spawn(async move {
        let mut pings = 0;
        // Reading answers pings.
        while let Some(Ok(message)) = peer.next().await {
            pings += u32::from(message.is_ping());
            if message.is_ping() && pings == 20 {
                say(&mut peer, 3, SUCCESS).await;
            }
        }
    });
    let began = Instant::now();
    let (_, _, error) = printed(&mut process).await;
    assert!(error.is_none(), "{error:?}");
    assert!(began.elapsed() >= 20 * PING_INTERVAL);
    serve.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_answers_no_ping_is_lost() {
    let (process, _peer) = program(true).await;
    let began = Instant::now();
    assert_lost(process).await;
    assert!(began.elapsed() < 2 * SILENCE_TIMEOUT);
}

#[tokio::test(start_paused = true)]
async fn a_program_that_does_not_read_its_input_is_not_lost() {
    let (mut process, mut peer) = program(true).await;
    let stdin = process.stdin.as_mut().unwrap();
    stdin.write_all(b"unread").await.unwrap();
    let hour = Duration::from_secs(60 * 60);
    assert!(timeout(hour, process.output.next()).await.is_err());
    // It reads on, and answers.
    assert_eq!(hear(&mut peer).await, &b"\0unread"[..]);
    say(&mut peer, 3, SUCCESS).await;
    assert!(printed(&mut process).await.2.is_none());
}

#[tokio::test(start_paused = true)]
async fn accepted_input_is_sent_after_the_caller_went_away() {
    let (mut process, mut peer) = program(true).await;
    let stdin = process.stdin.as_mut().unwrap();
    stdin.write_all(b"quit\n").await.unwrap();
    drop(process);
    assert_eq!(hear(&mut peer).await, &b"\0quit\n"[..]);
    assert_eq!(hear(&mut peer).await, &b"\xff\0"[..]);
    assert!(matches!(peer.next().await, Some(Ok(Message::Close(_)))));
}

#[tokio::test(start_paused = true)]
async fn the_exit_code_can_be_had_without_the_output() {
    let (process, mut peer) = program(false).await;
    let exit = process.exit;
    drop(process.output);
    let print = async {
        for _ in 0..100 {
            say(&mut peer, 1, b"unread").await;
        }
        say(&mut peer, 3, SUCCESS).await;
    };
    let ((), code) = tokio::join!(print, exit);
    assert_eq!(code.unwrap(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_slot_is_free_again_with_the_first_output_or_soon() {
    for prints in [true, false] {
        let slots = StartSlots::default();
        let mut programs = Vec::new();
        for _ in 0..5 {
            // The fifth waits until one of the others has started.
            let slot = timeout(PING_INTERVAL, slots.take("pod"))
                .await
                .unwrap()
                .unwrap();
            let (ours, theirs) = tokio::io::duplex(1024);
            let (process, driver) = open(ours, false, slot).await;
            tokio::spawn(driver.run());
            let mut peer = WebSocketStream::from_raw_socket(theirs, Role::Server, None).await;
            if prints {
                say(&mut peer, 1, b"ready").await;
            }
            programs.push((process, peer));
        }
    }
}
