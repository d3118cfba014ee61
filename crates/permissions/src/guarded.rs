//! [`Guarded`]: any backend, with a policy in front.
//!
//! Every operation is judged as it was asked for, then done with links refused.
//! Only if a link is in the way is the path resolved; then the place it leads to
//! is judged as well, and exactly that place is acted on, again with links
//! refused. So what was judged is what is used, whoever swaps links meanwhile,
//! also while somebody thinks about an answer.
//!
//! What a command does once it runs is beyond a guard: its line is judged, and
//! the rest is for the sandbox to contain.

mod authorize;
mod backend;
mod gate;
mod globs;
mod judge;
mod list;
mod preview;
mod read;
mod rehearsal;
mod route;
mod sandbox;
mod shells;
mod tree;
mod write;

use std::fmt;
use std::sync::{Arc, Mutex};

use backend_core::ops::{Links, StatOptions};
use backend_core::{Backend, Error, ErrorKind, Operation, Result};
use serde_json::Value;

use crate::approval::{Approver, Desk, Grants, Permit};
use crate::audit::Audit;
use crate::mounts::{Derive, DeriveError};
use crate::policy::Policy;
use crate::tool::ToolSetting;

pub use authorize::Considered;
pub use preview::PREVIEW_BYTES;
pub use tree::TREE_ENTRIES;

/// A backend whose every operation a policy judges first.
///
/// Clones and views are one guard: they share the backend, who is asked and who
/// is told.
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
pub struct Guarded<B> {
    shared: Arc<Shared<B>>,
    policy: Policy,
    /// What was approved before the call.
    permits: Vec<Permit>,
    tool: Option<Arc<str>>,
    setting: ToolSetting,
    /// What a question says would happen, instead of what is found out.
    words: Option<Arc<str>>,
    /// The arguments that a question shows.
    args: Option<Arc<Value>>,
}

struct Shared<B> {
    backend: B,
    desk: Option<Desk>,
    /// `None` in a rehearsal, which is not audited.
    audit: Option<Audit>,
    session: Arc<str>,
    shells: Mutex<shells::Shells>,
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

/// Puts a [`Guarded`] together.
#[derive(Debug)]
pub struct GuardedBuilder<B> {
    backend: B,
    policy: Policy,
    desk: Option<Desk>,
    audit: Audit,
    session: Arc<str>,
}

impl<B: Backend> GuardedBuilder<B> {
    /// Sets the policy; without one everything is allowed.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets who answers, with nothing remembered yet. Without anybody, what must
    /// be asked is refused.
    #[must_use]
    pub fn approver(self, approver: impl Approver) -> Self {
        self.desk(Desk::new(Arc::new(approver), Grants::default()))
    }

    /// Sets the desk where questions are brought, to share it between guards.
    /// Unless it is bound to a policy already, what is granted there counts for
    /// this policy alone.
    #[must_use]
    pub fn desk(mut self, desk: Desk) -> Self {
        self.desk = Some(desk);
        self
    }

    /// Sets who is told of every decision.
    #[must_use]
    pub fn audit(mut self, audit: Audit) -> Self {
        self.audit = audit;
        self
    }

    /// Sets the conversation that questions and answers belong to.
    #[must_use]
    pub fn session(mut self, session: impl Into<Arc<str>>) -> Self {
        self.session = session.into();
        self
    }

    /// The guarded backend.
    pub fn build(self) -> Guarded<B> {
        let bind = |desk: Desk| match desk.grants().policy() {
            Some(_) => desk,
            None => desk.policy_id(self.policy.id()),
        };
        Guarded {
            shared: Arc::new(Shared {
                backend: self.backend,
                desk: self.desk.map(bind),
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
    /// Guards `backend`.
    pub fn builder(backend: B) -> GuardedBuilder<B> {
        GuardedBuilder {
            backend,
            policy: Policy::allow_all(),
            desk: None,
            audit: Audit::default(),
            session: Arc::from(""),
        }
    }

    /// The policy in force.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The backend without the guard. Whatever is done with it, nobody judges.
    pub fn unguarded(&self) -> &B {
        &self.shared.backend
    }

    /// A view that does not ask again for what `permit` covers.
    #[must_use]
    pub fn with_permit(&self, permit: Permit) -> Self {
        let mut view = self.clone();
        view.permits.push(permit);
        view
    }

    /// A view whose calls are those of a tool: its settings count, and questions
    /// name it.
    #[must_use]
    pub fn with_tool(&self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        let mut view = self.clone();
        view.setting = self.policy.tools().get(&name);
        view.tool = Some(name);
        view
    }

    /// A view whose questions say in these words, in one line, what would happen.
    /// What exactly happens, they show as ever. A refusal repeats the words to
    /// the model.
    #[must_use]
    pub fn with_words(&self, words: impl Into<Arc<str>>) -> Self {
        let mut view = self.clone();
        view.words = Some(words.into());
        view
    }

    /// A view whose questions show the arguments of a call, for approvers that
    /// decide by them.
    #[must_use]
    pub fn with_args(&self, args: Arc<Value>) -> Self {
        let mut view = self.clone();
        view.args = Some(args);
        view
    }

    /// A view with a narrower scope.
    ///
    /// # Errors
    ///
    /// `Unsupported` without mounts; `InvalidInput` if an entry is a file;
    /// `PermissionDenied` if the scope does not contain it; what `stat` fails
    /// with otherwise.
    pub async fn derive(&self, derive: Derive) -> Result<Self> {
        let Some(scope) = self.policy.scope() else {
            return Err(Error::unsupported(
                "there are no mounts to narrow; give the policy a scope",
            ));
        };
        for entry in derive.entries()? {
            let options = StatOptions::default().links(Links::Refuse);
            let found = self.backend().stat(&entry, options).await;
            match Error::none_if_missing(found) {
                Ok(Some(found)) if found.is_file() => return Err(DeriveError::file(entry).into()),
                // A link is no directory: what it leads to has paths of its own.
                Err(error) if error.kind() != ErrorKind::IsALink => {
                    return Err(error.as_part_of(Operation::Stat, &entry));
                }
                _ => {}
            }
        }
        let derived = scope.derive(derive)?;
        let mut view = self.clone();
        view.policy = self.policy.with_scope(derived);
        Ok(view)
    }
}
