//! Background shells: commands that stay, with their logs.

use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use backend_core::limits::{SHELL_LOG_BYTES, SHELLS};
use backend_core::ops::{Command, CommandStatus, ShellId, ShellInfo, ShellOutput, ShellState};
use backend_core::{Error, ErrorKind, Quoted, Result};
use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{oneshot, watch};

use super::command::{Runner, Sink, Task, drive, panicked};
use crate::engine;
use crate::machine::Machine;

/// The shells of one sandbox.
#[derive(Debug, Default)]
pub(crate) struct Shells(Mutex<Listed>);

#[derive(Debug, Default)]
struct Listed {
    /// How many were started.
    last: u64,
    /// By number; `None` while it starts.
    shells: BTreeMap<u64, Option<Arc<Shell>>>,
}

impl Shells {
    fn lock(&self) -> MutexGuard<'_, Listed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes room for one more and returns its number.
    fn reserve(&self) -> Result<u64> {
        let mut listed = self.lock();
        if listed.shells.len() >= SHELLS {
            let ended = listed.shells.iter().find(|(_, shell)| {
                let shell = shell.as_ref();
                shell.is_some_and(|shell| !shell.log.is_running())
            });
            let Some((&oldest, _)) = ended else {
                return Err(Error::too_large(format!(
                    "{SHELLS} background shells run already; kill one first"
                )));
            };
            listed.shells.remove(&oldest);
        }
        listed.last += 1;
        let number = listed.last;
        listed.shells.insert(number, None);
        Ok(number)
    }

    /// Puts a shell that has started in its place, or gives that up. Says whether
    /// it still has one.
    fn settle(&self, number: u64, shell: Option<Arc<Shell>>) -> bool {
        let mut listed = self.lock();
        match (listed.shells.contains_key(&number), shell) {
            (true, Some(shell)) => {
                listed.shells.insert(number, Some(shell));
                true
            }
            _ => {
                listed.shells.remove(&number);
                false
            }
        }
    }

    fn find(&self, id: &ShellId) -> Result<Arc<Shell>> {
        let listed = self.lock();
        let mut shells = listed.shells.values().flatten();
        let shell = shells.find(|shell| shell.id == *id).cloned();
        shell.ok_or_else(|| {
            Error::new(
                ErrorKind::NotFound,
                format!(
                    "there is no background shell {}; list them to see which there are",
                    Quoted::new(id.as_str())
                ),
            )
        })
    }

    /// Forgets all of them.
    pub(crate) fn clear(&self) {
        self.lock().shells.clear();
    }
}

/// A shell's standard input; `None` once closed.
type Input = Option<Pin<Box<dyn AsyncWrite + Send>>>;

/// A background shell.
struct Shell {
    id: ShellId,
    line: String,
    pid: u32,
    log: Arc<Log>,
    stdin: tokio::sync::Mutex<Input>,
    kill: watch::Sender<bool>,
}

impl std::fmt::Debug for Shell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Shell({})", self.id)
    }
}

impl Shell {
    fn info(&self) -> ShellInfo {
        let mut info = ShellInfo::new(self.id.clone(), self.line.clone(), Some(self.pid));
        info.state = self.log.state();
        info
    }

    async fn write(&self, input: Option<Bytes>) -> Result<()> {
        let ended = self.log.ended();
        let writing = async {
            let mut stdin = self.stdin.lock().await;
            let written = match (stdin.as_mut(), &input) {
                (None, _) => return Err(conflict("its standard input is closed")),
                (Some(pipe), Some(input)) => match pipe.write_all(input).await {
                    Ok(()) => pipe.flush().await,
                    failed => failed,
                },
                (Some(pipe), None) => pipe.shutdown().await,
            };
            if written.is_err() || input.is_none() {
                *stdin = None;
            }
            written.map_err(|error| conflict("it reads no more input").with_source(error))
        };
        tokio::select! {
            biased;
            () = ended => Err(conflict("it has ended")),
            written = writing => written,
        }
    }
}

fn conflict(text: &str) -> Error {
    Error::new(
        ErrorKind::Conflict,
        format!("{text}; start another shell to go on"),
    )
}

/// What a shell printed and nobody has taken yet, and whether it runs.
#[derive(Debug)]
pub(crate) struct Log {
    kept: Mutex<Kept>,
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct Kept {
    stdout: VecDeque<u8>,
    stderr: VecDeque<u8>,
    dropped: u64,
    state: ShellState,
}

impl Log {
    fn new() -> Self {
        let kept = Kept {
            stdout: VecDeque::new(),
            stderr: VecDeque::new(),
            dropped: 0,
            state: ShellState::Running,
        };
        Self {
            kept: Mutex::new(kept),
            changed: watch::channel(()).0,
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what was printed; the oldest makes room.
    pub(crate) fn push(&self, is_error: bool, piece: &[u8]) {
        let mut kept = self.kept();
        let stream = match is_error {
            true => &mut kept.stderr,
            false => &mut kept.stdout,
        };
        stream.extend(piece);
        let over = stream.len().saturating_sub(SHELL_LOG_BYTES);
        stream.drain(..over);
        kept.dropped += over as u64;
        drop(kept);
        self.changed.send_replace(());
    }

    fn end(&self, status: CommandStatus) {
        self.kept().state = ShellState::Ended(status);
        self.changed.send_replace(());
    }

    fn state(&self) -> ShellState {
        self.kept().state
    }

    fn is_running(&self) -> bool {
        self.state() == ShellState::Running
    }

    /// Takes what there is; `None` if that is nothing and more may come.
    fn take(&self) -> Option<ShellOutput> {
        let mut kept = self.kept();
        let nothing = kept.stdout.is_empty() && kept.stderr.is_empty();
        if nothing && kept.state == ShellState::Running {
            return None;
        }
        let mut output = ShellOutput::new(kept.state);
        output.stdout = Vec::from(std::mem::take(&mut kept.stdout)).into();
        output.stderr = Vec::from(std::mem::take(&mut kept.stderr)).into();
        output.dropped = std::mem::take(&mut kept.dropped);
        Some(output)
    }

    async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_running() && changed.changed().await.is_ok() {}
    }

    /// Takes what there is, waiting for something.
    async fn next(&self) -> ShellOutput {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(output) = self.take() {
                return output;
            }
            // The sender lives as long as this.
            let _ = changed.changed().await;
        }
    }
}

impl<M: Machine> Runner<M> {
    /// Starts a shell.
    pub(crate) async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let task = self.task(command)?;
        let engine = engine::handle()?;
        let number = self.shells.reserve()?;
        let (reply, answer) = oneshot::channel();
        engine.spawn(run(task, number, reply));
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Takes what a shell printed.
    pub(crate) async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        self.touch();
        let shell = self.shells.find(id)?;
        if let Some(output) = shell.log.take() {
            return Ok(output);
        }
        if wait.is_zero() {
            return Ok(ShellOutput::new(shell.log.state()));
        }
        // The caller may have no timers; the engine does. It is told when the
        // caller has gone, and takes nothing out of the log itself.
        let (mut waiting, over) = oneshot::channel::<()>();
        engine::handle()?.spawn(async move {
            tokio::select! {
                () = waiting.closed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        });
        Ok(tokio::select! {
            biased;
            output = shell.log.next() => output,
            _ = over => ShellOutput::new(shell.log.state()),
        })
    }

    /// Writes to a shell. A caller that goes away may have written a part.
    pub(crate) async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        self.touch();
        let shell = self.shells.find(id)?;
        engine::run(async move { shell.write(input).await }).await
    }

    /// Ends a shell. Returns whether it ran.
    pub(crate) async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        self.touch();
        let shell = self.shells.find(id)?;
        let ran = shell.log.is_running();
        shell.kill.send_replace(true);
        shell.log.ended().await;
        Ok(ran)
    }

    /// The shells that have started.
    pub(crate) fn shell_list(&self) -> Vec<ShellInfo> {
        let listed = self.shells.lock();
        let shells = listed.shells.values().flatten();
        shells.map(|shell| shell.info()).collect()
    }
}

/// A shell's life, on the engine.
async fn run<M: Machine>(
    mut task: Task<M>,
    number: u64,
    reply: oneshot::Sender<Result<ShellInfo>>,
) {
    let mut job = match task.launch(true).await {
        Ok(job) => job,
        Err(error) => {
            task.shells.settle(number, None);
            let _ = reply.send(Err(error));
            return;
        }
    };
    let log = Arc::new(Log::new());
    let (kill, mut killed) = watch::channel(reply.is_closed());
    let shell = Arc::new(Shell {
        id: ShellId::new(format!("bg_{number}")),
        line: task.command.line.clone(),
        pid: job.pid,
        log: Arc::clone(&log),
        stdin: tokio::sync::Mutex::new(job.process.stdin.take()),
        kill,
    });
    let is_listed = task.shells.settle(number, Some(Arc::clone(&shell)));
    if !is_listed || reply.send(Ok(shell.info())).is_err() {
        // Nobody learned of it.
        shell.kill.send_replace(true);
    }
    let mut stops = task.stops.clone();
    let cancel = async {
        tokio::select! {
            _ = killed.wait_for(|killed| *killed) => {}
            // Nobody holds the sandbox any more.
            () = async { while stops.changed().await.is_ok() {} } => {}
        }
    };
    let mut sink = Sink::Log(Arc::clone(&log));
    let ending = drive(&mut task, job, &mut sink, cancel).await;
    // A machine that is lost kills; how it ended is not known any better.
    let status = ending.map_or(CommandStatus::Signalled(9), |ending| ending.status);
    drop(task);
    log.end(status);
    *shell.stdin.lock().await = None;
}
