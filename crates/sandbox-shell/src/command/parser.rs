//! The output of a command's program, and the status lines of its script in it.

use std::collections::VecDeque;

use backend_core::ops::{CommandStatus, Event};
use backend_core::{Error, Quoted, Result};
use backend_run::{OutputStream, Sinks};
use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use sandbox_wire::{Machine, OutputChunk};

use super::Job;
use crate::failure::broken;
use crate::sentinel::Scanner;
use crate::worker::{WorkerError, wait_until};

/// Bytes before a command's start that are examined.
const TEXT_BYTES: usize = 4 * 1024;

/// Bytes of standard error that may arrive before the report of the start.
const AHEAD_BYTES: usize = 64 * 1024 * 1024;

/// The exit status of a command, as reported by its script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) status: CommandStatus,
    pub(crate) leftovers: u32,
}

impl Exit {
    /// The status of a command that was killed together with its script.
    pub(crate) const KILLED: Self = Self {
        status: CommandStatus::Signalled(9),
        leftovers: 0,
    };
}

/// Takes the status lines out of both streams of a command.
#[derive(Debug)]
pub(crate) struct OutputParser {
    scanner: Scanner,
    out: Stream,
    err: Stream,
    /// Bytes that may still be printed.
    left: u64,
    /// Whether more was printed.
    pub(crate) over: bool,
    /// Events that wait for a slow reader.
    pub(crate) waiting: VecDeque<Event>,
}

#[derive(Debug, Default)]
struct Stream {
    buffer: BytesMut,
    /// The status line at the beginning.
    start: Option<String>,
    exit: Option<Exit>,
}

impl OutputParser {
    pub(crate) fn new(secret: &str, left: u64) -> Self {
        Self {
            scanner: Scanner::new(secret),
            out: Stream::default(),
            err: Stream::default(),
            left,
            over: false,
            waiting: VecDeque::new(),
        }
    }

    /// Returns the exit status once both streams report it. By then all output
    /// has arrived.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.err.exit.and(self.out.exit)
    }

    /// Returns the exit status if either stream reports it.
    pub(crate) fn any_exit(&self) -> Option<Exit> {
        self.out.exit.or(self.err.exit)
    }

    /// Handles a piece of output and forwards the payload.
    pub(crate) fn take(&mut self, piece: OutputChunk, sinks: &mut Sinks) -> Result<()> {
        let (from, stream, piece) = match piece {
            OutputChunk::Stdout(piece) => (OutputStream::Stdout, &mut self.out, piece),
            OutputChunk::Stderr(piece) => (OutputStream::Stderr, &mut self.err, piece),
        };
        // Leftover processes may go on. Their output is dropped.
        if stream.exit.is_some() {
            return Ok(());
        }
        stream.buffer.extend_from_slice(&piece);
        loop {
            let stream = match from {
                OutputStream::Stdout => &mut self.out,
                OutputStream::Stderr => &mut self.err,
            };
            let said = self.scanner.find(&stream.buffer, 0);
            let payload = match &said {
                Ok(said) => said.payload,
                Err(payload) => *payload,
            };
            let payload = stream.buffer.split_to(payload).freeze();
            if let Ok(said) = &said {
                let _ = stream.buffer.split_to(said.length);
                stream.handle_status(&said.words)?;
            }
            let is_over = said.is_err() || stream.exit.is_some();
            self.forward(from, payload, sinks);
            if is_over {
                return Ok(());
            }
        }
    }

    fn forward(&mut self, from: OutputStream, mut payload: Bytes, sinks: &mut Sinks) {
        if payload.len() as u64 > self.left {
            self.over = true;
            payload.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
        }
        self.left -= payload.len() as u64;
        if !payload.is_empty() {
            self.waiting.extend(sinks.of(from).push(&payload));
        }
    }
}

impl Stream {
    fn handle_status(&mut self, words: &str) -> Result<()> {
        let mut parts = words.split(' ');
        match parts.next() {
            Some("start" | "nodir") if self.start.is_none() => self.start = Some(words.to_owned()),
            Some("end") => {
                let exit = exit(&mut parts);
                self.exit = Some(exit.ok_or_else(|| broken("invalid exit status of a command"))?);
            }
            _ => return Err(broken("unknown status word")),
        }
        Ok(())
    }
}

fn exit<'w>(words: &mut impl Iterator<Item = &'w str>) -> Option<Exit> {
    let how = words.next()?;
    let code: i32 = words.next()?.parse().ok()?;
    let leftovers = words.next()?.parse().ok()?;
    let status = match how {
        "signal" => CommandStatus::Signalled(code.checked_sub(128)?),
        _ => CommandStatus::Exited(code),
    };
    Some(Exit { status, leftovers })
}

impl Job {
    /// Waits until the command runs, without a timeout, and returns its process
    /// ID, or `None` if its directory cannot be entered.
    ///
    /// # Errors
    ///
    /// `Unavailable` if it cannot be started.
    pub(super) async fn started<M: Machine>(&mut self, machine: &M) -> Result<Option<u32>> {
        loop {
            if let Some(start) = &self.parser.out.start {
                let Some(pid) = start.strip_prefix("start ") else {
                    return Ok(None);
                };
                let pid = pid.parse().map_err(|_| broken("invalid process ID"))?;
                return Ok(Some(pid));
            }
            if self.parser.out.buffer.len() > TEXT_BYTES {
                return Err(broken("too much output before a command started"));
            }
            let next = wait_until(machine, None, self.process.output.next());
            match next.await.map_err(WorkerError::error)? {
                // Nothing is printed before the start, except by the machine
                // itself.
                Some(Ok(OutputChunk::Stdout(piece))) => {
                    self.parser.out.buffer.extend_from_slice(&piece);
                    self.parser.find_start()?;
                }
                Some(Ok(OutputChunk::Stderr(piece))) => {
                    self.parser.err.buffer.extend_from_slice(&piece);
                    if self.parser.err.buffer.len() > AHEAD_BYTES {
                        return Err(broken("too much output before a command started"));
                    }
                }
                Some(Err(error)) => return Err(error),
                None => return Err(self.not_started()),
            }
        }
    }

    fn not_started(&self) -> Error {
        let first = if self.parser.out.buffer.is_empty() {
            &self.parser.err.buffer
        } else {
            &self.parser.out.buffer
        };
        let first = String::from_utf8_lossy(first.get(..TEXT_BYTES).unwrap_or(first));
        not_started(first.trim())
    }
}

/// The error for a command that the machine could not start, with its message.
fn not_started(said: &str) -> Error {
    let said = said.trim_end_matches('.');
    let no_shell = said.contains("\"sh\"") && said.contains("not found");
    let (why, next) = if no_shell {
        (
            "the image has no shell",
            "choose one with `sh`, which commands need",
        )
    } else {
        (
            "the command could not be started",
            "see that the image has `sh` and the working directory",
        )
    };
    let said = Quoted::new(said);
    Error::unavailable(format!("{why} (the machine said {said}); {next}"))
}

impl OutputParser {
    /// Looks for the report of the start in the received bytes.
    fn find_start(&mut self) -> Result<()> {
        if let Ok(said) = self.scanner.find(&self.out.buffer, 0) {
            let _ = self.out.buffer.split_to(said.payload + said.length);
            self.out.handle_status(&said.words)?;
        }
        Ok(())
    }

    /// Forwards the output that arrived together with the start.
    pub(crate) fn begin(&mut self, sinks: &mut Sinks) -> Result<()> {
        for piece in [
            OutputChunk::Stdout(Bytes::new()),
            OutputChunk::Stderr(Bytes::new()),
        ] {
            self.take(piece, sinks)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_a_shell_is_told_from_other_failures() {
        let docker = "OCI runtime exec failed: exec failed: unable to start container process: \
                      exec: \"sh\": executable file not found in $PATH: unknown";
        let error = not_started(docker);
        let expected = "the image has no shell (the machine said 'OCI runtime exec failed";
        assert!(error.message().starts_with(expected), "{error}");
        assert!(
            error
                .message()
                .ends_with("choose one with `sh`, which commands need")
        );
        let other = not_started("OCI runtime exec failed: chdir to cwd (\"/x\") failed");
        assert!(
            other
                .message()
                .starts_with("the command could not be started"),
            "{other}"
        );
        assert!(
            other.message().ends_with("the working directory"),
            "{other}"
        );
    }
}
