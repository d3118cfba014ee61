//! [`Sessions`]: counts and watches the clients of an HTTP server.
//!
//! A client that goes away does not say so. Its session ends after a long silence, and
//! sooner if something runs and the client does not listen.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use backend_core::sync::lock;
use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{
    LocalSessionManager, LocalSessionManagerError, SessionConfig, SessionTransport,
};
use rmcp::transport::streamable_http_server::session::{
    ServerSseMessage, SessionId, SessionManager,
};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep, sleep_until};

use crate::client::Client;
use crate::connection::{ClientEnd, Connection, CountedTransport};
use crate::settings::HttpSettings;

/// An error of the session manager.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionsError {
    #[error("too many clients; try again later")]
    Full,
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

tokio::task_local! {
    /// The client of the request that this task handles.
    pub(super) static CLIENT: Client;
}

/// The clients of an HTTP server.
pub(crate) struct Sessions {
    local: Arc<LocalSessionManager>,
    /// One permit for each client that may still connect.
    slots: Arc<Semaphore>,
    max: u32,
    max_per_name: usize,
    linger: Duration,
    idle: Duration,
    sessions: Arc<Mutex<HashMap<SessionId, Arc<SessionState>>>>,
    /// Requests that may begin a session, by the names of their clients.
    beginning: Mutex<HashMap<Arc<str>, usize>>,
}

/// A request that may begin a session. It counts as one until it is answered.
pub(super) struct Beginning<'s> {
    sessions: &'s Sessions,
    name: Option<Arc<str>>,
}

impl Drop for Beginning<'_> {
    fn drop(&mut self) {
        let Some(name) = &self.name else {
            return;
        };
        let mut beginning = lock(&self.sessions.beginning);
        if let Some(count) = beginning.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                beginning.remove(name);
            }
        }
    }
}

/// One client.
#[derive(Debug, Default)]
struct SessionState {
    connection: Arc<Connection>,
    /// Number of streams the client listens to.
    open: AtomicUsize,
    /// The last time the client sent something or stopped listening.
    seen: Mutex<Option<Instant>>,
    /// Whether a task waits for the client to come back.
    awaited: AtomicBool,
    /// The client as it was when the session began.
    client: OnceLock<Client>,
}

impl SessionState {
    /// Records activity of the client.
    fn touch(&self) {
        *lock(&self.seen) = Some(Instant::now());
    }

    /// Waits until the client has not been seen for `time`.
    async fn wait_unseen(&self, time: Duration) {
        loop {
            let seen = *lock(&self.seen);
            match seen.map(|seen| seen + time) {
                Some(due) if due > Instant::now() => sleep_until(due).await,
                _ => return,
            }
        }
    }

    fn is_listening(&self) -> bool {
        self.open.load(Ordering::SeqCst) > 0
    }

    /// Waits until the client listens to nothing, runs nothing and has not been seen
    /// for `idle`.
    async fn wait_idle(&self, idle: Duration) {
        self.touch();
        loop {
            self.wait_unseen(idle).await;
            if !self.is_listening() && !self.connection.is_busy() {
                return;
            }
            sleep(idle).await;
        }
    }

    /// Waits until the client has not been seen for `linger`. Returns `true` if it is
    /// gone while something still runs.
    async fn wait_lost(&self, linger: Duration) -> bool {
        self.wait_unseen(linger).await;
        self.awaited.store(false, Ordering::SeqCst);
        !self.is_listening() && self.connection.is_busy()
    }
}

impl Sessions {
    pub(super) fn new(http: &HttpSettings) -> Self {
        let mut config = SessionConfig::default();
        // It would end the session of a client whose command prints nothing. `wait_idle`
        // covers that case.
        config.keep_alive = None;
        let mut local = LocalSessionManager::default();
        local.session_config = config;
        let max = u32::try_from(http.sessions)
            .unwrap_or(u32::MAX >> 4)
            .min(u32::MAX >> 4);
        Self {
            local: Arc::new(local),
            slots: Arc::new(Semaphore::new(max as usize)),
            max,
            max_per_name: http.sessions_per_name(),
            linger: http.linger,
            idle: http.idle,
            sessions: Arc::default(),
            beginning: Mutex::default(),
        }
    }

    /// Takes note of a request that may begin a session. Returns `None` if no further client
    /// of this name can connect.
    pub(super) fn begin(&self, name: Option<&Arc<str>>) -> Option<Beginning<'_>> {
        if self.slots.available_permits() == 0 {
            return None;
        }
        if let Some(name) = name {
            let mut beginning = lock(&self.beginning);
            let count = beginning.get(name).copied().unwrap_or_default();
            if self.count(name) + count >= self.max_per_name {
                return None;
            }
            beginning.insert(Arc::clone(name), count + 1);
        }
        Some(Beginning {
            sessions: self,
            name: name.cloned(),
        })
    }

    /// Returns the number of sessions of clients of a name.
    fn count(&self, name: &Arc<str>) -> usize {
        let sessions = lock(&self.sessions);
        let clients = sessions.values().filter_map(|state| state.client.get());
        clients
            .filter(|client| client.name.as_ref() == Some(name))
            .count()
    }

    /// Returns the client of a session, as it was when the session began.
    pub(super) fn client(&self, id: &str) -> Option<Client> {
        let sessions = lock(&self.sessions);
        sessions.get(id)?.client.get().cloned()
    }

    /// Ends all sessions and waits until they have.
    pub(super) async fn end(&self) {
        let sessions = std::mem::take(&mut *lock(&self.sessions));
        for (id, state) in sessions {
            state.connection.mark_gone();
            let _ = self.local.close_session(&id).await;
        }
        let _ = self.slots.acquire_many(self.max).await;
    }

    /// Returns the client of a session and records its activity.
    fn touch(&self, id: &SessionId) -> Arc<SessionState> {
        let state = lock(&self.sessions).get(id).cloned().unwrap_or_default();
        state.touch();
        state
    }

    /// Ends a session that becomes idle, and forgets one that has ended.
    fn watch(&self, id: &SessionId, state: &Arc<SessionState>) {
        let (state, id) = (Arc::clone(state), Arc::clone(id));
        let (local, idle) = (Arc::clone(&self.local), self.idle);
        let sessions = Arc::clone(&self.sessions);
        tokio::spawn(async move {
            let is_silent = tokio::select! {
                () = state.connection.gone() => false,
                () = state.wait_idle(idle) => true,
            };
            if is_silent {
                tracing::info!(session = %id, "the client was idle for too long; the session ends");
                state.connection.mark_gone();
                let _ = local.close_session(&id).await;
            }
            // However the session ended, no state of it is kept.
            lock(&sessions).remove(&id);
        });
    }

    /// Wraps a stream so that its end is noticed.
    fn tracked(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> TrackedStream {
        let state = self.touch(id);
        state.open.fetch_add(1, Ordering::SeqCst);
        TrackedStream {
            stream: Box::pin(stream),
            state,
            id: Arc::clone(id),
            local: Arc::clone(&self.local),
            linger: self.linger,
        }
    }
}

/// A stream that a client listens to.
struct TrackedStream {
    stream: Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>,
    state: Arc<SessionState>,
    id: SessionId,
    local: Arc<LocalSessionManager>,
    linger: Duration,
}

impl Stream for TrackedStream {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}

impl Drop for TrackedStream {
    fn drop(&mut self) {
        if self.state.open.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.state.touch();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.state.awaited.swap(true, Ordering::SeqCst) {
            return;
        }
        let (state, id) = (Arc::clone(&self.state), Arc::clone(&self.id));
        let (local, linger) = (Arc::clone(&self.local), self.linger);
        runtime.spawn(async move {
            if state.wait_lost(linger).await {
                tracing::info!(session = %id, "the client stopped listening during a call; the session ends");
                state.connection.mark_gone();
                let _ = local.close_session(&id).await;
            }
        });
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = CountedTransport<SessionTransport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let slot = Arc::clone(&self.slots).try_acquire_owned();
        let slot = slot.map_err(|_| SessionsError::Full)?;
        let (id, transport) = self.local.create_session().await?;
        let state = Arc::new(SessionState::default());
        // At once: a client that hangs up before the answer is not one without an owner.
        if let Ok(client) = CLIENT.try_with(Clone::clone) {
            let _ = state.client.set(client);
        }
        let connection = Arc::clone(&state.connection);
        self.watch(&id, &state);
        lock(&self.sessions).insert(Arc::clone(&id), state);
        let end = ClientEnd::Session(self.idle);
        let transport = CountedTransport::new(transport, connection, end);
        Ok((id, transport.holding(slot)))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        let answer = self.local.initialize_session(id, message).await?;
        // Preparing the tools may take long, and the client waited for that.
        self.touch(id);
        Ok(answer)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let state = lock(&self.sessions).remove(id);
        if let Some(state) = state {
            state.connection.mark_gone();
        }
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.tracked(id, self.local.create_stream(id, message).await?))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.touch(id);
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.tracked(id, self.local.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.tracked(id, self.local.resume(id, last_event_id).await?))
    }
}
