//! Generates the JSON Schema of a type in the form that clients accept: inlined, and
//! without noise.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Returns the JSON Schema of a type in the form that this crate uses for arguments:
/// self-contained unless the type is recursive, without titles and metadata, and closed
/// to fields that it does not name.
///
/// ```
/// use schemars::JsonSchema;
///
/// #[derive(JsonSchema)]
/// struct Args {
///     /// The file.
///     path: String,
/// }
/// assert_eq!(
///     console_tools::schema_for::<Args>(),
///     serde_json::json!({
///         "type": "object",
///         "properties": {"path": {"type": "string", "description": "The file."}},
///         "required": ["path"],
///         "additionalProperties": false,
///     })
/// );
/// ```
pub fn schema_for<T: JsonSchema + ?Sized>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12())
}

/// Like [`schema_for`], where a field that may be skipped is not required.
pub(crate) fn schema_of_data<T: JsonSchema + ?Sized>() -> Value {
    generated::<T>(SchemaSettings::draft2020_12().for_serialize())
}

fn generated<T: JsonSchema + ?Sized>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value();
    tidy(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        // The tool's own description replaces the one of the type.
        root.remove("description");
        if root.get("type").and_then(Value::as_str) == Some("object") {
            root.entry("properties")
                .or_insert_with(|| Value::Object(Map::new()));
            root.entry("additionalProperties")
                .or_insert(Value::Bool(false));
        }
    }
    schema
}

/// Removes keywords that only cost tokens or that clients reject. Recurses as deep as
/// the schema of the type, which is bounded.
fn tidy(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else {
        return;
    };
    fields.remove("title");
    fields.remove("$schema");
    if fields.get("default") == Some(&Value::Null) {
        fields.remove("default");
    }
    // The widths of Rust's numbers are formats that no other program knows.
    let format = fields.get("format").and_then(Value::as_str);
    let numeric = |name: &str| {
        ["uint", "int", "float", "double"]
            .iter()
            .any(|kind| name.starts_with(kind))
    };
    if format.is_some_and(numeric) {
        fields.remove("format");
    }
    if let Some(Value::String(text)) = fields.get_mut("description") {
        *text = unwrapped(text);
    }
    if fields.contains_key("properties") && !fields.contains_key("additionalProperties") {
        fields.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties" | "$defs" | "patternProperties", Value::Object(each)) => {
                each.values_mut().for_each(tidy);
            }
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Value::Array(each)) => {
                each.iter_mut().for_each(tidy);
            }
            ("items" | "additionalProperties" | "not", one) => tidy(one),
            _ => {}
        }
    }
}

/// Joins the lines of a doc comment that were only wrapped for the source. Lists and
/// paragraphs keep their line breaks.
fn unwrapped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.lines().map(str::trim) {
        let begins = line.is_empty() || line.starts_with("- ") || line.starts_with("```");
        let separator = match out.chars().last() {
            None | Some('\n') => "",
            Some(_) if begins => "\n",
            Some(_) => " ",
        };
        out.push_str(separator);
        out.push_str(line);
        if line.is_empty() {
            out.push('\n');
        }
    }
    out.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    enum Mode {
        /// One.
        One,
        Two,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct Inner {
        /// The old text.
        old: String,
    }

    /// Not for the model.
    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is of interest")]
    struct Args {
        /// A first line
        /// and a second.
        ///
        /// - a
        /// - b
        path: String,
        #[schemars(range(min = 1, max = 10))]
        limit: Option<u32>,
        #[serde(default)]
        edits: Vec<Inner>,
        mode: Option<Mode>,
    }

    #[test]
    fn one_piece_without_noise() {
        let schema = schema_for::<Args>();
        let text = schema.to_string();
        for noise in ["$ref", "$defs", "$schema", "title", "format", "Not for"] {
            assert!(!text.contains(noise), "{noise} in {text}");
        }
        let fields = &schema["properties"];
        assert_eq!(fields["limit"]["minimum"], 1);
        assert_eq!(fields["limit"]["maximum"], 10);
        assert_eq!(fields["edits"]["items"]["additionalProperties"], false);
        assert_eq!(
            fields["path"]["description"],
            "A first line and a second.\n\n- a\n- b"
        );
        assert_eq!(schema["required"], serde_json::json!(["path"]));
    }

    #[test]
    fn nothing_is_an_object_too() {
        #[derive(JsonSchema)]
        struct Nothing {}
        assert_eq!(
            schema_for::<Nothing>(),
            serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false})
        );
    }

    #[test]
    fn a_recursive_type_ends() {
        #[derive(JsonSchema)]
        #[allow(dead_code, reason = "only its schema is of interest")]
        struct Tree {
            children: Vec<Self>,
        }
        assert!(schema_for::<Tree>().to_string().len() < 2_000);
    }
}
