//! [`Exclude`] as its layers of rules, compiled again when they arrive.

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

use super::Exclude;

impl Serialize for Exclude {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.layers().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Exclude {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let layers = Deserialize::deserialize(deserializer)?;
        Self::from_layers(layers).map_err(D::Error::custom)
    }
}
