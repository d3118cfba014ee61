//! The check for the agent in containers and pods.

use super::UsedBackend;
use super::finding::Finding;
use crate::agent::INSTALL;
use crate::backend::agents;
use crate::backend::kind::Kind;

pub(super) fn finding(backend: &UsedBackend) -> Finding {
    let finding = Finding::new("sandbox-agent", "fast calls into containers");
    let fix = format!("run {INSTALL}; without it calls take longer");
    let has_pods = backend.uses(Kind::K8s);
    match agents::find(has_pods, &backend.tables) {
        Ok(agents) if agents.is_empty() => finding.missing("is not found", fix),
        Ok(agents) => {
            let shown = agents
                .iter()
                .map(|agent| format!("{} ({})", agent.path().display(), agent.arch()));
            finding.ok(Vec::from_iter(shown).join(", "))
        }
        // An agent that was named and cannot be used fails every call.
        Err(failure) => {
            let is_used = has_pods || backend.uses(Kind::Docker);
            finding.needed(is_used).wrong(&failure)
        }
    }
}
