//! One call: reads its request, runs its operation, sends its replies.

use std::sync::Arc;
use std::time::SystemTime;

use backend_core::ops::Event;
use backend_core::{Backend, Error, Result, Sandbox};
use bytes::Bytes;
use futures::StreamExt as _;

use crate::message::{FrameError, More, PIECE_BYTES, REQUEST_BYTES, Reply, Request, receive, send};
use crate::serve::stream::{Reader, Writer, finish, gone};
use crate::serve::{files, search};

/// Answers the call on a stream. If the host drops the call, the operation is
/// dropped.
pub(super) async fn answer(
    backend: Arc<dyn Backend>,
    stream: yamux::Stream,
    room: bool,
) -> Result<(), FrameError> {
    let (mut reader, mut writer) = futures::AsyncReadExt::split(stream);
    let request = receive(&mut reader, REQUEST_BYTES).await?;
    match request {
        Request::Control => return echo(&*backend, &mut reader, &mut writer).await,
        _ if !room => {
            let error = Error::unavailable("too many calls at once; wait for some to end");
            return send(&mut writer, &Reply::Failed(error)).await;
        }
        Request::WriteStream(path, options) => {
            return files::write_stream(&*backend, &path, options, &mut reader, &mut writer).await;
        }
        request => tokio::select! {
            biased;
            done = operate(&*backend, request, &mut writer) => done,
            gone = gone(&mut reader) => gone,
        },
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

/// Runs the operation and sends its result.
async fn operate(
    backend: &dyn Backend,
    request: Request,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    use Request as R;
    let reply = match request {
        R::Resolve(path, options) => backend.resolve(&path, options).await.map(Reply::Path),
        R::Stat(path, options) => backend.stat(&path, options).await.map(Reply::Entry),
        R::Ls(path, options) => match backend.ls(&path, options).await {
            Ok(listing) => return search::send_listing(listing, writer).await,
            Err(error) => Err(error),
        },
        R::Read(path, options) => return files::read(backend, &path, options, writer).await,
        R::ReadText(path, options) => backend.read_text(&path, options).await.map(Reply::Text),
        R::Write(path, options, content) => {
            let written = backend.write(&path, content.into(), options).await;
            written.map(Reply::Written)
        }
        R::Edit(path, edits, options) => {
            let edited = backend.edit(&path, &edits, options).await;
            edited.map(Reply::Edited)
        }
        R::CreateDir(path, options) => done(backend.create_dir(&path, options).await),
        R::Delete(path, options) => done(backend.delete(&path, options).await),
        R::Rename(from, to, options) => done(backend.rename(&from, &to, options).await),
        R::Copy(from, to, options) => done(backend.copy(&from, &to, options).await),
        R::Glob(query) => match backend.glob(query).await {
            Ok(result) => return search::send_files(result, writer).await,
            Err(error) => Err(error),
        },
        R::Grep(query) => match backend.grep(query).await {
            Ok(result) => return search::send_matches(result, writer).await,
            Err(error) => Err(error),
        },
        request => match backend.as_sandbox() {
            Some(sandbox) => return command(sandbox, request, writer).await,
            None => Err(Error::unsupported(
                "commands cannot be run here; work with the files",
            )),
        },
    };
    finish(reply, writer).await
}

async fn command(
    sandbox: &dyn Sandbox,
    request: Request,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    use Request as R;
    let reply = match request {
        R::Execute(command) => sandbox.execute(command).await.map(Reply::Executed),
        R::Stream(command) => match sandbox.stream(command).await {
            Ok(events) => return send_events(events, writer).await,
            Err(error) => Err(error),
        },
        R::ShellStart(command) => sandbox.shell_start(command).await.map(Reply::Shell),
        R::ShellRead(id, wait) => {
            let output = sandbox.shell_read(&id, wait).await;
            output.map(Reply::ShellOutput)
        }
        R::ShellWrite(id, input) => done(sandbox.shell_write(&id, input).await),
        R::ShellKill(id) => sandbox.shell_kill(&id).await.map(Reply::Killed),
        R::ShellList => sandbox.shell_list().await.map(Reply::Shells),
        _ => Err(Error::internal("unexpected request")),
    };
    finish(reply, writer).await
}

fn done(result: Result<()>) -> Result<Reply> {
    result.map(|()| Reply::Done)
}

async fn send_events(
    mut events: backend_core::EventStream,
    writer: &mut Writer,
) -> Result<(), FrameError> {
    send(writer, &Reply::Done).await?;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Stdout(bytes)) => send_output(bytes, Event::Stdout, writer).await?,
            Ok(Event::Stderr(bytes)) => send_output(bytes, Event::Stderr, writer).await?,
            Ok(event) => send(writer, &Reply::Event(event)).await?,
            Err(error) => return send(writer, &Reply::Failed(error)).await,
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
