//! What is typed: an answer begins after its question.

use std::io;
use std::os::fd::AsFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::termios::{QueueSelector, tcflush};
use tokio::sync::oneshot;

/// Most bytes of an answer.
const ANSWER: usize = 4096;

/// Drops what was typed and not read.
pub(super) fn forget_typed() -> io::Result<()> {
    Ok(tcflush(io::stdin(), QueueSelector::IFlush)?)
}

/// The next line, which the terminal gives as a whole. Dropping this takes
/// nothing of what is typed later.
pub(super) async fn line() -> io::Result<String> {
    // Its other end tells the thread that nobody waits any more.
    let (withdrawn, _waiting) = io::pipe()?;
    let (give, line) = oneshot::channel();
    let thread = std::thread::Builder::new().name("question".to_owned());
    thread.spawn(move || {
        // Nobody listens to the answer to a question that was withdrawn.
        let _ = give.send(read_line(&withdrawn, io::stdin()));
    })?;
    line.await
        .unwrap_or_else(|_| Err(io::ErrorKind::Other.into()))
}

/// Reads a line, unless the other end of `withdrawn` is closed before.
fn read_line(withdrawn: &io::PipeReader, terminal: impl AsFd) -> io::Result<String> {
    let mut both = [
        PollFd::new(withdrawn, PollFlags::empty()),
        PollFd::new(&terminal, PollFlags::IN),
    ];
    loop {
        match poll(&mut both, None) {
            Err(rustix::io::Errno::INTR) => continue,
            polled => drop(polled?),
        }
        let [gone, typed] = both.each_ref().map(|one| !one.revents().is_empty());
        if gone {
            return Err(io::ErrorKind::Interrupted.into());
        }
        if typed {
            let mut bytes = [0; ANSWER];
            let count = rustix::io::read(&terminal, &mut bytes)?;
            let line = bytes.get(..count).unwrap_or_default();
            return Ok(String::from_utf8_lossy(line).into_owned());
        }
    }
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
