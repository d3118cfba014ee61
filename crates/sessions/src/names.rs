//! The names of the objects that belong to sessions, where a service has many objects of others.

use backend_core::{ContentHash, Result};

use crate::id::{SessionId, check_space};

/// Label: the space of an object.
pub(crate) const SPACE: &str = "sessions.agentbox.dev/space";

/// Characters of a hash that tell two sessions apart.
const KEY_CHARACTERS: usize = 32;
/// Characters of an id that are shown in a name. A whole name has at most 63, so that it is
/// also the pod's host name.
const SHOWN_CHARACTERS: usize = 19;

/// The names of one space.
#[derive(Debug, Clone)]
pub(crate) struct Names {
    space: String,
}

impl Names {
    /// Checks the name of a space, which is the value of a label.
    pub(crate) fn new(space: &str) -> Result<Self> {
        let space = check_space(space)?;
        Ok(Self { space })
    }

    pub(crate) fn space(&self) -> &str {
        &self.space
    }

    /// A text that no other session has, of any space.
    pub(crate) fn key(&self, id: &SessionId) -> String {
        let whole = format!("{}/{id}", self.space);
        let mut hash = ContentHash::of(whole.as_bytes()).to_string();
        hash.truncate(KEY_CHARACTERS);
        hash
    }

    /// The name of the objects that are the session. The beginning of the id is for people.
    pub(crate) fn session(&self, id: &SessionId) -> String {
        let shown = id.as_str().bytes().filter(u8::is_ascii_alphanumeric);
        let shown = shown.take(SHOWN_CHARACTERS);
        let shown: String = shown
            .map(|byte| char::from(byte.to_ascii_lowercase()))
            .collect();
        format!("agentbox-s-{shown}-{}", self.key(id))
    }
}

/// Returns a key that no other object has.
pub(crate) fn new_key() -> String {
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
}
