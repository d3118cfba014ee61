//! The names and labels of objects that belong to sessions.

use backend_core::{ContentHash, Result};

use crate::id::{SessionId, check_space};

/// Label: the space of an object.
pub(super) const SPACE: &str = "sessions.agentbox.dev/space";
/// Label: the key of the session that a volume claim belongs to.
pub(super) const SESSION: &str = "sessions.agentbox.dev/session";
/// Label: the process that made a pod before there was a session for it.
pub(super) const SPARE: &str = "sessions.agentbox.dev/spare";
/// Label: the process that a lease is the sign of life of.
pub(super) const PROCESS: &str = "sessions.agentbox.dev/process";

/// Characters of a hash that tell two sessions apart.
const KEY_CHARACTERS: usize = 32;
/// Characters of an id that are shown in a name. A whole name has at most 63, so that it is
/// also the pod's host name.
const SHOWN_CHARACTERS: usize = 19;

/// The names of one space.
#[derive(Debug, Clone)]
pub(super) struct Names {
    space: String,
}

impl Names {
    /// Checks the name of a space, which is the value of a label.
    pub(super) fn new(space: &str) -> Result<Self> {
        let space = check_space(space)?;
        Ok(Self { space })
    }

    pub(super) fn space(&self) -> &str {
        &self.space
    }

    /// The selector of all objects of the space.
    pub(super) fn all(&self) -> String {
        format!("{SPACE}={}", self.space)
    }

    /// The selector of the volume claims of sessions, of one or of all.
    pub(super) fn stored(&self, id: Option<&SessionId>) -> String {
        let all = self.all();
        match id {
            Some(id) => format!("{all},{SESSION}={}", self.key(id)),
            None => format!("{all},{SESSION}"),
        }
    }

    /// A text that no other session has, of any space.
    pub(super) fn key(&self, id: &SessionId) -> String {
        let whole = format!("{}/{id}", self.space);
        let mut hash = ContentHash::of(whole.as_bytes()).to_string();
        hash.truncate(KEY_CHARACTERS);
        hash
    }

    /// The name of the objects that are the session: its pod, or the lease on a pod that was
    /// made before. The beginning of the id is for people.
    pub(super) fn session(&self, id: &SessionId) -> String {
        let shown = id.as_str().bytes().filter(u8::is_ascii_alphanumeric);
        let shown = shown.take(SHOWN_CHARACTERS);
        let shown: String = shown
            .map(|byte| char::from(byte.to_ascii_lowercase()))
            .collect();
        format!("agentbox-s-{shown}-{}", self.key(id))
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

/// Returns a key that no other object has.
pub(super) fn new_key() -> String {
    format!("{:032x}", fastrand::u128(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_hosts_and_differ() {
        let names = Names::new("app").unwrap();
        let mut seen = std::collections::HashSet::new();
        for text in ["alice", "Alice", "a_lice", "a.lice-", &"x".repeat(64)] {
            let name = names.session(&SessionId::new(text).unwrap());
            let good =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(name.bytes().all(good), "{name}");
            assert!(name.len() <= 63, "{name}");
            assert!(seen.insert(name));
        }
        let other = Names::new("ap").unwrap();
        let id = SessionId::new("alice").unwrap();
        assert!(names.session(&id).starts_with("agentbox-s-alice-"));
        assert_ne!(names.session(&id), other.session(&id));
    }

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
