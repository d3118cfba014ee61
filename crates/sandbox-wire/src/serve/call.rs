//! One call: reads its request, runs its operation, sends its replies.

use std::sync::Arc;
use std::time::SystemTime;

use backend_core::ops::{Entry, Event, GlobResult, GrepResult, Listing};
use backend_core::{Backend, Error, Result, Sandbox};
use bytes::Bytes;
use futures::StreamExt as _;

use crate::message::{
    BATCH, BATCH_BYTES, FrameError, More, PIECE_BYTES, REQUEST_BYTES, Reply, Request, receive, send,
};
use crate::serve::stream::{Answer, CallError, Reader, Writer, finish, gone};
use crate::serve::watch::watch;
use crate::serve::{connect, files};

/// Answers the call on a stream. If the host drops the call, the operation is
/// dropped.
pub(super) async fn answer(
    backend: Arc<dyn Backend>,
    stream: yamux::Stream,
    room: bool,
) -> Result<(), FrameError> {
    let (mut reader, mut writer) = futures::AsyncReadExt::split(stream);
    match receive(&mut reader, REQUEST_BYTES).await? {
        Request::Control => echo(&*backend, &mut reader, &mut writer).await,
        _ if !room => {
            let error = Error::unavailable("too many calls at once; wait for some to end");
            finish(Err(error.into()), &mut writer).await
        }
        Request::WriteStream(path, options) => {
            let written = files::write_stream(&*backend, &path, options, &mut reader).await;
            finish(written, &mut writer).await
        }
        Request::Connect(port) => {
            let connect = async { commands(&*backend)?.connect(port).await };
            connect::serve(connect, reader, writer).await
        }
        Request::ShellAttach(id) => {
            let attach = async { commands(&*backend)?.shell_attach(&id).await };
            connect::serve(attach, reader, writer).await
        }
        request => {
            let answer = async {
                let answer = operate(&*backend, request, &mut writer).await;
                finish(answer, &mut writer).await
            };
            tokio::select! {
                biased;
                done = answer => done,
                gone = gone(&mut reader) => Err(gone),
            }
        }
    }
}

/// Echoes heartbeats with a flag that is `true` while commands or shells run.
async fn echo(
    backend: &dyn Backend,
    reader: &mut Reader,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    loop {
        match receive(reader, PIECE_BYTES).await? {
            More::Beat => {
                let now = SystemTime::now();
                // While commands run, the last activity is now.
                let sandbox = backend.as_sandbox();
                let busy = sandbox.is_some_and(|sandbox| sandbox.last_activity() >= now);
                send(writer, &Reply::Beat(busy)).await?;
            }
            _ => return Err(FrameError::Broken("content instead of a heartbeat".into())),
        }
    }
}

/// Runs the operation. Sends all replies but the last.
async fn operate(backend: &dyn Backend, request: Request, writer: &mut Writer) -> Answer {
    use Request as R;
    Ok(Some(match request {
        R::Resolve(path, options) => Reply::Path(backend.resolve(&path, options).await?),
        R::Stat(path, options) => Reply::Entry(backend.stat(&path, options).await?),
        R::Ls(path, options) => send_listing(backend.ls(&path, options).await?, writer).await?,
        R::Read(path, options) => files::read(backend, &path, options, writer).await?,
        R::ReadText(path, options) => Reply::Text(backend.read_text(&path, options).await?),
        R::Write(path, options, content) => {
            Reply::Written(backend.write(&path, content.into(), options).await?)
        }
        R::Edit(path, edits, options) => Reply::Edited(backend.edit(&path, &edits, options).await?),
        R::CreateDir(path, options) => done(backend.create_dir(&path, options).await)?,
        R::Delete(path, options) => done(backend.delete(&path, options).await)?,
        R::Rename(from, to, options) => done(backend.rename(&from, &to, options).await)?,
        R::Copy(from, to, options) => done(backend.copy(&from, &to, options).await)?,
        R::Glob(query) => send_files(backend.glob(query).await?, writer).await?,
        R::Grep(query) => send_matches(backend.grep(query).await?, writer).await?,
        R::Watch(query) => watch(backend, query, writer).await?,
        request => {
            return command(commands(backend)?, request, writer).await;
        }
    }))
}

/// Returns the sandbox of a backend that runs commands.
fn commands(backend: &dyn Backend) -> Result<&dyn Sandbox> {
    let none = || Error::unsupported("commands cannot be run here; work with the files");
    backend.as_sandbox().ok_or_else(none)
}

async fn command(sandbox: &dyn Sandbox, request: Request, writer: &mut Writer) -> Answer {
    use Request as R;
    Ok(Some(match request {
        R::Execute(command) => Reply::Executed(sandbox.execute(command).await?),
        R::Stream(command) => {
            send_events(sandbox.stream(command).await?, writer).await?;
            return Ok(None);
        }
        R::ShellStart(command) => Reply::Shell(sandbox.shell_start(command).await?),
        R::ShellRead(id, wait) => Reply::ShellOutput(sandbox.shell_read(&id, wait).await?),
        R::ShellWrite(id, input) => done(sandbox.shell_write(&id, input).await)?,
        R::ShellKill(id) => Reply::Killed(sandbox.shell_kill(&id).await?),
        R::ShellList => Reply::Shells(sandbox.shell_list().await?),
        R::ShellResize(id, size) => done(sandbox.shell_resize(&id, size).await)?,
        R::ShellSignal(id, signal) => done(sandbox.shell_signal(&id, signal).await)?,
        _ => return Err(Error::internal("unexpected request").into()),
    }))
}

fn done(result: Result<()>) -> Result<Reply> {
    result.map(|()| Reply::Done)
}

async fn send_events(
    mut events: backend_core::EventStream,
    writer: &mut Writer,
) -> Result<(), CallError> {
    send(writer, &Reply::Done).await?;
    while let Some(event) = events.next().await {
        match event? {
            Event::Stdout(bytes) => send_output(bytes, Event::Stdout, writer).await?,
            Event::Stderr(bytes) => send_output(bytes, Event::Stderr, writer).await?,
            event => send(writer, &Reply::Event(event)).await?,
        }
    }
    Ok(())
}

async fn send_output(
    mut bytes: Bytes,
    event: fn(Bytes) -> Event,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    while !bytes.is_empty() {
        let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
        send(writer, &Reply::Event(event(piece))).await?;
    }
    Ok(())
}

pub(super) async fn send_listing(
    mut listing: Listing,
    writer: &mut Writer,
) -> Result<Reply, FrameError> {
    listing.entries = send_entries(listing.entries, writer).await?;
    Ok(Reply::Listing(listing))
}

pub(super) async fn send_files(
    mut result: GlobResult,
    writer: &mut Writer,
) -> Result<Reply, FrameError> {
    result.files = send_entries(result.files, writer).await?;
    Ok(Reply::Glob(result))
}

/// Sends all but the last batch, and returns that one to be sent with the end
/// of the result.
async fn send_entries(entries: Vec<Entry>, writer: &mut Writer) -> Result<Vec<Entry>, FrameError> {
    let mut entries = entries.into_iter();
    loop {
        let batch: Vec<_> = entries.by_ref().take(BATCH).collect();
        if entries.len() == 0 {
            return Ok(batch);
        }
        send(writer, &Reply::Entries(batch)).await?;
    }
}

pub(super) async fn send_matches(
    mut result: GrepResult,
    writer: &mut Writer,
) -> Result<Reply, FrameError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for file in std::mem::take(&mut result.files) {
        // A line has a number and a length besides its text.
        bytes += file.shown_bytes() + file.lines().len() * 8;
        batch.push(file);
        if batch.len() == BATCH || bytes > BATCH_BYTES {
            send(writer, &Reply::Matches(std::mem::take(&mut batch))).await?;
            bytes = 0;
        }
    }
    result.files = batch;
    Ok(Reply::Grep(result))
}
