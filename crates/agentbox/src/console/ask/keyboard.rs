//! Keyboard input: an answer begins after its question.

use std::io;
use std::os::fd::AsFd;

use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

use crate::system;

/// Maximum size of an answer in bytes.
const MAX_ANSWER_BYTES: usize = 4096;

/// Discards input that was typed but not read.
pub(super) fn discard_input() -> io::Result<()> {
    Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
}

/// Reads the next line. Dropping the future does not consume later input.
pub(super) async fn read_answer() -> io::Result<String> {
    // Closing the other end tells the thread that the question was withdrawn.
    let (withdrawn, _waiting) = io::pipe()?;
    let (give, line) = oneshot::channel();
    let thread = std::thread::Builder::new().name("question".to_owned());
    thread.spawn(move || {
        // Sending fails if the question was withdrawn.
        let _ = give.send(read_line(&withdrawn, io::stdin()));
    })?;
    line.await
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Reads a line, unless the other end of `withdrawn` is closed first.
fn read_line(withdrawn: &io::PipeReader, terminal: impl AsFd) -> io::Result<String> {
    let typed = system::read_unless(withdrawn, terminal, MAX_ANSWER_BYTES)?;
    let line = typed.ok_or(io::ErrorKind::Interrupted)?;
    Ok(String::from_utf8_lossy(&line).into_owned())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn what_is_typed_after_a_question_is_not_taken() {
        let (mut typed, mut keys) = io::pipe().unwrap();
        let (withdrawn, waiting) = io::pipe().unwrap();
        keys.write_all(b"y\n").unwrap();
        assert_eq!(read_line(&withdrawn, &typed).unwrap(), "y\n");
        keys.write_all(b"more").unwrap();
        drop((waiting, keys));
        read_line(&withdrawn, &typed).unwrap_err();
        let mut left = String::new();
        typed.read_to_string(&mut left).unwrap();
        assert_eq!(left, "more");
    }
}
