//! The structured data that replies carry besides their text.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::definition::schema_of_data;

/// Returns the JSON Schema of a tool's data.
pub(crate) fn schema_of<T: JsonSchema>() -> Option<Value> {
    Some(schema_of_data::<T>())
}

/// Converts a tool's data to JSON. Every type passed here has a JSON form.
pub(crate) fn to_value<T: Serialize>(data: &T) -> Value {
    serde_json::to_value(data).unwrap_or_default()
}
