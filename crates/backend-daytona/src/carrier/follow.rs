//! Follows the log of a session: by a websocket, or where none is allowed by asking for it
//! again and again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backend_core::{Error, Result};
use bytes::Bytes;
use futures::{FutureExt as _, StreamExt as _};
use reqwest::Upgraded;
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};

use super::decoder::{Decoder, Piece, Stream};
use super::is_gone;
use crate::connect::upgrade;
use crate::refusal::Refusal;
use crate::toolbox::{LOG_BYTES, Toolbox};

/// The largest message of a log, which may be all of it.
const MESSAGE_BYTES: usize = LOG_BYTES;
/// Bytes of a connection that are read at once.
const READ_BYTES: usize = 64 * 1024;
/// The times that a connection may end without anything new.
const FAILURES: u32 = 5;
/// The pauses between questions for a log, and before a connection is made again.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_millis(500);
/// Questions without anything new after which it is asked whether the carrier still runs.
const QUIET_QUESTIONS: u32 = 20;

/// The size at which `carrier.sh` begins a new file.
const FILE_BYTES: u64 = 256 * 1024;
/// The size of its largest piece.
const PIECE_BYTES: u64 = 64 * 1024;
/// Pieces that are decoded before they are handed over, so that parts of one file are read
/// at once.
const BATCH: usize = 64;

/// A carrier in a sandbox.
#[derive(Debug, Clone)]
pub(super) struct Address {
    pub(super) toolbox: Toolbox,
    pub(super) session: String,
    pub(super) command: String,
}

impl Address {
    /// Returns the address of a carrier that is not started yet.
    pub(super) fn new(toolbox: Toolbox, session: String) -> Self {
        let command = String::new();
        Self {
            toolbox,
            session,
            command,
        }
    }

    /// Ends the session of the carrier, with all that runs in it.
    pub(super) async fn end(&self) -> Result<()> {
        self.toolbox.delete_session(&self.session).await?;
        // The carrier may have been killed before it deleted its files.
        self.toolbox.delete(&self.directory()).await
    }

    /// Whether the carrier had ended when it refused lines, so that it did not read them. A
    /// service that failed at them may have passed them on.
    pub(super) async fn ended_before(&self, error: &Error) -> bool {
        let Self {
            toolbox,
            session,
            command,
        } = self;
        match Refusal::of(error) {
            Some(refusal) if refusal.status == 500 => {
                matches!(toolbox.has_ended(session, command).await, Ok(true))
            }
            _ => is_gone(error),
        }
    }

    /// Returns the path of a file in the carrier's own directory.
    pub(super) fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.directory())
    }

    pub(super) fn directory(&self) -> String {
        format!("/tmp/.agentbox/{}", self.session)
    }
}

/// The file that a stream is at, and its bytes that were read.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Place {
    file: u64,
    read: u64,
}

/// Follows the log of one carrier.
pub(super) struct Follower {
    pub(super) address: Address,
    pub(super) pieces: mpsc::Sender<Result<Piece>>,
    /// Notified when the carrier was sent something, so that an answer can be expected.
    pub(super) sent: Arc<Notify>,
    /// Whether websockets were refused.
    pub(super) refused: Arc<AtomicBool>,
    pub(super) decoder: Decoder,
    /// The files of both streams.
    pub(super) places: [Place; 2],
}

/// The reason why following stops.
enum End {
    /// The listener is gone.
    Unwanted,
    Failed(Error),
}

impl From<Error> for End {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl Follower {
    /// Follows the log, until nothing more is wanted or the carrier has ended.
    pub(super) async fn run(mut self) {
        if let Err(End::Failed(error)) = self.follow().await {
            let _ = self.pieces.send(Err(error)).await;
        }
    }

    async fn follow(&mut self) -> std::result::Result<(), End> {
        let mut failures = 0;
        while !self.refused.load(Ordering::Relaxed) {
            let before = self.decoder.taken();
            let lost = match self.socket().await {
                Ok(Some(socket)) => {
                    self.decoder.restart();
                    self.read(socket).await?;
                    None
                }
                Ok(None) => {
                    tracing::debug!("no websocket to the log of a session");
                    self.refused.store(true, Ordering::Relaxed);
                    break;
                }
                Err(error) => Some(error),
            };
            self.check().await?;
            failures = if self.decoder.taken() > before {
                0
            } else {
                failures + 1
            };
            if failures > FAILURES {
                let silent =
                    || Error::unavailable("the log of a session ends again and again; try again");
                return Err(lost.unwrap_or_else(silent).into());
            }
            tokio::time::sleep(FIRST_PAUSE * 2_u32.pow(failures)).await;
        }
        self.ask().await
    }

    async fn socket(&self) -> Result<Option<WebSocketStream<Upgraded>>> {
        let Address {
            toolbox,
            session,
            command,
        } = &self.address;
        let url = format!("{}?follow=true", toolbox.log_url(session, command));
        let upgraded = upgrade(toolbox.account().client(), &url, None).await?;
        let Some(upgraded) = upgraded else {
            return Ok(None);
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(READ_BYTES)
            .max_message_size(Some(MESSAGE_BYTES))
            .max_frame_size(Some(MESSAGE_BYTES));
        let socket = WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(config));
        Ok(Some(socket.await))
    }

    /// Reads a connection to its end.
    async fn read(
        &mut self,
        mut socket: WebSocketStream<Upgraded>,
    ) -> std::result::Result<(), End> {
        let mut pieces = Vec::new();
        loop {
            let message = tokio::select! {
                message = socket.next() => message,
                () = self.pieces.closed() => return Err(End::Unwanted),
            };
            let mut message = Some(message);
            while let Some(next) = message {
                match next {
                    Some(Ok(Message::Binary(bytes))) => self.decoder.marked(&bytes, &mut pieces)?,
                    Some(Ok(Message::Text(text))) => {
                        self.decoder.marked(text.as_bytes(), &mut pieces)?;
                    }
                    Some(Ok(_)) => {}
                    // A connection may end while the carrier still runs.
                    Some(Err(_)) | None => return self.hand_over(&mut pieces).await,
                }
                message = match pieces.len() < BATCH {
                    true => socket.next().now_or_never(),
                    false => None,
                };
            }
            self.hand_over(&mut pieces).await?;
        }
    }

    async fn hand_over(&mut self, pieces: &mut Vec<Piece>) -> std::result::Result<(), End> {
        for piece in pieces.drain(..) {
            let piece = match piece {
                Piece::Spooled { stream, file, size } => {
                    Piece::Output(stream, self.spooled(stream, file, size).await?)
                }
                Piece::End(code) => {
                    self.places = Default::default();
                    Piece::End(code)
                }
                piece => piece,
            };
            let sent = self.pieces.send(Ok(piece)).await;
            sent.map_err(|_| End::Unwanted)?;
        }
        Ok(())
    }

    /// Reads output from a file, and deletes the file if it is complete.
    async fn spooled(&mut self, stream: Stream, file: u64, size: u64) -> Result<Bytes> {
        let tampered = || {
            Error::unavailable(
                "output that the sandbox named is not there; something in it may have tampered with its files",
            )
        };
        let (number, place) = match stream {
            Stream::Stdout => (1, &mut self.places[0]),
            Stream::Stderr => (2, &mut self.places[1]),
        };
        if file == place.file + 1 {
            *place = Place { file, read: 0 };
        }
        if file != place.file || size <= place.read || size >= FILE_BYTES + PIECE_BYTES {
            return Err(tampered());
        }
        let Address { toolbox, .. } = &self.address;
        let path = self.address.path(&format!("{number}.{file}"));
        let part = toolbox.download_part(&path, place.read..size).await?;
        let part = part.filter(|part| part.len() as u64 == size - place.read);
        let part = part.ok_or_else(tampered)?;
        place.read = size;
        if size >= FILE_BYTES {
            toolbox.delete(&path).await?;
        }
        Ok(part)
    }

    /// Asks for the log again and again.
    async fn ask(&mut self) -> std::result::Result<(), End> {
        let mut pieces = Vec::new();
        let (mut pause, mut quiet) = (FIRST_PAUSE, 0);
        loop {
            let before = self.decoder.taken();
            let Address {
                toolbox,
                session,
                command,
            } = &self.address;
            let log = toolbox.log(session, command).await?;
            self.decoder.restart();
            for (stream, text) in [(Stream::Stdout, &log.stdout), (Stream::Stderr, &log.stderr)] {
                self.decoder.plain(stream, text.as_bytes(), &mut pieces)?;
            }
            self.hand_over(&mut pieces).await?;
            if self.decoder.taken() > before {
                (pause, quiet) = (FIRST_PAUSE, 0);
            } else {
                quiet += 1;
                pause = pause.mul_f64(1.5).min(LAST_PAUSE);
            }
            if quiet >= QUIET_QUESTIONS {
                self.check().await?;
                quiet = 0;
            }
            let woken = tokio::select! {
                woken = timeout(pause, self.sent.notified()) => woken.is_ok(),
                () = self.pieces.closed() => return Err(End::Unwanted),
            };
            if woken {
                pause = FIRST_PAUSE;
            }
        }
    }

    /// Makes sure that the carrier still runs.
    async fn check(&self) -> std::result::Result<(), End> {
        let Address {
            toolbox,
            session,
            command,
        } = &self.address;
        if self.pieces.is_closed() {
            return Err(End::Unwanted);
        }
        if !toolbox.has_ended(session, command).await? {
            return Ok(());
        }
        let said = match self.decoder.noise() {
            Some(noise) => format!(", which said {noise}"),
            None => String::new(),
        };
        let text = format!("the shell in the sandbox has ended{said}; try again");
        Err(Error::unavailable(text).into())
    }
}
