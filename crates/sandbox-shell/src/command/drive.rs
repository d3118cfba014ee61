//! Drives one command from its start to the end of its last process, on the
//! engine.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use backend_core::ops::{CommandStatus, Event};
use backend_core::{Error, Result};
use backend_run::{CommandResult, Sinks};
use futures::future::{BoxFuture, Fuse, FutureExt as _};
use futures::{StreamExt as _, future};
use sandbox_wire::{Machine, OutputChunk, Process};
use tokio::sync::{mpsc, watch};

use super::parser::{Exit, OutputParser};
use super::{Job, Task};

/// The timeout for the final report of an ended command's script.
const PATIENCE: Duration = Duration::from_secs(5);

/// The reason to end a command. A later variant overrides earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    OverLimit,
    TimedOut,
    Cancelled,
    Stopped,
}

enum Next {
    Printed(Option<Result<OutputChunk>>),
    /// A reader took an event.
    Taken,
    /// It must end.
    End(Reason),
    /// Its processes were killed.
    Killed,
    /// Its script did not report in time.
    GivenUp,
}

/// Drives a started command until none of its processes is left.
///
/// # Errors
///
/// `Unavailable` if the machine is lost.
pub(super) async fn drive<M: Machine>(
    task: &Task<M>,
    job: Job,
    sinks: &mut Sinks,
    cancel: impl Future<Output = ()>,
) -> Result<CommandResult> {
    let Job {
        process,
        mut parser,
        pid,
        began,
    } = job;
    let Process {
        mut output, exit, ..
    } = process;
    let mut cancel = pin!(cancel.fuse());
    let timeout = task.command.timeout.unwrap_or(Duration::MAX);
    let mut deadline = pin!(tokio::time::sleep(timeout).fuse());
    let mut stops = task.stops.clone();
    let mut killing: Fuse<BoxFuture<'_, ()>> = Fuse::terminated();
    let mut reason: Option<Reason> = None;
    let mut given_up: Fuse<BoxFuture<'_, ()>> = Fuse::terminated();
    let (mut lost, mut duration) = (None, None);
    parser.begin(sinks)?;
    while parser.exit().is_none() || !parser.waiting.is_empty() {
        let is_idle = parser.waiting.is_empty();
        let next = tokio::select! {
            biased;
            () = &mut cancel => Next::End(Reason::Cancelled),
            () = stopping(&mut stops) => Next::End(Reason::Stopped),
            () = &mut deadline => Next::End(Reason::TimedOut),
            () = &mut killing => Next::Killed,
            () = &mut given_up, if is_idle => Next::GivenUp,
            () = hand_over(&mut parser.waiting, sinks.stdout.reader()), if !is_idle => Next::Taken,
            piece = output.next(), if is_idle => Next::Printed(piece),
        };
        let end = match next {
            Next::Printed(Some(Ok(piece))) => {
                parser.take(piece, sinks)?;
                if parser.exit().is_some() {
                    duration.get_or_insert_with(|| began.elapsed());
                }
                let is_over = parser.over && reason.is_none();
                is_over.then_some(Reason::OverLimit)
            }
            Next::Printed(end) => {
                lost = end.and_then(Result::err);
                break;
            }
            Next::Taken => None,
            Next::End(Reason::Stopped) => {
                // Stopping the sandbox ends its commands.
                reason = Some(Reason::Stopped);
                break;
            }
            Next::End(end) => Some(end),
            Next::Killed => {
                given_up = tokio::time::sleep(PATIENCE).boxed().fuse();
                None
            }
            Next::GivenUp => break,
        };
        if let Some(end) = end {
            if reason.is_none() && parser.exit().is_none() {
                killing = task.end(pid).boxed().fuse();
            }
            // A command that has exited only waits for its reader.
            if parser.exit().is_none() || end == Reason::Cancelled {
                reason = reason.max(Some(end));
            }
        }
        if reason == Some(Reason::Cancelled) {
            parser.waiting.clear();
        }
    }
    drop(killing);
    let duration = duration.unwrap_or_else(|| began.elapsed());
    let exit = match (parser.exit().or(parser.any_exit()), reason) {
        (Some(exit), _) => exit,
        (None, Some(_)) => Exit::KILLED,
        (None, None) => gone(task, pid, lost, exit).await?,
    };
    Ok(ending(&parser, reason, exit, duration))
}

/// Returns the result of a command that was ended for a reason, or exited by
/// itself.
fn ending(
    parser: &OutputParser,
    reason: Option<Reason>,
    exit: Exit,
    duration: Duration,
) -> CommandResult {
    let status = match reason {
        Some(Reason::TimedOut) => CommandStatus::TimedOut,
        Some(Reason::OverLimit) => CommandStatus::OutputLimited,
        _ if parser.over => CommandStatus::OutputLimited,
        _ => exit.status,
    };
    CommandResult {
        status,
        leftovers: exit.leftovers,
        duration,
        stopped: reason == Some(Reason::Stopped),
    }
}

/// Waits until the sandbox stops. Dropping the sandbox does not count: a caller
/// that still waits for a command gets its outcome.
pub(super) async fn stopping(stops: &mut watch::Receiver<u64>) {
    if stops.changed().await.is_err() {
        future::pending::<()>().await;
    }
}

/// Sends one event to a reader. Dropping the future loses nothing.
async fn hand_over(waiting: &mut VecDeque<Event>, reader: Option<&mpsc::Sender<Result<Event>>>) {
    let Some(reader) = reader else {
        waiting.clear();
        return;
    };
    match reader.reserve().await {
        Ok(place) => {
            if let Some(event) = waiting.pop_front() {
                place.send(Ok(event));
            }
        }
        // The reader is gone, and the command will be cancelled.
        Err(_) => waiting.clear(),
    }
}

/// Determines the exit status of a command whose script ended without a report.
///
/// # Errors
///
/// `Unavailable` if the machine is gone too.
async fn gone<M: Machine>(
    task: &Task<M>,
    pid: u32,
    lost: Option<Error>,
    exit: BoxFuture<'static, Result<i32>>,
) -> Result<Exit> {
    let is_alive = task.pool.machine.is_alive().await;
    if let (Ok(true), None) = (is_alive, &lost) {
        // The script was killed. Its processes are ended as well.
        task.end(pid).await;
        let code = tokio::time::timeout(PATIENCE, exit).await;
        return Ok(match code {
            Ok(Ok(code @ 129..=192)) => Exit {
                status: CommandStatus::Signalled(code - 128),
                leftovers: 0,
            },
            _ => Exit::KILLED,
        });
    }
    let error = lost.unwrap_or_else(|| {
        Error::unavailable("the machine ended while the command ran; start it again")
    });
    Err(task.pool.explain(error).await)
}
