//! [`Arguments`]: the arguments of a model, which are not trusted.

mod explain;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::json_size::measure;
use crate::reply::{ToolError, fixable};

/// Maximum nesting depth of arguments. The JSON parser has the same limit.
const DEPTH: usize = 128;

/// The arguments that a model passed to a tool.
#[derive(Debug, Clone)]
pub enum Arguments<'a> {
    /// The model's text, not parsed yet. No text and `null` stand for an empty object.
    Raw(&'a str),
    /// Parsed JSON.
    Value(Value),
}

impl<'a> From<&'a str> for Arguments<'a> {
    fn from(raw: &'a str) -> Self {
        Self::Raw(raw)
    }
}

impl<'a> From<&'a String> for Arguments<'a> {
    fn from(raw: &'a String) -> Self {
        Self::Raw(raw)
    }
}

impl From<Value> for Arguments<'_> {
    fn from(value: Value) -> Self {
        Self::Value(value)
    }
}

/// Parses arguments of at most `limit` bytes. The result is an object.
pub(crate) fn read(arguments: Arguments<'_>, limit: usize) -> Result<Value, ToolError> {
    let value = match arguments {
        Arguments::Raw(raw) if raw.len() > limit => return Err(too_large(raw.len(), limit)),
        Arguments::Raw(raw) => parse(raw)?,
        Arguments::Value(value) => {
            let (bytes, depth) = measure(&value);
            if bytes > limit || depth > DEPTH {
                dismantle(value);
                return Err(if bytes > limit {
                    too_large(bytes, limit)
                } else {
                    fixable!("the arguments are nested more than {DEPTH} deep; pass a flat object")
                });
            }
            value
        }
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(Map::new())),
        other => Err(fixable!(
            "the arguments must be a JSON object, not {}; pass {{\"name\": value, ...}}",
            explain::shown(&other)
        )),
    }
}

fn too_large(bytes: usize, limit: usize) -> ToolError {
    fixable!(
        "the arguments have {bytes} bytes, more than the {limit} that a call may have; \
         split the work into several calls"
    )
}

fn parse(raw: &str) -> Result<Value, ToolError> {
    if raw.trim().is_empty() {
        return Ok(Value::Null);
    }
    let invalid = |position: &str, error: serde_json::Error| {
        let position = match position {
            "." | "?" => String::new(),
            position => format!(" in {}", backend_core::Quoted::new(position)),
        };
        fixable!(
            "the arguments are not valid JSON{position}: {error}; pass one JSON object, \
             with '\\' and control characters in strings escaped and '\\u' escapes in pairs"
        )
    };
    let mut json = serde_json::Deserializer::from_str(raw);
    let parsed = serde_path_to_error::deserialize(&mut json);
    let value = parsed.map_err(|error| invalid(&error.path().to_string(), error.into_inner()))?;
    json.end().map_err(|error| invalid(".", error))?;
    Ok(value)
}

/// Drops a value without recursing.
fn dismantle(value: Value) {
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items),
            Value::Object(fields) => open.extend(fields.into_iter().map(|(_, field)| field)),
            _ => {}
        }
    }
}

/// Deserializes arguments into the type of the tool. `schema` is the schema of `T`.
pub(crate) fn typed<T: DeserializeOwned>(
    tool: &str,
    arguments: &Value,
    schema: &Value,
) -> Result<T, ToolError> {
    let error = match serde_path_to_error::deserialize(arguments) {
        Ok(typed) => return check(tool, arguments, schema).map(|()| typed),
        Err(error) => error,
    };
    let mut problems = explain::problems(schema, arguments, explain::Strict::Yes);
    if problems.is_empty() {
        let position = error.path().to_string();
        let message = error.into_inner().to_string();
        let at = backend_core::Quoted::new(&position);
        problems.push(match message.strip_prefix("invalid value: integer `") {
            _ if position == "." => message,
            // The rest of the message names a Rust type.
            Some(number) => {
                let number = number.split('`').next().unwrap_or_default();
                format!("{at} must be a smaller integer, not {number}")
            }
            None => format!("{at}: {message}"),
        });
    }
    Err(invalid_arguments(tool, &problems))
}

/// Checks types and bounds, about which the schema says more than the type. Unknown
/// fields pass: they may be aliases of known ones.
pub(crate) fn check(tool: &str, arguments: &Value, schema: &Value) -> Result<(), ToolError> {
    let problems = explain::problems(schema, arguments, explain::Strict::No);
    if problems.is_empty() {
        Ok(())
    } else {
        Err(invalid_arguments(tool, &problems))
    }
}

fn invalid_arguments(tool: &str, problems: &[String]) -> ToolError {
    fixable!(
        "wrong arguments for {tool}: {}; nothing was done, call it again with that corrected",
        problems.join("; ")
    )
}

#[cfg(test)]
mod tests;
