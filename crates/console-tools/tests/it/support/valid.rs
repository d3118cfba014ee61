//! Validates data against a schema. Supports only the keywords that this crate's
//! schemas use. An unknown keyword is an error.

use serde_json::Value;

/// Keywords that do not affect validity.
const SAYS_NOTHING: &[&str] = &["$schema", "title", "description", "default", "format"];

/// Returns the problems of `data`, or nothing if it is valid.
pub(crate) fn problems(schema: &Value, data: &Value) -> Vec<String> {
    let mut found = Vec::new();
    check(schema, data, "", &mut found);
    found
}

fn check(schema: &Value, data: &Value, at: &str, found: &mut Vec<String>) {
    let Some(words) = schema.as_object() else {
        return found.push(format!("{at}: the schema is no object"));
    };
    for (word, says) in words {
        let holds = match word.as_str() {
            word if SAYS_NOTHING.contains(&word) => true,
            "type" => match says {
                Value::Array(each) => each.iter().any(|kind| is_a(kind, data)),
                kind => is_a(kind, data),
            },
            "enum" => says.as_array().is_some_and(|values| values.contains(data)),
            "const" => says == data,
            "minimum" => data.as_f64().is_none_or(|data| Some(data) >= says.as_f64()),
            "maximum" => data.as_f64().is_none_or(|data| Some(data) <= says.as_f64()),
            "anyOf" | "oneOf" => {
                let branches = says.as_array().into_iter().flatten();
                let fit = branches.filter(|branch| problems(branch, data).is_empty());
                fit.count() == 1
            }
            "required" => {
                let names = says.as_array().into_iter().flatten();
                let names: Vec<&str> = names.filter_map(Value::as_str).collect();
                data.as_object()
                    .is_none_or(|data| names.iter().all(|name| data.contains_key(*name)))
            }
            "properties" => {
                for (name, field) in says.as_object().into_iter().flatten() {
                    if let Some(data) = data.get(name) {
                        check(field, data, &format!("{at}.{name}"), found);
                    }
                }
                true
            }
            "additionalProperties" => {
                assert_eq!(says, &Value::Bool(false), "{at}");
                let known = |name: &str| words["properties"].get(name).is_some();
                let fields = data.as_object();
                fields.is_none_or(|fields| fields.keys().all(|name| known(name)))
            }
            "items" => {
                for (index, item) in data.as_array().into_iter().flatten().enumerate() {
                    check(says, item, &format!("{at}[{index}]"), found);
                }
                true
            }
            _ => false,
        };
        if !holds {
            found.push(format!("{at}: {word} {says} does not hold for {data}"));
        }
    }
}

fn is_a(kind: &Value, data: &Value) -> bool {
    match kind.as_str() {
        Some("string") => data.is_string(),
        Some("integer") => data.is_i64() || data.is_u64(),
        Some("number") => data.is_number(),
        Some("boolean") => data.is_boolean(),
        Some("array") => data.is_array(),
        Some("object") => data.is_object(),
        Some("null") => data.is_null(),
        _ => false,
    }
}
