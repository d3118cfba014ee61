//! [`Agents`]: the agents that machines are served by, and the choice among them.

use std::ops::Deref;

use backend_core::{Error, ErrorKind, Quoted, Result};
use sandbox_wire::agent::AgentBinary;
use serde::Deserialize;

/// The part that serves file operations and commands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Mode {
    /// The agent if one fits the sandbox's processor, else the image's own shell and
    /// tools.
    #[default]
    Auto,
    /// The agent.
    Agent,
    /// The image's own shell and tools: slower, same answers.
    Portable,
}

/// Agents to choose from, one for each architecture.
#[derive(Debug, Clone, Default)]
pub struct Agents(Vec<AgentBinary>);

impl Deref for Agents {
    type Target = [AgentBinary];

    fn deref(&self) -> &[AgentBinary] {
        &self.0
    }
}

impl Agents {
    /// Adds an agent, replacing the one for the same architecture.
    pub fn add(&mut self, agent: AgentBinary) {
        self.0.retain(|other| other.arch() != agent.arch());
        self.0.push(agent);
    }

    /// Returns the agents to choose from in a mode: these, else the one next to this
    /// program. Empty in portable mode.
    ///
    /// # Errors
    ///
    /// `Config` if the mode needs an agent and there is none.
    pub fn located(&self, mode: Mode) -> Result<Self> {
        if mode == Mode::Portable {
            return Ok(Self::default());
        }
        let mut found = self.clone();
        if found.is_empty() {
            found.0.extend(AgentBinary::locate());
        }
        if found.is_empty() && mode == Mode::Agent {
            return Err(Error::new(
                ErrorKind::Config,
                "there is no sandbox-agent beside this program; give one with `agent` (`agentbox agent install` makes one), or use the portable mode",
            ));
        }
        Ok(found)
    }

    /// Returns the agent for an architecture, or any agent if it is empty: then it is
    /// unknown.
    pub fn fitting(&self, architecture: &str) -> Option<&AgentBinary> {
        let fits = |agent: &&AgentBinary| architecture.is_empty() || agent.arch() == architecture;
        self.0.iter().find(fits)
    }

    /// Returns the [fitting](Self::fitting) agent for a machine, such as a `container`, that
    /// has the architecture of something, such as its `image`.
    ///
    /// # Errors
    ///
    /// `Config` if there is none.
    pub fn require(&self, architecture: &str, machine: &str, of: &str) -> Result<&AgentBinary> {
        self.fitting(architecture).ok_or_else(|| {
            let ours: Vec<_> = self.0.iter().map(AgentBinary::arch).collect();
            let verb = if ours.len() == 1 { "agent is" } else { "agents are" };
            let message = if ours.is_empty() {
                format!("there is no agent to place in the {machine}; give one, or use the portable mode")
            } else {
                format!(
                    "the {verb} for {} and the {of} for {}; build the agent for it, or use the portable mode",
                    ours.join(" and "),
                    Quoted::new(architecture)
                )
            };
            Error::new(ErrorKind::Config, message)
        })
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// The smallest file that passes for a static program of an architecture.
    fn agent(directory: &std::path::Path, name: &str, processor: u8) -> AgentBinary {
        let mut bytes = vec![0; 64 + 56];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        for (at, value) in [(16, 2), (18, processor), (32, 64), (54, 56), (56, 1)] {
            bytes[at] = value;
        }
        let path = directory.join(name);
        std::fs::write(&path, bytes).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        AgentBinary::new(path).unwrap()
    }

    #[test]
    fn the_agent_is_that_of_the_machines_processor() {
        let place = tempfile::tempdir().unwrap();
        let mut agents = Agents::default();
        for (name, processor) in [("old", 62), ("arm", 183), ("new", 62)] {
            agents.add(agent(place.path(), name, processor));
        }
        let agents = agents.located(Mode::Agent).unwrap();
        let chosen = |architecture| {
            let agent = agents.fitting(architecture)?;
            Some(agent.path().file_name().unwrap().to_owned())
        };
        assert_eq!(chosen("amd64").unwrap(), "new");
        assert_eq!(chosen("arm64").unwrap(), "arm");
        assert_eq!(chosen("riscv64"), None);
        assert!(chosen("").is_some());
        assert_eq!(
            agents.require("arm64", "pod", "node").unwrap().arch(),
            "arm64"
        );
        let error = agents.require("riscv64", "container", "image").unwrap_err();
        let told = "the agents are for arm64 and amd64 and the image for 'riscv64';";
        assert!(error.message().starts_with(told), "{error}");
        assert!(agents.located(Mode::Portable).unwrap().is_empty());
        let error = Agents::default().require("", "pod", "node").unwrap_err();
        assert!(error.message().contains("place in the pod"), "{error}");
        let mut one = Agents::default();
        one.add(agent(place.path(), "arm", 183));
        let error = one.require("amd64", "pod", "node").unwrap_err();
        let told = "the agent is for arm64 and the node for 'amd64';";
        assert!(error.message().starts_with(told), "{error}");
    }

    #[test]
    fn without_any_agent_only_a_mode_that_needs_one_fails() {
        let none = Agents::default();
        assert!(none.located(Mode::Portable).unwrap().is_empty());
        assert!(none.located(Mode::Auto).unwrap().is_empty());
        let error = none.located(Mode::Agent).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Config, "{error}");
        assert!(error.message().contains("use the portable mode"), "{error}");
    }
}
