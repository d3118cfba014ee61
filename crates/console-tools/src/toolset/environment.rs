//! [`CallEnvironment`]: a guarded backend and the tools that are offered on it.

use std::sync::Arc;

use backend_core::Backend;
use permissions::tool::{Visibility, visible};
use permissions::{Action, Guarded, Op, OpClass, Policy};

use super::registered_tool::RegisteredTool;
use crate::Definitions;
use crate::host_names::HostNames;

/// The environment of calls.
#[derive(Debug)]
pub(crate) struct CallEnvironment {
    pub(crate) guard: Guarded<Arc<dyn Backend>>,
    /// A guard that never asks and ignores the settings of tools.
    pub(crate) non_interactive: Guarded<Arc<dyn Backend>>,
    pub(crate) tools: Arc<OfferedTools>,
    pub(crate) host_names: HostNames,
}

/// The tools that are offered under a policy.
#[derive(Debug)]
pub(crate) struct OfferedTools {
    /// In the order of the entries.
    visible: Vec<Visibility>,
    pub(crate) definitions: Definitions,
}

impl OfferedTools {
    pub(crate) fn new(visible: Vec<Visibility>, entries: &[RegisteredTool]) -> Self {
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
    pub(crate) fn is_for(&self, visible: &[Visibility]) -> bool {
        self.visible == visible
    }

    pub(crate) fn offers(&self, index: usize) -> bool {
        matches!(self.visible.get(index), Some(Visibility::Offered { .. }))
    }
}

/// The abilities of a backend that tools depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BackendAbilities {
    pub(crate) commands: bool,
    pub(crate) writable: bool,
}

impl BackendAbilities {
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
pub(crate) fn offered(
    entries: &[RegisteredTool],
    policy: &Policy,
    abilities: BackendAbilities,
) -> Vec<Visibility> {
    let each = |entry: &RegisteredTool| {
        let changes = |op: &Op| op.class() == OpClass::Write;
        if !abilities.writable && entry.operations.iter().any(changes) {
            return Visibility::Hidden;
        }
        match entry.tool {
            Some(tool) => visible(tool, policy, abilities.commands),
            None => custom(entry, policy, abilities.commands),
        }
    };
    entries.iter().map(each).collect()
}

/// Returns whether a custom tool is offered. It is hidden if one of its operations is
/// always denied.
fn custom(entry: &RegisteredTool, policy: &Policy, commands: bool) -> Visibility {
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
