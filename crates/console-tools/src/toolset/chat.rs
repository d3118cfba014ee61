//! [`Chat`]: one conversation with a toolset.

use std::sync::{Arc, Mutex, PoisonError};

use backend_core::{Backend, Result};
use permissions::approval::{ApprovalService, Approver, Grants};
use permissions::{Guarded, Policy};

use super::ground::Ground;
use super::{Source, Toolset, Who};
use crate::{Caller, Context, Conversation, Definitions, Options, Overlay, prompt};

/// A conversation: its tracked files, kept outputs, approvals and background shells.
/// Clones share one conversation, and calls may run concurrently.
///
/// It sees and reaches only its own background shells, which end with it. Dropping the
/// last clone ends them soon after, on another thread. [`close`](Self::close) waits for
/// that. A process that exits right after the drop leaves them to the backend.
#[derive(Debug, Clone)]
pub struct Chat(Arc<State>);

#[derive(Debug)]
struct State {
    toolset: Toolset,
    caller: Caller,
    conversation: Arc<Conversation>,
    policy: Option<Policy>,
    who: Option<Who>,
    /// The environment of calls, valid until the backend changes.
    ground: Mutex<Option<Arc<Ground>>>,
}

impl Chat {
    pub(super) fn new(toolset: Toolset, caller: Caller) -> Self {
        Self(Arc::new(State {
            toolset,
            caller,
            conversation: Arc::default(),
            policy: None,
            who: None,
            ground: Mutex::default(),
        }))
    }

    /// Starts a new conversation like this one, under another policy than the
    /// toolset's.
    #[must_use]
    pub fn policy(&self, policy: Policy) -> Self {
        self.anew(Some(policy), self.0.who.clone())
    }

    /// Starts a new conversation like this one, with another approver than the
    /// toolset's.
    #[must_use]
    pub fn approver(&self, approver: impl Approver) -> Self {
        let service = ApprovalService::new(Arc::new(approver), Grants::new());
        self.anew(self.0.policy.clone(), Some(Who::Own(service)))
    }

    /// Starts a new conversation like this one, with another approval service than the
    /// toolset's.
    #[must_use]
    pub fn approval_service(&self, service: ApprovalService) -> Self {
        self.anew(self.0.policy.clone(), Some(Who::Given(service)))
    }

    fn anew(&self, policy: Option<Policy>, who: Option<Who>) -> Self {
        Self(Arc::new(State {
            toolset: self.0.toolset.clone(),
            caller: self.0.caller.clone(),
            conversation: Arc::default(),
            policy,
            who,
            ground: Mutex::default(),
        }))
    }

    /// Returns a copy for a trial run.
    pub(super) fn aside(&self) -> Self {
        Self(Arc::new(State {
            toolset: self.0.toolset.clone(),
            caller: self.0.caller.clone(),
            conversation: Arc::new(self.0.conversation.aside()),
            policy: self.0.policy.clone(),
            who: self.0.who.clone(),
            ground: Mutex::default(),
        }))
    }

    /// Ends the background shells that this conversation started, including commands
    /// that were moved to the background, and drops its kept outputs. Returns how many
    /// of the shells were still running. The conversation can continue.
    ///
    /// # Errors
    ///
    /// Returns the error of a sandbox. The other shells are ended anyway.
    pub async fn close(&self) -> Result<usize> {
        self.0.conversation.close().await
    }

    /// Returns the caller on whose behalf calls are made.
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// Returns the toolset.
    pub fn toolset(&self) -> &Toolset {
        &self.0.toolset
    }

    /// Returns the options of the tools.
    pub fn options(&self) -> &Options {
        self.0.toolset.options()
    }

    /// Returns the definitions of the offered tools, which are computed once for each
    /// tool set.
    ///
    /// # Errors
    ///
    /// Returns the error of the [`Resolver`](crate::Resolver).
    pub async fn definitions(&self) -> Result<Definitions> {
        Ok(self.ground().await?.tools.definitions.clone())
    }

    /// Returns text for a system prompt that lists the tools.
    ///
    /// # Errors
    ///
    /// Returns the error of the [`Resolver`](crate::Resolver).
    pub async fn prompt(&self) -> Result<String> {
        let definitions = self.definitions().await?;
        Ok(prompt::fragment(self.options(), &definitions))
    }

    /// Returns the environment for the next call.
    pub(super) async fn ground(&self) -> Result<Arc<Ground>> {
        let state = &self.0;
        let backend = match &state.toolset.0.source {
            Source::Fixed(backend) => Arc::clone(backend),
            Source::Resolving(resolver) => resolver.resolve(&state.caller).await?,
        };
        let known = || state.ground.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ground) = &*known() {
            let (at, now) = (Arc::as_ptr(ground.guard.unguarded()), Arc::as_ptr(&backend));
            if std::ptr::addr_eq(at, now) {
                return Ok(Arc::clone(ground));
            }
        }
        let ground = state.toolset.ground(
            &backend,
            &state.caller.session,
            state.policy.as_ref(),
            state.who.as_ref(),
        );
        let ground = Arc::new(ground.await);
        *known() = Some(Arc::clone(&ground));
        Ok(ground)
    }

    /// Creates the context for a tool. The kept outputs are layered above the guard,
    /// because they belong to the conversation.
    pub(super) fn context(
        &self,
        view: Guarded<Arc<dyn Backend>>,
        quiet: Guarded<Arc<dyn Backend>>,
    ) -> Context {
        let scope = view.policy().scope().cloned();
        let conversation = Arc::clone(&self.0.conversation);
        let over = |view| Arc::new(Overlay::new(Arc::new(view), &conversation));
        let (backend, quiet) = (over(view), over(quiet));
        let options = Arc::clone(&self.0.toolset.0.options);
        Context::new(backend, options, conversation)
            .scope(scope)
            .quiet(quiet)
    }
}
