//! The messages of a stream: the first byte is the channel.

use bytes::Bytes;
use tokio_tungstenite::tungstenite::Message;

/// The channel of the input. These are the numbers of `v5.channel.k8s.io`.
pub(super) const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
/// Announces the end of the channel that is named by the next byte.
const CLOSE: u8 = 255;

/// The longest status that is taken.
const STATUS_BYTES: usize = 64 * 1024;

/// A message from the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Stdout(Bytes),
    Stderr(Bytes),
    /// The program has ended, or was not started: JSON that says how.
    Status(Bytes),
    /// The answer to a ping, with what the ping carried.
    Pong(Bytes),
    /// The cluster ends the stream.
    Closed,
    /// Nothing that a caller needs.
    Other,
}

/// Reads a message.
///
/// # Errors
///
/// The reason why it cannot be one of an API server.
pub(super) fn parse(message: Message) -> Result<Frame, &'static str> {
    let mut bytes = match message {
        Message::Binary(bytes) => bytes,
        Message::Pong(bytes) => return Ok(Frame::Pong(bytes)),
        Message::Close(_) => return Ok(Frame::Closed),
        Message::Text(_) => return Err("text where bytes are sent"),
        Message::Ping(_) | Message::Frame(_) => return Ok(Frame::Other),
    };
    let Some(&channel) = bytes.first() else {
        return Err("a message of no channel");
    };
    let content = bytes.split_off(1);
    Ok(match channel {
        // Each channel is opened with an empty message.
        _ if content.is_empty() => Frame::Other,
        STDOUT => Frame::Stdout(content),
        STDERR => Frame::Stderr(content),
        STATUS if content.len() > STATUS_BYTES => return Err("a status that is too long"),
        STATUS => Frame::Status(content),
        // The end of the output follows from the status.
        _ => Frame::Other,
    })
}

/// Makes the message that ends the input. The output goes on.
pub(super) fn end_of_input() -> Message {
    Message::binary(vec![CLOSE, STDIN])
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn binary(bytes: &[u8]) -> Result<Frame, &'static str> {
        parse(Message::binary(bytes.to_vec()))
    }

    #[test]
    fn channels() {
        let text = Bytes::from_static(b"text");
        assert_eq!(binary(b"\x01text"), Ok(Frame::Stdout(text.clone())));
        assert_eq!(binary(b"\x02text"), Ok(Frame::Stderr(text.clone())));
        assert_eq!(binary(b"\x03text"), Ok(Frame::Status(text.clone())));
        for other in [
            &b"\x01"[..],
            b"\x02",
            b"\x03",
            b"\x00x",
            b"\x04x",
            b"\xff\x01",
        ] {
            assert_eq!(binary(other), Ok(Frame::Other), "{other:?}");
        }
        assert!(binary(b"").is_err());
        assert!(parse(Message::text("\u{1}text")).is_err());
        assert_eq!(parse(Message::Pong(text.clone())), Ok(Frame::Pong(text)));
        assert_eq!(parse(Message::Close(None)), Ok(Frame::Closed));
    }

    #[test]
    fn a_status_is_short() {
        let mut status = vec![b' '; 1 + STATUS_BYTES];
        status[0] = STATUS;
        assert!(binary(&status).is_ok());
        status.push(b' ');
        assert!(binary(&status).is_err());
        status[0] = STDOUT;
        assert!(binary(&status).is_ok());
    }

    proptest! {
        #[test]
        fn any_message_is_read(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let expected = match bytes.split_first() {
                None => Err("a message of no channel"),
                Some((1, rest)) if !rest.is_empty() => Ok(Frame::Stdout(rest.to_vec().into())),
                Some((2, rest)) if !rest.is_empty() => Ok(Frame::Stderr(rest.to_vec().into())),
                Some((3, rest)) if !rest.is_empty() => Ok(Frame::Status(rest.to_vec().into())),
                Some(_) => Ok(Frame::Other),
            };
            prop_assert_eq!(binary(&bytes), expected);
        }
    }
}
