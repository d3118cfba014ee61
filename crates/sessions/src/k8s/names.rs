//! The names and labels of objects that belong to sessions.

use crate::id::SessionId;

pub(super) use crate::names::{Names, SPACE, new_key};

/// Label: the key of the session that a volume claim belongs to.
pub(super) const SESSION: &str = "sessions.agentbox.dev/session";
/// Label: the process that made a pod before there was a session for it.
pub(super) const SPARE: &str = "sessions.agentbox.dev/spare";
/// Label: the process that a lease is the sign of life of.
pub(super) const PROCESS: &str = "sessions.agentbox.dev/process";

impl Names {
    /// The selector of all objects of the space.
    pub(super) fn all(&self) -> String {
        format!("{SPACE}={}", self.space())
    }

    /// The selector of the signs of life of processes.
    pub(super) fn processes(&self) -> String {
        format!("{},{PROCESS}", self.all())
    }

    /// The selector of the leases of sessions.
    pub(super) fn locks(&self) -> String {
        format!("{},!{PROCESS}", self.all())
    }

    /// The selector of the volume claims of sessions, of one or of all.
    pub(super) fn stored(&self, id: Option<&SessionId>) -> String {
        let all = self.all();
        match id {
            Some(id) => format!("{all},{SESSION}={}", self.key(id)),
            None => format!("{all},{SESSION}"),
        }
    }
}

/// The name of a pod that belongs to no session yet.
pub(super) fn spare(key: &str) -> String {
    format!("agentbox-p-{key}")
}

/// The name of the lease that is a process's sign of life.
pub(super) fn process(key: &str) -> String {
    format!("agentbox-h-{key}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_space_is_a_part_of_a_selector() {
        for bad in ["", "a-b", "A", "ä", "a/b", "a,b=c", &"a".repeat(33)] {
            assert!(Names::new(bad).is_err(), "{bad}");
        }
        let names = Names::new("app").unwrap();
        assert_eq!(names.all(), "sessions.agentbox.dev/space=app");
        let id = SessionId::new("alice").unwrap();
        assert!(names.stored(Some(&id)).ends_with(&names.key(&id)));
    }
}
