//! Background shells: long-running commands with logs.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, ShellId, ShellInfo, ShellOutput};
use backend_core::shells::{ShellLog, ShellTable, shell_id};
use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{oneshot, watch};

use super::command::{Runner, Sink, Task, drive, panicked};
use crate::engine;
use crate::machine::Machine;

/// The shells of one sandbox.
pub(crate) type Shells = ShellTable<Arc<Shell>>;

/// A shell's standard input; `None` once closed.
type Input = Option<Pin<Box<dyn AsyncWrite + Send>>>;

/// A background shell.
pub(crate) struct Shell {
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
        info.state = self.log.kept.state();
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

/// A shell's log that can be awaited.
#[derive(Debug)]
pub(crate) struct Log {
    kept: ShellLog,
    changed: watch::Sender<()>,
}

impl Log {
    fn new() -> Self {
        Self {
            kept: ShellLog::new(),
            changed: watch::channel(()).0,
        }
    }

    /// Appends output. The oldest output is dropped if the log is full.
    pub(crate) fn push(&self, is_error: bool, piece: &[u8]) {
        match is_error {
            true => self.kept.push_stderr(piece),
            false => self.kept.push_stdout(piece),
        }
        self.changed.send_replace(());
    }

    fn end(&self, status: CommandStatus) {
        self.kept.end(status);
        self.changed.send_replace(());
    }

    fn is_running(&self) -> bool {
        self.kept.is_running()
    }

    async fn ended(&self) {
        let mut changed = self.changed.subscribe();
        while self.is_running() && changed.changed().await.is_ok() {}
    }

    /// Takes the available output, waiting until there is some.
    async fn next(&self) -> ShellOutput {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(output) = self.kept.take() {
                return output;
            }
            // Cannot fail: the sender lives as long as `self`.
            let _ = changed.changed().await;
        }
    }
}

impl<M: Machine> Runner<M> {
    /// Starts a shell.
    pub(crate) async fn shell_start(&self, command: Command) -> Result<ShellInfo> {
        let task = self.task(command)?;
        let engine = engine::handle()?;
        let number = self.shells.reserve(|shell| !shell.log.is_running())?;
        let (reply, answer) = oneshot::channel();
        engine.spawn(run(task, number, reply));
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Takes a shell's unread output.
    pub(crate) async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        self.touch();
        let shell = self.shells.find(id)?;
        if let Some(output) = shell.log.kept.take() {
            return Ok(output);
        }
        if wait.is_zero() {
            return Ok(ShellOutput::new(shell.log.kept.state()));
        }
        // The caller's runtime may have no timers, but the engine's does. The
        // timer task ends when the caller goes away, and takes nothing out of
        // the log.
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
            _ = over => ShellOutput::new(shell.log.kept.state()),
        })
    }

    /// Writes to a shell. A call that is dropped may have written a part.
    pub(crate) async fn shell_write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        self.touch();
        let shell = self.shells.find(id)?;
        engine::run(async move { shell.write(input).await }).await
    }

    /// Ends a shell. Returns whether it was running.
    pub(crate) async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        self.touch();
        let shell = self.shells.find(id)?;
        let ran = shell.log.is_running();
        shell.kill.send_replace(true);
        shell.log.ended().await;
        Ok(ran)
    }

    /// Returns the shells that have started.
    pub(crate) fn shell_list(&self) -> Vec<ShellInfo> {
        let shells = self.shells.list();
        shells.iter().map(|shell| shell.info()).collect()
    }
}

/// Runs a shell from start to end, on the engine.
async fn run<M: Machine>(
    mut task: Task<M>,
    number: u64,
    reply: oneshot::Sender<Result<ShellInfo>>,
) {
    let mut job = match task.launch(true).await {
        Ok(job) => job,
        Err(error) => {
            task.shells.fill(number, None);
            let _ = reply.send(Err(error));
            return;
        }
    };
    let log = Arc::new(Log::new());
    let (kill, mut killed) = watch::channel(reply.is_closed());
    let shell = Arc::new(Shell {
        id: shell_id(number),
        line: task.command.line.clone(),
        pid: job.pid,
        log: Arc::clone(&log),
        stdin: tokio::sync::Mutex::new(job.process.stdin.take()),
        kill,
    });
    let is_listed = task.shells.fill(number, Some(Arc::clone(&shell)));
    if !is_listed || reply.send(Ok(shell.info())).is_err() {
        // The caller never learned of the shell.
        shell.kill.send_replace(true);
    }
    let mut stops = task.stops.clone();
    let cancel = async {
        tokio::select! {
            _ = killed.wait_for(|killed| *killed) => {}
            // The sandbox was dropped.
            () = async { while stops.changed().await.is_ok() {} } => {}
        }
    };
    let mut sink = Sink::Log(Arc::clone(&log));
    let ending = drive(&mut task, job, &mut sink, cancel).await;
    // If the machine is lost, its commands are killed, and the real status is
    // unknown.
    let status = ending.map_or(CommandStatus::Signalled(9), |ending| ending.status);
    drop(task);
    log.end(status);
    *shell.stdin.lock().await = None;
}
