//! Background shells in a terminal.

use std::time::Duration;

use backend_core::ops::{
    Command, CommandStatus, ShellId, ShellInfo, ShellState, Signal, TerminalSize,
};
use backend_core::{Connection, ErrorKind};
use bytes::Bytes;
use futures::StreamExt as _;

use super::process::Watch;
use crate::env::Env;
use crate::failure::{CaseResult, Failure};
use crate::{check, check_eq};

/// Longer than any operation here takes: a wait that lasts this long has failed.
const LONG: Duration = Duration::from_secs(50);

/// A size that is not the default of any program.
const SIZE: TerminalSize = TerminalSize::new(31, 97);

/// The key that interrupts, Ctrl-C.
const INTERRUPT: &str = "\x03";

async fn start(t: &Env, line: &str) -> Result<ShellInfo, Failure> {
    Ok(t.sandbox()?
        .shell_start(Command::new(line).terminal(SIZE))
        .await?)
}

/// A shell and the connection that is attached to it.
pub(super) struct Attached {
    connection: Connection,
    /// Output that was received and not yet expected.
    seen: Vec<u8>,
}

impl Attached {
    pub(super) async fn to(t: &Env, id: &ShellId) -> Result<Self, Failure> {
        Ok(Self {
            connection: t.sandbox()?.shell_attach(id).await?,
            seen: Vec::new(),
        })
    }

    pub(super) async fn send(&mut self, text: &'static str) -> CaseResult {
        let bytes = Bytes::from_static(text.as_bytes());
        Ok(self.connection.outgoing.send(bytes).await?)
    }

    /// Waits for this text in the output, and returns the output before it.
    pub(super) async fn until(&mut self, text: &str) -> Result<String, Failure> {
        loop {
            let found = self
                .seen
                .windows(text.len())
                .position(|part| part == text.as_bytes());
            if let Some(at) = found {
                let rest = self.seen.split_off(at + text.len());
                let before = std::mem::replace(&mut self.seen, rest);
                return Ok(String::from_utf8_lossy(&before[..at]).into_owned());
            }
            match self.connection.incoming.next().await {
                Some(piece) => self.seen.extend_from_slice(&piece?),
                None => {
                    return Err(Failure::new(format!(
                        "it ended before {text:?}, after {:?}",
                        String::from_utf8_lossy(&self.seen)
                    )));
                }
            }
        }
    }

    /// Returns the rest of the output.
    pub(super) async fn rest(mut self) -> Result<Vec<u8>, Failure> {
        while let Some(piece) = self.connection.incoming.next().await {
            self.seen.extend_from_slice(&piece?);
        }
        Ok(self.seen)
    }
}

/// Returns everything that a shell prints until it ends, and its status.
async fn to_the_end(t: &Env, id: &ShellId) -> Result<(String, CommandStatus), Failure> {
    let mut all = Vec::new();
    loop {
        let output = t.sandbox()?.shell_read(id, LONG).await?;
        check!(output.stderr.is_empty(), "a terminal has one output")?;
        all.extend_from_slice(&output.stdout);
        if let ShellState::Ended(status) = output.state {
            return Ok((String::from_utf8_lossy(&all).into_owned(), status));
        }
    }
}

/// All three streams are the terminal, and the shell says so.
pub async fn streams_are_the_terminal(t: &Env) -> CaseResult {
    let shell = start(t, "test -t 0 && test -t 1 && test -t 2 && echo yes >&2").await?;
    check_eq!(shell.terminal, Some(SIZE))?;
    let ended = to_the_end(t, &shell.id).await?;
    check_eq!(ended, ("yes\r\n".into(), CommandStatus::Exited(0)))?;
    let listed = t.sandbox()?.shell_list().await?;
    check_eq!(listed[0].terminal, Some(SIZE))
}

/// The terminal has the given size.
pub async fn has_its_size(t: &Env) -> CaseResult {
    let shell = start(t, "stty size").await?;
    check_eq!(to_the_end(t, &shell.id).await?.0, "31 97\r\n")
}

/// A new size is told to the processes, and listed.
pub async fn new_size_is_told(t: &Env) -> CaseResult {
    let line = "trap 'stty size; exit 0' WINCH; echo ready; while :; do sleep 0.05; done";
    let shell = start(t, line).await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.until("ready\r\n").await?;
    let size = TerminalSize::new(50, 132);
    t.sandbox()?.shell_resize(&shell.id, size).await?;
    let listed = t.sandbox()?.shell_list().await?;
    check_eq!(listed[0].terminal, Some(size))?;
    check_eq!(attached.rest().await?, b"50 132\r\n")
}

/// The shell leads a session of its own, in the foreground of its terminal.
pub async fn shell_leads_a_session(t: &Env) -> CaseResult {
    // The process, its group, its session, its terminal and the group in the foreground.
    let shell = start(t, "cut -d ' ' -f 1,5,6,7,8 /proc/$$/stat").await?;
    let (text, _) = to_the_end(t, &shell.id).await?;
    let numbers: Vec<&str> = text.split_whitespace().collect();
    let [process, group, session, terminal, foreground] = numbers[..] else {
        return Err(Failure::new(format!("unexpected output {text:?}")));
    };
    check_eq!([group, session, foreground], [process; 3])?;
    check!(terminal != "0", "it has no terminal")
}

/// Jobs have groups of their own, and the one in the foreground has the terminal.
pub async fn jobs_are_controlled(t: &Env) -> CaseResult {
    let line = "set -m; sh -c 'cut -d \" \" -f 5,8 /proc/$$/stat; true'; echo $$";
    let shell = start(t, line).await?;
    let (text, _) = to_the_end(t, &shell.id).await?;
    let numbers: Vec<&str> = text.split_whitespace().collect();
    let [group, foreground, leader] = numbers[..] else {
        return Err(Failure::new(format!("unexpected output {text:?}")));
    };
    check_eq!(group, foreground)?;
    check!(group != leader, "the job is in the group of its shell")
}

/// Typed text is echoed, and a program gets whole lines.
pub async fn typed_text_is_echoed(t: &Env) -> CaseResult {
    let shell = start(t, "cat").await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.send("hel").await?;
    attached.until("hel").await?;
    attached.send("lo\n").await?;
    check_eq!(attached.until("lo\r\nhello\r\n").await?, "")
}

/// The key that interrupts ends the program in the foreground, and the shell goes on.
pub async fn interrupt_key_ends_the_program(t: &Env) -> CaseResult {
    let line = "trap 'echo caught' INT; cat; echo after; read stay";
    let shell = start(t, line).await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    // The second line is printed by the program, which runs then.
    attached.send("x\n").await?;
    attached.until("x\r\nx\r\n").await?;
    attached.send(INTERRUPT).await?;
    attached.until("caught\r\nafter\r\n").await?;
    let listed = t.sandbox()?.shell_list().await?;
    check_eq!(listed[0].state, ShellState::Running)
}

/// A signal goes to the program in the foreground, and the shell goes on.
pub async fn signal_reaches_the_foreground(t: &Env) -> CaseResult {
    let shell = start(t, "set -m; cat; echo after $?; read stay").await?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.send("x\n").await?;
    attached.until("x\r\nx\r\n").await?;
    let sandbox = t.sandbox()?;
    sandbox.shell_signal(&shell.id, Signal::Terminate).await?;
    attached.until("after 143").await?;
    sandbox.shell_signal(&shell.id, Signal::Kill).await?;
    drop(attached);
    let (_, status) = to_the_end(t, &shell.id).await?;
    check_eq!(status, CommandStatus::Signalled(9))?;
    let late = sandbox.shell_signal(&shell.id, Signal::Interrupt).await;
    t.fails(ErrorKind::Conflict, late)
}

/// A signal to a shell without a terminal goes to its process group.
pub async fn signal_needs_no_terminal(t: &Env) -> CaseResult {
    let line = "trap 'echo caught; exit 4' USR1; echo up; while :; do sleep 0.05; done";
    let shell = t.sandbox()?.shell_start(Command::new(line)).await?;
    check_eq!(shell.terminal, None)?;
    let mut attached = Attached::to(t, &shell.id).await?;
    attached.until("up\n").await?;
    // The group's other processes end by this signal, and the shell says so.
    let sandbox = t.sandbox()?;
    sandbox.shell_signal(&shell.id, Signal::User1).await?;
    attached.until("caught\n").await?;
    attached.rest().await?;
    check_eq!(to_the_end(t, &shell.id).await?.1, CommandStatus::Exited(4))
}

/// The end-of-file character ends a program that reads lines, and the shell's status is
/// that of any shell.
pub async fn end_of_file_ends_the_program(t: &Env) -> CaseResult {
    let shell = start(t, "cat; exit 7").await?;
    let sandbox = t.sandbox()?;
    let line = Bytes::from_static(b"line\n");
    sandbox.shell_write(&shell.id, Some(line)).await?;
    sandbox.shell_write(&shell.id, None).await?;
    let ended = to_the_end(t, &shell.id).await?;
    check_eq!(ended, ("line\r\nline\r\n".into(), CommandStatus::Exited(7)))?;
    let late = sandbox.shell_write(&shell.id, None).await;
    t.fails(ErrorKind::Conflict, late)
}

/// Killing ends everything, also jobs in other groups that ignore the hangup.
pub async fn kill_ends_the_whole_tree(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; set -m; (trap '' HUP TERM INT; sleep 1000; sleep 1000) & \
                trap '' HUP TERM; while :; do sleep 1000; done";
    let shell = start(t, line).await?;
    watch.up().await?;
    check!(t.sandbox()?.shell_kill(&shell.id).await?)?;
    watch.gone().await
}

/// When the shell ends, its jobs end too, also those that ignore the hangup.
pub async fn jobs_end_with_the_shell(t: &Env) -> CaseResult {
    let mut watch = Watch::begin(t).await?;
    let line = "exec 3>alive; set -m; (trap '' HUP TERM; sleep 1000; sleep 1000) & exit 3";
    let shell = start(t, line).await?;
    watch.up().await?;
    check_eq!(to_the_end(t, &shell.id).await?.1, CommandStatus::Exited(3))?;
    watch.gone().await
}

/// The variable that names the kind of terminal is set, unless the command sets it.
pub async fn kind_is_in_the_environment(t: &Env) -> CaseResult {
    let shell = start(t, "echo $TERM").await?;
    check_eq!(to_the_end(t, &shell.id).await?.0, "xterm-256color\r\n")?;
    let command = Command::new("echo $TERM $OTHER").terminal(SIZE);
    let command = command.env("TERM", "vt100").env("OTHER", "too");
    let shell = t.sandbox()?.shell_start(command).await?;
    check_eq!(to_the_end(t, &shell.id).await?.0, "vt100 too\r\n")
}

/// Every byte passes unchanged, both ways, in raw mode.
pub async fn bytes_pass_unchanged(t: &Env) -> CaseResult {
    let shell = start(t, "stty raw -echo; echo ready; exec cat").await?;
    let Attached { connection, .. } = {
        let mut attached = Attached::to(t, &shell.id).await?;
        check_eq!(attached.until("ready\n").await?, "")?;
        check!(attached.seen.is_empty())?;
        attached
    };
    let Connection {
        mut incoming,
        mut outgoing,
    } = connection;
    // Every pair of bytes occurs.
    let bytes: Vec<u8> = (0..=255_u8)
        .flat_map(|first| (0..=255_u8).flat_map(move |second| [first, second]))
        .collect();
    let sent = Bytes::from(bytes);
    let sending = outgoing.send(sent.clone());
    let receiving = async {
        let mut received = Vec::new();
        while received.len() < sent.len() {
            match incoming.next().await {
                Some(piece) => received.extend_from_slice(&piece?),
                None => return Err(Failure::new(format!("ended at {}", received.len()))),
            }
        }
        Ok(received)
    };
    let (sending, received) = futures::join!(sending, receiving);
    sending?;
    check!(received? == sent, "the bytes differ")
}

/// Only background shells have a terminal, and it has rows and columns.
pub async fn other_calls_have_none(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let invalid = ErrorKind::InvalidInput;
    let command = || Command::new("true").terminal(SIZE);
    t.fails(invalid, sandbox.execute(command()).await)?;
    let streamed = sandbox.stream(command()).await.map(drop);
    t.fails(invalid, streamed)?;
    for size in [TerminalSize::new(0, 80), TerminalSize::new(24, 0)] {
        let started = sandbox.shell_start(command().terminal(size)).await;
        t.fails(invalid, started)?;
        let shell = start(t, "sleep 1000").await?;
        t.fails(invalid, sandbox.shell_resize(&shell.id, size).await)?;
    }
    Ok(())
}

/// Only a running shell in a terminal has a size.
pub async fn size_needs_a_terminal(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let pipes = sandbox.shell_start(Command::new("sleep 1000")).await?;
    t.fails(
        ErrorKind::Conflict,
        sandbox.shell_resize(&pipes.id, SIZE).await,
    )?;
    let ended = start(t, "true").await?;
    to_the_end(t, &ended.id).await?;
    t.fails(
        ErrorKind::Conflict,
        sandbox.shell_resize(&ended.id, SIZE).await,
    )
}

/// An unknown shell is not found.
pub async fn unknown_is_not_found(t: &Env) -> CaseResult {
    let sandbox = t.sandbox()?;
    let missing = ErrorKind::NotFound;
    for id in ["bg_999", "", "../bg_1", "no\0such\nshell"] {
        let id = ShellId::new(id);
        t.fails(missing, sandbox.shell_attach(&id).await.map(drop))?;
        t.fails(missing, sandbox.shell_resize(&id, SIZE).await)?;
        let signalled = sandbox.shell_signal(&id, Signal::Interrupt).await;
        t.fails(missing, signalled)?;
    }
    Ok(())
}
