//! Tests of the stream under the multiplexer.

use std::pin::pin;

use futures::{AsyncReadExt as _, AsyncWriteExt as _, FutureExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

type Half<T> = (tokio::io::ReadHalf<T>, tokio::io::WriteHalf<T>);

fn socket(
    size: usize,
) -> (
    Socket<
        tokio::io::ReadHalf<tokio::io::DuplexStream>,
        tokio::io::WriteHalf<tokio::io::DuplexStream>,
    >,
    tokio::io::DuplexStream,
) {
    let (here, there) = tokio::io::duplex(size);
    let (reader, writer): Half<_> = tokio::io::split(here);
    (Socket::new(reader, writer), there)
}

#[tokio::test]
async fn what_is_written_waits_for_a_flush() {
    let (mut socket, mut there) = socket(64);
    socket.write_all(b"head").await.unwrap();
    socket.write_all(b"body").await.unwrap();
    let mut read = [0; 8];
    assert!(there.read(&mut read).now_or_never().is_none());
    socket.flush().await.unwrap();
    there.read_exact(&mut read).await.unwrap();
    assert_eq!(&read, b"headbody");
}

#[tokio::test]
async fn bytes_are_counted_as_they_arrive() {
    let (mut socket, mut there) = socket(64);
    let received = socket.received();
    there.write_all(b"hello").await.unwrap();
    assert_eq!(socket.read(&mut [0; 2]).await.unwrap(), 2);
    assert_eq!(received.load(Ordering::Relaxed), 5);
    drop(there);
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"llo");
    assert_eq!(
        socket.read(&mut [0; 2]).await.unwrap(),
        0,
        "the end stays the end"
    );
}

/// Neither side reads until it has written, and neither pipe has room. Both
/// finish, because each reads while it waits.
#[tokio::test]
async fn two_that_only_write_do_not_wait_for_each_other() {
    let (one, two) = tokio::io::duplex(16);
    let (reader, writer): Half<_> = tokio::io::split(one);
    let mut one = Socket::new(reader, writer);
    let (reader, writer): Half<_> = tokio::io::split(two);
    let mut two = Socket::new(reader, writer);
    let text = vec![7; WRITE / 2];
    let talk = async |socket: &mut Socket<_, _>| {
        socket.write_all(&text).await.unwrap();
        socket.flush().await.unwrap();
        let mut read = vec![0; text.len()];
        socket.read_exact(&mut read).await.unwrap();
        assert!(read == text);
    };
    futures::join!(talk(&mut one), talk(&mut two));
}

/// A side that cannot write reads only up to its limit meanwhile.
#[tokio::test]
async fn what_is_taken_while_waiting_is_bounded() {
    let (mut socket, there) = socket(1024);
    let (mut reader, mut writer): Half<_> = tokio::io::split(there);
    socket.write_all(&vec![1; 4096]).await.unwrap();
    let mut flush = pin!(async {
        socket.flush().await.unwrap();
        socket.input.len()
    });
    let mut sent = 0;
    loop {
        // The runtime limits how much a task does at a time.
        tokio::task::yield_now().await;
        assert!(flush.as_mut().now_or_never().is_none(), "nobody has read");
        match writer.write(&[2; 1024]).now_or_never() {
            Some(written) => sent += written.unwrap(),
            None => break,
        }
        assert!(sent < 2 * ABSORB, "{sent} bytes were taken");
    }
    assert!(sent >= ABSORB, "only {sent} bytes were taken");
    let mut read = [0; 4096];
    let (read, taken) = futures::join!(reader.read_exact(&mut read), flush);
    read.unwrap();
    assert!(taken <= ABSORB + READ);
}

#[tokio::test]
async fn a_failed_write_gives_the_reason_that_has_arrived() {
    let (gone, writer) = tokio::io::duplex(64);
    drop(gone);
    let pieces = [
        Ok(&b"last words"[..]),
        Err(io::Error::other("it was replaced")),
    ];
    let reader = tokio_util::io::StreamReader::new(futures::stream::iter(pieces));
    let mut socket = Socket::new(reader, writer);
    socket.write_all(b"more").await.unwrap();
    let error = socket.flush().await.unwrap_err();
    assert_eq!(error.to_string(), "it was replaced");
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).await.unwrap();
    assert_eq!(rest, b"last words");
}

#[tokio::test]
async fn a_failed_write_without_a_reason_is_its_own() {
    let (gone, writer) = tokio::io::duplex(64);
    drop(gone);
    let mut socket = Socket::new(tokio::io::empty(), writer);
    socket.write_all(b"more").await.unwrap();
    let error = socket.flush().await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
}
