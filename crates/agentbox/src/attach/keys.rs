//! Keys from the terminal, and the ones that leave the shell: Enter, tilde, dot.

use std::io;

use bytes::Bytes;
use tokio::sync::mpsc;

use crate::system;

/// Pieces of input that wait for a shell that does not read.
const PIECES: usize = 256;

/// Bytes of one piece.
const PIECE_BYTES: usize = 4 * 1024;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Key {
    /// For the shell.
    Bytes(Bytes),
    /// The user leaves the shell, or the terminal is gone.
    Leave,
}

/// Keys as they are typed. After it is dropped nothing more is read: later keys are for
/// this program.
#[derive(Debug)]
pub(super) struct Keys {
    typed: mpsc::Receiver<Key>,
    /// Closing it ends the thread that reads.
    _wanted: io::PipeWriter,
}

impl Keys {
    pub(super) fn read() -> io::Result<Self> {
        let (unwanted, wanted) = io::pipe()?;
        let (give, typed) = mpsc::channel(PIECES);
        let thread = std::thread::Builder::new().name("keys".to_owned());
        thread.spawn(move || {
            let mut escape = Escape::default();
            // An error means that the terminal is gone.
            while let Ok(Some(typed)) = system::read_unless(&unwanted, io::stdin(), PIECE_BYTES) {
                let (bytes, leaves) = escape.pass(&typed);
                let sent = bytes.is_empty() || give.blocking_send(Key::Bytes(bytes.into())).is_ok();
                if leaves || typed.is_empty() || !sent {
                    return;
                }
            }
        })?;
        Ok(Self {
            typed,
            _wanted: wanted,
        })
    }

    pub(super) async fn next(&mut self) -> Key {
        self.typed.recv().await.unwrap_or(Key::Leave)
    }
}

/// Finds the keys that leave, which must be at the beginning of a line.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Escape {
    #[default]
    LineBegins,
    /// After a tilde at the beginning of a line, which was not passed on yet.
    Tilde,
    InLine,
}

impl Escape {
    /// Returns the bytes for the shell, and whether the user leaves.
    fn pass(&mut self, typed: &[u8]) -> (Vec<u8>, bool) {
        let mut bytes = Vec::with_capacity(typed.len() + 1);
        for &byte in typed {
            match (*self, byte) {
                (Self::LineBegins, b'~') => {
                    *self = Self::Tilde;
                    continue;
                }
                (Self::Tilde, b'.') => return (bytes, true),
                // Two tildes are one.
                (Self::Tilde, b'~') => {}
                (Self::Tilde, _) => bytes.push(b'~'),
                _ => {}
            }
            bytes.push(byte);
            *self = match byte {
                b'\r' | b'\n' => Self::LineBegins,
                _ => Self::InLine,
            };
        }
        (bytes, false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what reaches the shell, piece by piece, and whether the user left.
    fn passed(pieces: &[&str]) -> (String, bool) {
        let mut escape = Escape::default();
        let mut all = Vec::new();
        for piece in pieces {
            let (bytes, leave) = escape.pass(piece.as_bytes());
            all.extend(bytes);
            if leave {
                return (String::from_utf8(all).unwrap(), true);
            }
        }
        (String::from_utf8(all).unwrap(), false)
    }

    #[test]
    fn only_a_tilde_and_a_dot_at_the_beginning_of_a_line_leave() {
        for (typed, bytes) in [("~.", ""), ("ls\r~.", "ls\r"), ("a\n~.rest", "a\n")] {
            assert_eq!(passed(&[typed]), (bytes.into(), true), "{typed:?}");
            let keys: Vec<&str> = typed.split("").collect();
            assert_eq!(passed(&keys), (bytes.into(), true), "{typed:?}");
        }
        for (typed, bytes) in [
            ("ls ~.", "ls ~."),
            ("~~.", "~."),
            ("~/bin\r", "~/bin\r"),
            ("~\r~x", "~\r~x"),
            ("~", ""),
            ("cd ~\r", "cd ~\r"),
        ] {
            assert_eq!(passed(&[typed]), (bytes.into(), false), "{typed:?}");
        }
    }
}
