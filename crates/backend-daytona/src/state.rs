//! [`InstanceState`]: the state of a sandbox, as the service describes it.

use std::fmt;

/// The state of a sandbox. States of the service that mean the same here are one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InstanceState {
    /// It is being created, built, restored or started.
    Starting,
    /// It runs.
    Started,
    /// It is being stopped.
    Stopping,
    /// It does not run, and keeps its files.
    Stopped,
    /// It is being paused.
    Pausing,
    /// It is frozen, with its memory.
    Paused,
    /// Its files are being moved to an archive.
    Archiving,
    /// Its files are in an archive; a start takes longer.
    Archived,
    /// It is being deleted.
    Deleting,
    /// It could not be created or started.
    Failed {
        /// Whether the service can recover it.
        recoverable: bool,
    },
    /// There is none.
    Missing,
    /// A state that this version does not know.
    Unknown(String),
}

impl InstanceState {
    /// Reads the service's word. No word is a sandbox that is not looked at yet.
    pub(crate) fn read(word: Option<&str>, recoverable: bool) -> Self {
        match word {
            None
            | Some(
                "" | "creating" | "restoring" | "starting" | "pending_build" | "building_snapshot"
                | "pulling_snapshot" | "resizing" | "snapshotting" | "forking" | "resuming",
            ) => Self::Starting,
            Some("started") => Self::Started,
            Some("stopping") => Self::Stopping,
            Some("stopped") => Self::Stopped,
            Some("pausing") => Self::Pausing,
            Some("paused") => Self::Paused,
            Some("archiving") => Self::Archiving,
            Some("archived") => Self::Archived,
            Some("destroying") => Self::Deleting,
            Some("destroyed") => Self::Missing,
            Some("error") => Self::Failed { recoverable },
            Some("build_failed") => Self::Failed { recoverable: false },
            Some(other) => Self::Unknown(other.chars().take(64).collect()),
        }
    }

    /// Whether it becomes another state by itself.
    pub(crate) fn is_changing(&self) -> bool {
        matches!(
            self,
            Self::Starting | Self::Stopping | Self::Pausing | Self::Archiving | Self::Unknown(_)
        )
    }

    /// Whether it keeps its files, does not run, and can be started.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self, Self::Stopped | Self::Paused | Self::Archived)
    }

    /// Whether it is gone, or will be.
    pub(crate) fn is_gone(&self) -> bool {
        matches!(self, Self::Deleting | Self::Missing)
    }
}

impl fmt::Display for InstanceState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Starting => "being started",
            Self::Started => "started",
            Self::Stopping => "being stopped",
            Self::Stopped => "stopped",
            Self::Pausing => "being paused",
            Self::Paused => "paused",
            Self::Archiving => "being archived",
            Self::Archived => "archived",
            Self::Deleting => "being deleted",
            Self::Failed { .. } => "in an error",
            Self::Missing => "deleted",
            Self::Unknown(_) => "in a state that this version does not know",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_states_break_nothing() {
        let read = |word| InstanceState::read(Some(word), true);
        assert_eq!(read("started"), InstanceState::Started);
        assert_eq!(read("error"), InstanceState::Failed { recoverable: true });
        let failed = InstanceState::Failed { recoverable: false };
        assert_eq!(read("build_failed"), failed);
        assert_eq!(InstanceState::read(None, false), InstanceState::Starting);
        let new = read("hibernating");
        assert_eq!(new, InstanceState::Unknown("hibernating".into()));
        assert!(new.is_changing() && !new.is_gone() && !new.is_at_rest());
        let long = "x".repeat(1_000_000);
        assert!(matches!(read(&long), InstanceState::Unknown(word) if word.len() == 64));
    }
}
