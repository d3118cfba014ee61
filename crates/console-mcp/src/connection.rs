//! [`Connection`]: the state of one client's connection, a pipe or an HTTP session, and
//! [`CountedTransport`], the transport that maintains it.
//!
//! rmcp starts a task for every request, and lets requests run for seconds after a
//! client is gone. Here requests are counted, and those of a client that is gone are
//! dropped.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use console_tools::Chat;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions as _,
    RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::{Map, Value};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

/// Maximum number of unanswered requests of one client.
const MAX_OPEN_REQUESTS: usize = 2_048;

/// Maximum number of bytes in the arguments of a client's unanswered requests.
const MAX_OPEN_BYTES: usize = 64 * 1024 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Connection {
    /// Cancelled when the client is gone.
    gone: CancellationToken,
    open: Mutex<HashMap<RequestId, OpenRequest>>,
    chats: Mutex<Vec<Chat>>,
}

#[derive(Debug)]
struct OpenRequest {
    bytes: usize,
    /// Its slot among the running calls. Released only when the response is written, so
    /// that a client that does not read cannot pile up responses.
    slot: Option<OwnedSemaphorePermit>,
}

impl Connection {
    /// Waits until the client is gone.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    pub(crate) fn mark_gone(&self) {
        self.gone.cancel();
    }

    /// Returns `true` if a request is unanswered.
    pub(crate) fn is_busy(&self) -> bool {
        !lock(&self.open).is_empty()
    }

    /// Keeps a conversation, to be closed when the client is gone.
    pub(crate) fn keep(&self, chat: Chat) {
        lock(&self.chats).push(chat);
    }

    /// Ends everything that the client started. Conversations are closed nowhere else.
    pub(crate) async fn end(&self) {
        self.mark_gone();
        let chats = std::mem::take(&mut *lock(&self.chats));
        for chat in chats {
            if let Err(error) = chat.close().await {
                tracing::warn!(%error, "a conversation could not be closed");
            }
        }
    }

    /// Accepts a request, unless there are too many.
    fn admit(&self, id: &RequestId, request: &ClientRequest) -> Result<(), ErrorData> {
        let bytes = argument_bytes(request);
        let mut open = lock(&self.open);
        if open.contains_key(id) {
            let text = "a request with this id is still being answered; use each id once";
            return Err(ErrorData::invalid_request(text, None));
        }
        if open.len() >= MAX_OPEN_REQUESTS {
            let text = format!("{MAX_OPEN_REQUESTS} requests wait already; wait for answers");
            return Err(ErrorData::invalid_request(text, None));
        }
        let waiting: usize = open.values().map(|request| request.bytes).sum();
        if bytes > 0 && waiting.saturating_add(bytes) > MAX_OPEN_BYTES {
            let text = format!(
                "the waiting requests have {waiting} bytes of arguments already; wait for answers"
            );
            return Err(ErrorData::invalid_request(text, None));
        }
        open.insert(id.clone(), OpenRequest { bytes, slot: None });
        Ok(())
    }

    /// Removes a request that was answered or cancelled.
    fn forget(&self, id: &RequestId) {
        lock(&self.open).remove(id);
    }

    /// Keeps the slot of a request until it is answered.
    pub(crate) fn hold_slot(&self, id: &RequestId, slot: Option<OwnedSemaphorePermit>) {
        if let Some(entry) = lock(&self.open).get_mut(id) {
            entry.slot = slot;
        }
    }
}

/// Estimates the bytes in a request's arguments.
fn argument_bytes(request: &ClientRequest) -> usize {
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(of).sum::<usize>() + values.len() * 32,
            Value::Object(fields) => of_fields(fields),
            _ => 8,
        }
    }
    fn of_fields(fields: &Map<String, Value>) -> usize {
        let each = |(key, value): (&String, &Value)| key.len() + 64 + of(value);
        fields.iter().map(each).sum()
    }
    match request {
        ClientRequest::CallToolRequest(call) => call.params.arguments.as_ref().map_or(0, of_fields),
        ClientRequest::CustomRequest(custom) => custom.params.as_ref().map_or(0, of),
        _ => 0,
    }
}

/// The rule that decides when a client is gone.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ClientEnd {
    /// The client closes its end; running requests may take this long after that. A
    /// failed write also means that the client is gone.
    Pipe(Duration),
    /// The session is closed, or the client reads nothing for this long.
    Session(Duration),
}

/// A transport that counts requests and reports when the client is gone. Handlers find
/// the [`Connection`] among the extensions of their request.
pub(crate) struct CountedTransport<T> {
    inner: T,
    connection: Arc<Connection>,
    /// A response of the transport itself. Kept here as `receive` may be dropped.
    reply: Option<BoxFuture<'static, ()>>,
    end: ClientEnd,
    has_begun: bool,
    /// Dropped with the connection.
    held: Option<Box<dyn Send>>,
}

impl<T: Transport<RoleServer> + 'static> CountedTransport<T> {
    pub(crate) fn new(inner: T, connection: Arc<Connection>, end: ClientEnd) -> Self {
        Self {
            inner,
            connection,
            reply: None,
            end,
            has_begun: false,
            held: None,
        }
    }

    pub(crate) fn holding(mut self, held: impl Send + 'static) -> Self {
        self.held = Some(Box::new(held));
        self
    }

    /// Decides whether a message is passed on, answered here, or dropped.
    fn check(
        &mut self,
        mut message: ClientJsonRpcMessage,
    ) -> Result<ClientJsonRpcMessage, Option<(ErrorData, RequestId)>> {
        match &mut message {
            ClientJsonRpcMessage::Request(request) => {
                if let Err(error) = self.connection.admit(&request.id, &request.request) {
                    return Err(Some((error, request.id.clone())));
                }
                self.has_begun = true;
                let extensions = request.request.extensions_mut();
                extensions.insert(Arc::clone(&self.connection));
            }
            // rmcp would close the connection, if it began with anything else.
            _ if !self.has_begun => return Err(None),
            ClientJsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.connection.forget(id);
                }
                let extensions = notification.notification.extensions_mut();
                extensions.insert(Arc::clone(&self.connection));
            }
            _ => {}
        }
        Ok(message)
    }

    /// Handles the end of the client's input.
    fn input_ended(&self) {
        match self.end {
            ClientEnd::Pipe(linger) if !linger.is_zero() && self.connection.is_busy() => {
                let connection = Arc::clone(&self.connection);
                tokio::spawn(async move {
                    tokio::time::sleep(linger).await;
                    connection.mark_gone();
                });
            }
            _ => self.connection.mark_gone(),
        }
    }
}

impl<T: Transport<RoleServer> + 'static> Transport<RoleServer> for CountedTransport<T> {
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
        let end = self.end;
        let connection = Arc::clone(&self.connection);
        let sent = self.inner.send(item);
        async move {
            let mut sent = std::pin::pin!(sent);
            let sent = match end {
                ClientEnd::Pipe(_) => {
                    let sent = sent.await;
                    if sent.is_err() {
                        connection.mark_gone();
                    }
                    sent
                }
                ClientEnd::Session(timeout) => tokio::select! {
                    sent = &mut sent => sent,
                    () = tokio::time::sleep(timeout) => {
                        connection.mark_gone();
                        sent.await
                    }
                },
            };
            if let Some(id) = answered {
                connection.forget(&id);
            }
            sent
        }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if let Some(reply) = &mut self.reply {
                tokio::select! {
                    () = self.connection.gone() => return None,
                    () = reply => self.reply = None,
                }
            }
            let message = tokio::select! {
                biased;
                () = self.connection.gone() => return None,
                message = self.inner.receive() => message,
            };
            let Some(message) = message else {
                self.input_ended();
                return None;
            };
            match self.check(message) {
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
        self.connection.end().await;
        self.inner.close().await
    }
}

impl<T> Drop for CountedTransport<T> {
    fn drop(&mut self) {
        self.connection.mark_gone();
        drop(self.held.take());
    }
}
