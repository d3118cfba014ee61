//! The names and labels of containers that belong to sessions.

use backend_core::Result;

use crate::id::{SessionId, check_space};
use crate::layout::is_key;

/// The label that names the space of a container.
pub(super) const SPACE: &str = "agentbox-sessions.space";
/// The label with the fingerprint of its runtime.
pub(super) const RUNTIME: &str = "agentbox-sessions.runtime";
/// The label with the key of its directory, if it was created before its session.
pub(super) const SPARE: &str = "agentbox-sessions.spare";

/// The names of one space.
#[derive(Debug, Clone)]
pub(super) struct Names {
    space: String,
}

impl Names {
    /// Checks the name of a space. It has no hyphen, so that no name of one space can be
    /// read as that of another.
    pub(super) fn new(space: &str) -> Result<Self> {
        let space = check_space(space)?;
        Ok(Self { space })
    }

    pub(super) fn space(&self) -> &str {
        &self.space
    }

    /// The name of a session's container. Only one container can have it.
    pub(super) fn session(&self, id: &SessionId) -> String {
        format!("agentbox-s-{}-{}", self.space, id.engine_name())
    }

    /// The name of a session's container while it is ended as idle.
    pub(super) fn ending(&self, id: &SessionId) -> String {
        format!("agentbox-e-{}-{}", self.space, id.engine_name())
    }

    /// The name of a container that belongs to no session yet.
    pub(super) fn spare(&self, key: &str) -> String {
        format!("agentbox-p-{}-{key}", self.space)
    }

    /// The session whose container has this name, also while it is ended.
    pub(super) fn session_of(&self, name: &str) -> Option<SessionId> {
        let named = name.strip_prefix("agentbox-s-");
        let rest = named.or_else(|| name.strip_prefix("agentbox-e-"))?;
        let rest = rest.strip_prefix(&*self.space)?.strip_prefix('-')?;
        SessionId::from_engine_name(rest)
    }

    /// The key of the container without a session that has this name.
    pub(super) fn spare_of<'n>(&self, name: &'n str) -> Option<&'n str> {
        let rest = name.strip_prefix("agentbox-p-")?;
        let key = rest.strip_prefix(&*self.space)?.strip_prefix('-')?;
        is_key(key).then_some(key)
    }
}

/// Returns a key that no other container has.
pub(super) fn new_key() -> String {
    format!("{:016x}", fastrand::u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_sessions() {
        let names = Names::new("app").unwrap();
        for text in ["alice", "Alice_2", "a-b.c"] {
            let id = SessionId::new(text).unwrap();
            let name = names.session(&id);
            let ending = names.ending(&id);
            assert_ne!(name, ending);
            assert_eq!(names.session_of(&ending), Some(id.clone()));
            assert_eq!(names.session_of(&name), Some(id));
            assert_eq!(names.spare_of(&name), None);
        }
        let key = new_key();
        let name = names.spare(&key);
        assert_eq!(names.spare_of(&name), Some(&*key));
        assert_eq!(names.session_of(&name), None);
    }

    #[test]
    fn no_space_reads_the_names_of_another() {
        let (one, other) = (Names::new("a").unwrap(), Names::new("ab").unwrap());
        let id = SessionId::new("b-c").unwrap();
        assert_eq!(one.session_of(&other.session(&id)), None);
        assert_eq!(other.session_of(&one.session(&id)), None);
        for bad in ["", "a-b", "A", "ä", "a/b", &"a".repeat(33)] {
            assert!(Names::new(bad).is_err(), "{bad}");
        }
    }
}
