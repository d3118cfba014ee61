//! Replies about commands and shells.

use backend_core::limits::{COMMAND_BYTES, SHELL_LOG_BYTES, SHELLS};
use backend_core::ops::{Command, Event, ExecuteOutcome, Output, ShellInfo, ShellOutput};
use backend_core::{EventStream, Result};
use futures::StreamExt as _;

use crate::channel::Call;
use crate::client::SMALL;
use crate::message::{PIECE_BYTES, Reply};

/// Output that may arrive beyond a command's hard limit: the size of one read.
const OVER: u64 = 1024 * 1024;

/// The size of the longest description of a shell.
const SHELL: usize = COMMAND_BYTES + 256;

pub(crate) async fn executed(call: &mut Call, command: &Command) -> Result<ExecuteOutcome> {
    let kept = command.output_bytes;
    let fits = |output: &Output| output.head.len() + output.tail.len() <= kept;
    let limit = SMALL.saturating_add(kept).saturating_add(kept);
    match call.reply(limit).await? {
        Reply::Executed(outcome) if fits(&outcome.stdout) && fits(&outcome.stderr) => Ok(outcome),
        Reply::Executed(_) => Err(call.broken("it sent more output than was asked for").await),
        other => Err(call.unexpected(&other, "an outcome").await),
    }
}

/// Returns the events of a running command. `guard` lives as long as the
/// stream.
pub(crate) async fn events<G: Send + 'static>(
    mut call: Call,
    command: &Command,
    guard: G,
    name: impl Fn(backend_core::Error) -> backend_core::Error + Send + Sync + 'static,
) -> Result<EventStream> {
    match call.reply(SMALL).await? {
        Reply::Done => {}
        other => return Err(call.unexpected(&other, "events").await),
    }
    let left = command.hard_output_bytes.saturating_add(OVER);
    let state = Some((call, left, guard));
    let events = futures::stream::unfold(state, |state| async move {
        let (mut call, mut left, guard) = state?;
        let event = next(&mut call, &mut left).await;
        let goes_on = matches!(event, Ok(Event::Stdout(_) | Event::Stderr(_)));
        Some((event, goes_on.then_some((call, left, guard))))
    });
    Ok(events.map(move |event| event.map_err(&name)).boxed())
}

async fn next(call: &mut Call, left: &mut u64) -> Result<Event> {
    let event = match call.reply(SMALL + PIECE_BYTES).await? {
        Reply::Event(event) => event,
        other => return Err(call.unexpected(&other, "an event").await),
    };
    let printed = match &event {
        Event::Stdout(bytes) | Event::Stderr(bytes) => bytes.len() as u64,
        _ => 0,
    };
    match left.checked_sub(printed) {
        Some(rest) => *left = rest,
        None => return Err(call.broken("it sent more output than was asked for").await),
    }
    Ok(event)
}

pub(crate) async fn shell(call: &mut Call) -> Result<ShellInfo> {
    match call.reply(SMALL + SHELL).await? {
        Reply::Shell(info) => Ok(info),
        other => Err(call.unexpected(&other, "a shell").await),
    }
}

pub(crate) async fn shells(call: &mut Call) -> Result<Vec<ShellInfo>> {
    match call.reply(SMALL + SHELLS * SHELL).await? {
        Reply::Shells(shells) if shells.len() <= SHELLS => Ok(shells),
        Reply::Shells(_) => Err(call.broken("it listed more shells than there can be").await),
        other => Err(call.unexpected(&other, "shells").await),
    }
}

pub(crate) async fn shell_output(call: &mut Call) -> Result<ShellOutput> {
    match call.reply(SMALL + 2 * SHELL_LOG_BYTES).await? {
        Reply::ShellOutput(output)
            if output.stdout.len().max(output.stderr.len()) <= SHELL_LOG_BYTES =>
        {
            Ok(output)
        }
        Reply::ShellOutput(_) => Err(call.broken("it sent more than a shell's log").await),
        other => Err(call.unexpected(&other, "a shell's output").await),
    }
}

pub(crate) async fn killed(call: &mut Call) -> Result<bool> {
    match call.reply(SMALL).await? {
        Reply::Killed(ran) => Ok(ran),
        other => Err(call.unexpected(&other, "the end of a shell").await),
    }
}
