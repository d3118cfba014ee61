//! One shell in the machine that answers requests, and the connection to it.

use std::pin::Pin;
use std::time::Duration;

use backend_core::ops::Links;
use backend_core::{Error, Quoted, Result, VPath};
use bytes::{Bytes, BytesMut};
use futures::stream::BoxStream;
use futures::{FutureExt as _, StreamExt as _};
use sandbox_wire::{Machine, OutputChunk, Process, Spawn};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::time::Instant;

use crate::failure::{self, broken};
use crate::sentinel::{Scanner, random_word};

const START: &str = include_str!("start.sh");
const WORKER: &str = concat!(
    include_str!("worker/paths.sh"),
    include_str!("worker/read.sh"),
    include_str!("worker/write.sh"),
    include_str!("worker/change.sh"),
    include_str!("worker/processes.sh"),
    include_str!("worker/serve.sh"),
);

/// The timeout for a shell's first answer.
const HELLO: Duration = Duration::from_secs(30);

/// The time of silence after which the machine is asked for a diagnosis.
const SILENCE: Duration = Duration::from_secs(5);

/// The timeout for a shell that is not known to be busy. One millisecond is
/// added for each byte of its answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// Bytes of a greeting that are examined, and of error output that are kept.
const TEXT_BYTES: usize = 4 * 1024;

/// Bytes of error output that are tolerated with one answer. Our scripts print
/// hardly any.
const STDERR_BYTES: usize = 1024 * 1024;

/// A request to a shell in the machine.
#[derive(Debug)]
pub(crate) struct Request {
    operation: &'static str,
    line: Vec<u8>,
    body: Bytes,
    /// The number of parts that an answer may have, beyond its last. By default
    /// that of the arguments.
    parts: usize,
    /// The maximum size of an answer in bytes.
    limit: usize,
    /// The timeout.
    patience: Duration,
}

impl Request {
    pub(crate) fn new(operation: &'static str) -> Self {
        Self {
            operation,
            line: Vec::new(),
            body: Bytes::new(),
            parts: 0,
            limit: 64 * 1024,
            patience: PATIENCE,
        }
    }

    /// Creates a request about a path.
    pub(crate) fn at(operation: &'static str, path: &VPath, links: Links) -> Self {
        Self::new(operation).arg(path.as_str()).arg(flag(links))
    }

    /// Adds an argument, which arrives unchanged.
    pub(crate) fn arg(mut self, argument: impl AsRef<[u8]>) -> Self {
        self.parts += 1;
        self.line.extend_from_slice(b" '");
        for &byte in argument.as_ref() {
            match byte {
                b'\'' => self.line.extend_from_slice(b"'\\''"),
                // A request is one line.
                b'\n' => self.line.extend_from_slice(b"'\"$nl\"'"),
                // No argument can contain a NUL byte, and no path does.
                0 => {}
                byte => self.line.push(byte),
            }
        }
        self.line.push(b'\'');
        self
    }

    pub(crate) fn args(self, arguments: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Sets the bytes that follow the request.
    pub(crate) fn body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    /// Removes the timeout, for requests that walk a tree or wait for a disk.
    pub(crate) fn slow(mut self) -> Self {
        self.patience = Duration::MAX;
        self
    }

    pub(crate) fn parts(mut self, parts: usize) -> Self {
        self.parts = parts;
        self
    }

    pub(crate) fn limit(mut self, limit: usize) -> Self {
        self.limit = limit;
        self
    }
}

/// Returns the script's flag for the treatment of links.
pub(crate) fn flag(links: Links) -> &'static str {
    match links {
        Links::Follow => "f",
        Links::Refuse => "r",
    }
}

/// A shell's answer: its parts, of which the last has no end mark of its own,
/// or an error.
pub(crate) type Answer = Result<Vec<Bytes>>;

pub(crate) struct Worker {
    stdin: Pin<Box<dyn AsyncWrite + Send>>,
    output: BoxStream<'static, Result<OutputChunk>>,
    buffer: BytesMut,
    /// Its latest error output.
    stderr: Vec<u8>,
    /// Bytes of output since it was started.
    pub(crate) printed: u64,
    /// Its process ID in the machine.
    pub(crate) pid: u32,
    /// The ID of the user it runs as.
    pub(crate) uid: u32,
}

impl std::fmt::Debug for Worker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Worker({})", self.pid)
    }
}

impl Worker {
    /// Starts a shell. Processes with the marker `mark` end together with it.
    pub(crate) async fn open<M: Machine>(machine: &M, mark: &str) -> Result<Self> {
        let word = random_word();
        let spawn = Spawn::new(["sh", "-c", START, "sh", "sh", WORKER, &word, mark])
            .stdin(true)
            .directory(VPath::root())
            .env("LC_ALL", "C")
            .env("TZ", "UTC0");
        let process = machine.spawn(spawn).await?;
        let Process {
            stdin,
            output,
            exit,
            ..
        } = process;
        let mut worker = Self {
            stdin: stdin
                .ok_or_else(|| Error::internal("a program was started without its input"))?,
            output,
            buffer: BytesMut::new(),
            stderr: Vec::new(),
            printed: 0,
            pid: 0,
            uid: 0,
        };
        let scanner = Scanner::new(&word);
        let mut wait = Wait::new(HELLO);
        let hello = worker
            .next_status(machine, &scanner, TEXT_BYTES, &mut wait)
            .await;
        let (_, words) = match hello {
            Ok(hello) => hello,
            Err(lost) => return Err(worker.no_shell(lost, exit).await),
        };
        let mut words = words.split(' ');
        let numbers = (words.next(), words.next(), words.next());
        let (Some("ready"), Some(pid), Some(uid)) = numbers else {
            return Err(broken("invalid greeting"));
        };
        worker.pid = pid.parse().map_err(|_| broken("invalid greeting"))?;
        worker.uid = uid.parse().map_err(|_| broken("invalid greeting"))?;
        Ok(worker)
    }

    /// Returns the reason why no shell could be started.
    async fn no_shell(
        &mut self,
        lost: WorkerError,
        exit: futures::future::BoxFuture<'static, Result<i32>>,
    ) -> Error {
        let first = if self.buffer.is_empty() {
            &self.stderr[..]
        } else {
            &self.buffer[..]
        };
        let first = String::from_utf8_lossy(first).into_owned();
        match lost {
            WorkerError::Error(error) => return error,
            WorkerError::Silent => {
                return Error::unavailable(
                    "no shell answered in the machine; check whether it is paused or overloaded",
                );
            }
            WorkerError::Broken(error) if first.is_empty() => return error,
            WorkerError::Ended | WorkerError::Broken(_) => {}
        }
        let code = tokio::time::timeout(HELLO, exit).await;
        let missing = matches!(code, Ok(Ok(126 | 127))) || first.contains("not found");
        if missing {
            return Error::unsupported(format!(
                "there is no `sh` in the machine, which said {}; use the agent, which needs none",
                Quoted::new(first.trim())
            ));
        }
        Error::unavailable(format!(
            "no shell could be started in the machine, which said {}; see its log",
            Quoted::new(first.trim())
        ))
    }

    /// Whether it still exists. Never blocks.
    pub(crate) fn is_open(&mut self) -> bool {
        let mut stderr_bytes = 0;
        while stderr_bytes <= STDERR_BYTES {
            match self.output.next().now_or_never() {
                None => return self.buffer.is_empty(),
                Some(Some(Ok(OutputChunk::Stderr(piece)))) => stderr_bytes += piece.len().max(1),
                // This output was not asked for.
                Some(_) => return false,
            }
        }
        false
    }

    /// Asks the shell alone to end.
    pub(crate) async fn quit(mut self) {
        let asked = self.stdin.write_all(b"x quit\n");
        let _ = tokio::time::timeout(Duration::from_secs(1), asked).await;
        let _ = self.stdin.shutdown().await;
    }

    /// Sends a request and waits for its answer. After an error the worker is
    /// no longer usable.
    pub(crate) async fn exchange<M: Machine>(
        &mut self,
        machine: &M,
        request: &Request,
    ) -> Result<Answer> {
        let answers = self.exchange_all(machine, std::slice::from_ref(request));
        let answer = answers.await?.pop();
        answer.ok_or_else(|| broken("the answer is missing"))
    }

    /// Sends requests at once and waits for their answers. All but the last
    /// must be short: the shell does not read them before it has answered
    /// those before.
    pub(crate) async fn exchange_all<M: Machine>(
        &mut self,
        machine: &M,
        requests: &[Request],
    ) -> Result<Vec<Answer>> {
        let words: Vec<_> = requests.iter().map(|_| random_word()).collect();
        self.stderr.clear();
        let until = Wait::new(PATIENCE).until();
        let sent = wait_until(machine, until, async {
            for (request, word) in requests.iter().zip(&words) {
                let mut line = Vec::with_capacity(request.line.len() + 64);
                line.extend_from_slice(word.as_bytes());
                line.push(b' ');
                line.extend_from_slice(request.operation.as_bytes());
                line.extend_from_slice(&request.line);
                line.push(b'\n');
                self.stdin.write_all(&line).await?;
                self.stdin.write_all(&request.body).await?;
            }
            self.stdin.flush().await
        });
        let sent = sent.await.map_err(WorkerError::error)?;
        sent.map_err(|error| gone().with_source(error))?;
        let mut answers = Vec::with_capacity(requests.len());
        for (request, word) in requests.iter().zip(&words) {
            answers.push(self.answer(machine, request, word).await?);
        }
        Ok(answers)
    }

    /// Waits for the answer to a request that was sent.
    async fn answer<M: Machine>(
        &mut self,
        machine: &M,
        request: &Request,
        word: &str,
    ) -> Result<Answer> {
        let scanner = Scanner::new(word);
        let mut parts = Vec::new();
        let mut left = request.limit;
        let mut wait = Wait::new(request.patience);
        loop {
            let said = self.next_status(machine, &scanner, left, &mut wait).await;
            let (part, words) = said.map_err(WorkerError::error)?;
            left = left.saturating_sub(part.len());
            match words.as_str() {
                "part" if parts.len() > request.parts => {
                    return Err(broken("the answer is too long"));
                }
                "part" => parts.push(part),
                "ok" => {
                    parts.push(part);
                    return Ok(Ok(parts));
                }
                word => return Ok(Err(failure::of(word, &part)?)),
            }
        }
    }

    /// Returns the bytes up to the next status line, and the words of that
    /// line.
    async fn next_status<M: Machine>(
        &mut self,
        machine: &M,
        scanner: &Scanner,
        limit: usize,
        wait: &mut Wait,
    ) -> Result<(Bytes, String), WorkerError> {
        let mut sure = 0;
        loop {
            match scanner.find(&self.buffer, sure) {
                Ok(said) if said.payload <= limit => {
                    let payload = self.buffer.split_to(said.payload).freeze();
                    let _ = self.buffer.split_to(said.length);
                    return Ok((payload, said.words));
                }
                Ok(_) => return Err(WorkerError::Broken(broken("the answer is too long"))),
                Err(payload) => sure = payload,
            }
            if sure > limit {
                return Err(WorkerError::Broken(broken("the answer is too long")));
            }
            match wait_until(machine, wait.until(), self.output.next()).await? {
                Some(Ok(OutputChunk::Stdout(piece))) => {
                    wait.answered += piece.len() as u64;
                    self.printed += piece.len() as u64;
                    self.buffer.extend_from_slice(&piece);
                }
                Some(Ok(OutputChunk::Stderr(piece))) => {
                    wait.stderr_bytes += piece.len().max(1);
                    if wait.stderr_bytes > STDERR_BYTES {
                        return Err(WorkerError::Broken(broken("its error output is too long")));
                    }
                    let room = TEXT_BYTES.saturating_sub(self.stderr.len());
                    let kept = piece.get(..room.min(piece.len())).unwrap_or_default();
                    self.stderr.extend_from_slice(kept);
                }
                Some(Err(error)) => return Err(WorkerError::Error(error)),
                None => return Err(WorkerError::Ended),
            }
        }
    }
}

/// The progress of waiting for an answer.
#[derive(Debug)]
struct Wait {
    began: Instant,
    patience: Duration,
    /// Bytes of the answer, which extend the timeout. Error output does not.
    answered: u64,
    /// Bytes of error output. Each piece counts as at least one.
    stderr_bytes: usize,
}

impl Wait {
    fn new(patience: Duration) -> Self {
        Self {
            began: Instant::now(),
            patience,
            answered: 0,
            stderr_bytes: 0,
        }
    }

    /// Returns the deadline; `None` for no limit.
    fn until(&self) -> Option<Instant> {
        let more = Duration::from_millis(self.answered);
        self.began.checked_add(self.patience.saturating_add(more))
    }
}

/// The reason why a worker is no longer usable.
#[derive(Debug)]
pub(crate) enum WorkerError {
    Ended,
    Silent,
    Broken(Error),
    Error(Error),
}

impl WorkerError {
    pub(crate) fn error(self) -> Error {
        match self {
            Self::Ended => gone(),
            Self::Silent => Error::unavailable(
                "the shell in the machine does not answer; try again, or restart the machine",
            ),
            Self::Broken(error) | Self::Error(error) => error,
        }
    }
}

fn gone() -> Error {
    Error::unavailable("the shell in the machine is gone; try again, or restart the machine")
}

/// Waits for `work`, and asks the machine for a diagnosis from time to time.
/// After the deadline the result is discarded.
pub(crate) async fn wait_until<M: Machine, T>(
    machine: &M,
    until: Option<Instant>,
    work: impl Future<Output = T>,
) -> Result<T, WorkerError> {
    let mut work = std::pin::pin!(work);
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(WorkerError::Silent);
        }
        let pause = left.map_or(SILENCE, |left| left.min(SILENCE));
        if let Ok(done) = tokio::time::timeout(pause, &mut work).await {
            return Ok(done);
        }
        if let Some(reason) = machine.diagnose().await {
            return Err(WorkerError::Error(reason));
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
