//! [`Chat`]: one conversation with a toolset.

use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use backend_core::{Backend, Result};
use permissions::approval::{ApprovalService, Approver, Grants};
use permissions::{Guarded, Policy};

use super::environment::CallEnvironment;
use super::gate::CallGate;
use super::registered_tool::RegisteredTool;
use super::{ApproverSource, Source, Toolset};
use crate::conversation::Conversation;
use crate::definition::Definitions;
use crate::options::Options;
use crate::prompt;
use crate::resolver::Caller;

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
    approver_source: Option<ApproverSource>,
    /// The environment of calls, valid until the backend changes.
    environment: Mutex<Option<Arc<CallEnvironment>>>,
}

impl Chat {
    pub(super) fn new(toolset: Toolset, caller: Caller) -> Self {
        Self(Arc::new(State {
            toolset,
            caller,
            conversation: Arc::default(),
            policy: None,
            approver_source: None,
            environment: Mutex::default(),
        }))
    }

    /// Starts a new conversation like this one, under another policy.
    #[must_use]
    pub fn policy(&self, policy: Policy) -> Self {
        self.like_this(|state| state.policy = Some(policy))
    }

    /// Starts a new conversation like this one, with another approver.
    #[must_use]
    pub fn approver(&self, approver: impl Approver) -> Self {
        let service = ApprovalService::new(Arc::new(approver), Grants::new());
        self.like_this(|state| state.approver_source = Some(ApproverSource::Own(service)))
    }

    /// Starts a new conversation like this one, with another approval service.
    #[must_use]
    pub fn approval_service(&self, service: ApprovalService) -> Self {
        self.like_this(|state| state.approver_source = Some(ApproverSource::Given(service)))
    }

    /// Returns a copy for a trial run.
    pub(super) fn for_preview(&self) -> Self {
        let conversation = Arc::new(self.0.conversation.for_preview());
        self.like_this(|state| state.conversation = conversation)
    }

    /// Returns a new conversation like this one, except for what `change` sets.
    fn like_this(&self, change: impl FnOnce(&mut State)) -> Self {
        let mut state = State {
            toolset: self.0.toolset.clone(),
            caller: self.0.caller.clone(),
            conversation: Arc::default(),
            policy: self.0.policy.clone(),
            approver_source: self.0.approver_source.clone(),
            environment: Mutex::default(),
        };
        change(&mut state);
        Self(Arc::new(state))
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
        Ok(self.environment().await?.tools.definitions.clone())
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

    /// Returns the files as this conversation may use them: behind its policy, with
    /// questions sent to its approver. For accesses that are not tool calls, such as
    /// the resources of an MCP server.
    ///
    /// # Errors
    ///
    /// Returns the error of the [`Resolver`](crate::Resolver).
    pub async fn files(&self) -> Result<Guarded<Arc<dyn Backend>>> {
        Ok(self.environment().await?.guard.clone())
    }

    pub(super) async fn environment(&self) -> Result<Arc<CallEnvironment>> {
        let state = &self.0;
        let backend = match &state.toolset.0.source {
            Source::Fixed(backend) => Arc::clone(backend),
            Source::Resolving(resolver) => resolver.resolve(&state.caller).await?,
        };
        if let Some(known) = &*lock(&state.environment) {
            let at = Arc::as_ptr(known.guard.unguarded());
            if std::ptr::addr_eq(at, Arc::as_ptr(&backend)) {
                return Ok(Arc::clone(known));
            }
        }
        let environment = state.toolset.environment(
            &backend,
            &state.caller.session,
            state.policy.as_ref(),
            state.approver_source.as_ref(),
        );
        let environment = Arc::new(environment.await);
        *lock(&state.environment) = Some(Arc::clone(&environment));
        Ok(environment)
    }

    pub(super) fn gate<'c>(
        &'c self,
        environment: &'c CallEnvironment,
        tool: &'c RegisteredTool,
    ) -> CallGate<'c> {
        CallGate {
            tool: &tool.name,
            options: &self.0.toolset.0.options,
            conversation: &self.0.conversation,
            environment,
            view: environment.guard.with_tool(Arc::clone(&tool.name)),
            observer: None,
            trial: None,
        }
    }
}
