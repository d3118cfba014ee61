//! [`Ground`]: the environment of calls, which is a guarded backend and the offered
//! tools.

use std::sync::Arc;

use backend_core::{Backend, VPath};
use permissions::mounts::Scope;
use permissions::tool::{Tool, ToolSettings, Visibility, visible};
use permissions::{Action, Guarded, Op, OpClass, Policy, Ruleset};

use super::entry::Entry;
use crate::host_names::HostNames;
use crate::{Definitions, Options};

/// The source of the policy.
#[derive(Debug, Clone)]
pub(crate) enum Law {
    /// The policy is built from parts.
    Made(Box<Made>),
    /// The policy was given.
    Policy(Policy),
}

/// The parts from which a policy is built.
#[derive(Debug, Clone)]
pub(crate) struct Made {
    /// Rules, whose relative patterns start at the backend's working directory. Without
    /// them the approvals of the options apply.
    pub(crate) ruleset: Option<Ruleset>,
    pub(crate) settings: ToolSettings,
    pub(crate) scope: Option<Scope>,
    /// The files that the policy was loaded from.
    pub(crate) protected: Vec<VPath>,
}

impl Law {
    pub(crate) fn policy(&self, options: &Options, working_dir: &VPath) -> Policy {
        let made = match self {
            Self::Made(made) => made,
            Self::Policy(policy) => return policy.clone(),
        };
        let settings = made.settings.clone();
        let mut policy = match &made.ruleset {
            Some(ruleset) => Policy::builder()
                .ruleset(ruleset, working_dir)
                .tools(settings),
            None => Policy::builder().tools(by_options(options, settings)),
        };
        if let Some(scope) = &made.scope {
            policy = policy.scope(scope.clone());
        }
        policy.build().protecting(made.protected.iter().cloned())
    }

    /// Returns the settings of individual tools.
    pub(crate) fn settings(&self) -> &ToolSettings {
        match self {
            Self::Made(made) => &made.settings,
            Self::Policy(policy) => policy.tools(),
        }
    }
}

/// Converts the approvals of the options into tool settings. An action that is already
/// set stays.
fn by_options(options: &Options, mut settings: ToolSettings) -> ToolSettings {
    const WRITING: [Tool; 6] = [
        Tool::WriteFile,
        Tool::EditFile,
        Tool::HashlineEdit,
        Tool::DeleteFile,
        Tool::MoveFile,
        Tool::CopyFile,
    ];
    const RUNNING: [Tool; 4] = [
        Tool::Execute,
        Tool::RunInBackground,
        Tool::WriteInput,
        Tool::KillShell,
    ];
    let mut ask = |tool: Tool| {
        let setting = settings.tools.entry(tool).or_default();
        setting.action = setting.action.or(Some(Action::Ask));
    };
    if options.require_write_approval {
        WRITING.into_iter().for_each(&mut ask);
    }
    if options.require_execute_approval {
        RUNNING.into_iter().for_each(&mut ask);
    }
    settings
}

/// The environment of calls.
#[derive(Debug)]
pub(crate) struct Ground {
    pub(crate) guard: Guarded<Arc<dyn Backend>>,
    /// A guard that never asks and ignores the settings of tools.
    pub(crate) quiet: Guarded<Arc<dyn Backend>>,
    pub(crate) tools: Arc<Tools>,
    pub(crate) host_names: HostNames,
}

/// The tools that are offered under a policy.
#[derive(Debug)]
pub(crate) struct Tools {
    /// In the order of the entries.
    visible: Vec<Visibility>,
    pub(crate) definitions: Definitions,
}

impl Tools {
    pub(crate) fn new(visible: Vec<Visibility>, entries: &[Entry]) -> Self {
        let offered = entries.iter().zip(&visible).filter_map(|(entry, visible)| {
            let Visibility::Offered { asks } = *visible else {
                return None;
            };
            let mut definition = entry.definition.clone();
            definition.asks = asks;
            Some(definition)
        });
        Self {
            definitions: Definitions::new(offered.collect()),
            visible,
        }
    }

    /// Returns `true` if this is the set for `visible`.
    pub(crate) fn are(&self, visible: &[Visibility]) -> bool {
        self.visible == visible
    }

    pub(crate) fn offers(&self, index: usize) -> bool {
        matches!(self.visible.get(index), Some(Visibility::Offered { .. }))
    }
}

/// The abilities of a backend that tools depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Able {
    pub(crate) commands: bool,
    pub(crate) writable: bool,
}

impl Able {
    pub(crate) const ALL: Self = Self {
        commands: true,
        writable: true,
    };

    pub(crate) fn of(backend: &dyn Backend) -> Self {
        let capabilities = backend.info().capabilities;
        Self {
            commands: capabilities.commands && backend.as_sandbox().is_some(),
            writable: capabilities.writable,
        }
    }
}

/// Returns which of the entries are offered.
pub(crate) fn offered(entries: &[Entry], policy: &Policy, able: Able) -> Vec<Visibility> {
    let each = |entry: &Entry| {
        let changes = |op: &Op| op.class() == OpClass::Write;
        if !able.writable && entry.operations.iter().any(changes) {
            return Visibility::Hidden;
        }
        match entry.tool {
            Some(tool) => visible(tool, policy, able.commands),
            None => custom(entry, policy, able.commands),
        }
    };
    entries.iter().map(each).collect()
}

/// Returns whether a custom tool is offered. It is hidden if one of its operations is
/// always denied.
fn custom(entry: &Entry, policy: &Policy, commands: bool) -> Visibility {
    if entry.operations.contains(&Op::Execute) && !commands {
        return Visibility::Hidden;
    }
    let setting = policy.tools().get(&entry.name);
    let votes = entry.operations.iter().map(|op| policy.most_lenient(*op));
    match votes.chain(setting.action).max().unwrap_or(Action::Deny) {
        Action::Deny => Visibility::Hidden,
        action => Visibility::Offered {
            asks: action == Action::Ask && !setting.pre_approved,
        },
    }
}
