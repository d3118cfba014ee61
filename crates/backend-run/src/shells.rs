//! Background shells: long-running commands with logs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::ops::{
    Command, CommandStatus, ShellId, ShellInfo, ShellOutput, Signal, TerminalSize,
};
use backend_core::shells::{ShellTable, shell_id};
use backend_core::sync::lock;
use backend_core::{Connection, Error, Result};
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::attachment;
use crate::engine::{Engine, panicked, spawn, spawn_blocking};
use crate::input::{ShellInput, conflict};
use crate::log::WatchedLog;
use crate::sink::Sinks;
use crate::task::{Controls, RunMode, Task, stopped};

type Table = ShellTable<Arc<Shell>>;

/// The background shells of one sandbox. Dropping it ends them.
#[derive(Debug)]
pub struct Shells {
    table: Arc<Table>,
    engine: Engine,
    /// Closed when this is dropped.
    alive: watch::Sender<()>,
}

impl Shells {
    /// Creates an empty table of shells that run on this engine.
    pub fn new(engine: Engine) -> Self {
        Self {
            table: Arc::default(),
            engine,
            alive: watch::Sender::default(),
        }
    }

    /// Starts a shell.
    ///
    /// # Errors
    ///
    /// Any error of the start; `TooLarge` if there are too many shells.
    pub async fn start<T: Task>(&self, task: T) -> Result<ShellInfo> {
        let engine = (self.engine)()?;
        let number = self.table.reserve(|shell| !shell.log.kept.is_running())?;
        let (reply, answer) = oneshot::channel();
        let (table, alive) = (Arc::clone(&self.table), self.alive.subscribe());
        spawn(engine, run(table, number, alive, task, reply));
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Takes a shell's unread output, waiting up to `wait` for some.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` while a connection is attached.
    pub async fn read(&self, id: &ShellId, wait: Duration) -> Result<ShellOutput> {
        let shell = self.table.find(id)?;
        if let Some(output) = shell.log.take(None)? {
            return Ok(output);
        }
        if wait.is_zero() {
            return Ok(ShellOutput::new(shell.log.kept.state()));
        }
        // The caller's runtime may have no timers, but the engine's does. The
        // timer task ends when the caller goes away, and takes nothing out of
        // the log.
        let (mut waiting, over) = oneshot::channel::<()>();
        let timer = async move {
            tokio::select! {
                () = waiting.closed() => {}
                () = tokio::time::sleep(wait) => {}
            }
        };
        spawn((self.engine)()?, timer);
        tokio::select! {
            biased;
            output = shell.log.next(None) => output,
            _ = over => Ok(ShellOutput::new(shell.log.kept.state())),
        }
    }

    /// Writes to a shell; `None` closes its standard input, or types the end-of-file
    /// character of its terminal. A call that is dropped may have written a part.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` if it reads no more.
    pub async fn write(&self, id: &ShellId, input: Option<Bytes>) -> Result<()> {
        self.table.find(id)?.input.write(input).await
    }

    /// Ends a shell. Returns whether it was running.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell.
    pub async fn kill(&self, id: &ShellId) -> Result<bool> {
        let shell = self.table.find(id)?;
        let ran = shell.log.kept.is_running();
        shell.kill.send_replace(true);
        shell.log.ended().await;
        Ok(ran)
    }

    /// Attaches a connection to a shell.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell.
    pub fn attach(&self, id: &ShellId) -> Result<Connection> {
        let shell = self.table.find(id)?;
        Ok(attachment::attach(&shell.log, Arc::clone(&shell.input)))
    }

    /// Changes the size of a shell's terminal.
    ///
    /// # Errors
    ///
    /// `InvalidInput` for a size of zero; `NotFound` if there is no such shell;
    /// `Conflict` if it has no terminal or has ended.
    pub fn resize(&self, id: &ShellId, size: TerminalSize) -> Result<()> {
        size.check()?;
        self.table.find(id)?.resize(size)
    }

    /// Sends a signal to a shell.
    ///
    /// # Errors
    ///
    /// `NotFound` if there is no such shell; `Conflict` if it has ended.
    pub async fn signal(&self, id: &ShellId, signal: Signal) -> Result<()> {
        let controls = self.table.find(id)?.controls()?;
        let (reply, answer) = oneshot::channel();
        let send = move || drop(reply.send(controls.signal(signal)));
        spawn_blocking((self.engine)()?, send);
        answer.await.unwrap_or_else(|_| Err(panicked()))
    }

    /// Returns the shells that have started.
    pub fn list(&self) -> Vec<ShellInfo> {
        let shells = self.table.list();
        shells.iter().map(|shell| shell.info()).collect()
    }

    /// Removes all shells from the table, without ending those that run. Those
    /// that are starting are ended.
    pub fn clear(&self) {
        self.table.clear();
    }

    /// Removes the shells that have ended.
    pub fn remove_ended(&self) {
        self.table.retain(|shell| shell.log.kept.is_running());
    }
}

#[derive(Debug)]
struct Shell {
    id: ShellId,
    line: String,
    pid: Option<u32>,
    log: Arc<WatchedLog>,
    input: Arc<ShellInput>,
    /// `None` once it has ended.
    controls: Mutex<Option<Arc<dyn Controls>>>,
    /// The size of its terminal, if it has one.
    terminal: Mutex<Option<TerminalSize>>,
    kill: watch::Sender<bool>,
}

impl Shell {
    fn info(&self) -> ShellInfo {
        let mut info = ShellInfo::new(self.id.clone(), self.line.clone(), self.pid);
        info.state = self.log.kept.state();
        info.terminal = *lock(&self.terminal);
        info
    }

    /// Returns the controls of a running shell.
    fn controls(&self) -> Result<Arc<dyn Controls>> {
        match &*lock(&self.controls) {
            _ if !self.log.kept.is_running() => Err(conflict("it has ended")),
            Some(controls) => Ok(Arc::clone(controls)),
            None => Err(Error::no_terminals()),
        }
    }

    fn resize(&self, size: TerminalSize) -> Result<()> {
        let mut terminal = lock(&self.terminal);
        if terminal.is_none() {
            return Err(conflict("it has no terminal"));
        }
        self.controls()?.resize(size)?;
        *terminal = Some(size);
        Ok(())
    }
}

/// Runs a shell from start to end, on the engine. `number` is its reserved entry
/// of the table, and `alive` closes when the sandbox is dropped.
async fn run<T: Task>(
    table: Arc<Table>,
    number: u64,
    mut alive: watch::Receiver<()>,
    mut task: T,
    reply: oneshot::Sender<Result<ShellInfo>>,
) {
    let Command { line, terminal, .. } = task.command().clone();
    let launched = match task.launch(RunMode::Shell).await {
        Ok(launched) => launched,
        Err(error) => {
            table.fill(number, None);
            let _ = reply.send(Err(error));
            return;
        }
    };
    let log = Arc::new(WatchedLog::default());
    let (kill, mut killed) = watch::channel(reply.is_closed());
    let shell = Arc::new(Shell {
        id: shell_id(number),
        line,
        pid: launched.pid,
        log: Arc::clone(&log),
        input: Arc::new(ShellInput::new(
            &log,
            launched.stdin,
            launched.controls.clone(),
        )),
        controls: Mutex::new(launched.controls),
        terminal: Mutex::new(terminal),
        kill,
    });
    let is_listed = table.fill(number, Some(Arc::clone(&shell)));
    let info = if is_listed {
        Ok(shell.info())
    } else {
        Err(stopped())
    };
    if reply.send(info).is_err() || !is_listed {
        // The caller never learned of the shell.
        shell.kill.send_replace(true);
    }
    let cancel = async {
        tokio::select! {
            _ = killed.wait_for(|killed| *killed) => {}
            // The sandbox was dropped.
            () = async { while alive.changed().await.is_ok() {} } => {}
        }
    };
    let mut sinks = Sinks::log(&log);
    let result = task.drive(launched.job, &mut sinks, cancel).await;
    // If the sandbox is lost, its commands are killed, and the real status
    // is unknown.
    let status = result.map_or(CommandStatus::Signalled(9), |result| result.status);
    drop(task);
    log.change(|log| log.end(status));
    *lock(&shell.controls) = None;
    shell.input.close().await;
}

#[cfg(test)]
mod tests;
