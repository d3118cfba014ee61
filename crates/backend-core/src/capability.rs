//! A backend's description of itself: name, capabilities, containment.

use std::borrow::Cow;
use std::fmt;

/// A backend's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct BackendInfo {
    /// A short name for messages and logs: `state`, `local`, `docker`.
    pub name: Cow<'static, str>,
    /// Operations and properties it supports.
    pub capabilities: Capabilities,
    /// The mechanism that keeps commands from outliving the backend.
    pub containment: Containment,
    /// The highest level at which it keeps the paths of a [`View`](crate::ops::View) from
    /// commands.
    pub enforcement: Enforcement,
    /// The reason why the level is not higher, with the next step, if there is one.
    pub enforcement_limit: Option<Cow<'static, str>>,
}

impl BackendInfo {
    /// Describes a backend that stores files and runs no commands.
    pub fn new(name: impl Into<Cow<'static, str>>, capabilities: Capabilities) -> Self {
        Self {
            name: name.into(),
            capabilities,
            containment: Containment::NoCommands,
            enforcement: Enforcement::Words,
            enforcement_limit: None,
        }
    }

    crate::setters! {
        /// Sets the mechanism that keeps commands from outliving the backend.
        containment: Containment,
        /// Sets the highest level at which it keeps paths from commands.
        enforcement: Enforcement,
        /// Sets the reason why the level is not higher.
        enforcement_limit: impl Into<Option<Cow<'static, str>>>,
    }
}

/// The capabilities of a backend beyond storing and searching files.
///
/// They describe the storage behind the backend and are not switches. Where a
/// capability is missing, the operations that need it return `Unsupported`, or its
/// absence cannot be observed at all.
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
    /// [`as_sandbox`](crate::Backend::as_sandbox) returns a sandbox, and commands run.
    pub commands: bool,
    /// [`Sandbox::connect`](crate::Sandbox::connect) reaches ports of commands.
    pub ports: bool,
    /// [`watch`](crate::Backend::watch) tells changes.
    pub watch: bool,
    /// Background shells can run in a terminal.
    pub terminals: bool,
}

/// Writes methods that set one capability.
macro_rules! declarations {
    ($($(#[$doc:meta])+ $name:ident: $capability:ident,)+) => {$(
        $(#[$doc])+
        #[must_use]
        pub fn $name(mut self) -> Self {
            self.$capability = true;
            self
        }
    )+};
}

impl Capabilities {
    /// Returns the capabilities of a backend whose files can be written, and nothing else.
    pub fn writable() -> Self {
        Self {
            writable: true,
            ..Self::default()
        }
    }

    declarations! {
        /// Declares that symbolic links can exist.
        with_links: links,
        /// Declares that files have permission bits.
        with_modes: modes,
        /// Declares that files have a time of last change.
        with_times: times,
        /// Declares that writes can be made durable.
        with_durable: durable,
        /// Declares that commands run.
        with_commands: commands,
        /// Declares that ports of commands can be reached.
        with_ports: ports,
        /// Declares that changes can be watched.
        with_watch: watch,
        /// Declares that background shells can run in a terminal.
        with_terminals: terminals,
    }
}

/// The mechanism that ends processes left behind by commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Containment {
    /// There are no commands.
    NoCommands,
    /// Known descendants are ended; a process that detaches itself may survive.
    BestEffort,
    /// A supervisor process ends every descendant, even if this process dies.
    Supervised,
    /// Commands run in a separate container or machine that ends with everything in it.
    Isolated,
}

/// How the paths that a policy denies are kept from commands. Each level includes the
/// ones before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum Enforcement {
    /// By the words of the command line, which a program can get around.
    #[default]
    Words,
    /// In addition, the kernel confines commands to the sandbox's directories.
    Landlock,
    /// In addition, the kernel keeps each denied path from them.
    View,
}

impl Enforcement {
    /// Returns the name of the level in settings and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Words => "words",
            Self::Landlock => "landlock",
            Self::View => "view",
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
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
            .with_commands()
            .with_ports()
            .with_watch()
            .with_terminals();
        assert!(all.writable && all.links && all.modes);
        assert!(all.times && all.durable && all.commands);
        assert!(all.ports && all.watch && all.terminals);
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
