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

/// Returns the agents for sandboxes of the first kind that is used, else those for containers:
/// the one of its table, or all that are found.
pub(crate) fn find(
    is_used: impl Fn(Kind) -> bool,
    tables: &Tables,
) -> Result<Vec<AgentBinary>, Failure> {
    let mut kinds = [Kind::K8s, Kind::Daytona].into_iter();
    let kind = kinds.find(|kind| is_used(*kind)).unwrap_or(Kind::Docker);
    let setting: Setting = kind.settings(tables)?;
    agent::named_or_all(setting.agent.as_deref())
}
