//! Measures JSON.

use serde_json::Value;

/// Returns the approximate size of a value in bytes, and its depth. Does not recurse,
/// so deep nesting cannot overflow the stack.
pub(crate) fn measure(value: &Value) -> (usize, usize) {
    let mut open = vec![(value, 1)];
    let (mut bytes, mut deepest) = (0, 0);
    while let Some((value, depth)) = open.pop() {
        deepest = deepest.max(depth);
        match value {
            Value::String(text) => bytes += text.len() + 2,
            Value::Array(items) => {
                bytes += 2 + items.len();
                open.extend(items.iter().map(|item| (item, depth + 1)));
            }
            Value::Object(fields) => {
                bytes += 2 + fields.keys().map(|key| key.len() + 4).sum::<usize>();
                open.extend(fields.values().map(|field| (field, depth + 1)));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes += 4,
        }
    }
    (bytes, deepest)
}
