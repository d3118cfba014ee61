//! The processes of a command: none outlives it unless requested.
//!
//! A FIFO that a process holds open for writing shows whether the process is gone: its
//! reader sees the end of file when the last writer is gone, and not before.

use std::time::Duration;

use backend_core::EventStream;
use backend_core::ops::{Command, CommandStatus, Event, ExecuteOutcome, StopMode};
use futures::future::{Either, select};
use futures::{StreamExt as _, pin_mut};

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Timeout for a process to be gone. Only a leak takes this long.
const GONE: Duration = Duration::from_secs(120);

/// Reads the FIFO `alive` and reports when no process holds it any more.
pub(crate) struct Watch(EventStream);

impl Watch {
    /// Starts to watch. Every process to be watched must start with `exec 3>alive`.
    pub(crate) async fn begin(t: &Env) -> Result<Self, Failure> {
        let made = t.run("mkfifo alive").await?;
        check_eq!(made.status, CommandStatus::Exited(0))?;
        let command = Command::new("{ echo up; cat; } < alive");
        Ok(Self(t.sandbox()?.stream(command).await?))
    }

    /// Waits until a process holds the FIFO.
    pub(crate) async fn up(&mut self) -> CaseResult {
        match tokio::time::timeout(GONE, self.0.next()).await {
            Ok(Some(Ok(Event::Stdout(_)))) => Ok(()),
            other => Err(Failure::new(format!("the watch did not begin: {other:?}"))),
        }
    }

    /// Runs `future` until one of its processes holds the FIFO, then drops it.
    pub(crate) async fn up_then_drop<T>(&mut self, future: impl Future<Output = T>) -> CaseResult {
        let up = self.up();
        pin_mut!(up, future);
        match select(up, future).await {
            Either::Left((up, _)) => up,
            Either::Right(_) => Err(Failure::new("the command ended by itself")),
        }
    }

    /// Waits until no process holds the FIFO.
    pub(crate) async fn gone(mut self) -> CaseResult {
        let end = async {
            while let Some(event) = self.0.next().await {
                if matches!(event?, Event::Ended(_)) {
                    break;
                }
            }
            CaseResult::Ok(())
        };
        match tokio::time::timeout(GONE, end).await {
            Ok(ended) => ended,
            Err(_) => Err(Failure::new("a process is still there")),
        }
    }
}

/// Runs a command that holds the FIFO to completion.
async fn watched(t: &Env, watch: &mut Watch, command: Command) -> Result<ExecuteOutcome, Failure> {
    let (up, outcome) = futures::join!(watch.up(), t.sandbox()?.execute(command));
    up?;
    Ok(outcome?)
}

/// A command that times out is ended, and its output so far is returned.
pub async fn timeout_gives_what_was_printed(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; echo out; echo err >&2; sleep 1000; echo never";
    let command = Command::new(line).timeout(Duration::from_secs(2));
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::TimedOut)?;
    check_eq!(outcome.stdout.text(), "out\n")?;
    check_eq!(outcome.stderr.text(), "err\n")?;
    check!(outcome.duration >= Duration::from_secs(2))?;
    watch.gone().await
}

/// On a timeout, everything that a command started is ended, even processes that ignore
/// TERM.
pub async fn timeout_ends_the_whole_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; trap '' TERM; (trap '' TERM; sleep 1000 & sleep 1000) & \
                sleep 1000 | cat & while :; do sleep 1000; done";
    let command = Command::new(line).timeout(Duration::from_secs(2));
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::TimedOut)?;
    watch.gone().await
}

/// A command that times out gets TERM first, so that it can clean up.
pub async fn timeout_asks_first(t: &Env) -> CaseResult {
    // `wait` lets the trap run at once. A foreground command would delay it until its
    // end.
    let line = "trap 'echo tidied > tidied; exit 0' TERM; sleep 1000 & wait";
    let command = Command::new(line).timeout(Duration::from_secs(2));
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::TimedOut)?;
    check_eq!(t.get("tidied").await?, b"tidied\n")
}

/// A leftover process that keeps the output open does not delay the outcome. It is
/// ended and counted.
pub async fn leftovers_are_ended_and_counted(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let command = Command::new("exec 3>alive; sleep 1000 & echo done");
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.text(), "done\n")?;
    check_eq!(outcome.leftovers, 1)?;
    check!(outcome.duration < GONE, "it took {:?}", outcome.duration)?;
    watch.gone().await
}

/// A leftover process is ended even if it closes the output and ignores TERM.
pub async fn quiet_leftovers_are_ended(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) >/dev/null 2>&1 & exit 3";
    let outcome = watched(t, &mut watch, Command::new(line)).await?;
    check_eq!(outcome.status, CommandStatus::Exited(3))?;
    check!(outcome.leftovers >= 1)?;
    watch.gone().await
}

/// A command without leftover processes reports none.
pub async fn nothing_left_is_nothing_counted(t: &Env) -> CaseResult {
    for line in ["true", "echo a | cat | cat", "(sleep 0.05) & wait"] {
        let outcome = t.run(line).await?;
        check_eq!((line, outcome.leftovers), (line, 0))?;
    }
    Ok(())
}

/// Leftover processes are kept if the caller asks for it.
pub async fn leftovers_stay_when_told(t: &Env) -> CaseResult {
    let line = "mkfifo go done; { cat go > result; echo > done; } >/dev/null 2>&1 & echo started";
    let command = Command::new(line).keep_leftovers(true);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.text(), "started\n")?;
    check!(outcome.leftovers >= 1)?;
    let command = Command::new("echo hello > go; cat done").timeout(GONE);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(t.get("result").await?, b"hello\n")
}

/// Dropping a command's future ends it and everything it started.
pub async fn dropped_command_ends(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (sleep 1000; sleep 1000) & sleep 1000; sleep 1000";
    let command = t.sandbox()?.execute(Command::new(line));
    watch.up_then_drop(command).await?;
    watch.gone().await
}

/// Dropping a stream ends its command and everything it started.
pub async fn dropped_stream_ends(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & echo x; sleep 1000";
    let mut stream = t.sandbox()?.stream(Command::new(line)).await?;
    watch.up().await?;
    check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))))?;
    drop(stream);
    watch.gone().await
}

/// Dropping a stream that was never read ends its command too.
pub async fn unread_stream_ends_when_dropped(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let stream = t.sandbox()?.stream(Command::new("exec 3>alive; yes"));
    let stream = stream.await?;
    watch.up().await?;
    drop(stream);
    watch.gone().await
}

/// A command that is ended for its output leaves no process.
pub async fn output_limit_ends_the_whole_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & yes";
    let command = Command::new(line).hard_output_bytes(100_000);
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::OutputLimited)?;
    watch.gone().await
}

/// Killing a shell ends everything that it started.
pub async fn killed_shell_takes_its_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000";
    let shell = t.sandbox()?.shell_start(Command::new(line)).await?;
    watch.up().await?;
    check!(t.sandbox()?.shell_kill(&shell.id).await?)?;
    watch.gone().await
}

/// Stopping the sandbox ends every command and every shell in it.
pub async fn stop_ends_everything(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000";
    sandbox.shell_start(Command::new(line)).await?;
    watch.up().await?;
    let survivor = "exec 3<>alive; echo up; sleep 1000";
    let mut stream = sandbox.stream(Command::new(survivor)).await?;
    check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))))?;
    sandbox.stop(StopMode::Keep).await?;
    drop((watch, stream));
    // If no other process holds the FIFO, the reader ends with this writer.
    let line = "(exec 3>alive; echo mine >&3) & cat alive";
    let command = Command::new(line).timeout(GONE);
    let outcome = sandbox.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0))?;
    check_eq!(outcome.stdout.text(), "mine\n")
}
