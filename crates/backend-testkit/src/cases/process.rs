//! What becomes of the processes of a command: none outlives it unasked.
//!
//! Whether a process is gone is told by a FIFO that it holds open for writing:
//! whoever reads it sees its end when the last holder is gone, and not before.

use std::time::Duration;

use backend_core::EventStream;
use backend_core::ops::{Command, CommandStatus, Event, ExecuteOutcome, StopMode};
use futures::future::{Either, select};
use futures::{StreamExt as _, pin_mut};

use crate::case::{CaseResult, Failure};
use crate::env::Env;
use crate::{check, check_eq};

/// How long a process may take to be gone. Only a leak takes this long.
const GONE: Duration = Duration::from_secs(20);

/// Reads the FIFO `alive` and tells when nobody holds it any more.
pub(crate) struct Watch(EventStream);

impl Watch {
    /// Begins to watch. Every process that is to be watched begins with
    /// `exec 3>alive`.
    pub(crate) async fn begin(t: &Env) -> Result<Self, Failure> {
        let made = t.run("mkfifo alive").await?;
        check_eq!(made.status, CommandStatus::Exited(0));
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

    /// Runs until a process of `future` holds the FIFO, then drops the future.
    pub(crate) async fn up_then_drop<T>(&mut self, future: impl Future<Output = T>) -> CaseResult {
        let up = self.up();
        pin_mut!(up, future);
        match select(up, future).await {
            Either::Left((up, _)) => up,
            Either::Right(_) => Err(Failure::new("the command ended by itself")),
        }
    }

    /// Waits until nobody holds the FIFO.
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

/// Runs a command that holds the FIFO to its end.
async fn watched(t: &Env, watch: &mut Watch, command: Command) -> Result<ExecuteOutcome, Failure> {
    let (up, outcome) = futures::join!(watch.up(), t.sandbox()?.execute(command));
    up?;
    Ok(outcome?)
}

/// When its time runs out a command is ended, and what it printed comes back.
pub async fn timeout_gives_what_was_printed(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; echo out; echo err >&2; sleep 1000; echo never";
    let command = Command::new(line).timeout(Duration::from_secs(2));
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::TimedOut);
    check_eq!(outcome.stdout.text(), "out\n");
    check_eq!(outcome.stderr.text(), "err\n");
    check!(outcome.duration >= Duration::from_secs(2));
    watch.gone().await
}

/// When its time runs out, everything a command started ends, also what ignores
/// a polite request.
pub async fn timeout_ends_the_whole_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; trap '' TERM; (trap '' TERM; sleep 1000 & sleep 1000) & \
                sleep 1000 | cat & while :; do sleep 1000; done";
    let command = Command::new(line).timeout(Duration::from_secs(2));
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::TimedOut);
    watch.gone().await
}

/// A command that is asked to end may tidy up first.
pub async fn timeout_asks_first(t: &Env) -> CaseResult {
    // `wait` lets the trap run at once; a command in the foreground would end first.
    let line = "trap 'echo tidied > tidied; exit 0' TERM; sleep 1000 & wait";
    let command = Command::new(line).timeout(Duration::from_secs(2));
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::TimedOut);
    check_eq!(t.get("tidied").await?, b"tidied\n");
    Ok(())
}

/// A process that stays behind and keeps the output open delays nobody; it is
/// ended and counted.
pub async fn leftovers_are_ended_and_counted(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let command = Command::new("exec 3>alive; sleep 1000 & echo done");
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0));
    check_eq!(outcome.stdout.text(), "done\n");
    check_eq!(outcome.leftovers, 1);
    check!(outcome.duration < GONE, "it took {:?}", outcome.duration);
    watch.gone().await
}

/// What stays behind is ended also if it lets go of the output and ignores a
/// polite request.
pub async fn quiet_leftovers_are_ended(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) >/dev/null 2>&1 & exit 3";
    let outcome = watched(t, &mut watch, Command::new(line)).await?;
    check_eq!(outcome.status, CommandStatus::Exited(3));
    check!(outcome.leftovers >= 1);
    watch.gone().await
}

/// A command that leaves nothing has no leftovers.
pub async fn nothing_left_is_nothing_counted(t: &Env) -> CaseResult {
    for line in ["true", "echo a | cat | cat", "(sleep 0.05) & wait"] {
        let outcome = t.run(line).await?;
        check_eq!((line, outcome.leftovers), (line, 0));
    }
    Ok(())
}

/// What a command leaves running stays if the caller says so.
pub async fn leftovers_stay_when_told(t: &Env) -> CaseResult {
    let line = "mkfifo go done; { cat go > result; echo > done; } >/dev/null 2>&1 & echo started";
    let command = Command::new(line).keep_leftovers(true);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0));
    check_eq!(outcome.stdout.text(), "started\n");
    check!(outcome.leftovers >= 1);
    let command = Command::new("echo hello > go; cat done").timeout(GONE);
    let outcome = t.sandbox()?.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0));
    check_eq!(t.get("result").await?, b"hello\n");
    Ok(())
}

/// A command whose future is dropped ends, with everything it started.
pub async fn dropped_command_ends(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (sleep 1000; sleep 1000) & sleep 1000; sleep 1000";
    let command = t.sandbox()?.execute(Command::new(line));
    watch.up_then_drop(command).await?;
    watch.gone().await
}

/// A stream that is dropped ends its command, with everything it started.
pub async fn dropped_stream_ends(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & echo x; sleep 1000";
    let mut stream = t.sandbox()?.stream(Command::new(line)).await?;
    watch.up().await?;
    check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))));
    drop(stream);
    watch.gone().await
}

/// A stream that is dropped before it was ever read ends its command too.
pub async fn unread_stream_ends_when_dropped(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let stream = t.sandbox()?.stream(Command::new("exec 3>alive; yes"));
    let stream = stream.await?;
    watch.up().await?;
    drop(stream);
    watch.gone().await
}

/// A command that prints without end leaves nothing when it is ended for that.
pub async fn output_limit_ends_the_whole_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & yes";
    let command = Command::new(line).hard_output_bytes(100_000);
    let outcome = watched(t, &mut watch, command).await?;
    check_eq!(outcome.status, CommandStatus::OutputLimited);
    watch.gone().await
}

/// A killed shell takes along what it started.
pub async fn killed_shell_takes_its_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; (trap '' TERM; sleep 1000; sleep 1000) & sleep 1000";
    let shell = t.sandbox()?.shell_start(Command::new(line)).await?;
    watch.up().await?;
    check!(t.sandbox()?.shell_kill(&shell.id).await?);
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
    check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))));
    sandbox.stop(StopMode::Keep).await?;
    drop((watch, stream));
    // A new holder of the FIFO is alone with it: its reader ends with it.
    let line = "(exec 3>alive; echo mine >&3) & cat alive";
    let command = Command::new(line).timeout(GONE);
    let outcome = sandbox.execute(command).await?;
    check_eq!(outcome.status, CommandStatus::Exited(0));
    check_eq!(outcome.stdout.text(), "mine\n");
    Ok(())
}
