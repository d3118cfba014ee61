//! Background shells.

use std::collections::BTreeSet;
use std::time::Duration;

use backend_core::ErrorKind;
use backend_core::limits::{SHELL_LOG_BYTES, SHELLS};
use backend_core::ops::{Command, CommandStatus, ShellId, ShellInfo, ShellOutput, ShellState};
use bytes::Bytes;

use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Longer than any operation here takes: a wait that lasts this long has failed.
const LONG: Duration = Duration::from_secs(50);

async fn start(t: &Env, line: &str) -> Result<ShellInfo, Failure> {
    Ok(t.sandbox()?.shell_start(Command::new(line)).await?)
}

async fn read(t: &Env, id: &ShellId) -> Result<ShellOutput, Failure> {
    Ok(t.sandbox()?.shell_read(id, LONG).await?)
}

async fn write(t: &Env, id: &ShellId, text: &'static str) -> CaseResult {
    let input = Bytes::from_static(text.as_bytes());
    Ok(t.sandbox()?.shell_write(id, Some(input)).await?)
}

/// Returns everything that a shell prints until it ends, and its status.
async fn to_the_end(t: &Env, id: &ShellId) -> Result<(Vec<u8>, CommandStatus), Failure> {
    let mut all = Vec::new();
    loop {
        let output = read(t, id).await?;
        all.extend_from_slice(&output.stdout);
        if let ShellState::Ended(status) = output.state {
            return Ok((all, status));
        }
    }
}

/// Reads until a shell's output ends with this text.
async fn until(t: &Env, id: &ShellId, expected: &str) -> CaseResult {
    let mut all = String::new();
    while !all.ends_with(expected) {
        let output = read(t, id).await?;
        all.push_str(&String::from_utf8_lossy(&output.stdout));
        check!(
            output.state == ShellState::Running || all.ends_with(expected),
            "it ended after {all:?}"
        )?;
    }
    check_eq!(all, expected)
}

/// A started shell has an id and a description, and is running.
pub async fn starts(t: &Env) -> CaseResult {
    let shell = start(t, "echo up; sleep 1000").await?;
    check_eq!(shell.line, "echo up; sleep 1000")?;
    check_eq!(shell.state, ShellState::Running)?;
    until(t, &shell.id, "up\n").await?;
    check_eq!(t.sandbox()?.shell_list().await?, [shell])
}

/// A read returns only new output, with the streams separated.
pub async fn read_takes_what_is_new(t: &Env) -> CaseResult {
    let shell = start(
        t,
        "echo one; read go; echo two; echo err >&2; read go; exit 3",
    )
    .await?;
    until(t, &shell.id, "one\n").await?;
    write(t, &shell.id, "\n").await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while stdout.len() + stderr.len() < 8 {
        let output = read(t, &shell.id).await?;
        stdout.extend_from_slice(&output.stdout);
        stderr.extend_from_slice(&output.stderr);
    }
    check_eq!((&stdout[..], &stderr[..]), (&b"two\n"[..], &b"err\n"[..]))?;
    let again = t.sandbox()?.shell_read(&shell.id, Duration::ZERO).await?;
    check_eq!(again, ShellOutput::new(ShellState::Running))?;
    write(t, &shell.id, "\n").await?;
    let (rest, status) = to_the_end(t, &shell.id).await?;
    check_eq!((rest.len(), status), (0, CommandStatus::Exited(3)))
}

/// A waiting read returns as soon as there is output, long before its timeout.
pub async fn wait_ends_with_output(t: &Env) -> CaseResult {
    let shell = start(t, "read go; echo printed; sleep 1000").await?;
    let (output, written) = futures::join!(read(t, &shell.id), write(t, &shell.id, "go\n"));
    written?;
    check_eq!(&output?.stdout[..], b"printed\n")
}

/// A waiting read returns at once when the shell ends, and a read of an ended shell
/// does not wait.
pub async fn wait_ends_with_the_shell(t: &Env) -> CaseResult {
    let shell = start(t, "read go; exit 7").await?;
    let (output, written) = futures::join!(read(t, &shell.id), write(t, &shell.id, "go\n"));
    written?;
    let ended = ShellOutput::new(ShellState::Ended(CommandStatus::Exited(7)));
    check_eq!(output?, ended)?;
    for _ in 0..3 {
        check_eq!(read(t, &shell.id).await?, ended)?;
    }
    Ok(())
}

/// A waiting read returns after its timeout if nothing happens.
pub async fn wait_ends_in_time(t: &Env) -> CaseResult {
    let shell = start(t, "sleep 1000").await?;
    for wait in [Duration::ZERO, Duration::from_millis(50)] {
        let output = t.sandbox()?.shell_read(&shell.id, wait).await?;
        check_eq!(output, ShellOutput::new(ShellState::Running))?;
    }
    Ok(())
}

/// Input reaches the shell byte for byte.
pub async fn input_reaches_it(t: &Env) -> CaseResult {
    let shell = start(t, "cat").await?;
    write(t, &shell.id, "hello\n").await?;
    until(t, &shell.id, "hello\n").await?;
    let input = Bytes::from_static(b"\xff\0\r\nend");
    t.sandbox()?
        .shell_write(&shell.id, Some(input.clone()))
        .await?;
    t.sandbox()?.shell_write(&shell.id, None).await?;
    let (all, status) = to_the_end(t, &shell.id).await?;
    check_eq!((&all[..], status), (&input[..], CommandStatus::Exited(0)))
}

/// Large input is written as fast as the shell reads it.
pub async fn much_input_reaches_it(t: &Env) -> CaseResult {
    let shell = start(t, "wc -c").await?;
    let size = 3 * 1024 * 1024;
    let input = Bytes::from(vec![b'x'; size]);
    t.sandbox()?.shell_write(&shell.id, Some(input)).await?;
    t.sandbox()?.shell_write(&shell.id, None).await?;
    let (all, _) = to_the_end(t, &shell.id).await?;
    let text = String::from_utf8_lossy(&all).trim().to_owned();
    check_eq!(text, size.to_string())
}

/// Closing the input is the end of file. Later writes fail.
pub async fn closed_input_ends_it(t: &Env) -> CaseResult {
    let shell = start(t, "cat; echo end; sleep 1000").await?;
    t.sandbox()?.shell_write(&shell.id, None).await?;
    until(t, &shell.id, "end\n").await?;
    let written = write_kind(t, &shell.id, Some(Bytes::from_static(b"x"))).await?;
    check_eq!(written, Some(ErrorKind::Conflict))?;
    let closed = write_kind(t, &shell.id, None).await?;
    check_eq!(closed, Some(ErrorKind::Conflict))
}

async fn write_kind(
    t: &Env,
    id: &ShellId,
    input: Option<Bytes>,
) -> Result<Option<ErrorKind>, Failure> {
    let written = t.sandbox()?.shell_write(id, input).await;
    Ok(written.err().map(|error| error.kind()))
}

/// Writing to an ended shell fails.
pub async fn ended_shell_takes_no_input(t: &Env) -> CaseResult {
    let shell = start(t, "exit 0").await?;
    to_the_end(t, &shell.id).await?;
    let written = write_kind(t, &shell.id, Some(Bytes::from_static(b"x"))).await?;
    check_eq!(written, Some(ErrorKind::Conflict))
}

/// Input to a shell that ends without reading it is a conflict and does not hang. Where
/// input is only sent, it may be accepted until the end of the shell is known here.
pub async fn unread_input_hangs_nobody(t: &Env) -> CaseResult {
    let shell = start(t, "sleep 0.2").await?;
    let input = Bytes::from(vec![b'x'; 8 * 1024 * 1024]);
    let mut written = write_kind(t, &shell.id, Some(input.clone())).await?;
    if written.is_none() && !t.fixture().acknowledges_input() {
        to_the_end(t, &shell.id).await?;
        written = write_kind(t, &shell.id, Some(input)).await?;
    }
    check_eq!(written, Some(ErrorKind::Conflict))
}

/// Killing reports whether the shell was still running, and its output can still be
/// read.
pub async fn kill_says_whether_it_ran(t: &Env) -> CaseResult {
    let shell = start(t, "echo up; sleep 1000").await?;
    until(t, &shell.id, "up\n").await?;
    let sandbox = t.sandbox()?;
    check_eq!(sandbox.shell_kill(&shell.id).await?, true)?;
    let output = read(t, &shell.id).await?;
    let signalled = matches!(
        output.state,
        ShellState::Ended(CommandStatus::Signalled(9 | 15))
    );
    check!(signalled, "{:?}", output.state)?;
    check_eq!(sandbox.shell_kill(&shell.id).await?, false)?;
    let shell = start(t, "echo last").await?;
    to_the_end(t, &shell.id).await?;
    check_eq!(sandbox.shell_kill(&shell.id).await?, false)
}

/// Shells are listed in the order in which they were started, whether they have ended
/// or not.
pub async fn listed_in_order(t: &Env) -> CaseResult {
    check!(t.sandbox()?.shell_list().await?.is_empty())?;
    let first = start(t, "sleep 1000").await?;
    let second = start(t, "exit 5").await?;
    let third = start(t, "cat").await?;
    to_the_end(t, &second.id).await?;
    let listed = t.sandbox()?.shell_list().await?;
    let rows: Vec<_> = listed.iter().map(|info| (&info.id, info.state)).collect();
    let ended = ShellState::Ended(CommandStatus::Exited(5));
    let expected = [
        (&first.id, ShellState::Running),
        (&second.id, ended),
        (&third.id, ShellState::Running),
    ];
    check_eq!(rows, expected)?;
    let lines: Vec<_> = listed.iter().map(|info| info.line.as_str()).collect();
    check_eq!(lines, ["sleep 1000", "exit 5", "cat"])
}

/// An unknown shell is not found.
pub async fn unknown_is_not_found(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let missing = ErrorKind::NotFound;
    for id in ["bg_999", "", "../bg_1", "no\0such\nshell"] {
        let id = ShellId::new(id);
        t.fails(missing, sandbox.shell_read(&id, LONG).await)?;
        t.fails(missing, sandbox.shell_write(&id, None).await)?;
        t.fails(missing, sandbox.shell_kill(&id).await)?;
    }
    Ok(())
}

/// The number of shells is limited. An ended shell makes room for another.
pub async fn number_is_capped(t: &Env) -> CaseResult {
    let mut shells = Vec::new();
    for _ in 0..SHELLS {
        shells.push(start(t, "sleep 1000").await?);
    }
    let refused = t.sandbox()?.shell_start(Command::new("true")).await;
    t.fails(ErrorKind::TooLarge, refused)?;
    t.sandbox()?.shell_kill(&shells[SHELLS / 2].id).await?;
    let room = start(t, "echo room").await?;
    to_the_end(t, &room.id).await?;
    let listed = t.sandbox()?.shell_list().await?;
    check!(listed.len() <= SHELLS, "{} shells", listed.len())
}

/// An id is never used twice.
pub async fn ids_are_unique(t: &Env) -> CaseResult {
    let mut ids = BTreeSet::new();
    for _ in 0..SHELLS + 5 {
        let shell = start(t, "true").await?;
        to_the_end(t, &shell.id).await?;
        check!(ids.insert(shell.id.clone()), "{} again", shell.id)?;
    }
    check!(t.sandbox()?.shell_list().await?.len() <= SHELLS)
}

/// The log of a shell that is not read is bounded, keeps the newest output, and reports
/// how much is lost.
pub async fn unread_log_is_bounded(t: &Env) -> CaseResult {
    let size = 3 * SHELL_LOG_BYTES;
    t.run("mkfifo printed").await?;
    let line = format!("head -c {size} /dev/zero; echo newest; echo > printed; read stay");
    let shell = start(t, &line).await?;
    t.run("cat printed").await?;
    let (mut bytes, mut dropped, mut last) = (0, 0, Vec::new());
    while bytes + dropped < size as u64 + 7 {
        let output = read(t, &shell.id).await?;
        check!(
            output.stdout.len() <= SHELL_LOG_BYTES,
            "{} bytes",
            output.stdout.len()
        )?;
        check_eq!(output.state, ShellState::Running)?;
        bytes += output.stdout.len() as u64;
        dropped += output.dropped;
        last.extend_from_slice(&output.stdout);
    }
    check_eq!(bytes + dropped, size as u64 + 7)?;
    check!(dropped > 0)?;
    check!(last.ends_with(b"newest\n"))
}

/// A shell runs in the given directory with the given variables, and shares the files.
pub async fn is_a_command_like_others(t: &Env) -> CaseResult {
    t.put("directory/file", "x").await?;
    let command = Command::new("printf %s \"$VALUE\" > made")
        .directory(t.path("directory")?)
        .env("VALUE", "a 'b' $c");
    let shell = t.sandbox()?.shell_start(command).await?;
    to_the_end(t, &shell.id).await?;
    check_eq!(t.get("directory/made").await?, b"a 'b' $c")
}

/// A shell that times out is ended.
pub async fn time_limit_ends_it(t: &Env) -> CaseResult {
    let command = Command::new("sleep 1000").timeout(Duration::from_millis(200));
    let shell = t.sandbox()?.shell_start(command).await?;
    let (_, status) = to_the_end(t, &shell.id).await?;
    check_eq!(status, CommandStatus::TimedOut)
}

/// Several readers of one shell share its output. No byte is returned twice.
pub async fn readers_share_the_output(t: &Env) -> CaseResult {
    let shell = start(t, "seq 1 5000").await?;
    let reader = async || to_the_end(t, &shell.id).await;
    let (one, two) = futures::join!(reader(), reader());
    let (one, two) = (one?.0, two?.0);
    let expected: usize = (1..=5_000).map(|n| format!("{n}\n").len()).sum();
    check_eq!(one.len() + two.len(), expected)
}
