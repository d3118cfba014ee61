//! Clients that know no token, and peers that do not keep to the protocol.

use std::io;
use std::time::Duration;

use proptest::prelude::*;
use tokio::time::sleep;

use super::*;
use crate::websocket::server::TOKEN_TIMEOUT;

/// Makes a frame of a client. Its mask of zeros changes nothing.
pub(super) fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match u16::try_from(payload.len()) {
        Ok(short @ ..126) => frame.push(0x80 | short as u8),
        Ok(medium) => {
            frame.push(0x80 | 126);
            frame.extend(medium.to_be_bytes());
        }
        Err(_) => {
            frame.push(0x80 | 127);
            frame.extend((payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend([0; 4]);
    frame.extend(payload);
    frame
}

/// Lets a client say these bytes. Returns whether it was let in, and the bytes it heard.
async fn knock(bytes: &[u8]) -> (Result<()>, Vec<u8>) {
    let (ours, theirs) = tokio::io::duplex(PIPE);
    let (reader, writer) = tokio::io::split(ours);
    let (mut listens, mut speaks) = tokio::io::split(theirs);
    let token = token();
    let accepting = async { accept(reader, writer, &token).await.map(drop) };
    // The other side may have heard enough.
    let speaking = async { drop(speaks.write_all(bytes).await) };
    let mut heard = Vec::new();
    let (accepted, (), listened) =
        tokio::join!(accepting, speaking, listens.read_to_end(&mut heard));
    listened.unwrap();
    (accepted, heard)
}

async fn knock_with(frames: &[Vec<u8>]) -> (Result<()>, Vec<u8>) {
    knock(&[REQUEST, &frames.concat()].concat()).await
}

fn text() -> Vec<u8> {
    token().as_str().as_bytes().to_vec()
}

#[tokio::test(start_paused = true)]
async fn the_token_may_come_in_pieces() {
    let text = text();
    let (one, two) = text.split_at(7);
    let (ping, pong) = (frame(0x89, b"are you there"), b"\x8a\x0dare you there");
    for frames in [
        vec![frame(0x82, &text)],
        vec![frame(0x02, one), frame(0x80, two)],
        vec![
            ping.clone(),
            frame(0x02, one),
            ping.clone(),
            frame(0x80, two),
        ],
        vec![frame(0x02, b""), frame(0x00, &text), frame(0x80, b"")],
        vec![frame(0x8a, b"a pong"), frame(0x82, &text), vec![1, 2, 3]],
    ] {
        let pinged = frames.contains(&ping);
        let (accepted, heard) = knock_with(&frames).await;
        accepted.unwrap();
        assert!(heard.starts_with(b"HTTP/1.1 101 "));
        let answered = heard.windows(pong.len()).any(|bytes| bytes == pong);
        assert_eq!(answered, pinged);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_tokens() {
    let text = text();
    let longer = [&text[..], b"\n"].concat();
    let mut other = text.clone();
    other[31] ^= 1;
    for wrong in [&b""[..], &longer, &other, &text[1..], &[0; 4000]] {
        let (accepted, heard) = knock_with(&[frame(0x82, wrong)]).await;
        assert_eq!(accepted.unwrap_err().kind(), ErrorKind::Auth);
        // The code 1008 and the reason, and nothing else after the handshake.
        let refusal = b"\r\n\r\n\x88\x14\x03\xf0the token is wrong";
        assert!(heard.ends_with(refusal), "{:?}", Bytes::from(heard));
    }
}

#[tokio::test(start_paused = true)]
async fn anything_else_than_a_token() {
    let text = text();
    let unmasked = [&[0x82, 32][..], &text].concat();
    let announced = vec![0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff];
    let pings = vec![frame(0x89, &[0; 100]); 40].concat();
    for (frames, reason) in [
        (vec![frame(0x81, &text)], "text"),
        (vec![unmasked], "unmasked"),
        (vec![announced, vec![0; 8192]], "a huge frame"),
        (vec![frame(0x82, &[0; 5000])], "a large frame"),
        (vec![frame(0xc2, &text)], "a reserved bit"),
        (vec![frame(0x83, &text)], "an unknown kind"),
        (vec![frame(0x8b, &text)], "an unknown control frame"),
        (vec![frame(0x80, &text)], "the rest of nothing"),
        (vec![frame(0x09, b"")], "a part of a ping"),
        (vec![frame(0x89, &[0; 126])], "a long ping"),
        (vec![frame(0x88, b"")], "a goodbye"),
        (vec![frame(0x02, b""), frame(0x82, &text)], "a new message"),
        (vec![pings, frame(0x82, &text)], "pings, and a late token"),
        (vec![frame(0x02, &text)], "a message without an end"),
        (vec![frame(0x82, &text)[..9].to_vec()], "half a token"),
        (vec![], "nothing"),
    ] {
        let (accepted, heard) = knock_with(&frames).await;
        let error = accepted.expect_err(reason);
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{reason}");
        assert!(heard.starts_with(b"HTTP/1.1 101 "), "{reason}");
        assert!(heard.len() < 8192, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn requests_for_no_websocket_are_told_that_this_is_one() {
    let request = String::from_utf8(REQUEST.to_vec()).unwrap();
    for other in [
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n".to_owned(),
        "\r\n\r\n\r\n\r\n".to_owned(),
        "\u{16}\u{3}\u{1}\r\n\r\n".to_owned(),
        request.replace("GET", "POST"),
        request.replace("1.1", "1.0"),
        request.replace("keep-alive, Upgrade", "keep-alive"),
        request.replace("websocket", "h2c"),
        request.replace("13", "8"),
        request.replace("dGhlIHNhbXBsZSBub25jZQ==", "short"),
        request.replace("Sec-WebSocket-Key", "Sec-WebSocket-Lock"),
        request.replace("Host", "H\0st"),
        request.replace("Host: sandbox\r\n", &"a: b\r\n".repeat(200)),
    ] {
        let (accepted, heard) = knock(other.as_bytes()).await;
        assert_eq!(accepted.unwrap_err().kind(), ErrorKind::Unavailable);
        assert!(heard.starts_with(b"HTTP/1.1 426 "), "{other}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_without_an_end_costs_little() {
    let (ours, theirs) = tokio::io::duplex(1024);
    let (reader, writer) = tokio::io::split(ours);
    let (_listens, mut speaks) = tokio::io::split(theirs);
    let token = token();
    let speak = async {
        let mut sent = 0;
        while speaks.write_all(b"endless: header\r\n").await.is_ok() {
            sent += 17;
        }
        sent
    };
    let (accepted, sent) = tokio::join!(accept(reader, writer, &token), speak);
    assert_eq!(accepted.unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(sent < 32 * 1024, "{sent} bytes were taken");
}

#[tokio::test(start_paused = true)]
async fn slow_clients_are_not_waited_for() {
    let first = frame(0x82, &text());
    for (at_once, slowly) in [(&b""[..], REQUEST), (REQUEST, &first), (REQUEST, b"")] {
        let (ours, theirs) = tokio::io::duplex(PIPE);
        let (reader, writer) = tokio::io::split(ours);
        let (_listens, mut speaks) = tokio::io::split(theirs);
        let began = Instant::now();
        let drip = async {
            speaks.write_all(at_once).await.unwrap();
            for byte in slowly {
                speaks.write_all(&[*byte]).await.unwrap();
                sleep(Duration::from_millis(400)).await;
            }
            // Silence follows.
            std::future::pending::<()>().await;
        };
        let token = token();
        let accepted = tokio::select! {
            accepted = accept(reader, writer, &token) => accepted,
            () = drip => unreachable!("it stays"),
        };
        assert_eq!(accepted.unwrap_err().kind(), ErrorKind::Unavailable);
        let took = began.elapsed();
        assert!(took >= TOKEN_TIMEOUT && took < 2 * TOKEN_TIMEOUT);
    }
}

/// Lets a client that knows the token send these bytes. Returns what the agent reads.
async fn sent(bytes: &[u8]) -> (Vec<u8>, io::Result<usize>) {
    let (mut theirs, mut connection) = accepted(PIPE).await;
    let mut heard = Vec::new();
    let (said, read) = tokio::join!(theirs.write_all(bytes), connection.read_to_end(&mut heard));
    said.unwrap();
    (heard, read)
}

#[tokio::test(start_paused = true)]
async fn the_client_of_an_agent_must_keep_to_the_protocol() {
    for (bytes, reason) in [
        (vec![0x82, 1, 0], "unmasked"),
        (frame(0x81, b"text"), "text"),
        (frame(0x82, &vec![0; MESSAGE_BYTES + 1]), "a large frame"),
        (
            [frame(0x02, &vec![0; MESSAGE_BYTES]), frame(0x80, &[0; 1])].concat(),
            "a large message",
        ),
        (frame(0xa2, b"x"), "a reserved bit"),
        (vec![0xff; 64], "noise"),
    ] {
        let (heard, read) = sent(&bytes).await;
        assert!(heard.is_empty(), "{reason}");
        let error = read.expect_err(reason);
        assert_eq!(
            error.kind(),
            io::ErrorKind::InvalidData,
            "{reason}: {error}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn empty_and_broken_messages_and_pings_in_between_are_read() {
    let (mut theirs, mut connection) = accepted(PIPE).await;
    let mut bytes = Vec::new();
    for _ in 0..1000 {
        bytes.extend(frame(0x82, b""));
        bytes.extend(frame(0x02, b"a"));
        bytes.extend(frame(0x89, b""));
        bytes.extend(frame(0x00, b""));
        bytes.extend(frame(0x80, b"b"));
        bytes.extend(frame(0x8a, b"a pong"));
    }
    let mut heard = [0; 2000];
    let (said, read) = tokio::join!(theirs.write_all(&bytes), connection.read_exact(&mut heard));
    said.unwrap();
    read.unwrap();
    assert!(heard.chunks(2).all(|pair| pair == b"ab"));
}

/// The client sends pings and reads no answer. They wait up to a limit, and then one waits
/// at a time. Bytes that the agent wants to send do not fit behind them.
#[tokio::test]
async fn answers_to_pings_that_are_not_read_are_bounded() {
    let (mut theirs, mut connection) = accepted(4096).await;
    let ping = frame(0x89, &[7; 125]);
    let flood = async {
        for _ in 0..10_000 {
            theirs.write_all(&ping).await.unwrap();
        }
        theirs.write_all(&frame(0x82, b"end")).await.unwrap();
    };
    let mut end = [0; 3];
    let ((), read) = tokio::join!(flood, connection.read_exact(&mut end));
    read.unwrap();
    assert_eq!(&end, b"end");
    let refused = connection.write_all(&[1; MESSAGE_BYTES]).await.unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::ConnectionAborted);
}

fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build();
    runtime.unwrap().block_on(test)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_bytes_are_a_token(
        asks in any::<bool>(),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let request = if asks { REQUEST } else { b"" };
        let (accepted, _) = run(knock(&[request, &bytes].concat()));
        prop_assert!(accepted.is_err());
    }

    #[test]
    fn any_bytes_of_a_client_end_or_are_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        run(async {
            let (mut theirs, mut connection) = accepted(PIPE).await;
            theirs.write_all(&bytes).await.unwrap();
            drop(theirs);
            let mut heard = Vec::new();
            let _ = connection.read_to_end(&mut heard).await;
            assert!(heard.len() <= bytes.len());
        });
    }

    #[test]
    fn any_bytes_of_an_agent_end_or_are_read(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        run(async {
            let (ours, mut theirs) = tokio::io::duplex(PIPE);
            theirs.write_all(&bytes).await.unwrap();
            theirs.shutdown().await.unwrap();
            if let Ok(mut process) = attach(ours, &token()).await {
                let (heard, _) = rest(&mut process).await;
                assert!(heard.len() <= bytes.len());
            }
        });
    }
}
