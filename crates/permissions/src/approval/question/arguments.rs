//! The arguments of a tool: their canonical form, and the form that is shown.

use backend_core::ops::ContentHash;
use serde_json::{Map, Value};

use crate::approval::limits::{ARGUMENT_BYTES, ARGUMENTS_BYTES};
use crate::approval::text;

/// Returns the hash of `value` in its canonical form.
pub(super) fn hash(value: &Value) -> ContentHash {
    ContentHash::of(canonical(value).as_bytes())
}

/// Returns JSON without spaces, with sorted keys.
fn canonical(value: &Value) -> String {
    match value {
        Value::Object(map) => {
            let entry = |(key, value): (&String, &Value)| {
                format!("{}:{}", Value::from(key.as_str()), canonical(value))
            };
            let entries: Vec<String> = sorted(map).into_iter().map(entry).collect();
            format!("{{{}}}", entries.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(canonical).collect();
            format!("[{}]", items.join(","))
        }
        plain => plain.to_string(),
    }
}

/// Returns the entries by key. Whether a map keeps its keys sorted depends on features
/// that another crate may turn on, so they are sorted here.
fn sorted(map: &Map<String, Value>) -> Vec<(&String, &Value)> {
    let mut entries: Vec<_> = map.iter().collect();
    entries.sort_unstable_by_key(|(key, _)| *key);
    entries
}

/// Returns `value` with long strings truncated, or only its size and hash.
pub(super) fn shown(mut value: Value) -> Value {
    let size = value.to_string().len();
    if size <= ARGUMENT_BYTES {
        return value;
    }
    let hash = hash(&value);
    cut_strings(&mut value);
    if value.to_string().len() > ARGUMENTS_BYTES {
        return Value::from(format!("[{size} bytes of arguments, sha256 {hash}]"));
    }
    value
}

fn cut_strings(value: &mut Value) {
    match value {
        Value::String(string) if string.len() > ARGUMENT_BYTES => {
            *string = text::cut(string, ARGUMENT_BYTES).into_owned();
        }
        Value::Array(items) => items.iter_mut().for_each(cut_strings),
        Value::Object(map) => map.values_mut().for_each(cut_strings),
        _ => {}
    }
}

/// Replaces the values of the keys in `names`, at any depth.
pub(super) fn redact(value: &mut Value, names: &[&str]) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, names)),
        Value::Object(map) => {
            for (key, value) in map.iter_mut() {
                if names.contains(&key.as_str()) {
                    *value = Value::from("[redacted]");
                } else {
                    redact(value, names);
                }
            }
        }
        _ => {}
    }
}

/// Formats the arguments as in a call: `a=1, b="x"`.
pub(super) fn in_call(args: &Value) -> String {
    match args {
        Value::Null => String::new(),
        Value::Object(map) => {
            let entries = sorted(map);
            let words = entries.iter().map(|(key, value)| format!("{key}={value}"));
            words.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}
