//! [`Line`]: what is known of one connection, and [`Watched`], the transport that
//! keeps it.
//!
//! rmcp starts a task for every request and lets requests run on for seconds
//! after a client is gone. Here requests are counted, and what a client that is
//! gone had begun is dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use console_tools::Chat;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions as _,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// Most requests that a client may have waiting.
const OPEN_REQUESTS: usize = 2_048;

/// Most bytes of arguments that the requests of a client may have together.
const OPEN_BYTES: usize = 64 * 1024 * 1024;

/// What is known of one connection.
#[derive(Debug, Default)]
pub(crate) struct Line {
    /// The client is gone.
    gone: CancellationToken,
    open: Mutex<Open>,
    chats: Mutex<Vec<Chat>>,
}

#[derive(Debug, Default)]
struct Open {
    requests: HashMap<RequestId, Waiting>,
    bytes: usize,
}

/// A request without an answer.
#[derive(Debug)]
struct Waiting {
    bytes: usize,
    /// Its place among those that run. It is free when the answer is written: a
    /// client that does not read must not have many answers waiting.
    place: Option<OwnedSemaphorePermit>,
}

impl Line {
    /// Waits until the client is gone.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// The client is gone.
    pub(crate) fn cut(&self) {
        self.gone.cancel();
    }

    /// Whether a request waits for its answer.
    pub(crate) fn is_busy(&self) -> bool {
        !self.open().requests.is_empty()
    }

    /// Remembers a conversation that is over when the client is gone.
    pub(crate) fn keep(&self, chat: Chat) {
        let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
        chats.push(chat);
    }

    /// Ends everything that the client had begun. The one place where
    /// conversations end.
    pub(crate) async fn end(&self) {
        self.cut();
        let chats = {
            let mut chats = self.chats.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *chats)
        };
        for chat in chats {
            if let Err(error) = chat.close().await {
                tracing::warn!(%error, "a conversation could not be closed");
            }
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request, unless there are too many.
    fn admit(&self, id: &RequestId, request: &ClientRequest) -> Result<(), ErrorData> {
        let bytes = weight(request);
        let mut open = self.open();
        if open.requests.contains_key(id) {
            let text = "a request with this id is still being answered; use each id once";
            return Err(ErrorData::invalid_request(text, None));
        }
        if open.requests.len() >= OPEN_REQUESTS {
            let text = format!("{OPEN_REQUESTS} requests wait already; wait for answers");
            return Err(ErrorData::invalid_request(text, None));
        }
        if bytes > 0 && open.bytes.saturating_add(bytes) > OPEN_BYTES {
            let text = format!(
                "the waiting requests have {} bytes of arguments already; wait for answers",
                open.bytes
            );
            return Err(ErrorData::invalid_request(text, None));
        }
        let waiting = Waiting { bytes, place: None };
        open.requests.insert(id.clone(), waiting);
        open.bytes += bytes;
        Ok(())
    }

    /// A request was answered or given up.
    fn settle(&self, id: &RequestId) {
        let mut open = self.open();
        if let Some(waiting) = open.requests.remove(id) {
            open.bytes = open.bytes.saturating_sub(waiting.bytes);
        }
    }

    /// Keeps the place of a request until it is answered.
    pub(crate) fn until_answered(&self, id: &RequestId, place: Option<OwnedSemaphorePermit>) {
        if let Some(waiting) = self.open().requests.get_mut(id) {
            waiting.place = place;
        }
    }
}

/// About how many bytes the arguments of a request have.
fn weight(request: &ClientRequest) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(of).sum::<usize>() + values.len() * 32,
            Value::Object(map) => map
                .iter()
                .map(|(key, value)| key.len() + 64 + of(value))
                .sum(),
            _ => 8,
        }
    }
    match request {
        ClientRequest::CallToolRequest(call) => {
            let each = |(key, value): (&String, &Value)| key.len() + 64 + of(value);
            let arguments = call.params.arguments.iter().flatten();
            arguments.map(each).sum()
        }
        ClientRequest::CustomRequest(custom) => custom.params.as_ref().map_or(0, of),
        _ => 0,
    }
}

/// How a client goes.
#[derive(Debug, Clone, Copy)]
enum Kind {
    /// It closes its end, and what it asked for may take so long then. What
    /// cannot be written means that it is gone.
    Pipe(Duration),
    /// It is told, or reads nothing for so long.
    Session(Duration),
}

/// A transport whose requests are counted, and which tells when the client is
/// gone. Handlers find the [`Line`] among the extensions of their request.
pub(crate) struct Watched<T> {
    inner: T,
    line: Arc<Line>,
    /// An answer of our own that is on its way. Kept here since `receive` may be
    /// dropped at any time.
    reply: Option<BoxFuture<'static, ()>>,
    kind: Kind,
    begun: bool,
    /// Dropped with the connection.
    held: Option<Box<dyn Send>>,
}

impl<T: Transport<RoleServer> + 'static> Watched<T> {
    /// A pipe. What runs when its input ends may go on for `linger`.
    pub(crate) fn pipe(inner: T, line: Arc<Line>, linger: Duration) -> Self {
        Self::new(inner, line, Kind::Pipe(linger))
    }

    /// A session, whose client is gone when a message to it waits for `patience`.
    pub(crate) fn session(inner: T, line: Arc<Line>, patience: Duration) -> Self {
        Self::new(inner, line, Kind::Session(patience))
    }

    fn new(inner: T, line: Arc<Line>, kind: Kind) -> Self {
        Self {
            inner,
            line,
            reply: None,
            kind,
            begun: false,
            held: None,
        }
    }

    /// Drops `held` with the connection.
    pub(crate) fn holding(mut self, held: impl Send + 'static) -> Self {
        self.held = Some(Box::new(held));
        self
    }

    /// What becomes of a message: it is handed on, or answered here, or dropped.
    fn judge(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ClientJsonRpcMessage, Option<(ErrorData, RequestId)>> {
        match &mut message {
            ClientJsonRpcMessage::Request(request) => {
                if let Err(error) = self.line.admit(&request.id, &request.request) {
                    return Err(Some((error, request.id.clone())));
                }
                self.begun = true;
                let extensions = request.request.extensions_mut();
                extensions.insert(Arc::clone(&self.line));
            }
            // rmcp hangs up on a client that begins with anything but a request.
            _ if !self.begun => return Err(None),
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.line.settle(id);
                }
                let extensions = notification.notification.extensions_mut();
                extensions.insert(Arc::clone(&self.line));
            }
            _ => {}
        }
        Ok(message)
    }

    /// The client sends nothing more.
    fn left(&self) {
        match self.kind {
            Kind::Pipe(linger) if !linger.is_zero() && self.line.is_busy() => {
                let line = Arc::clone(&self.line);
                tokio::spawn(async move {
                    tokio::time::sleep(linger).await;
                    line.cut();
                });
            }
            _ => self.line.cut(),
        }
    }
}

impl<T: Transport<RoleServer> + 'static> Transport<RoleServer> for Watched<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let answered = match &item {
            ServerJsonRpcMessage::Response(response) => Some(response.id.clone()),
            ServerJsonRpcMessage::Error(error) => error.id.clone(),
            _ => None,
        };
        let kind = self.kind;
        let line = Arc::clone(&self.line);
        let sent = self.inner.send(item);
        async move {
            let mut sent = std::pin::pin!(sent);
            let sent = match kind {
                Kind::Pipe(_) => {
                    let sent = sent.await;
                    if sent.is_err() {
                        line.cut();
                    }
                    sent
                }
                Kind::Session(patience) => tokio::select! {
                    sent = &mut sent => sent,
                    () = tokio::time::sleep(patience) => {
                        line.cut();
                        sent.await
                    }
                },
            };
            if let Some(id) = answered {
                line.settle(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = &mut self.reply {
                tokio::select! {
                    () = self.line.gone() => return None,
                    () = reply => self.reply = None,
                }
            }
            let message = tokio::select! {
                biased;
                () = self.line.gone() => return None,
                message = self.inner.receive() => message,
            };
            let Some(message) = message else {
                self.left();
                return None;
            };
            match self.judge(message) {
                Ok(message) => return Some(message),
                Err(None) => {}
                Err(Some((error, id))) => {
                    let reply = ServerJsonRpcMessage::error(error, Some(id));
                    let sent = self.inner.send(reply).map(|_| ());
                    self.reply = Some(sent.boxed());
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.line.end().await;
        self.inner.close().await
    }
}

impl<T> Drop for Watched<T> {
    fn drop(&mut self) {
        self.line.cut();
        drop(self.held.take());
    }
}
