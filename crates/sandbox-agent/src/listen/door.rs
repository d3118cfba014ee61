//! [`Door`]: lets those in that know the token.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use backend_core::Result;
use sandbox_wire::websocket::{self, Accepted, Token};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::sleep;

/// Connections that have not shown the token yet. A new one ends the oldest, so that slow
/// ones do not keep others out.
const STRANGERS: usize = 32;

/// The pause after a connection could not be taken, such as for want of a file descriptor.
const PAUSE: Duration = Duration::from_millis(100);

/// A connection whose client knows the token.
pub(super) type Client = Accepted<OwnedReadHalf, OwnedWriteHalf>;

/// A port, and the connections that have not shown the token yet.
pub(super) struct Door {
    listener: TcpListener,
    token: Arc<Token>,
    callers: JoinSet<Result<Client>>,
    /// The tasks that may still run, the oldest first.
    strangers: VecDeque<AbortHandle>,
}

impl Door {
    pub(super) fn new(listener: TcpListener, token: Token) -> Self {
        Self {
            listener,
            token: Arc::new(token),
            callers: JoinSet::new(),
            strangers: VecDeque::new(),
        }
    }

    /// Waits for a client with the token. Dropping the call loses nothing.
    pub(super) async fn client(&mut self) -> Client {
        loop {
            tokio::select! {
                Some(caller) = self.callers.join_next() => {
                    // Strangers learn at most that their token is wrong, and the log nothing,
                    // because they could fill it.
                    if let Ok(Ok(client)) = caller {
                        return client;
                    }
                }
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => self.ask(stream),
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
    }

    /// Asks a stranger for the token.
    fn ask(&mut self, stream: TcpStream) {
        // Without this, answers wait for acknowledgements.
        let _ = stream.set_nodelay(true);
        let (reader, writer) = stream.into_split();
        let token = Arc::clone(&self.token);
        self.strangers.retain(|stranger| !stranger.is_finished());
        if self.strangers.len() >= STRANGERS
            && let Some(oldest) = self.strangers.pop_front()
        {
            oldest.abort();
        }
        let caller = async move { websocket::accept(reader, writer, &token).await };
        self.strangers.push_back(self.callers.spawn(caller));
    }
}
