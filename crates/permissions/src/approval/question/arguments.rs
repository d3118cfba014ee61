//! The arguments of a tool: their canonical form, and the form that is shown.

use backend_core::ops::ContentHash;
use serde_json::{Map, Value};

use crate::approval::limits::{ARGUMENT_BYTES, ARGUMENTS_BYTES};
use crate::approval::text;

/// Returns the hash of `value` in its canonical form.
pub(super) fn hash(value: &Value) -> ContentHash {
    let mut text = String::new();
    write_canonical(value, &mut text);
    ContentHash::of(text.as_bytes())
}

/// Writes JSON without spaces, with sorted keys. It only appends, so that a model cannot
/// make large arguments slow by nesting them.
fn write_canonical(value: &Value, to: &mut String) {
    match value {
        Value::Object(map) => {
            to.push('{');
            for (number, (key, value)) in sorted(map).into_iter().enumerate() {
                if number > 0 {
                    to.push(',');
                }
                to.push_str(&Value::from(key.as_str()).to_string());
                to.push(':');
                write_canonical(value, to);
            }
            to.push('}');
        }
        Value::Array(items) => {
            to.push('[');
            for (number, item) in items.iter().enumerate() {
                if number > 0 {
                    to.push(',');
                }
                write_canonical(item, to);
            }
            to.push(']');
        }
        plain => to.push_str(&plain.to_string()),
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
