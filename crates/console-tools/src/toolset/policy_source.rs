//! [`PolicySource`]: the policy of a toolset, or the parts it is built from.

use backend_core::{Enforcement, VPath};
use backend_mounts::Scope;
use permissions::tool::{Tool, ToolSettings};
use permissions::{Action, OpClass, Policy, Ruleset};

use crate::options::Options;

#[derive(Debug, Clone)]
pub(crate) enum PolicySource {
    /// The policy is built from parts.
    Parts(Box<PolicyParts>),
    /// The policy was given.
    Policy(Policy),
}

#[derive(Debug, Clone)]
pub(crate) struct PolicyParts {
    /// Rules, whose relative patterns start at the backend's working directory. Without
    /// them the approvals of the options apply.
    pub(crate) ruleset: Option<Ruleset>,
    pub(crate) settings: ToolSettings,
    pub(crate) scope: Option<Scope>,
    /// The files that the policy was loaded from.
    pub(crate) protected: Vec<VPath>,
    /// The lowest level at which commands may run.
    pub(crate) required: Enforcement,
}

impl PolicySource {
    pub(crate) fn policy(&self, options: &Options, working_dir: &VPath) -> Policy {
        let parts = match self {
            Self::Parts(parts) => parts,
            Self::Policy(policy) => return policy.clone(),
        };
        let settings = parts.settings.clone();
        let mut policy = match &parts.ruleset {
            Some(ruleset) => Policy::builder()
                .ruleset(ruleset, working_dir)
                .tools(settings),
            None => Policy::builder().tools(by_options(options, settings)),
        };
        if let Some(scope) = &parts.scope {
            policy = policy.layer(scope.clone());
        }
        let policy = policy.require_enforcement(parts.required);
        policy.build().protecting(parts.protected.iter().cloned())
    }

    pub(crate) fn settings(&self) -> &ToolSettings {
        match self {
            Self::Parts(parts) => &parts.settings,
            Self::Policy(policy) => policy.tools(),
        }
    }
}

/// Converts the approvals of the options into settings of tools without an action.
fn by_options(options: &Options, mut settings: ToolSettings) -> ToolSettings {
    for tool in Tool::ALL {
        let has = |class| tool.operations().iter().any(|op| op.class() == class);
        let asks = match tool {
            // The start of the shells that they look at was judged.
            Tool::ReadOutput | Tool::ListShells => false,
            _ if has(OpClass::Write) => options.require_write_approval,
            _ if has(OpClass::Execute) => options.require_execute_approval,
            _ => false,
        };
        if asks {
            let setting = settings.tools.entry(*tool).or_default();
            setting.action = setting.action.or(Some(Action::Ask));
        }
    }
    settings
}
