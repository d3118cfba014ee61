//! Drives one program: moves its input and output, and gives its carrier back.

use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, ErrorKind, Quoted, Result};
use futures::{FutureExt as _, StreamExt as _, stream};
use sandbox_wire::{OutputChunk, Process};
use tokio::io::{AsyncReadExt as _, AsyncWrite, DuplexStream};
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::decoder::{Piece, Stream};
use super::{Carrier, Inner, LINE_BYTES, Lines};

/// Bytes of input that wait to be sent, and so the most in one request.
const INPUT_BYTES: usize = 1024 * 1024;
/// Bytes of input that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// The time in which more input is collected for one request.
const COLLECT: Duration = Duration::from_millis(1);
/// Pieces of output that wait to be read.
const OUTPUT_PIECES: usize = 8;
/// The time for a program to end after its process was dropped, or its input was refused.
const LINGER: Duration = Duration::from_secs(10);
/// The time for the last words to a carrier.
const FAREWELL: Duration = Duration::from_secs(10);

/// The file that tells a carrier to print nothing any more.
const DETACHED: &str = "detached";

/// How a program is done with.
enum Done {
    /// It has ended with this code.
    Ended(i32),
    /// It may still run, and no call waits for it.
    Abandoned,
    Failed(Error),
}

/// Returns a program that was started, and the task that must run for it.
pub(super) fn process(
    carrier: Carrier,
    stdin: bool,
    home: Weak<Inner>,
    run: u64,
) -> (Process, impl Future<Output = ()> + Send) {
    let (input, pipe) = tokio::io::duplex(INPUT_BYTES);
    let (output, mut printed) = mpsc::channel(OUTPUT_PIECES);
    let (exit, ended) = oneshot::channel();
    let input: Pin<Box<dyn AsyncWrite + Send>> = Box::pin(input);
    let exited = async move {
        let lost = |_| Err(Error::unavailable("the process is ending"));
        ended.await.unwrap_or_else(lost)
    };
    let running = Arc::new(());
    let held = Held {
        program: Arc::downgrade(&running),
        home: Weak::clone(&home),
    };
    let printed = stream::poll_fn(move |context| {
        let _held = &held;
        printed.poll_recv(context)
    });
    let process = Process::new(stdin.then_some(input), printed.boxed(), exited.boxed());
    let driving = drive(
        carrier,
        stdin.then_some(pipe),
        output,
        exit,
        (Weak::clone(&home), run),
    );
    let driver = async move {
        driving.await;
        drop(running);
        if let Some(home) = home.upgrade() {
            home.ended.notify_waiters();
        }
    };
    (process, driver)
}

/// A call waits for the program. When it is dropped, the program is about to end.
struct Held {
    program: Weak<()>,
    home: Weak<Inner>,
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(home) = self.home.upgrade() {
            let mut ending = lock(&home.ending);
            ending.push(Weak::clone(&self.program));
            // Else it would grow while there always is an idle carrier.
            ending.retain(|program| program.strong_count() > 0);
        }
    }
}

async fn drive(
    mut carrier: Carrier,
    input: Option<DuplexStream>,
    output: mpsc::Sender<Result<OutputChunk>>,
    exit: oneshot::Sender<Result<i32>>,
    (home, run): (Weak<Inner>, u64),
) {
    let (done, is_fed) = carry(&mut carrier, input, &output).await;
    match done {
        Done::Ended(code) => {
            let give_back = |carrier| {
                if let Some(home) = home.upgrade() {
                    home.give_back(run, carrier);
                }
            };
            if is_fed {
                // First: the next program may be started at once.
                give_back(carrier);
                drop(output);
                let _ = exit.send(Ok(code));
            } else {
                drop(output);
                let _ = exit.send(Ok(code));
                if bid(carrier.lines.end_input()).await {
                    give_back(carrier);
                }
            }
        }
        Done::Abandoned => {
            // What it left running may hold its streams open. Its carrier stays with it.
            let toolbox = carrier.lines.address.toolbox.clone();
            let path = carrier.lines.address.path(DETACHED);
            carrier.forget();
            bid(toolbox.upload(&path, b"")).await;
        }
        Done::Failed(error) => {
            let (kind, message) = (error.kind(), error.message().to_owned());
            let _ = output.send(Err(error)).await;
            let _ = exit.send(Err(Error::new(kind, message)));
        }
    }
}

/// Says something to a carrier that may be gone. Returns whether it was heard.
async fn bid(words: impl Future<Output = Result<()>>) -> bool {
    let said = tokio::time::timeout(FAREWELL, words).await;
    matches!(said, Ok(Ok(())))
}

/// Moves input and output until the program is done with. Returns also whether the carrier
/// knows that the input has ended.
async fn carry(
    carrier: &mut Carrier,
    input: Option<DuplexStream>,
    output: &mpsc::Sender<Result<OutputChunk>>,
) -> (Done, bool) {
    let Carrier {
        lines,
        pieces,
        passed,
        ..
    } = carrier;
    let mut is_fed = input.is_none();
    let mut feeding = std::pin::pin!(async {
        match input {
            Some(input) => feed(lines, input).await,
            None => Ok(()),
        }
    });
    let mut waiting: Option<OutputChunk> = None;
    let mut given_up: Option<Instant> = None;
    let mut refused: Option<(Instant, Error)> = None;
    let done = loop {
        let until = given_up.unwrap_or_else(Instant::now);
        let shown = refused.as_ref().map_or(until, |(shown, _)| *shown);
        tokio::select! {
            biased;
            fed = &mut feeding, if !is_fed => {
                is_fed = true;
                match fed {
                    Ok(()) => {}
                    Err(error) if has_ended(&error) => {
                        refused = Some((Instant::now() + LINGER, error));
                    }
                    Err(error) => break Done::Failed(error),
                }
            }
            () = output.closed(), if given_up.is_none() => {
                given_up = Some(Instant::now() + LINGER);
            }
            place = output.reserve(), if waiting.is_some() && given_up.is_none() => {
                if let (Ok(place), Some(chunk)) = (place, waiting.take()) {
                    place.send(Ok(chunk));
                }
            }
            piece = pieces.recv(), if waiting.is_none() || given_up.is_some() => match piece {
                Some(Ok(Piece::Output(stream, bytes))) => {
                    *passed += bytes.len() as u64;
                    if let Some((shown, _)) = &mut refused {
                        *shown = Instant::now() + LINGER;
                    }
                    waiting = Some(match stream {
                        Stream::Stdout => OutputChunk::Stdout(bytes),
                        Stream::Stderr => OutputChunk::Stderr(bytes),
                    });
                }
                Some(Ok(Piece::End(code))) => break Done::Ended(code),
                // Never comes: the follower sends what it has read from the file.
                Some(Ok(Piece::Spooled { .. })) => {}
                Some(Ok(Piece::Missing(tool))) => break Done::Failed(Error::unavailable(format!(
                    "there is no {} in the sandbox, which programs need without an agent; add it to the image, or give an agent",
                    Quoted::new(&tool)
                ))),
                Some(Err(error)) => break Done::Failed(error),
                None => break Done::Failed(Error::unavailable(
                    "the log of the session was lost; try again",
                )),
            },
            () = tokio::time::sleep_until(until), if given_up.is_some() => break Done::Abandoned,
            // Else a program would wait forever for input that does not come.
            () = tokio::time::sleep_until(shown), if refused.is_some() && waiting.is_none() => {
                if let Some((_, error)) = refused.take() {
                    break Done::Failed(error);
                }
            }
        }
    };
    (done, is_fed && refused.is_none())
}

/// Whether input was refused because the program has probably ended, which its output shows.
fn has_ended(error: &Error) -> bool {
    super::is_gone(error) || error.kind() == ErrorKind::NotFound
}

/// Sends the input to the carrier, as much at once as there is.
async fn feed(lines: &mut Lines, mut input: DuplexStream) -> Result<()> {
    loop {
        let mut collected = Vec::with_capacity(READ_BYTES);
        // A pipe of this process does not fail.
        if let Ok(0) | Err(_) = input.read_buf(&mut collected).await {
            return lines.end_input().await;
        }
        // The writer of a large input is given time to go on.
        loop {
            let before = collected.len();
            tokio::time::sleep(COLLECT).await;
            while collected.len() < INPUT_BYTES
                && let Some(Ok(1..)) = input.read_buf(&mut collected).now_or_never()
            {}
            if collected.len() == before || !(LINE_BYTES..INPUT_BYTES).contains(&collected.len()) {
                break;
            }
        }
        lines.send_input(&collected).await?;
    }
}
