//! [`Toolset`]: the tools, ready to be called.

mod builder;
mod builtin;
mod call;
mod chat;
mod descriptions;
mod door;
mod entry;
mod ground;
mod preview;
mod reach;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use backend_core::{Backend, VPath};
use permissions::approval::Desk;
use permissions::audit::Audit;
use permissions::{Guarded, Policy};

pub use builder::{BuildError, ToolsetBuilder};
#[cfg(test)]
pub(crate) use builtin::wanted;
pub use chat::Chat;
use entry::Entry;
use ground::{Able, Ground, Law, Tools, offered};
pub use preview::CallPreview;

use crate::host_names::HostNames;
use crate::{Caller, Definitions, Options, Resolver, prompt};

/// How many different sets of tools are remembered.
const KNOWN_SETS: usize = 64;

/// The tools of an agent, or of many: what a conversation remembers is kept by
/// its [`Chat`]. Cheap to clone.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use backend_state::StateBackend;
/// use console_tools::{Options, Toolset};
/// use permissions::Preset;
///
/// let toolset = Toolset::builder(Arc::new(StateBackend::new()))
///     .options(Options::default())
///     .ruleset(Preset::Readonly.ruleset())
///     .build()?;
/// // What can only be denied is not offered.
/// assert!(toolset.definitions().get("write_file").is_none());
///
/// // Nothing that a model does is more than a reply.
/// let chat = toolset.conversation("conversation-1");
/// let reply = chat.call("reed_file", r#"{"path": "a"}"#).await;
/// assert!(!reply.is_success());
/// # Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct Toolset(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Source,
    options: Arc<Options>,
    law: Law,
    who: Who,
    audit: Audit,
    entries: Vec<Entry>,
    index: HashMap<Arc<str>, usize>,
    /// The policy for the working directory of the last backend.
    policy: Mutex<Option<(VPath, Policy)>>,
    /// The sets of tools that were needed so far.
    sets: Mutex<Vec<Arc<Tools>>>,
}

/// Where backends come from.
#[derive(Debug)]
enum Source {
    Fixed(Arc<dyn Backend>),
    Resolving(Arc<dyn Resolver>),
}

/// Who is asked.
#[derive(Debug, Clone, Default)]
enum Who {
    /// Nobody: what must be asked is refused.
    #[default]
    Nobody,
    /// A desk made here: what it remembers counts only under the same policy.
    Own(Desk),
    /// A desk that the host watches as well.
    Given(Desk),
}

impl Who {
    fn desk(&self, policy: &Policy) -> Option<Desk> {
        match self {
            Self::Nobody => None,
            Self::Own(desk) => Some(desk.clone().policy_id(policy.id())),
            Self::Given(desk) => Some(desk.clone()),
        }
    }
}

impl Toolset {
    /// Tools on one backend.
    pub fn builder(backend: Arc<dyn Backend>) -> ToolsetBuilder {
        ToolsetBuilder::new(Source::Fixed(backend))
    }

    /// Tools on the backend that `resolver` picks for each call.
    pub fn resolving(resolver: Arc<dyn Resolver>) -> ToolsetBuilder {
        ToolsetBuilder::new(Source::Resolving(resolver))
    }

    /// A conversation that begins. Its state goes when the last clone of the
    /// [`Chat`] is dropped.
    pub fn conversation(&self, id: impl Into<Arc<str>>) -> Chat {
        self.conversation_of(Caller::new(id))
    }

    /// A conversation of somebody that begins.
    pub fn conversation_of(&self, caller: Caller) -> Chat {
        Chat::new(self.clone(), caller)
    }

    /// How the tools behave.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// The tools that are offered. Computed once; with a [`Resolver`], as if the
    /// backend could do everything and worked in `/`: what is offered to a
    /// conversation [`Chat::definitions`] says.
    pub fn definitions(&self) -> Definitions {
        match &self.0.source {
            Source::Fixed(backend) => self.definitions_for(backend.as_ref()),
            Source::Resolving(_) => {
                let policy = self.policy(&VPath::root());
                self.tools_under(&policy, Able::ALL).definitions.clone()
            }
        }
    }

    /// The tools that are offered on a backend.
    pub fn definitions_for(&self, backend: &dyn Backend) -> Definitions {
        let policy = self.policy(&backend.working_dir());
        let tools = self.tools_under(&policy, Able::of(backend));
        tools.definitions.clone()
    }

    /// What to add to a system prompt: which tools there are.
    pub fn prompt(&self) -> String {
        prompt::fragment(self.options(), &self.definitions())
    }

    /// The tools under a policy.
    fn tools_under(&self, policy: &Policy, able: Able) -> Arc<Tools> {
        let visible = offered(&self.0.entries, policy, able);
        let mut sets = self.0.sets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = sets.iter().find(|tools| tools.are(&visible)) {
            return Arc::clone(known);
        }
        let tools = Arc::new(Tools::new(visible, &self.0.entries));
        if sets.len() < KNOWN_SETS {
            sets.push(Arc::clone(&tools));
        }
        tools
    }

    /// The policy in a working directory.
    fn policy(&self, working_dir: &VPath) -> Policy {
        let mut known = self.0.policy.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((at, policy)) if at == working_dir => policy.clone(),
            _ => {
                let policy = self.0.law.policy(&self.0.options, working_dir);
                *known = Some((working_dir.clone(), policy.clone()));
                policy
            }
        }
    }

    /// What the calls of a conversation stand on.
    async fn ground(
        &self,
        backend: &Arc<dyn Backend>,
        session: &Arc<str>,
        policy: Option<&Policy>,
        who: Option<&Who>,
    ) -> Ground {
        let policy = match policy {
            Some(policy) => policy.clone(),
            None => self.policy(&backend.working_dir()),
        };
        let tools = self.tools_under(&policy, Able::of(backend.as_ref()));
        let guard = || {
            Guarded::builder(Arc::clone(backend))
                .audit(self.0.audit.clone())
                .session(Arc::clone(session))
                .policy(policy.clone())
        };
        let quiet = guard().build();
        let guard = match who.unwrap_or(&self.0.who).desk(&policy) {
            Some(desk) if self.0.options.require_whole_questions => {
                guard().desk(desk.whole_only(true))
            }
            Some(desk) => guard().desk(desk),
            None => guard(),
        };
        Ground {
            guard: guard.build(),
            quiet,
            tools,
            host_names: HostNames::of(backend.as_ref()).await,
        }
    }
}

#[cfg(test)]
#[path = "toolset/toolset_tests.rs"]
mod tests;
