//! [`OutputSchema`]: the schema of a structured result.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use serde_json::Value;

/// The schema of a structured result. Few clients ask for it, so those of types are
/// generated when they are needed.
#[derive(Debug, Clone)]
pub(crate) enum OutputSchema {
    Given(Option<Arc<Value>>),
    Generated(fn() -> Option<Value>),
}

impl OutputSchema {
    pub(crate) fn get(&self) -> Option<Value> {
        match self {
            Self::Given(schema) => schema.as_deref().cloned(),
            Self::Generated(generate) => generate(),
        }
    }
}

impl Default for OutputSchema {
    fn default() -> Self {
        Self::Given(None)
    }
}

impl PartialEq for OutputSchema {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Generated(one), Self::Generated(other))
                if std::ptr::fn_addr_eq(*one, *other) =>
            {
                true
            }
            _ => self.get() == other.get(),
        }
    }
}

impl Serialize for OutputSchema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.get().serialize(serializer)
    }
}
