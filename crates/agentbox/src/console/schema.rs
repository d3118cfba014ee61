//! Reads the fields of a tool from its schema.

use console_tools::Definition;
use serde_json::Value;

/// Maximum depth of references in a schema.
const DEPTH: usize = 8;

/// A field of a tool's arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    pub(crate) required: bool,
    /// The allowed values, if they are limited.
    pub(crate) choices: Vec<String>,
    pub(crate) description: String,
    pub(crate) default: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Integer,
    Number,
    Flag,
    /// A list of values of one type.
    List(Box<Self>),
    /// Anything that can only be written as JSON.
    Json,
}

impl Kind {
    /// Returns the type's name for users.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Text => "text".to_owned(),
            Self::Integer => "whole number".to_owned(),
            Self::Number => "number".to_owned(),
            Self::Flag => "flag".to_owned(),
            Self::List(of) => format!("list of {}", of.name()),
            Self::Json => "JSON".to_owned(),
        }
    }
}

impl Field {
    /// Returns `true` if it can be given without its name.
    pub(crate) fn is_positional(&self) -> bool {
        matches!(self.kind, Kind::Text | Kind::Integer | Kind::Number)
    }

    /// Formats the field for a tool's usage line.
    pub(crate) fn usage(&self) -> String {
        let name = self.name.to_uppercase();
        if self.required {
            name
        } else {
            format!("[{name}]")
        }
    }

    /// Returns `true` if it names a file or a directory.
    pub(crate) fn is_path(&self) -> bool {
        let ends = ["path", "file", "dir", "directory", "source", "destination"];
        let last = self.name.rsplit('_').next().unwrap_or_default();
        self.kind == Kind::Text && ends.contains(&last)
    }
}

/// Returns the fields of a tool, in the order of its schema.
pub(crate) fn fields(definition: &Definition) -> Vec<Field> {
    let schema = &definition.input_schema;
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Vec::new();
    };
    let required = |name: &str| {
        let all = schema.get("required").and_then(Value::as_array);
        all.is_some_and(|all| all.iter().any(|one| one.as_str() == Some(name)))
    };
    let field = |(name, property): (&String, &Value)| {
        let (kind, nullable) = kind(schema, property, DEPTH);
        let description = property.get("description").and_then(Value::as_str);
        let default = property.get("default").filter(|value| !value.is_null());
        Field {
            name: name.clone(),
            kind,
            nullable,
            required: required(name),
            choices: choices(schema, property, DEPTH),
            description: description.unwrap_or_default().to_owned(),
            default: default.map(ToString::to_string),
        }
    };
    properties.iter().map(field).collect()
}

/// Returns `true` if the tool takes the whole rest of a line as its command.
pub(crate) fn takes_command(fields: &[Field]) -> bool {
    let first = fields.first();
    first.is_some_and(|field| field.name == "command" && field.kind == Kind::Text)
}

/// Resolves a reference within the schema.
fn target<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Value> {
    let reference = schema.get("$ref")?.as_str()?;
    root.pointer(reference.strip_prefix('#')?)
}

/// Returns the alternatives of a schema.
fn variants(schema: &Value) -> impl Iterator<Item = &Value> {
    let lists = ["anyOf", "oneOf", "allOf"];
    let lists = lists
        .into_iter()
        .filter_map(|name| schema.get(name)?.as_array());
    lists.flatten()
}

/// Returns the type of a field, and whether it may be `null`.
fn kind(root: &Value, schema: &Value, depth: usize) -> (Kind, bool) {
    if depth == 0 {
        return (Kind::Json, false);
    }
    if let Some(target) = target(root, schema) {
        return kind(root, target, depth - 1);
    }
    let names: Vec<&str> = match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let mut nullable = names.contains(&"null");
    let mut kinds: Vec<Kind> = Vec::new();
    for name in names {
        kinds.extend(match name {
            "string" => Some(Kind::Text),
            "integer" => Some(Kind::Integer),
            "number" => Some(Kind::Number),
            "boolean" => Some(Kind::Flag),
            "array" => {
                let of = schema
                    .get("items")
                    .map(|items| kind(root, items, depth - 1).0);
                Some(Kind::List(Box::new(of.unwrap_or(Kind::Json))))
            }
            "null" => None,
            _ => Some(Kind::Json),
        });
    }
    if kinds.is_empty() {
        let strings = |name| {
            schema.get(name).is_some_and(|value: &Value| match value {
                Value::Array(all) => all.iter().all(Value::is_string),
                one => one.is_string(),
            })
        };
        if strings("enum") || strings("const") {
            kinds.push(Kind::Text);
        }
    }
    for variant in variants(schema) {
        if variant.get("type").and_then(Value::as_str) == Some("null") {
            nullable = true;
            continue;
        }
        let (one, null) = kind(root, variant, depth - 1);
        nullable |= null;
        kinds.push(one);
    }
    kinds.dedup();
    match <[Kind; 1]>::try_from(kinds) {
        Ok([one]) => (one, nullable),
        Err(_) => (Kind::Json, nullable),
    }
}

fn choices(root: &Value, schema: &Value, depth: usize) -> Vec<String> {
    if depth == 0 {
        return Vec::new();
    }
    if let Some(target) = target(root, schema) {
        return choices(root, target, depth - 1);
    }
    let mut all: Vec<String> = Vec::new();
    let listed = schema.get("enum").and_then(Value::as_array);
    let constant = schema.get("const");
    for value in listed.into_iter().flatten().chain(constant) {
        all.extend(value.as_str().map(str::to_owned));
    }
    for variant in variants(schema) {
        all.extend(choices(root, variant, depth - 1));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn kinds_are_found_in_every_shape() {
        let root = json!({"$defs": {
            "order": {"enum": ["a", "b"]},
            "loop": {"$ref": "#/$defs/loop"},
        }});
        for (schema, expected) in [
            (json!({"type": "string"}), (Kind::Text, false)),
            (json!({"type": ["integer", "null"]}), (Kind::Integer, true)),
            (
                json!({"anyOf": [{"type": "number"}, {"type": "null"}]}),
                (Kind::Number, true),
            ),
            (json!({"$ref": "#/$defs/order"}), (Kind::Text, false)),
            (json!({"$ref": "#/$defs/loop"}), (Kind::Json, false)),
            (
                json!({"oneOf": [{"const": "a"}, {"const": "b"}]}),
                (Kind::Text, false),
            ),
            (json!({"type": ["string", "integer"]}), (Kind::Json, false)),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                (Kind::List(Box::new(Kind::Text)), false),
            ),
            (json!(true), (Kind::Json, false)),
        ] {
            assert_eq!(kind(&root, &schema, DEPTH), expected, "{schema}");
        }
        assert_eq!(
            choices(&root, &json!({"$ref": "#/$defs/order"}), DEPTH),
            ["a", "b"]
        );
    }
}
