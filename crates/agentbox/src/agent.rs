//! The agents that go into containers, and where they are found.

mod embedded;
pub(crate) mod storage;

use std::path::Path;

use sandbox_wire::agent::{AgentBinary, VARIABLE};

use self::storage::{check_parents, directory, file_name, is_own};
use crate::exit::Failure;
use crate::system;

/// The command that builds an agent and installs it where this program looks.
pub(crate) const INSTALL: &str = "agentbox agent install";

/// Returns the agent of this file, or else all that are available.
pub(crate) fn named_or_all(file: Option<&Path>) -> Result<Vec<AgentBinary>, Failure> {
    match file {
        Some(file) => Ok(vec![AgentBinary::new(file)?]),
        None => all(),
    }
}

/// Returns the same for a sandbox. In portable mode it has none, and none is looked for.
pub(crate) fn for_sandbox(
    file: Option<&Path>,
    is_portable: bool,
) -> Result<Vec<AgentBinary>, Failure> {
    match is_portable {
        true => Ok(Vec::new()),
        false => named_or_all(file),
    }
}

/// Returns the available agents, at most one for each processor. If `SANDBOX_AGENT`
/// names one, it is the only one. Otherwise agents installed for this version come
/// first, then those embedded in this program. Agents beside this program or in `PATH`
/// come last, because they may be of another version.
fn all() -> Result<Vec<AgentBinary>, Failure> {
    let located = AgentBinary::locate_from_env()?;
    if system::variable(VARIABLE).is_some() {
        return Ok(Vec::from_iter(located));
    }
    let mut found = installed();
    for agent in embedded::agents().into_iter().chain(located) {
        if found.iter().all(|other| other.arch() != agent.arch()) {
            found.push(agent);
        }
    }
    Ok(found)
}

fn installed() -> Vec<AgentBinary> {
    // A program must neither belong to another user nor be replaceable by one.
    let is_safe = |path: &Path| {
        let found = std::fs::symlink_metadata(path);
        found.is_ok_and(|found| is_own(&found) && (found.is_dir() || found.is_file()))
    };
    let safe = directory().filter(|directory| {
        directory.ancestors().take(3).all(is_safe) && check_parents(directory).is_ok()
    });
    let entries = safe.and_then(|directory| std::fs::read_dir(directory).ok());
    let mut agents: Vec<_> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let agent = AgentBinary::new(Some(&path).filter(|path| is_safe(path))?).ok()?;
            let name = file_name(agent.arch());
            (path.file_name() == Some(name.as_ref())).then_some(agent)
        })
        .collect();
    agents.sort_unstable_by_key(AgentBinary::arch);
    agents
}
