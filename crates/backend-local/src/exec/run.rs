//! Runs one command from its start to the end of its last process, on the
//! engine.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use backend_core::limits::KILL_GRACE;
use backend_core::ops::{Command, CommandStatus, Event, ExecuteOutcome, OutputBuffer, Streams};
use backend_core::{Error, Result};
use futures_util::FutureExt;
use futures_util::future::FusedFuture;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::job::{Exited, Extent, Job};
use super::pump::{OverLimit, Pipes, Sink, pump};
use super::runner::Task;

/// The time that processes left behind by a finished command may go on printing
/// before they are killed, unless [`Commands::linger`](crate::Commands::linger)
/// sets another. Enough for the last filter of a pipeline that its shell did
/// not wait for.
pub(crate) const LINGER: Duration = Duration::from_millis(50);

/// The time allowed for a killed process to disappear.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of a command.
#[derive(Debug)]
pub(crate) struct CommandResult {
    pub(crate) status: CommandStatus,
    pub(crate) leftovers: u32,
    pub(crate) duration: Duration,
    /// Whether it was ended because the sandbox was stopped.
    pub(crate) stopped: bool,
}

impl CommandResult {
    /// Returns the outcome, or an error if the sandbox was stopped.
    fn outcome(self) -> Result<ExecuteOutcome> {
        if self.stopped {
            return Err(Error::unavailable(
                "the sandbox was stopped while the command ran; run it again to restart the sandbox",
            ));
        }
        let mut outcome = ExecuteOutcome::new(self.status);
        outcome.leftovers = self.leftovers;
        outcome.duration = self.duration;
        Ok(outcome)
    }
}

/// Runs a command for a caller that waits for its end.
pub(crate) async fn execute(mut task: Task, mut reply: oneshot::Sender<Result<ExecuteOutcome>>) {
    let sink = || Sink::Buffer(OutputBuffer::new(task.command.output_bytes));
    let mut sinks = (sink(), sink());
    let outcome = match task.launch(false, false).await {
        Ok((mut job, pipes)) => {
            let cancel = reply.closed();
            drive(&mut task, &mut job, pipes, &mut sinks, cancel)
                .await
                .and_then(CommandResult::outcome)
        }
        Err(error) => Err(error),
    };
    let outcome = outcome.map(|mut outcome| {
        outcome.stdout = sinks.0.output();
        outcome.stderr = sinks.1.output();
        outcome
    });
    // Record the last activity before the caller can ask for it.
    drop(task);
    let _ = reply.send(outcome);
}

/// Runs a command for a caller that reads its output as a stream.
pub(crate) async fn stream(
    mut task: Task,
    started: oneshot::Sender<Result<()>>,
    events: mpsc::Sender<Result<Event>>,
) {
    let launched = match task.launch(false, true).await {
        Ok((mut job, pipes)) => job.started().await.map(|_| (job, pipes)),
        Err(error) => Err(error),
    };
    let (mut job, pipes) = match launched {
        Ok(launched) => launched,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let _ = started.send(Ok(()));
    let sink = |error| Sink::Events {
        to: events.clone(),
        error,
    };
    let mut sinks = (sink(false), sink(true));
    let cancel = events.closed();
    let ending = drive(&mut task, &mut job, pipes, &mut sinks, cancel).await;
    drop(task);
    let last = ending.and_then(CommandResult::outcome).map(Event::Ended);
    let _ = events.send(last).await;
}

/// The reason why the first wait is over.
enum Reason {
    Exited(Exited),
    TimedOut,
    OverLimit,
    Cancelled,
    Stopped,
}

/// Drives a started command until none of its processes is left.
///
/// # Errors
///
/// `Unavailable` if the supervisor is lost.
pub(crate) async fn drive(
    task: &mut Task,
    job: &mut Job,
    pipes: Pipes,
    sinks: &mut (Sink, Sink),
    cancel: impl Future<Output = ()>,
) -> Result<CommandResult> {
    let Task {
        state,
        command,
        stopped,
        began,
        ..
    } = task;
    let left = AtomicU64::new(command.hard_output_bytes);
    let (finish, finishing) = watch::channel(false);
    let pumps = async {
        let out = pump(Some(pipes.stdout), &mut sinks.0, &left, finishing.clone());
        let err = pump(pipes.stderr, &mut sinks.1, &left, finishing.clone());
        tokio::try_join!(out, err).map(|_| ())
    };
    let mut flow = Flow {
        pumps: pin!(pumps.fuse()),
        over: false,
        finish,
    };
    let mut cancel = pin!(cancel.fuse());
    let mut deadline = pin!(tokio::time::sleep(command.timeout.unwrap_or(Duration::MAX)));
    // Output comes last: otherwise a command that never stops printing would
    // use up this task's time before the other branches are polled.
    let reason = loop {
        tokio::select! {
            biased;
            () = &mut cancel => break Reason::Cancelled,
            _ = stopped.changed() => break Reason::Stopped,
            () = &mut deadline => break Reason::TimedOut,
            exited = job.exited() => break Reason::Exited(exited?),
            pumped = &mut flow.pumps => if pumped.is_err() { break Reason::OverLimit },
        }
    };
    let mut ending = CommandResult {
        status: CommandStatus::OutputLimited,
        leftovers: 0,
        duration: began.elapsed(),
        stopped: matches!(reason, Reason::Stopped),
    };
    match reason {
        Reason::Exited(exited) => {
            ending.status = status(exited);
            ending.leftovers = flow
                .settle(job, exited, command.keep_leftovers, state.linger)
                .await?;
        }
        _ => {
            let exited = flow.end_tree(job).await?;
            ending.duration = began.elapsed();
            ending.status = match reason {
                Reason::TimedOut => CommandStatus::TimedOut,
                Reason::OverLimit => CommandStatus::OutputLimited,
                _ => exited.map_or(CommandStatus::Signalled(9), status),
            };
        }
    }
    // A slow reader gets all output. A reader that has left, or a sandbox that
    // stops, ends the wait.
    tokio::select! {
        biased;
        () = &mut cancel => {}
        _ = stopped.changed(), if !ending.stopped => ending.stopped = true,
        () = flow.finish(ending.stopped) => {}
    }
    if flow.over
        && matches!(
            ending.status,
            CommandStatus::Exited(_) | CommandStatus::Signalled(_)
        )
    {
        ending.status = CommandStatus::OutputLimited;
    }
    Ok(ending)
}

fn status(exited: Exited) -> CommandStatus {
    match exited.signal {
        true => CommandStatus::Signalled(exited.number),
        false => CommandStatus::Exited(exited.number),
    }
}

/// The output, which is pumped while waiting for other things.
struct Flow<'a, P> {
    pumps: Pin<&'a mut P>,
    /// Whether there was more output than allowed.
    over: bool,
    finish: watch::Sender<bool>,
}

impl<P: FusedFuture<Output = Result<(), OverLimit>>> Flow<'_, P> {
    /// Pumps output while waiting for `other`.
    async fn during<T>(&mut self, other: impl Future<Output = T>) -> T {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                biased;
                done = &mut other => return done,
                pumped = &mut self.pumps => self.over |= pumped.is_err(),
            }
        }
    }

    /// Waits for the end of the output, until a deadline.
    async fn wait(&mut self, until: Instant) {
        if self.pumps.is_terminated() {
            return;
        }
        let pumped = tokio::time::timeout_at(until, &mut self.pumps).await;
        self.over |= matches!(pumped, Ok(Err(OverLimit)));
    }

    /// Reads the rest of the pipes and no more.
    async fn finish(&mut self, hurry: bool) {
        self.finish.send_replace(true);
        if hurry {
            self.wait(Instant::now() + KILL_GRACE).await;
        } else if !self.pumps.is_terminated() {
            self.over |= (&mut self.pumps).await.is_err();
        }
    }

    /// Handles the leftovers of a command that exited by itself: processes of
    /// its group, and pending output. Returns the number of processes.
    async fn settle(
        &mut self,
        job: &mut Job,
        exited: Exited,
        keep: bool,
        linger: Duration,
    ) -> Result<u32> {
        let mut until = Instant::now() + KILL_GRACE;
        let mut leftovers = 0;
        if exited.group {
            self.wait(Instant::now() + linger).await;
            // A longer time to print must not shorten the time to clean up.
            if linger > LINGER {
                until = Instant::now() + KILL_GRACE;
            }
            let grace = until.saturating_duration_since(Instant::now());
            let grace = (!keep).then_some(grace);
            leftovers = self.during(job.end(Extent::Group, grace)).await?;
        }
        self.wait(until).await;
        Ok(leftovers)
    }

    /// Ends everything that the command started. Returns the command's own exit
    /// status.
    async fn end_tree(&mut self, job: &mut Job) -> Result<Option<Exited>> {
        self.during(job.end(Extent::Tree, Some(KILL_GRACE))).await?;
        let exited = self
            .during(tokio::time::timeout(PATIENCE, job.exited()))
            .await;
        exited.ok().transpose()
    }
}

/// Whether both streams share one pipe.
pub(crate) fn merged(command: &Command) -> bool {
    command.streams == Streams::Merged
}
