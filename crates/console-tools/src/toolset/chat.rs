//! [`Chat`]: one conversation with a toolset.

use std::sync::{Arc, Mutex, PoisonError};

use backend_core::{Backend, Result};
use permissions::approval::{Approver, Desk, Grants};
use permissions::{Guarded, Policy};

use super::ground::Ground;
use super::{Source, Toolset, Who};
use crate::{Caller, Context, Conversation, Definitions, Options, Overlay, prompt};

/// One conversation: what it has read, what outputs it keeps, what it was
/// allowed, which background shells it started. Clones are one conversation; calls
/// may be made at the same time.
///
/// It sees and reaches no background shells but its own. They end with it: when
/// the last clone is dropped they are ended soon after, on another thread;
/// [`close`](Self::close) waits for that. A process that ends at once after the
/// drop leaves them to the backend.
#[derive(Debug, Clone)]
pub struct Chat(Arc<State>);

#[derive(Debug)]
struct State {
    toolset: Toolset,
    caller: Caller,
    conversation: Arc<Conversation>,
    policy: Option<Policy>,
    who: Option<Who>,
    /// Stands until the backend is another one.
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

    /// A new conversation like this one, under another policy than the
    /// toolset's.
    #[must_use]
    pub fn policy(&self, policy: Policy) -> Self {
        self.anew(Some(policy), self.0.who.clone())
    }

    /// A new conversation like this one, in which somebody else is asked than the
    /// toolset says.
    #[must_use]
    pub fn approver(&self, approver: impl Approver) -> Self {
        let desk = Desk::new(Arc::new(approver), Grants::new());
        self.anew(self.0.policy.clone(), Some(Who::Own(desk)))
    }

    /// A new conversation like this one, whose questions are brought to another
    /// desk than the toolset's.
    #[must_use]
    pub fn desk(&self, desk: Desk) -> Self {
        self.anew(self.0.policy.clone(), Some(Who::Given(desk)))
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

    /// The same for a call that is only tried.
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

    /// Ends the background shells that this conversation started, also commands
    /// that were moved to the background, and drops the outputs that it keeps.
    /// Returns how many shells still ran. The conversation can go on.
    ///
    /// # Errors
    ///
    /// What a sandbox fails with. The other shells are ended all the same.
    pub async fn close(&self) -> Result<usize> {
        self.0.conversation.close().await
    }

    /// On whose behalf calls are made.
    pub fn caller(&self) -> &Caller {
        &self.0.caller
    }

    /// The toolset.
    pub fn toolset(&self) -> &Toolset {
        &self.0.toolset
    }

    /// How the tools behave.
    pub fn options(&self) -> &Options {
        self.0.toolset.options()
    }

    /// The tools that are offered here. Computed once for each set of tools.
    ///
    /// # Errors
    ///
    /// What the [`Resolver`](crate::Resolver) fails with.
    pub async fn definitions(&self) -> Result<Definitions> {
        Ok(self.ground().await?.tools.definitions.clone())
    }

    /// What to add to a system prompt: which tools there are.
    ///
    /// # Errors
    ///
    /// What the [`Resolver`](crate::Resolver) fails with.
    pub async fn prompt(&self) -> Result<String> {
        let definitions = self.definitions().await?;
        Ok(prompt::fragment(self.options(), &definitions))
    }

    /// What the next call stands on.
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

    /// What a tool works with. What the conversation keeps lies over what is
    /// guarded: it is its own.
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
