//! [`VPath`] as a string that is folded and checked again when it arrives.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::path::VPath;

impl Serialize for VPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for VPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Path;

        impl Visitor<'_> for Path {
            type Value = VPath;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an absolute path")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<VPath, E> {
                if !text.starts_with('/') {
                    return Err(E::custom("the path is not absolute"));
                }
                VPath::parse(text).map_err(E::custom)
            }
        }

        deserializer.deserialize_str(Path)
    }
}
