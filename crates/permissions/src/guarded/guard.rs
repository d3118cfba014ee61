//! [`Guarded`] and its builder.

use std::fmt;
use std::sync::{Arc, Mutex};

use backend_core::Backend;
use serde_json::Value;

use super::shells::Shells;
use crate::approval::{ApprovalService, Approver, Grants, Permit};
use crate::audit::Audit;
use crate::policy::Policy;
use crate::tool::ToolSetting;

/// A backend with a policy that judges every operation first.
///
/// Clones and views belong to one guard: they share the backend, the approver and the
/// audit.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use backend_core::{Backend as _, BackendExt as _, ErrorKind};
/// use backend_state::StateBackend;
/// use permissions::{Guarded, Policy, Preset};
///
/// let backend = StateBackend::new();
/// backend.write_file("/.env", "TOKEN=1").await?;
/// let policy = Policy::builder()
///     .ruleset(&Preset::Permissive.ruleset(), &backend.working_dir())
///     .build();
/// let guarded = Guarded::builder(backend).policy(policy).build();
/// let error = guarded.read_bytes("/.env").await.unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::PermissionDenied);
/// # Ok(()) }
/// ```
#[must_use]
pub struct Guarded<B> {
    pub(super) shared: Arc<Shared<B>>,
    pub(super) policy: Policy,
    /// Permits granted before the call.
    pub(super) permits: Vec<Permit>,
    pub(super) tool: Option<Arc<str>>,
    pub(super) setting: ToolSetting,
    /// The description of a question, in place of the generated one.
    pub(super) words: Option<Arc<str>>,
    /// The arguments shown in a question.
    pub(super) args: Option<Arc<Value>>,
}

pub(super) struct Shared<B> {
    pub(super) backend: B,
    pub(super) service: Option<ApprovalService>,
    /// `None` in a dry run, which is not audited.
    pub(super) audit: Option<Audit>,
    pub(super) session: Arc<str>,
    pub(super) shells: Mutex<Shells>,
}

impl<B> Clone for Guarded<B> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            policy: self.policy.clone(),
            permits: self.permits.clone(),
            tool: self.tool.clone(),
            setting: self.setting,
            words: self.words.clone(),
            args: self.args.clone(),
        }
    }
}

impl<B: fmt::Debug> fmt::Debug for Guarded<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guarded")
            .field("backend", &self.shared.backend)
            .field("session", &self.shared.session)
            .field("tool", &self.tool)
            .finish_non_exhaustive()
    }
}

/// Builder for a [`Guarded`].
#[derive(Debug)]
#[must_use]
pub struct GuardedBuilder<B> {
    backend: B,
    policy: Policy,
    service: Option<ApprovalService>,
    audit: Audit,
    session: Arc<str>,
}

impl<B: Backend> GuardedBuilder<B> {
    /// Sets the policy. Without one, everything is allowed.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the approver, with no remembered answers. Without an approver, every access
    /// that needs approval is refused.
    pub fn approver(self, approver: impl Approver) -> Self {
        self.approval_service(ApprovalService::new(Arc::new(approver), Grants::default()))
    }

    backend_core::setters! {
        /// Sets the approval service that handles questions, to share it between guards.
        /// Unless it is already bound to a policy, its grants apply to this policy only.
        fn approval_service(self, service: ApprovalService) { self.service = Some(service) }

        /// Sets the receivers of every decision.
        fn audit(self, audit: Audit) { self.audit = audit }

        /// Sets the session that questions and answers belong to.
        fn session(self, session: impl Into<Arc<str>>) { self.session = session.into() }
    }

    /// Builds the guarded backend.
    pub fn build(self) -> Guarded<B> {
        let bind = |service: ApprovalService| match service.grants().policy() {
            Some(_) => service,
            None => service.policy_id(self.policy.id()),
        };
        Guarded {
            shared: Arc::new(Shared {
                backend: self.backend,
                service: self.service.map(bind),
                audit: Some(self.audit),
                session: self.session,
                shells: Mutex::default(),
            }),
            policy: self.policy,
            permits: Vec::new(),
            tool: None,
            setting: ToolSetting::default(),
            words: None,
            args: None,
        }
    }
}

impl<B: Backend> Guarded<B> {
    /// Returns a builder that guards `backend`.
    pub fn builder(backend: B) -> GuardedBuilder<B> {
        GuardedBuilder {
            backend,
            policy: Policy::allow_all(),
            service: None,
            audit: Audit::default(),
            session: Arc::from(""),
        }
    }

    /// Returns the policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// Returns the backend without the guard. Calls on it are not judged.
    pub fn unguarded(&self) -> &B {
        &self.shared.backend
    }

    /// Returns a view that does not ask again for accesses that `permit` covers.
    pub fn with_permit(&self, permit: Permit) -> Self {
        let mut view = self.clone();
        view.permits.push(permit);
        view
    }

    /// Returns a view for a tool, whose settings apply and which questions name.
    pub fn with_tool(&self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let mut view = self.clone();
        view.setting = self.policy.tools().get(&name);
        view.tool = Some(name);
        view
    }

    /// Returns a view whose questions use `words` as their one-line description. They
    /// still show the exact effect. A refusal repeats the words to the model.
    pub fn with_description(&self, words: impl Into<Arc<str>>) -> Self {
        let words = Some(words.into());
        Self {
            words,
            ..self.clone()
        }
    }

    /// Returns a view whose questions show the arguments of a call.
    pub fn with_args(&self, args: Arc<Value>) -> Self {
        let args = Some(args);
        Self {
            args,
            ..self.clone()
        }
    }

    /// Returns a view with another policy, which may also be a wider one.
    pub fn with_policy(&self, policy: Policy) -> Self {
        let mut view = self.clone();
        // The settings of the view's tool are part of the policy.
        if let Some(tool) = &view.tool {
            view.setting = policy.tools().get(tool);
        }
        view.policy = policy;
        view
    }
}

impl<B> Guarded<B> {
    /// Returns a guard that judges like this one, to test what a call would ask.
    /// Questions go to `approver`, and no decision is recorded. Accesses that a grant
    /// covers are not asked about. Without an approver, every access that needs approval
    /// is refused.
    ///
    /// Allowed operations are performed on `backend`, so pass one that changes nothing.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// use std::sync::Arc;
    /// use backend_core::BackendExt as _;
    /// use backend_state::StateBackend;
    /// use permissions::approval::Strict;
    /// use permissions::{Guarded, Policy, Preset};
    ///
    /// let files = StateBackend::new();
    /// let policy = Policy::builder().ruleset(&Preset::Default.ruleset(), &"/".parse()?).build();
    /// let guarded = Guarded::builder(files).policy(policy).build();
    /// let elsewhere = StateBackend::new();
    /// let trial = guarded.dry_run(elsewhere, Some(Arc::new(Strict)));
    /// let refusal = trial.write_file("/a", "b").await.unwrap_err();
    /// assert!(refusal.to_string().contains("Strict mode"), "{refusal}");
    /// # Ok(()) }
    /// ```
    pub fn dry_run<C: Backend>(
        &self,
        backend: C,
        approver: Option<Arc<dyn Approver>>,
    ) -> Guarded<C> {
        let service = approver.map(|approver| match &self.shared.service {
            Some(service) => service.with_approver(approver),
            None => ApprovalService::new(approver, Grants::new()),
        });
        Guarded {
            shared: Arc::new(Shared {
                backend,
                service,
                audit: None,
                session: Arc::clone(&self.shared.session),
                shells: Mutex::new(self.shells().clone()),
            }),
            policy: self.policy.clone(),
            permits: self.permits.clone(),
            tool: self.tool.clone(),
            setting: self.setting,
            words: self.words.clone(),
            args: self.args.clone(),
        }
    }
}
