//! Replies about connections to ports and shells.

use async_trait::async_trait;
use backend_core::{Connection, Error, Outgoing, Result};
use backend_run::Activity;
use bytes::Bytes;
use futures::StreamExt as _;

use crate::channel::{Call, Receiving, Sending};
use crate::client::SMALL;
use crate::message::{More, PIECE_BYTES, Reply};

/// Returns a connection that the agent has opened. Bytes that move are recorded as a use.
pub(crate) async fn connection(mut call: Call, activity: Activity) -> Result<Connection> {
    match call.reply(SMALL).await? {
        Reply::Done => {}
        other => return Err(call.unexpected(&other, "a connection").await),
    }
    let (receiving, sending) = call.into_connection()?;
    let state = Some((receiving, activity.clone()));
    let incoming = futures::stream::unfold(state, |state| async move {
        let (mut receiving, activity) = state?;
        match next(&mut receiving).await {
            Ok(None) => None,
            Ok(Some(bytes)) => {
                activity.touch();
                Some((Ok(bytes), Some((receiving, activity))))
            }
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(Connection::new(
        incoming.boxed(),
        AgentOutgoing { sending, activity },
    ))
}

/// Returns the next piece; `None` is the end.
async fn next(receiving: &mut Receiving) -> Result<Option<Bytes>> {
    match receiving.reply(SMALL + PIECE_BYTES).await? {
        Reply::Piece(bytes) => Ok(Some(bytes)),
        Reply::Done => Ok(None),
        other => Err(receiving.unexpected(&other, "bytes").await),
    }
}

struct AgentOutgoing {
    sending: Sending,
    activity: Activity,
}

impl AgentOutgoing {
    async fn say(&mut self, more: &More) -> Result<()> {
        if self.sending.send(more).await? {
            Ok(())
        } else {
            Err(Error::unavailable(
                "the other side reads no more; connect again",
            ))
        }
    }
}

#[async_trait]
impl Outgoing for AgentOutgoing {
    async fn send(&mut self, mut bytes: Bytes) -> Result<()> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(PIECE_BYTES));
            self.say(&More::Piece(piece)).await?;
            self.activity.touch();
        }
        Ok(())
    }

    async fn finish(&mut self) -> Result<()> {
        self.say(&More::End).await
    }
}
