//! [`Shared`]: what a manager, its sessions and its background tasks have in common.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use backend_core::sync::lock;
use backend_core::{Error, Result};
use futures_util::future::BoxFuture;
use sandbox_runtime::Runtime;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use crate::capacity::Capacity;
use crate::engine::Engine;
use crate::events::Events;
use crate::id::SessionId;
use crate::slot::Slot;
use crate::table::Table;
use crate::time::Clock;

/// Uses that are written back at once.
const WRITES_AT_ONCE: usize = 16;

type OnRelease = Box<dyn Fn(&SessionId) + Send + Sync>;

/// The decisions of the builder.
pub(crate) struct Settings {
    pub(crate) runtime: Option<Runtime>,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_lifetime: Option<Duration>,
    pub(crate) hibernate_after: Duration,
    pub(crate) write_back: Duration,
    pub(crate) on_release: Option<OnRelease>,
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runtime = self.runtime.as_ref().map(|runtime| &runtime.name);
        f.debug_struct("Settings")
            .field("runtime", &runtime)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_lifetime", &self.max_lifetime)
            .field("hibernate_after", &self.hibernate_after)
            .field("write_back", &self.write_back)
            .finish_non_exhaustive()
    }
}

/// The state that a manager, its sessions and its background tasks have in common.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) engine: Arc<dyn Engine>,
    pub(crate) table: Table,
    pub(crate) capacity: Arc<Capacity>,
    pub(crate) events: Events,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    /// Limits the uses that are written back at once.
    pub(crate) writes: Semaphore,
    /// Runs what must not end with the caller that began it.
    pub(crate) handle: Handle,
    is_closing: AtomicBool,
}

impl Shared {
    pub(crate) fn new(
        engine: Arc<dyn Engine>,
        capacity: Arc<Capacity>,
        clock: Clock,
        settings: Settings,
        handle: Handle,
    ) -> Arc<Self> {
        Arc::new(Self {
            engine,
            table: Table::new(),
            capacity,
            events: Events::new(clock.clone()),
            clock,
            settings,
            writes: Semaphore::new(WRITES_AT_ONCE),
            handle,
            is_closing: AtomicBool::new(false),
        })
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Lets no session open or wake from now on.
    pub(crate) fn close(&self) {
        self.is_closing.store(true, Ordering::SeqCst);
    }

    pub(crate) fn slot(&self, id: &SessionId) -> Arc<Slot> {
        let new = || Slot::new(id.clone(), self.clock.clone());
        self.table.get_or_insert(id, new)
    }

    /// Runs `future` to its end, even if the caller stops waiting for it.
    pub(crate) async fn detached<T: Send + 'static>(
        &self,
        future: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let slot = Arc::new(Mutex::new(None));
        let kept = Arc::clone(&slot);
        // Of one type for all: a runtime has code of its own for every type.
        let work: BoxFuture<'static, ()> =
            Box::pin(async move { *lock(&kept) = Some(future.await) });
        self.handle.spawn(work).await.map_err(|error| {
            let message = if error.is_panic() {
                "a step in the life of a session panicked"
            } else {
                "the runtime of the sessions has ended"
            };
            Error::internal(message).with_source(error)
        })?;
        let result = lock(&slot).take();
        result.unwrap_or_else(|| Err(Error::internal("a step in the life of a session was lost")))
    }

    /// Tells the owner that a session has ended. No lock is held here, so that the owner
    /// may open it again.
    pub(crate) fn tell_released(&self, id: &SessionId) {
        let Some(on_release) = &self.settings.on_release else {
            return;
        };
        let told = std::panic::catch_unwind(AssertUnwindSafe(|| on_release(id)));
        if told.is_err() {
            tracing::error!(session = %id, "the callback for released sessions panicked");
        }
    }
}
