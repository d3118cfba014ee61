//! [`Factory`]: all that a custom kind of sandbox needs, and the engine around it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use backend_core::{Result, Sandbox, StopMode};

use crate::engine::{Attached, Claim, Engine};
use crate::id::SessionId;
use crate::record::{Record, RecordState, Usage};
use crate::request::OpenRequest;
use crate::time::Clock;

/// Creates the sandboxes of a custom kind.
///
/// Starting, stopping and the time of the last use are methods of [`Sandbox`]; nothing else
/// is needed. A function that takes the request by value is a factory:
///
/// ```
/// use std::sync::Arc;
/// use backend_core::{Result, Sandbox};
/// use sessions::{Factory, OpenRequest};
///
/// async fn create(request: OpenRequest) -> Result<Arc<dyn Sandbox>> {
///     Err(backend_core::Error::unavailable("no machine is free").about(&request.id))
/// }
///
/// fn is_factory(_: impl Factory) {}
/// is_factory(create);
/// ```
///
/// # Signatures
///
/// The method, as it is written under `#[async_trait]`:
///
/// ```text
/// async fn create(&self, request: &OpenRequest) -> Result<Arc<dyn Sandbox>>;
/// ```
#[async_trait]
pub trait Factory: Send + Sync + 'static {
    /// Creates the sandbox of a session, which is started afterwards.
    ///
    /// # Errors
    ///
    /// Any. The session is not opened.
    async fn create(&self, request: &OpenRequest) -> Result<Arc<dyn Sandbox>>;
}

#[async_trait]
impl<F, R> Factory for F
where
    F: Fn(OpenRequest) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Arc<dyn Sandbox>>> + Send + 'static,
{
    async fn create(&self, request: &OpenRequest) -> Result<Arc<dyn Sandbox>> {
        self(request.clone()).await
    }
}

/// The engine of a factory: it knows the sandboxes of this process and no others.
pub(crate) struct FactoryEngine {
    factory: Arc<dyn Factory>,
    keeps_files: bool,
    clock: Clock,
    known: Mutex<BTreeMap<SessionId, Known>>,
}

struct Known {
    record: Record,
    /// `None` if only its files exist.
    sandbox: Option<Arc<dyn Sandbox>>,
}

impl FactoryEngine {
    pub(crate) fn new(factory: Arc<dyn Factory>, keeps_files: bool, clock: Clock) -> Self {
        Self {
            factory,
            keeps_files,
            clock,
            known: Mutex::default(),
        }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<SessionId, Known>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sandbox(&self, id: &SessionId) -> Option<Arc<dyn Sandbox>> {
        self.known().get(id)?.sandbox.clone()
    }
}

impl fmt::Debug for FactoryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FactoryEngine")
            .field("keeps_files", &self.keeps_files)
            .field("known", &self.known().len())
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Engine for FactoryEngine {
    fn keeps_files(&self) -> bool {
        self.keeps_files
    }

    fn is_shared(&self) -> bool {
        false
    }

    async fn claim(&self, request: &OpenRequest) -> Result<Claim> {
        if let Some(sandbox) = self.sandbox(&request.id) {
            let is_dead = matches!(sandbox.is_alive().await, Ok(false));
            if !(self.keeps_files && is_dead) {
                return Ok(Claim::Taken);
            }
            // What is left of it cannot be started, and the next one finds its files.
            let _ = sandbox.stop(StopMode::Keep).await;
        }
        let sandbox = self.factory.create(request).await?;
        let record = Record::new(request, self.clock.now());
        let known = Known {
            record,
            sandbox: Some(Arc::clone(&sandbox)),
        };
        self.known().insert(request.id.clone(), known);
        Ok(Claim::Created(sandbox))
    }

    async fn attach(&self, id: &SessionId) -> Result<Option<Attached>> {
        let known = self.known();
        let Some(known) = known.get(id) else {
            return Ok(None);
        };
        let attached = |sandbox| Attached::new(sandbox, known.record.clone());
        Ok(known.sandbox.clone().map(attached))
    }

    async fn list(&self) -> Result<Vec<Record>> {
        let known = self.known();
        Ok(known.values().map(|known| known.record.clone()).collect())
    }

    async fn record(&self, id: &SessionId) -> Result<Option<Record>> {
        Ok(self.known().get(id).map(|known| known.record.clone()))
    }

    async fn touch(&self, id: &SessionId, at: SystemTime) -> Result<bool> {
        let mut all = self.known();
        let Some(known) = all.get_mut(id) else {
            return Ok(false);
        };
        known.record.last_activity = known.record.last_activity.max(at);
        Ok(true)
    }

    async fn stop(&self, id: &SessionId) -> Result<bool> {
        let Some(sandbox) = self.sandbox(id) else {
            return Ok(false);
        };
        // Still known if this fails, so that it can be tried again.
        sandbox.stop(StopMode::Keep).await?;
        let mut all = self.known();
        if self.keeps_files {
            if let Some(known) = all.get_mut(id) {
                known.sandbox = None;
                known.record.state = RecordState::Stored;
            }
        } else {
            all.remove(id);
        }
        Ok(true)
    }

    async fn purge(&self, id: &SessionId) -> Result<bool> {
        if let Some(sandbox) = self.sandbox(id) {
            sandbox.stop(StopMode::Purge).await?;
        }
        Ok(self.known().remove(id).is_some())
    }

    async fn usage(&self, id: &SessionId) -> Result<Option<Usage>> {
        Ok(self.known().get(id).map(|_| Usage::default()))
    }
}
