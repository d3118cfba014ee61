//! What a backend is and can do.

use std::borrow::Cow;

/// A backend's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BackendInfo {
    /// A short name for messages and logs: `state`, `local`, `docker`.
    pub name: Cow<'static, str>,
    /// What it can do.
    pub capabilities: Capabilities,
    /// What keeps its commands from outliving it.
    pub containment: Containment,
}

impl BackendInfo {
    /// Describes a backend that stores files and runs no commands.
    pub fn new(name: impl Into<Cow<'static, str>>, capabilities: Capabilities) -> Self {
        Self {
            name: name.into(),
            capabilities,
            containment: Containment::NoCommands,
        }
    }

    /// Sets what keeps commands from outliving the backend.
    #[must_use]
    pub fn containment(mut self, containment: Containment) -> Self {
        self.containment = containment;
        self
    }
}

/// What a backend can do beyond storing and searching files.
///
/// These are facts about the place behind the backend, not switches: where a
/// capability is missing, the operations that need it answer `Unsupported` or
/// cannot be observed at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct Capabilities {
    /// Files can be written, edited, moved and deleted.
    pub writable: bool,
    /// Symbolic links can exist.
    pub links: bool,
    /// Files have permission bits, and writes keep them.
    pub modes: bool,
    /// Files have a time of last change.
    pub times: bool,
    /// A write can be made durable before it returns.
    pub durable: bool,
    /// [`as_sandbox`](crate::Backend::as_sandbox) answers, and commands run.
    pub commands: bool,
}

impl Capabilities {
    /// Files can be written, and nothing else is promised.
    pub fn writable() -> Self {
        Self {
            writable: true,
            ..Self::default()
        }
    }

    /// Says that symbolic links can exist.
    #[must_use]
    pub fn with_links(mut self) -> Self {
        self.links = true;
        self
    }

    /// Says that files have permission bits.
    #[must_use]
    pub fn with_modes(mut self) -> Self {
        self.modes = true;
        self
    }

    /// Says that files have a time of last change.
    #[must_use]
    pub fn with_times(mut self) -> Self {
        self.times = true;
        self
    }

    /// Says that writes can be made durable.
    #[must_use]
    pub fn with_durable(mut self) -> Self {
        self.durable = true;
        self
    }

    /// Says that commands run.
    #[must_use]
    pub fn with_commands(mut self) -> Self {
        self.commands = true;
        self
    }
}

/// What ends the processes a command leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Containment {
    /// There are no commands.
    NoCommands,
    /// Known descendants are ended; one that hides well may survive.
    BestEffort,
    /// A supervisor process ends every descendant, even if this process dies.
    Supervised,
    /// A container or machine of its own ends with everything in it.
    Isolated,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_add_up() {
        let all = Capabilities::writable()
            .with_links()
            .with_modes()
            .with_times()
            .with_durable()
            .with_commands();
        assert!(all.writable && all.links && all.modes);
        assert!(all.times && all.durable && all.commands);
        assert_eq!(
            Capabilities::default(),
            Capabilities {
                writable: false,
                ..Capabilities::writable()
            }
        );
        let info = BackendInfo::new("x", all).containment(Containment::Supervised);
        assert_eq!(info.containment, Containment::Supervised);
    }
}
