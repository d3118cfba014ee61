//! A child process of the test as a program of a machine.

use std::process::Stdio;

use backend_core::{Error, Result};
use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use sandbox_wire::{OutputChunk, Process};
use tokio::io::AsyncRead;
use tokio::process::Command;
use tokio_util::io::ReaderStream;

/// Starts a child.
pub(crate) fn start(mut command: Command, stdin: bool) -> Result<Process> {
    let mut child = command
        .stdin(if stdin { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Error::unavailable("cannot start it").with_source(error))?;
    let stdout = pieces(child.stdout.take().unwrap(), OutputChunk::Stdout);
    let stderr = pieces(child.stderr.take().unwrap(), OutputChunk::Stderr);
    let stdin = child.stdin.take();
    // Reaped even if the exit code is not awaited.
    let exit = tokio::spawn(async move { child.wait().await });
    let exit = async move {
        let status = exit.await.unwrap().unwrap();
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        Ok(status.code().or(signal.map(|signal| 128 + signal)).unwrap())
    };
    Ok(Process::new(
        stdin.map(|stdin| Box::pin(stdin) as _),
        stream::select(stdout, stderr).boxed(),
        exit.boxed(),
    ))
}

fn pieces(
    pipe: impl AsyncRead + Send + 'static,
    piece: fn(bytes::Bytes) -> OutputChunk,
) -> stream::BoxStream<'static, Result<OutputChunk>> {
    let stream = ReaderStream::with_capacity(pipe, 64 * 1024);
    stream
        .map(move |read| match read {
            Ok(bytes) => Ok(piece(bytes)),
            Err(error) => Err(Error::unavailable("a pipe broke").with_source(error)),
        })
        .boxed()
}
