//! One command, run for a caller that waits for its end or reads its output as
//! a stream.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use backend_core::ops::{Command, CommandStatus, Event, ExecuteOutcome, Signal, TerminalSize};
use backend_core::{Error, EventStream, Result};
use tokio::io::AsyncWrite;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

use crate::engine::{panicked, spawn};
use crate::sink::Sinks;

/// The number of events buffered for a slow reader of a stream.
const EVENTS: usize = 16;

/// A command's standard input.
pub type Stdin = Pin<Box<dyn AsyncWrite + Send>>;

/// The use of a command's output and input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// The caller waits for the end.
    Execute,
    /// The caller reads the output as a stream, once the command has started.
    Stream,
    /// The command runs in the background with an open standard input. Its
    /// process ID is shown.
    Shell,
}

/// A command that is about to run. It counts as running until it is dropped.
pub trait Task: Send + 'static {
    /// The command once it has started.
    type Job: Send;

    /// Returns the command.
    fn command(&self) -> &Command;

    /// Starts the command. Except for [`RunMode::Execute`], waits until it runs.
    ///
    /// # Errors
    ///
    /// Those of [`Sandbox::execute`](backend_core::Sandbox::execute).
    fn launch(&mut self, mode: RunMode)
    -> impl Future<Output = Result<Launched<Self::Job>>> + Send;

    /// Drives the started command until none of its processes is left. Ends it
    /// when `cancel` completes.
    ///
    /// # Errors
    ///
    /// `Unavailable` if the sandbox is lost.
    fn drive(
        &mut self,
        job: Self::Job,
        sinks: &mut Sinks,
        cancel: impl Future<Output = ()> + Send,
    ) -> impl Future<Output = Result<CommandResult>> + Send;
}

/// Controls of a started shell besides its input and output.
pub trait Controls: fmt::Debug + Send + Sync + 'static {
    /// Sets the size of its terminal.
    ///
    /// # Errors
    ///
    /// `Conflict` if it has no terminal.
    fn resize(&self, size: TerminalSize) -> Result<()>;

    /// Returns the end-of-file character of its terminal, if it has one.
    fn end_of_file(&self) -> Option<u8>;

    /// Sends a signal to the foreground of its terminal, or to its process group. May
    /// block for a moment.
    ///
    /// # Errors
    ///
    /// `Conflict` if there is no such process.
    fn signal(&self, signal: Signal) -> Result<()>;
}

/// A started command.
pub struct Launched<J> {
    /// The command.
    pub job: J,
    /// Its process ID, if it is known.
    pub pid: Option<u32>,
    /// Its standard input, if it is open.
    pub stdin: Option<Stdin>,
    /// Its controls, if it is a shell that has some.
    pub controls: Option<Arc<dyn Controls>>,
}

impl<J> fmt::Debug for Launched<J> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Launched")
            .field("pid", &self.pid)
            .finish_non_exhaustive()
    }
}

/// The result of a command.
#[derive(Debug)]
pub struct CommandResult {
    /// How it ended.
    pub status: CommandStatus,
    /// The number of processes that it left behind.
    pub leftovers: u32,
    /// The time that it ran.
    pub duration: Duration,
    /// Whether it was ended because the sandbox was stopped.
    pub stopped: bool,
}

impl CommandResult {
    /// Returns the outcome, or an error if the sandbox was stopped.
    fn outcome(self) -> Result<ExecuteOutcome> {
        if self.stopped {
            return Err(stopped());
        }
        let mut outcome = ExecuteOutcome::new(self.status);
        outcome.leftovers = self.leftovers;
        outcome.duration = self.duration;
        Ok(outcome)
    }
}

/// The error for a command that was ended because the sandbox was stopped.
pub fn stopped() -> Error {
    Error::unavailable(
        "the sandbox was stopped while the command ran; run it again to restart the sandbox",
    )
}

/// Runs a command for a caller that waits for its end. Must run on the engine.
pub async fn execute<T: Task>(mut task: T, mut reply: oneshot::Sender<Result<ExecuteOutcome>>) {
    let mut sinks = Sinks::buffers(task.command().output_bytes);
    let result = match task.launch(RunMode::Execute).await {
        Ok(launched) => task.drive(launched.job, &mut sinks, reply.closed()).await,
        Err(error) => Err(error),
    };
    let outcome = result.and_then(CommandResult::outcome);
    let outcome = outcome.map(|mut outcome| {
        (outcome.stdout, outcome.stderr) = sinks.outputs();
        outcome
    });
    // Record the last activity before the caller can ask for it.
    drop(task);
    let _ = reply.send(outcome);
}

/// Runs a command on the engine and returns its output as it is printed.
///
/// # Errors
///
/// Any error of the start.
pub async fn stream<T: Task>(engine: &Handle, task: T) -> Result<EventStream> {
    let (started, has_started) = oneshot::channel();
    let (events, mut receiver) = mpsc::channel(EVENTS);
    spawn(engine, send_events(task, started, events));
    has_started.await.unwrap_or_else(|_| Err(panicked()))?;
    let events = futures_util::stream::poll_fn(move |context| receiver.poll_recv(context));
    Ok(Box::pin(events))
}

async fn send_events<T: Task>(
    mut task: T,
    started: oneshot::Sender<Result<()>>,
    events: mpsc::Sender<Result<Event>>,
) {
    let job = match task.launch(RunMode::Stream).await {
        Ok(launched) => launched.job,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(()));
    let mut sinks = Sinks::events(&events);
    let result = task.drive(job, &mut sinks, events.closed()).await;
    drop(task);
    let last = result.and_then(CommandResult::outcome).map(Event::Ended);
    let _ = events.send(last).await;
}
