//! Connections to ports and shells: bytes in both directions on one stream.

use std::pin::pin;

use backend_core::{Connection, Outgoing, Result};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream::BoxStream;

use crate::message::{FrameError, More, PIECE_BYTES, PIECE_MESSAGE, Reply, receive, send};
use crate::serve::stream::{Reader, Writer, finish, gone};

/// Opens a connection with `connect`, and carries bytes until both directions have ended
/// or the host closes the connection.
pub(super) async fn serve(
    connect: impl Future<Output = Result<Connection>>,
    mut reader: Reader,
    mut writer: Writer,
) -> Result<(), FrameError> {
    let connected = tokio::select! {
        biased;
        connected = connect => connected,
        gone = gone(&mut reader) => return Err(gone),
    };
    match connected {
        Ok(connection) => carry(connection, reader, writer).await,
        Err(error) => finish(Err(error.into()), &mut writer).await,
    }
}

/// Carries the bytes of an open connection.
async fn carry(
    connection: Connection,
    reader: Reader,
    mut writer: Writer,
) -> Result<(), FrameError> {
    send(&mut writer, &Reply::Done).await?;
    let mut inward = pin!(inward(reader, connection.outgoing));
    let mut outward = pin!(outward(connection.incoming, &mut writer));
    tokio::select! {
        ended = &mut inward => {
            let (mut reader, end) = ended?;
            tokio::select! {
                biased;
                sent = outward => sent.map(drop),
                fault = rest(&mut reader, end) => Err(fault),
            }
        }
        sent = &mut outward => match sent? {
            // The program may go on reading.
            OutwardEnd::Complete => inward.await.map(drop),
            OutwardEnd::Failed => Ok(()),
        },
    }
}

/// The reason why no more bytes go to the program.
enum InwardEnd {
    /// The host has sent everything.
    Complete,
    /// The program reads no more.
    Refused,
}

/// The reason why no more bytes go to the host.
enum OutwardEnd {
    Complete,
    /// The connection is lost, and the host was told.
    Failed,
}

/// Passes bytes of the host to the program.
async fn inward(
    mut reader: Reader,
    mut outgoing: Box<dyn Outgoing>,
) -> Result<(Reader, InwardEnd), FrameError> {
    loop {
        match receive(&mut reader, PIECE_MESSAGE).await? {
            More::Piece(bytes) => {
                if outgoing.send(bytes).await.is_err() {
                    return Ok((reader, InwardEnd::Refused));
                }
            }
            More::End => {
                // If it fails, the program is gone, and its bytes end too.
                let _ = outgoing.finish().await;
                return Ok((reader, InwardEnd::Complete));
            }
            More::Beat => return Err(FrameError::Broken("a heartbeat instead of bytes".into())),
        }
    }
}

/// Waits for the host to close the connection. Bytes for a program that reads no more are
/// dropped, so that the bytes of the program still arrive.
async fn rest(reader: &mut Reader, end: InwardEnd) -> FrameError {
    if let InwardEnd::Refused = end {
        loop {
            match receive(reader, PIECE_MESSAGE).await {
                Ok(More::Piece(_)) => {}
                Ok(More::End) => break,
                Ok(More::Beat) => return FrameError::Broken("a heartbeat instead of bytes".into()),
                Err(fault) => return fault,
            }
        }
    }
    gone(reader).await
}

/// Passes bytes of the program to the host.
async fn outward(
    mut incoming: BoxStream<'static, Result<Bytes>>,
    writer: &mut Writer,
) -> Result<OutwardEnd, FrameError> {
    while let Some(bytes) = incoming.next().await {
        let mut bytes = match bytes {
            Ok(bytes) => bytes,
            Err(error) => {
                send(writer, &Reply::Failed(error)).await?;
                return Ok(OutwardEnd::Failed);
            }
        };
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            send(writer, &Reply::Piece(piece)).await?;
        }
    }
    send(writer, &Reply::Done).await?;
    Ok(OutwardEnd::Complete)
}
