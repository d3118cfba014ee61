//! Decides which tools are offered under a policy.

use backend_core::Capabilities;
use permissions::tool::{Visibility, visible, visible_as};
use permissions::{Op, OpClass, Policy};

use super::registered_tool::RegisteredTool;

pub(crate) fn offered(
    entries: &[RegisteredTool],
    policy: &Policy,
    capabilities: Capabilities,
) -> Vec<Visibility> {
    let each = |entry: &RegisteredTool| {
        let changes = |op: &Op| op.class() == OpClass::Write;
        if !capabilities.writable && entry.operations.iter().any(changes) {
            return Visibility::Hidden;
        }
        match entry.tool {
            Some(tool) => visible(tool, policy, capabilities.commands),
            None => visible_as(&entry.name, entry.operations, policy, capabilities.commands),
        }
    };
    entries.iter().map(each).collect()
}
