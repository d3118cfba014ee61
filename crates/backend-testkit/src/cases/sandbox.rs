//! The lifecycle of a sandbox.

use std::time::SystemTime;

use backend_core::ErrorKind;
use backend_core::ops::{Command, Event, StopMode};
use futures::StreamExt as _;

use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

/// The id of a sandbox does not change.
pub async fn id_is_stable(t: &Env) -> CaseResult {
    let id = t.sandbox()?.id();
    check!(
        !id.is_empty() && !id.contains(char::is_whitespace),
        "{id:?}"
    )?;
    t.run("true").await?;
    check_eq!(t.sandbox()?.id(), id)?;
    t.sandbox()?.stop(StopMode::Keep).await?;
    t.sandbox()?.start().await?;
    check_eq!(t.sandbox()?.id(), id)
}

/// A started sandbox is alive. Starting it again succeeds.
pub async fn starts(t: &Env) -> CaseResult {
    t.sandbox()?.start().await?;
    check!(t.sandbox()?.is_alive().await?)?;
    t.sandbox()?.start().await?;
    check!(t.sandbox()?.is_alive().await?)?;
    check_eq!(t.run("echo here").await?.stdout.text(), "here\n")
}

/// A command starts the sandbox if necessary.
pub async fn command_starts_it(t: &Env) -> CaseResult {
    check_eq!(t.run("echo here").await?.stdout.text(), "here\n")?;
    check!(t.sandbox()?.is_alive().await?)
}

/// A stopped sandbox is not alive, and checking that does not start it. Stopping it
/// again succeeds.
pub async fn stops(t: &Env) -> CaseResult {
    t.run("true").await?;
    for _ in 0..2 {
        t.sandbox()?.stop(StopMode::Keep).await?;
        for _ in 0..2 {
            check!(!t.sandbox()?.is_alive().await?)?;
        }
    }
    Ok(())
}

/// A stopped sandbox can be started again, explicitly or by a command, and keeps its
/// files.
pub async fn starts_again_with_its_files(t: &Env) -> CaseResult {
    t.run("echo kept > file").await?;
    t.sandbox()?.stop(StopMode::Keep).await?;
    t.sandbox()?.start().await?;
    check!(t.sandbox()?.is_alive().await?)?;
    check_eq!(t.get("file").await?, b"kept\n")?;
    t.sandbox()?.stop(StopMode::Keep).await?;
    check_eq!(t.run("cat file").await?.stdout.text(), "kept\n")?;
    check!(t.sandbox()?.is_alive().await?)
}

/// A command that runs when its sandbox is stopped has no outcome.
pub async fn stop_is_told_to_running_commands(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let mut stream = sandbox.stream(Command::new("echo up; sleep 1000")).await?;
    check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))))?;
    let (stopped, rest) = futures::join!(sandbox.stop(StopMode::Keep), stream.next());
    stopped?;
    let Some(rest) = rest else {
        return Err(crate::Failure::new("the stream ended without an error"));
    };
    t.fails(ErrorKind::Unavailable, rest)
}

/// Connections to ports do not survive a stop.
pub async fn stop_ends_connections(t: &Env) -> CaseResult {
    super::connect::stop_ends_connections(t).await
}

/// Shells do not survive a stop.
pub async fn stop_forgets_shells(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let shell = sandbox.shell_start(Command::new("sleep 1000")).await?;
    sandbox.stop(StopMode::Keep).await?;
    let running = |info: &backend_core::ops::ShellInfo| {
        info.id == shell.id && info.state == backend_core::ops::ShellState::Running
    };
    check!(!sandbox.shell_list().await?.iter().any(running))
}

/// The time of the last activity advances with every use, and is the current time while
/// a command runs.
pub async fn activity_is_noted(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let before = SystemTime::now();
    t.run("true").await?;
    let first = sandbox.last_activity();
    check!(first >= before, "it is before the command")?;
    let mut stream = sandbox.stream(Command::new("echo up; sleep 1000")).await?;
    check!(matches!(stream.next().await, Some(Ok(Event::Stdout(_)))))?;
    let now = SystemTime::now();
    check!(sandbox.last_activity() >= now, "a command runs")?;
    drop(stream);
    let before = SystemTime::now();
    t.put("file", "x").await?;
    check!(sandbox.last_activity() >= before, "a file was written")
}

/// Queries about a sandbox do not count as activity.
pub async fn looking_is_no_activity(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    t.run("true").await?;
    let noted = sandbox.last_activity();
    sandbox.is_alive().await?;
    sandbox.id();
    t.backend().info();
    check_eq!(sandbox.last_activity(), noted)
}
