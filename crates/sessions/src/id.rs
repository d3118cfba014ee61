//! [`SessionId`]: the name of a session, checked once.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use backend_core::{Error, Quoted};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The longest id, in bytes.
pub const ID_BYTES: usize = 64;

/// The longest name of a space.
#[cfg(any(feature = "daytona", feature = "docker", feature = "k8s"))]
const SPACE_BYTES: usize = 32;

/// The id of a session: a letter or digit, then up to 63 letters, digits, `.`, `_` and `-`.
///
/// It can be a part of a path and of a container's name as it is. Ids that differ only in
/// capitals are different sessions; where names ignore case, use
/// [`engine_name`](Self::engine_name).
///
/// ```
/// use sessions::SessionId;
///
/// let id: SessionId = "Alice_2".parse()?;
/// assert_eq!(id.as_str(), "Alice_2");
/// assert_eq!(id.engine_name(), "_alice__2");
/// assert_eq!(SessionId::from_engine_name("_alice__2"), Some(id));
/// assert!("../alice".parse::<SessionId>().is_err());
/// # Ok::<(), backend_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Creates an id.
    ///
    /// # Errors
    ///
    /// `InvalidInput` if the text is not an id.
    pub fn new(text: impl AsRef<str>) -> Result<Self, Error> {
        let text = text.as_ref();
        if is_id(text) {
            return Ok(Self(text.into()));
        }
        let shown: String = text.chars().take(ID_BYTES).collect();
        Err(Error::invalid_input(format!(
            "{} is not the id of a session; use a letter or digit, then up to {} letters, digits, '.', '_' and '-'",
            Quoted::new(&shown),
            ID_BYTES - 1
        )))
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a name of small letters, digits, `.`, `_` and `-` that no other id has.
    ///
    /// It has at most 128 characters and may begin with `_`: put a prefix before it. A
    /// capital is written as `_` and its small letter, and `_` as `__`.
    pub fn engine_name(&self) -> String {
        let mut name = String::with_capacity(self.0.len() + 8);
        for character in self.0.chars() {
            if character == '_' || character.is_ascii_uppercase() {
                name.push('_');
            }
            name.push(character.to_ascii_lowercase());
        }
        name
    }

    /// Returns the id that has this name, if one has.
    pub fn from_engine_name(name: &str) -> Option<Self> {
        let mut text = String::with_capacity(name.len());
        let mut characters = name.chars();
        while let Some(character) = characters.next() {
            match character {
                '_' => match characters.next()? {
                    '_' => text.push('_'),
                    letter if letter.is_ascii_lowercase() => text.push(letter.to_ascii_uppercase()),
                    _ => return None,
                },
                capital if capital.is_ascii_uppercase() => return None,
                other => text.push(other),
            }
        }
        Self::new(text).ok()
    }
}

fn is_id(text: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let bytes = text.as_bytes();
    bytes.len() <= ID_BYTES
        && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| rest(*byte))
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for SessionId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl TryFrom<&str> for SessionId {
    type Error = Error;

    fn try_from(text: &str) -> Result<Self, Error> {
        Self::new(text)
    }
}

impl Borrow<str> for SessionId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl Serialize for SessionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(text).map_err(serde::de::Error::custom)
    }
}

/// Checks the name of a space of sessions. It can be a part of names and labels.
#[cfg(any(feature = "daytona", feature = "docker", feature = "k8s"))]
pub(crate) fn check_space(space: &str) -> Result<String, Error> {
    let good = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if (1..=SPACE_BYTES).contains(&space.len()) && space.bytes().all(good) {
        return Ok(space.to_owned());
    }
    let message = format!(
        "{} is not the name of a space of sessions; use 1 to {SPACE_BYTES} small letters and digits",
        Quoted::new(space)
    );
    Err(Error::new(backend_core::ErrorKind::Config, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_checked() {
        for good in ["a", "0", "A.b_c-D", &"x".repeat(64)] {
            assert_eq!(SessionId::new(good).unwrap().as_str(), good);
        }
        for bad in [
            "",
            ".a",
            "_a",
            "-a",
            "a/b",
            "a b",
            "ä",
            "a\0",
            &"x".repeat(65),
        ] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_long_text_is_cut_in_the_message() {
        let error = SessionId::new("x".repeat(100_000)).unwrap_err();
        assert!(error.to_string().len() < 300);
    }

    #[test]
    fn names_are_reversible_and_differ() {
        let ids = [
            "ab", "Ab", "aB", "AB", "a_b", "a__b", "a_B", "a__B", "a.b", "a-b",
        ];
        let mut names = std::collections::HashSet::new();
        for id in ids {
            let id = SessionId::new(id).unwrap();
            let name = id.engine_name();
            assert!(!name.contains(|c: char| c.is_ascii_uppercase()));
            assert_eq!(SessionId::from_engine_name(&name), Some(id));
            assert!(names.insert(name));
        }
        for foreign in ["", "_", "a_", "a_1", "Ab", "_.a"] {
            assert_eq!(SessionId::from_engine_name(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn json_is_the_text_and_is_checked() {
        let id = SessionId::new("alice").unwrap();
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"alice\"");
        assert_eq!(serde_json::from_str::<SessionId>("\"alice\"").unwrap(), id);
        assert!(serde_json::from_str::<SessionId>("\"../x\"").is_err());
    }
}
