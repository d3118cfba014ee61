//! Sessions as the backends of a shared toolset.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use backend_core::{Backend, Result};
use console_tools::{Caller, Resolver};

use crate::id::SessionId;
use crate::manager::SessionManager;
use crate::request::OpenRequest;
use crate::session::Session;

/// Entries after which those of sessions that are no longer used are dropped.
const PRUNE_AT: usize = 64;

type Request = Box<dyn Fn(&Caller) -> Result<OpenRequest> + Send + Sync>;

/// A [`Resolver`] that gives every caller a session.
///
/// ```
/// use std::sync::Arc;
/// use console_tools::Toolset;
/// use sessions::{SessionManager, SessionResolver};
///
/// fn shared(manager: SessionManager) -> console_tools::ToolsetBuilder {
///     Toolset::resolving(Arc::new(SessionResolver::new(manager)))
/// }
/// ```
pub struct SessionResolver {
    manager: SessionManager,
    request: Request,
    /// The same `Arc` for the same session: the toolset keeps what it knows by it.
    handles: Mutex<HashMap<SessionId, Weak<Session>>>,
}

impl SessionResolver {
    /// Gives each user a session of the user's name, and each conversation without a user
    /// one of the conversation's.
    pub fn new(manager: SessionManager) -> Self {
        Self::with(manager, |caller| {
            let name = caller.user.as_deref().unwrap_or(&caller.session);
            Ok(OpenRequest::new(SessionId::new(name)?))
        })
    }

    /// Gives each caller the session that `request` names.
    pub fn with(
        manager: SessionManager,
        request: impl Fn(&Caller) -> Result<OpenRequest> + Send + Sync + 'static,
    ) -> Self {
        Self {
            manager,
            request: Box::new(request),
            handles: Mutex::default(),
        }
    }

    fn handles(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<Session>>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the handle that was given out for the same session, or gives out this one.
    fn shared(&self, session: Session) -> Arc<Session> {
        let mut handles = self.handles();
        let known = handles.get(session.session_id()).and_then(Weak::upgrade);
        if let Some(known) = known.filter(|known| known.is_same(&session)) {
            return known;
        }
        if handles.len() >= PRUNE_AT && handles.len() == handles.capacity() {
            handles.retain(|_, handle| handle.strong_count() > 0);
        }
        let session = Arc::new(session);
        handles.insert(session.session_id().clone(), Arc::downgrade(&session));
        session
    }
}

impl std::fmt::Debug for SessionResolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SessionResolver")
            .field("manager", &self.manager)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Resolver for SessionResolver {
    async fn resolve(&self, caller: &Caller) -> Result<Arc<dyn Backend>> {
        let request = (self.request)(caller)?;
        // Before every call of a tool: what is open is not asked whether it lives, which
        // the call finds out.
        let open = self.manager.get(request.id.as_str());
        let session = match open.filter(|session| may_serve(session, &request)) {
            Some(session) => session,
            None => self.manager.open(request).await?,
        };
        Ok(self.shared(session))
    }
}

/// Whether an open session can be used for a request without opening it again.
fn may_serve(session: &Session, request: &OpenRequest) -> bool {
    let record = session.record();
    let serves = record.is_some_and(|record| record.check_serves(request).is_ok());
    serves && !session.has_ended()
}
