//! [`Sessions`]: counts and watches the clients of an HTTP server.
//!
//! A client that goes away does not say so. Its session ends after a long silence, and
//! sooner if something runs and the client does not listen.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

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

use crate::HttpSettings;
use crate::line::{Line, Watched};

/// An error of the session manager.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SessionsError {
    #[error("there are as many clients as there may be; try again later")]
    Full,
    #[error(transparent)]
    Local(#[from] LocalSessionManagerError),
}

/// The clients of an HTTP server.
pub(crate) struct Sessions {
    local: Arc<LocalSessionManager>,
    /// One permit for each client that may still connect.
    room: Arc<Semaphore>,
    most: u32,
    linger: Duration,
    idle: Duration,
    visits: Arc<Mutex<HashMap<SessionId, Arc<Visit>>>>,
}

/// One client.
#[derive(Debug, Default)]
struct Visit {
    line: Arc<Line>,
    /// Number of streams the client listens to.
    open: AtomicUsize,
    /// The last time the client sent something or stopped listening.
    seen: Mutex<Option<Instant>>,
    /// Whether a task waits for the client to come back.
    awaited: AtomicBool,
}

impl Visit {
    /// Records activity of the client.
    fn see(&self) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        *seen = Some(Instant::now());
    }

    /// Waits until the client has not been seen for `time`.
    async fn unseen(&self, time: Duration) {
        loop {
            let seen = *self.seen.lock().unwrap_or_else(PoisonError::into_inner);
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
    async fn is_idle(&self, idle: Duration) {
        self.see();
        loop {
            self.unseen(idle).await;
            if !self.is_listening() && !self.line.is_busy() {
                return;
            }
            sleep(idle).await;
        }
    }

    /// Waits until the client has not been seen for `linger`. Returns `true` if it is
    /// gone while something still runs.
    async fn is_lost(&self, linger: Duration) -> bool {
        self.unseen(linger).await;
        self.awaited.store(false, Ordering::SeqCst);
        !self.is_listening() && self.line.is_busy()
    }
}

impl Sessions {
    pub(super) fn new(http: &HttpSettings) -> Self {
        let mut config = SessionConfig::default();
        // It would end the session of a client whose command prints nothing. `is_idle`
        // covers that case.
        config.keep_alive = None;
        let mut local = LocalSessionManager::default();
        local.session_config = config;
        let most = u32::try_from(http.sessions)
            .unwrap_or(u32::MAX >> 4)
            .min(u32::MAX >> 4);
        Self {
            local: Arc::new(local),
            room: Arc::new(Semaphore::new(most as usize)),
            most,
            linger: http.linger,
            idle: http.idle,
            visits: Arc::default(),
        }
    }

    /// Returns `true` if no further client can connect.
    pub(super) fn is_full(&self) -> bool {
        self.room.available_permits() == 0
    }

    /// Ends all sessions and waits until they have.
    pub(super) async fn end(&self) {
        let visits = {
            let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *visits)
        };
        for (id, visit) in visits {
            visit.line.cut();
            let _ = self.local.close_session(&id).await;
        }
        let _ = self.room.acquire_many(self.most).await;
    }

    /// Returns the client of a session and records its activity.
    fn visit(&self, id: &SessionId) -> Arc<Visit> {
        let visit = {
            let visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
            visits.get(id).cloned().unwrap_or_default()
        };
        visit.see();
        visit
    }

    /// Ends a session that becomes idle, and forgets one that has ended.
    fn watch(&self, id: &SessionId, visit: &Arc<Visit>) {
        let (visit, id) = (Arc::clone(visit), Arc::clone(id));
        let (local, idle) = (Arc::clone(&self.local), self.idle);
        let visits = Arc::clone(&self.visits);
        tokio::spawn(async move {
            let is_silent = tokio::select! {
                () = visit.line.gone() => false,
                () = visit.is_idle(idle) => true,
            };
            if is_silent {
                tracing::info!(session = %id, "the client was silent for long; the session ends");
                visit.line.cut();
                let _ = local.close_session(&id).await;
            }
            // However the session ended, no state of it is kept.
            let mut visits = visits.lock().unwrap_or_else(PoisonError::into_inner);
            visits.remove(&id);
        });
    }

    /// Wraps a stream so that its end is noticed.
    fn listened(
        &self,
        id: &SessionId,
        stream: impl Stream<Item = ServerSseMessage> + Send + Sync + 'static,
    ) -> Listened {
        let visit = self.visit(id);
        visit.open.fetch_add(1, Ordering::SeqCst);
        Listened {
            stream: Box::pin(stream),
            visit,
            id: Arc::clone(id),
            local: Arc::clone(&self.local),
            linger: self.linger,
        }
    }
}

/// A stream that a client listens to.
struct Listened {
    stream: Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>,
    visit: Arc<Visit>,
    id: SessionId,
    local: Arc<LocalSessionManager>,
    linger: Duration,
}

impl Stream for Listened {
    type Item = ServerSseMessage;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.stream.as_mut().poll_next(context)
    }
}

impl Drop for Listened {
    fn drop(&mut self) {
        if self.visit.open.fetch_sub(1, Ordering::SeqCst) > 1 {
            return;
        }
        self.visit.see();
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.visit.awaited.swap(true, Ordering::SeqCst) {
            return;
        }
        let (visit, id) = (Arc::clone(&self.visit), Arc::clone(&self.id));
        let (local, linger) = (Arc::clone(&self.local), self.linger);
        runtime.spawn(async move {
            if visit.is_lost(linger).await {
                tracing::info!(session = %id, "nobody listens to what runs; the session ends");
                visit.line.cut();
                let _ = local.close_session(&id).await;
            }
        });
    }
}

impl SessionManager for Sessions {
    type Error = SessionsError;
    type Transport = Watched<SessionTransport>;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        let room = Arc::clone(&self.room).try_acquire_owned();
        let room = room.map_err(|_| SessionsError::Full)?;
        let (id, transport) = self.local.create_session().await?;
        let visit = Arc::new(Visit::default());
        let line = Arc::clone(&visit.line);
        self.watch(&id, &visit);
        let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
        visits.insert(Arc::clone(&id), visit);
        Ok((
            id,
            Watched::session(transport, line, self.idle).holding(room),
        ))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        Ok(self.local.initialize_session(id, message).await?)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        Ok(self.local.has_session(id).await?)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        let visit = {
            let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
            visits.remove(id)
        };
        if let Some(visit) = visit {
            visit.line.cut();
        }
        Ok(self.local.close_session(id).await?)
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.listened(id, self.local.create_stream(id, message).await?))
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), Self::Error> {
        self.visit(id);
        Ok(self.local.accept_message(id, message).await?)
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.listened(id, self.local.create_standalone_stream(id).await?))
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        Ok(self.listened(id, self.local.resume(id, last_event_id).await?))
    }
}
