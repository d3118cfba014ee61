//! The agents that go into the sandboxes of a backend.

use std::path::PathBuf;

use sandbox_wire::agent::AgentBinary;
use serde::Deserialize;

use super::kind::{Kind, Tables};
use crate::agent;
use crate::exit::Failure;

/// The agent in the table of a kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Setting {
    agent: Option<PathBuf>,
}

/// Returns the agents for pods if they are used, else those for containers: the one of the
/// table, or all that are found.
pub(crate) fn find(has_pods: bool, tables: &Tables) -> Result<Vec<AgentBinary>, Failure> {
    let kind = if has_pods { Kind::K8s } else { Kind::Docker };
    let setting: Setting = kind.settings(tables)?;
    agent::named_or_all(setting.agent.as_deref())
}
