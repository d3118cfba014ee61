//! Background shells: long-running commands with logs.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, ShellId, ShellInfo, ShellOutput};
use backend_core::shells::{ShellLog, ShellTable, shell_id};
use backend_core::{Error, ErrorKind, Result};
use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};

use super::pump::Sink;
use super::run::drive;
use super::runner::{Runner, Task, panicked};
use crate::engine;

/// The shells of one sandbox.
pub(crate) type Shells = ShellTable<Arc<Shell>>;

/// A background shell.
#[derive(Debug)]
pub(crate) struct Shell {
    id: ShellId,
    line: String,
    pid: u32,
    log: Arc<Log>,
    /// `None` once closed.
    stdin: tokio::sync::Mutex<Option<pipe::Sender>>,
    kill: watch::Sender<bool>,
}

impl Shell {
    pub(crate) fn is_running(&self) -> bool {
        self.log.is_running()
    }

    fn info(&self) -> ShellInfo {
        let mut info = ShellInfo::new(self.id.clone(), self.line.clone(), Some(self.pid));
        info.state = self.log.kept.state();
        info
    }

    async fn write(&self, input: Option<Bytes>) -> Result<()> {
        let ended = self.log.ended();
        let writing = async {
            let mut stdin = self.stdin.lock().await;
            let (Some(pipe), Some(input)) = (stdin.as_mut(), input) else {
                return match stdin.take() {
                    Some(_) => Ok(()),
                    None => Err(conflict("its standard input is closed")),
                };
            };
            pipe.write_all(&input).await.map_err(|error| {
                *stdin = None;
                conflict("it reads no more input").with_source(error)
            })
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
    pub(crate) fn push(&self, error: bool, piece: &[u8]) {
        match error {
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

impl Runner {
    /// Starts a shell.
    pub(crate) async fn shell_start(
        &self,
        command: Command,
        directory: Arc<OwnedFd>,
    ) -> Result<ShellInfo> {
        let number = self.state.shells.reserve(|shell| !shell.is_running())?;
        let task = self.task(command, directory);
        let (reply, answer) = oneshot::channel();
        match engine::handle() {
            Ok(engine) => drop(engine.spawn(run(task, number, reply))),
            Err(error) => {
                self.state.shells.fill(number, None);
                return Err(error);
            }
        }
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Takes a shell's unread output.
    pub(crate) async fn shell_read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        self.touch();
        let shell = self.state.shells.find(id)?;
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
        self.state.shells.find(id)?.write(input).await
    }

    /// Ends a shell. Returns whether it was running.
    pub(crate) async fn shell_kill(&self, id: &ShellId) -> Result<bool> {
        self.touch();
        let shell = self.state.shells.find(id)?;
        let ran = shell.log.is_running();
        shell.kill.send_replace(true);
        shell.log.ended().await;
        Ok(ran)
    }

    /// Returns the shells that have started.
    pub(crate) fn shell_list(&self) -> Vec<ShellInfo> {
        let shells = self.state.shells.list();
        shells.iter().map(|shell| shell.info()).collect()
    }
}

/// Runs a shell from start to end, on the engine.
async fn run(mut task: Task, number: u64, reply: oneshot::Sender<Result<ShellInfo>>) {
    let line = task.command.line.clone();
    let launched = match task.launch(true, true).await {
        Ok((mut job, pipes)) => job.started().await.map(|pid| (job, pipes, pid)),
        Err(error) => Err(error),
    };
    let (mut job, mut pipes, pid) = match launched {
        Ok(launched) => launched,
        Err(error) => {
            task.state.shells.fill(number, None);
            let _ = reply.send(Err(error));
            return;
        }
    };
    let log = Arc::new(Log::new());
    let (kill, mut killed) = watch::channel(reply.is_closed());
    let shell = Arc::new(Shell {
        id: shell_id(number),
        line,
        pid,
        log: Arc::clone(&log),
        stdin: tokio::sync::Mutex::new(pipes.stdin.take()),
        kill,
    });
    task.state.shells.fill(number, Some(Arc::clone(&shell)));
    let mut sinks = (
        Sink::Log {
            log: Arc::clone(&log),
            error: false,
        },
        Sink::Log {
            log: Arc::clone(&log),
            error: true,
        },
    );
    if reply.send(Ok(shell.info())).is_err() {
        // The caller is gone and never learned of the shell.
        shell.kill.send_replace(true);
    }
    let cancel = async {
        let _ = killed.wait_for(|killed| *killed).await;
    };
    let ending = drive(&mut task, &mut job, pipes, &mut sinks, cancel).await;
    // If the sandbox is lost, its commands are killed, and the real status is
    // unknown.
    let status = ending.map_or(CommandStatus::Signalled(9), |ending| ending.status);
    drop(task);
    log.end(status);
    *shell.stdin.lock().await = None;
}
