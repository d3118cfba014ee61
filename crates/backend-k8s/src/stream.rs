//! The stream of a program that runs in a pod: a websocket with one channel for each of
//! its standard streams and one for its end.
//!
//! One task on the engine moves the bytes. Reading and writing do not wait for each
//! other, so a program that prints while it is fed never stalls. When the connection
//! breaks, the output ends with an error, the input refuses more, and no exit code is
//! made up.

mod driver;
mod frame;
mod status;

use std::pin::Pin;

use backend_core::{Error, Result};
use futures::{FutureExt as _, StreamExt as _, stream};
use sandbox_wire::{Process, engine};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use driver::Driver;

pub(crate) use driver::UNKNOWN_END;

use crate::start_slots::StartSlot;

/// Bytes of input that wait to be sent, and so the most in one message.
const INPUT_BYTES: usize = 64 * 1024;
/// Messages of output that wait to be read.
const OUTPUT_MESSAGES: usize = 8;
/// The largest message that is taken. API servers send 32 KiB.
const MESSAGE_BYTES: usize = 1024 * 1024;
/// Bytes of a connection that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// Takes over a connection that was upgraded to a stream into a pod. `slot` is given
/// back when the program has started.
///
/// # Errors
///
/// `Unavailable` if the engine cannot be started.
pub(crate) async fn attach<S>(connection: S, stdin: bool, slot: StartSlot) -> Result<Process>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let (process, driver) = open(connection, stdin, slot).await;
    engine::handle()?.spawn(driver.run());
    Ok(process)
}

/// Returns a program on a connection, and the task that must run for it.
async fn open<S>(connection: S, stdin: bool, slot: StartSlot) -> (Process, Driver<S>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(READ_BYTES)
        .max_message_size(Some(MESSAGE_BYTES))
        .max_frame_size(Some(MESSAGE_BYTES));
    let socket = WebSocketStream::from_raw_socket(connection, Role::Client, Some(config)).await;
    let (input, pipe) = tokio::io::duplex(INPUT_BYTES);
    let (output, mut printed) = mpsc::channel(OUTPUT_MESSAGES);
    let (exit, ended) = oneshot::channel();
    let driver = Driver {
        socket,
        input: stdin.then_some(pipe),
        output,
        exit,
        slot: Some(slot),
    };
    let exit = async move {
        let lost = |_| Err(Error::unavailable("the process is ending"));
        ended.await.unwrap_or_else(lost)
    };
    let input: Pin<Box<dyn AsyncWrite + Send>> = Box::pin(input);
    let process = Process::new(
        stdin.then_some(input),
        stream::poll_fn(move |context| printed.poll_recv(context)).boxed(),
        exit.boxed(),
    );
    (process, driver)
}

#[cfg(test)]
mod tests;
