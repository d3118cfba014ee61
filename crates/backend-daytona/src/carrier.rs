//! Programs without an agent: their input and output, carried by a session of the toolbox.
//!
//! A session runs one shell script, the carrier, which runs one program after the other.
//! Its input is one request for many lines, and its output is read from the log of the
//! session. So a program costs one request, and so does each part of its input. Where there
//! is much of either, the lines name files that are uploaded and downloaded.

mod decoder;
mod drive;
mod follow;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, Result, VPath};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::future;
use sandbox_wire::{Process, Spawn, engine};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::agent::new_session;
use crate::refusal::{Refusal, RefusalKind};
use crate::toolbox::{Toolbox, quoted};
use decoder::{Decoder, Piece};
use follow::{Address, Follower};

const SCRIPT: &str = include_str!("carrier/carrier.sh");

/// Bytes in one line to a carrier, before they are encoded. Lines of 64 KiB and more are
/// lost in some places.
const LINE_BYTES: usize = 30 * 1024;
/// Lines in one request.
const LINES: usize = 6;
/// Pieces of output that wait to be read.
const PIECES: usize = 8;
/// The time to wait for the carrier of a program that has just ended: its last line may come
/// after its output. A new carrier takes three requests.
const ENDING_WAIT: Duration = Duration::from_millis(100);
/// Carriers that are kept for the next programs.
const IDLE: usize = 8;
/// Bytes of a log after which its carrier is not used any more: by a websocket, and where
/// the whole log is asked for again and again.
const LOG_BYTES: u64 = 32 * 1024 * 1024;
const ASKED_LOG_BYTES: u64 = 256 * 1024;

/// The carriers of one sandbox.
#[derive(Debug)]
pub(crate) struct Carriers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    working_dir: VPath,
    /// Carriers that run no program, and the start of the sandbox that they belong to.
    idle: Mutex<Vec<(u64, Carrier)>>,
    /// The sessions of carriers that are to be ended.
    sessions: Sessions,
    /// Programs that no call waits for any more, and whose carriers are not yet idle.
    ending: Mutex<Vec<Weak<()>>>,
    /// Tells that a program has come to its end.
    ended: Notify,
    /// Whether websockets were refused.
    refused: Arc<AtomicBool>,
}

type Sessions = Arc<Mutex<BTreeSet<String>>>;

impl Carriers {
    pub(crate) fn new(working_dir: VPath) -> Self {
        Self(Arc::new(Inner {
            working_dir,
            idle: Mutex::default(),
            sessions: Arc::default(),
            ending: Mutex::default(),
            ended: Notify::new(),
            refused: Arc::default(),
        }))
    }

    /// Forgets all carriers: they end with the sandbox.
    pub(crate) fn clear(&self) {
        let idle = std::mem::take(&mut *lock(&self.0.idle));
        for (_, carrier) in idle {
            carrier.forget();
        }
    }

    /// Ends all sessions, and the programs that run in them.
    pub(crate) async fn end(&self, toolbox: &Toolbox) -> Result<()> {
        let all = std::mem::take(&mut *lock(&self.0.sessions));
        self.clear();
        let ends = all.into_iter().map(|session| {
            let address = Address::new(toolbox.clone(), session);
            async move { address.end().await }
        });
        future::try_join_all(ends).await.map(drop)
    }

    /// Returns the number of bytes after which a stream is to be replaced.
    pub(crate) fn stream_bytes(&self) -> u64 {
        self.0.stream_bytes()
    }

    /// Starts a program, in a carrier that is idle or a new one.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sandbox does not answer.
    pub(crate) async fn spawn(
        &self,
        toolbox: &Toolbox,
        run: u64,
        program: &Spawn,
    ) -> Result<Process> {
        let start = start_lines(program)?;
        let idle = self.0.take_soon(run).await;
        let was_idle = idle.is_some();
        let mut carrier = match idle {
            Some(carrier) => carrier,
            None => self.0.open(toolbox).await?,
        };
        match carrier.lines.send(&start).await {
            Ok(()) => {}
            // Nothing was run.
            Err(error) if was_idle && carrier.lines.address.ended_before(&error).await => {
                carrier.forget();
                carrier = self.0.open(toolbox).await?;
                carrier.lines.send(&start).await?;
            }
            Err(error) => return Err(error),
        }
        let home = Arc::downgrade(&self.0);
        let (process, driver) = drive::process(carrier, program.stdin, home, run);
        engine::handle()?.spawn(driver);
        Ok(process)
    }
}

impl Inner {
    fn stream_bytes(&self) -> u64 {
        match self.refused.load(Ordering::Relaxed) {
            true => ASKED_LOG_BYTES,
            false => LOG_BYTES,
        }
    }

    /// Returns an idle carrier, perhaps that of a program which is just coming to its end.
    async fn take_soon(&self, run: u64) -> Option<Carrier> {
        let taking = async {
            loop {
                let mut ended = pin!(self.ended.notified());
                // From now on none is missed.
                ended.as_mut().enable();
                let taken = self.take(run);
                if taken.is_some() || !self.has_ending() {
                    return taken;
                }
                ended.await;
            }
        };
        timeout(ENDING_WAIT, taking).await.ok().flatten()
    }

    fn has_ending(&self) -> bool {
        let mut ending = lock(&self.ending);
        ending.retain(|program| program.strong_count() > 0);
        !ending.is_empty()
    }

    /// Returns an idle carrier that still works.
    fn take(&self, run: u64) -> Option<Carrier> {
        loop {
            let (its_run, mut carrier) = lock(&self.idle).pop()?;
            if its_run != run {
                carrier.forget();
            } else if carrier.is_quiet() {
                return Some(carrier);
            }
        }
    }

    /// Keeps a carrier for the next program.
    fn give_back(&self, run: u64, carrier: Carrier) {
        let mut idle = lock(&self.idle);
        let is_worn = carrier.passed > self.stream_bytes();
        if !is_worn && idle.len() < IDLE {
            idle.push((run, carrier));
            return;
        }
        // Dropped after the lock is released.
        drop(idle);
        drop(carrier);
    }

    async fn open(&self, toolbox: &Toolbox) -> Result<Carrier> {
        let session = new_session();
        toolbox.create_session(&session).await?;
        let (sender, pieces) = mpsc::channel(PIECES);
        let sent = Arc::new(Notify::new());
        // If a later step fails, dropping the carrier ends its session.
        lock(&self.sessions).insert(session.clone());
        let mut carrier = Carrier {
            lines: Lines {
                address: Address::new(toolbox.clone(), session),
                number: 0,
                sent: Arc::clone(&sent),
            },
            pieces,
            passed: 0,
            sessions: Arc::clone(&self.sessions),
            is_forgotten: false,
        };
        let address = &mut carrier.lines.address;
        let directory = address.directory();
        let arguments = [&*directory, self.working_dir.as_str()];
        let started = toolbox.start_in_session(&address.session, SCRIPT, &arguments);
        address.command = started.await?;
        let follower = Follower {
            address: address.clone(),
            pieces: sender,
            sent,
            refused: Arc::clone(&self.refused),
            decoder: Decoder::default(),
            places: Default::default(),
        };
        engine::handle()?.spawn(follower.run());
        Ok(carrier)
    }
}

/// A carrier. Dropping it ends its session, in the background.
#[derive(Debug)]
struct Carrier {
    lines: Lines,
    pieces: mpsc::Receiver<Result<Piece>>,
    /// Bytes of output that it has carried.
    passed: u64,
    sessions: Sessions,
    is_forgotten: bool,
}

impl Carrier {
    /// Whether nothing has come since the last program.
    fn is_quiet(&mut self) -> bool {
        matches!(self.pieces.try_recv(), Err(TryRecvError::Empty))
    }

    /// Leaves the session as it is.
    fn forget(mut self) {
        self.is_forgotten = true;
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        let address = self.lines.address.clone();
        // One that is not there is ended already.
        let is_there = lock(&self.sessions).remove(&address.session);
        if self.is_forgotten || !is_there {
            return;
        }
        let sessions = Arc::clone(&self.sessions);
        if let Ok(handle) = engine::handle() {
            handle.spawn(async move {
                if let Err(error) = address.end().await {
                    tracing::debug!("a session was left behind: {}", error.chain());
                    lock(&sessions).insert(address.session);
                }
            });
        }
    }
}

/// The lines to a carrier.
#[derive(Debug)]
struct Lines {
    address: Address,
    /// The number of the last line.
    number: u64,
    sent: Arc<Notify>,
}

impl Lines {
    /// Sends lines, each of which is a letter and a text. If this is dropped, they may have
    /// been sent.
    async fn send(&mut self, lines: &[String]) -> Result<()> {
        for lines in lines.chunks(LINES) {
            let mut numbered = Vec::with_capacity(lines.len());
            for line in lines {
                self.number += 1;
                numbered.push(format!("{} {line}", self.number));
            }
            let Address {
                toolbox,
                session,
                command,
            } = &self.address;
            let text = numbered.join("\n");
            toolbox.send_input(session, command, &text).await?;
            self.sent.notify_one();
        }
        Ok(())
    }

    /// Sends a part of a program's input: what is more than a line as a file.
    async fn send_input(&mut self, input: &[u8]) -> Result<()> {
        if input.len() <= LINE_BYTES {
            return self.send(&encoded('i', input)).await;
        }
        let name = format!("i.{}", self.number);
        let path = self.address.path(&name);
        self.address.toolbox.upload(&path, input).await?;
        self.send(&[format!("f {name}")]).await
    }

    /// Ends a program's input.
    async fn end_input(&mut self) -> Result<()> {
        self.send(&["e".to_owned()]).await
    }
}

/// Returns bytes as lines that begin with a letter.
fn encoded(letter: char, bytes: &[u8]) -> Vec<String> {
    let chunks = bytes.chunks(LINE_BYTES);
    let line = |chunk: &[u8]| format!("{letter} {}", STANDARD.encode(chunk));
    chunks.map(line).collect()
}

/// Returns the lines that start a program.
fn start_lines(program: &Spawn) -> Result<Vec<String>> {
    let arguments = program.argv.iter();
    let values = program.environment.iter().map(|(_, value)| value);
    if arguments.chain(values).any(|text| text.contains('\0')) {
        let text = "an argument of the program holds a NUL character; remove it";
        return Err(Error::invalid_input(text));
    }
    let mut text = String::new();
    if let Some(directory) = &program.directory {
        text.push_str(&format!("cd {} && ", quoted(directory.as_str())));
    }
    text.push_str("exec");
    if !program.environment.is_empty() {
        text.push_str(" env");
    }
    for (name, value) in &program.environment {
        text.push(' ');
        text.push_str(&quoted(&format!("{name}={value}")));
    }
    for argument in &program.argv {
        text.push(' ');
        text.push_str(&quoted(argument));
    }
    let mut lines = encoded('p', text.as_bytes());
    let input = if program.stdin { "r i" } else { "r n" };
    lines.push(input.to_owned());
    Ok(lines)
}

/// Whether a carrier has probably ended, because it refused lines.
fn is_gone(error: &Error) -> bool {
    let refusal = Refusal::of(error);
    refusal.is_some_and(|refusal| {
        matches!(refusal.kind, RefusalKind::Missing | RefusalKind::Gone) || refusal.status == 500
    })
}

#[cfg(test)]
mod tests;
