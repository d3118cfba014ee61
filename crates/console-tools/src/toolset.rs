//! [`Toolset`]: the tools, ready to be called.

mod build_error;
mod builder;
mod builtin;
mod call;
mod chat;
mod description_overrides;
mod environment;
mod gate;
mod policy_source;
mod preview;
mod registered_tool;
mod trial;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use backend_core::sync::lock;
use backend_core::{Backend, Capabilities, VPath};
use permissions::approval::ApprovalService;
use permissions::audit::Audit;
use permissions::{Guarded, Policy};

pub use build_error::BuildError;
pub use builder::ToolsetBuilder;
#[cfg(test)]
pub(crate) use builtin::is_enabled;
pub use chat::Chat;
use environment::{CallEnvironment, OfferedTools};
use policy_source::PolicySource;
pub use preview::CallPreview;
use registered_tool::RegisteredTool;

use crate::definition::Definitions;
use crate::host_names::HostNames;
use crate::options::Options;
use crate::prompt;
use crate::resolver::{Caller, Resolver};

/// Maximum number of cached tool sets.
const KNOWN_SETS: usize = 64;

/// The tools of one or more agents. The state of a conversation is kept by its
/// [`Chat`]. Cheap to clone.
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
    policy_source: PolicySource,
    approver_source: ApproverSource,
    audit: Audit,
    entries: Vec<RegisteredTool>,
    index: HashMap<Arc<str>, usize>,
    /// The policy for the working directory of the last backend.
    policy: Mutex<Option<(VPath, Policy)>>,
    /// The tool sets that were needed so far.
    sets: Mutex<Vec<Arc<OfferedTools>>>,
}

/// The source of backends.
#[derive(Debug)]
enum Source {
    Fixed(Arc<dyn Backend>),
    Resolving(Arc<dyn Resolver>),
}

/// The party that approves calls.
#[derive(Debug, Clone, Default)]
enum ApproverSource {
    /// No approver: calls that need approval are refused.
    #[default]
    None,
    /// An approval service created here, whose grants count only under the same policy.
    Own(ApprovalService),
    /// An approval service that the host observes as well.
    Given(ApprovalService),
}

impl ApproverSource {
    fn approval_service(&self, policy: &Policy) -> Option<ApprovalService> {
        match self {
            Self::None => None,
            Self::Own(service) => Some(service.clone().policy_id(policy.id())),
            Self::Given(service) => Some(service.clone()),
        }
    }
}

impl Toolset {
    /// Starts to build a toolset on one backend.
    pub fn builder(backend: Arc<dyn Backend>) -> ToolsetBuilder {
        ToolsetBuilder::new(Source::Fixed(backend))
    }

    /// Starts to build a toolset on the backend that `resolver` picks for each call.
    pub fn resolving(resolver: Arc<dyn Resolver>) -> ToolsetBuilder {
        ToolsetBuilder::new(Source::Resolving(resolver))
    }

    /// Starts a conversation. Its state is dropped with the last clone of the [`Chat`].
    pub fn conversation(&self, id: impl Into<Arc<str>>) -> Chat {
        self.conversation_of(Caller::new(id))
    }

    /// Starts a conversation for `caller`.
    pub fn conversation_of(&self, caller: Caller) -> Chat {
        Chat::new(self.clone(), caller)
    }

    /// Returns the options of the tools.
    pub fn options(&self) -> &Options {
        &self.0.options
    }

    /// Returns the definitions of the offered tools, which are computed once. With a
    /// [`Resolver`], they assume a backend that supports everything and works in `/`.
    /// [`Chat::definitions`] returns those of a conversation.
    pub fn definitions(&self) -> Definitions {
        let (at, capabilities) = match &self.0.source {
            Source::Fixed(backend) => (backend.working_dir(), capabilities(backend.as_ref())),
            Source::Resolving(_) => (VPath::root(), Capabilities::writable().with_commands()),
        };
        let tools = self.tools_under(&self.policy(&at), capabilities);
        tools.definitions.clone()
    }

    /// Returns text for a system prompt that lists the tools.
    pub fn prompt(&self) -> String {
        prompt::fragment(self.options(), &self.definitions())
    }

    /// Returns the tools under a policy.
    fn tools_under(&self, policy: &Policy, capabilities: Capabilities) -> Arc<OfferedTools> {
        let visible = environment::offered(&self.0.entries, policy, capabilities);
        let mut sets = lock(&self.0.sets);
        if let Some(known) = sets.iter().find(|tools| tools.visible == visible) {
            return Arc::clone(known);
        }
        let definitions = self.0.entries.iter().map(|entry| &entry.definition);
        let tools = Arc::new(OfferedTools::new(visible, definitions));
        if sets.len() < KNOWN_SETS {
            sets.push(Arc::clone(&tools));
        }
        tools
    }

    /// Returns the policy for a working directory.
    fn policy(&self, working_dir: &VPath) -> Policy {
        let mut known = lock(&self.0.policy);
        match &*known {
            Some((at, policy)) if at == working_dir => policy.clone(),
            _ => {
                let policy = self.0.policy_source.policy(&self.0.options, working_dir);
                *known = Some((working_dir.clone(), policy.clone()));
                policy
            }
        }
    }

    /// Builds the environment for the calls of a conversation.
    async fn environment(
        &self,
        backend: &Arc<dyn Backend>,
        session: &Arc<str>,
        policy: Option<&Policy>,
        approver_source: Option<&ApproverSource>,
    ) -> CallEnvironment {
        let own = || self.policy(&backend.working_dir());
        let policy = policy.cloned().unwrap_or_else(own);
        let tools = self.tools_under(&policy, capabilities(backend.as_ref()));
        let guard = || {
            Guarded::builder(Arc::clone(backend))
                .audit(self.0.audit.clone())
                .session(Arc::clone(session))
                .policy(policy.clone())
        };
        let mut asking = guard();
        let source = approver_source.unwrap_or(&self.0.approver_source);
        if let Some(mut service) = source.approval_service(&policy) {
            if self.0.options.require_whole_questions {
                service = service.refuse_truncated(true);
            }
            asking = asking.approval_service(service);
        }
        CallEnvironment {
            guard: asking.build(),
            non_interactive: guard().build(),
            tools,
            host_names: HostNames::of(backend.as_ref()).await,
        }
    }
}

fn capabilities(backend: &dyn Backend) -> Capabilities {
    let mut capabilities = backend.info().capabilities;
    capabilities.commands &= backend.as_sandbox().is_some();
    capabilities
}

#[cfg(test)]
mod tests;
