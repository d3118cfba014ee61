//! Connections that are attached to background shells.

use std::time::Duration;

use backend_core::ErrorKind;
use backend_core::limits::SHELL_LOG_BYTES;
use backend_core::ops::{Command, CommandStatus, ShellState, TerminalSize};
use bytes::Bytes;

use super::terminal::Attached;
use crate::env::Env;
use crate::failure::CaseResult;
use crate::{check, check_eq};

fn in_terminal(line: &str) -> Command {
    Command::new(line).terminal(TerminalSize::default())
}

/// A connection gets the unread output first, then output as it is printed.
pub async fn unread_output_comes_first(t: &Env) -> CaseResult {
    t.run("mkfifo printed").await?;
    let line = "echo before; echo > printed; read go; echo now; exit 5";
    let shell = t.sandbox()?.shell_start(in_terminal(line)).await?;
    t.run("cat printed").await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    check_eq!(attached.until("before\r\n").await?, "")?;
    attached.send("\n").await?;
    attached.until("now\r\n").await?;
    check!(attached.rest().await?.is_empty(), "the output has an end")?;
    let listed = t.sandbox()?.shell_list().await?;
    let ended = ShellState::Ended(CommandStatus::Exited(5));
    check_eq!(listed[0].state, ended)
}

/// A detached shell runs on, and the next connection gets what was printed meanwhile.
pub async fn detached_shell_runs_on(t: &Env) -> CaseResult {
    t.run("mkfifo printed").await?;
    let line = "stty -echo; echo one; read go; echo two; echo > printed; read go; echo three";
    let sandbox = t.sandbox()?;
    let shell = sandbox.shell_start(in_terminal(line)).await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.until("one\r\n").await?;
    drop(attached);
    let enter = || Some(Bytes::from_static(b"\n"));
    sandbox.shell_write(&shell.id, enter()).await?;
    t.run("cat printed").await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    check_eq!(attached.until("two\r\n").await?, "")?;
    attached.send("\n").await?;
    check_eq!(attached.rest().await?, b"three\r\n")
}

/// A slow reader slows the shell down, and nothing is dropped.
pub async fn slow_reader_gets_everything(t: &Env) -> CaseResult {
    let size = 3 * SHELL_LOG_BYTES;
    let line = format!("read go; head -c {size} /dev/zero | tr '\\0' x");
    let shell = t.sandbox()?.shell_start(Command::new(line)).await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.send("\n").await?;
    attached.until("xxx").await?;
    // Meanwhile a shell that does not wait prints on.
    t.run("seq 1 1000").await?;
    let rest = attached.rest().await?;
    check_eq!(rest.len() + 3, size)?;
    check!(rest.iter().all(|byte| *byte == b'x'))
}

/// While a connection is attached, it takes the output, and a read says so.
pub async fn reading_is_a_conflict(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let shell = sandbox.shell_start(in_terminal("cat")).await?;
    let attached = Attached::to(t, &shell.id).await?;
    let read = sandbox.shell_read(&shell.id, Duration::ZERO).await;
    t.fails(ErrorKind::Conflict, read)?;
    drop(attached);
    // Where a connection is a stream to an agent, its end takes a moment to arrive.
    loop {
        match sandbox.shell_read(&shell.id, Duration::ZERO).await {
            Err(error) if error.kind() == ErrorKind::Conflict => tokio::task::yield_now().await,
            read => return check_eq!(read?.state, ShellState::Running),
        }
    }
}

/// A second connection takes over, and the first one ends with a conflict.
pub async fn second_takes_over(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let shell = sandbox.shell_start(in_terminal("cat")).await?;
    let mut first = Attached::to(t, &shell.id).await?;
    first.send("a\n").await?;
    first.until("a\r\na\r\n").await?;
    let mut second = Attached::to(t, &shell.id).await?;
    let ended = first.until("never").await;
    check!(
        ended
            .as_ref()
            .is_err_and(|failure| failure.to_string().contains("took over")),
        "{ended:?}"
    )?;
    second.send("b\n").await?;
    check_eq!(second.until("b\r\nb\r\n").await?, "")
}

/// A shell without a terminal can be attached to as well: both streams arrive, and input
/// is passed on.
pub async fn needs_no_terminal(t: &Env) -> CaseResult {
    let line = "read line; echo got $line; echo error >&2; exit 6";
    let sandbox = t.sandbox()?;
    let shell = sandbox.shell_start(Command::new(line)).await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.send("text\n").await?;
    let rest = String::from_utf8_lossy(&attached.rest().await?).into_owned();
    check!(
        rest.contains("got text\n") && rest.contains("error\n"),
        "{rest:?}"
    )
}

/// A shell that has ended shows its last output.
pub async fn ended_shell_shows_its_last_output(t: &Env) -> CaseResult {
    t.run("mkfifo held").await?;
    let sandbox = t.sandbox()?;
    let line = "echo last; exec 3>held; exit 0";
    let shell = sandbox.shell_start(in_terminal(line)).await?;
    t.run("cat held").await?;
    loop {
        let listed = sandbox.shell_list().await?;
        if listed[0].state != ShellState::Running {
            break;
        }
        tokio::task::yield_now().await;
    }
    let attached = Attached::to(t, &shell.id).await?;
    check_eq!(attached.rest().await?, b"last\r\n")
}

/// Killing a shell whose connection reads nothing does not hang.
pub async fn unread_connection_delays_no_kill(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let shell = sandbox.shell_start(in_terminal("yes")).await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.until("y\r\n").await?;
    check!(sandbox.shell_kill(&shell.id).await?)?;
    check!(!attached.rest().await?.is_empty())
}
