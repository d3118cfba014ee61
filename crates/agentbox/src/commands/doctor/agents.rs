//! The check for the agent in sandboxes.

use super::UsedBackend;
use super::finding::Finding;
use crate::agent::INSTALL;
use crate::backend::agents;
use crate::backend::kind::Kind;

pub(super) fn finding(backend: &UsedBackend) -> Finding {
    let finding = Finding::new("sandbox-agent", "fast calls into containers");
    let fix = format!("run {INSTALL}; without it calls take longer");
    match agents::find(|kind| backend.uses(kind), &backend.tables) {
        Ok(agents) if agents.is_empty() => finding.missing("is not found", fix),
        Ok(agents) => {
            let shown = agents
                .iter()
                .map(|agent| format!("{} ({})", agent.path().display(), agent.arch()));
            finding.ok(Vec::from_iter(shown).join(", "))
        }
        // An agent that was named and cannot be used fails every call.
        Err(failure) => {
            let kinds = [Kind::Docker, Kind::K8s, Kind::Daytona];
            let is_used = kinds.into_iter().any(|kind| backend.uses(kind));
            finding.needed(is_used).wrong(&failure)
        }
    }
}
