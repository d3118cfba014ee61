//! Decides which tools are offered under a policy.

use permissions::tool::{Visibility, visible};
use permissions::{Action, Op, OpClass, Policy};

use super::environment::BackendAbilities;
use super::registered_tool::RegisteredTool;

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
