//! Replies as structured data, for clients that want it.
//!
//! If a result has data, many clients show the model nothing else. The data therefore
//! includes all of the text, whatever else a tool adds.

use console_tools::{Definition, Reply};
use serde_json::{Map, Value, json};

/// Converts a reply to data. Moves the structured data out of the reply.
pub(crate) fn of(reply: &mut Reply) -> Value {
    let mut fields = Map::new();
    fields.insert("text".to_owned(), reply.text.as_str().into());
    if let Some(data) = reply.structured.take() {
        fields.insert("data".to_owned(), data);
    }
    if let Some(class) = reply.failure {
        fields.insert("failure".to_owned(), class.as_str().into());
    }
    Value::Object(fields)
}

/// Returns `true` if the data of a tool has a schema. If replies may have blocks, it has
/// none: given a schema, clients insist on data, and given data, some of them do not
/// show images.
pub(crate) fn has_schema(definition: &Definition) -> bool {
    !definition.blocks
}

/// Returns the schema of that data, if it has one.
pub(crate) fn schema_of(definition: &Definition) -> Option<Map<String, Value>> {
    if !has_schema(definition) {
        return None;
    }
    let own = definition.output_schema();
    // References start at the root of a schema, which this one no longer is.
    let own = own.filter(|schema| !schema.to_string().contains("\"$ref\""));
    let schema = json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "data": own.unwrap_or_else(|| json!({})),
            "failure": {"type": "string", "enum": ["fixable", "refused", "environment"]},
        },
        "required": ["text"],
        "additionalProperties": false,
    });
    schema.as_object().cloned()
}

#[cfg(test)]
mod tests {
    use console_tools::{Annotations, FailureClass};

    use super::*;

    fn definition(schema: Option<Value>) -> Definition {
        let hints = Annotations::of(&[permissions::Op::Read]);
        Definition::new("a", "b", json!({"type": "object"}), hints).with_output_schema(schema)
    }

    #[test]
    fn a_reply_has_its_text_in_its_data() {
        let mut reply = Reply::text("all").structured(json!([1]));
        assert_eq!(of(&mut reply), json!({"text": "all", "data": [1]}));
        assert_eq!(reply.text, "all");
        let mut reply = Reply::text("Error: no");
        reply.failure = Some(FailureClass::Refused);
        let wanted = json!({"text": "Error: no", "failure": "refused"});
        assert_eq!(of(&mut reply), wanted);
    }

    #[test]
    fn only_what_stands_on_its_own_is_put_into_a_schema() {
        let data = |schema: Option<Value>| {
            let schema = schema_of(&definition(schema)).unwrap();
            assert_eq!(schema["required"], json!(["text"]));
            schema["properties"]["data"].clone()
        };
        let plain = json!({"type": "object", "properties": {}});
        assert_eq!(data(Some(plain.clone())), plain);
        assert_eq!(data(None), json!({}));
        let recursive = json!({"type": "object", "properties": {"a": {"$ref": "#"}}});
        assert_eq!(data(Some(recursive)), json!({}));
        assert!(schema_of(&definition(Some(plain)).shows_blocks()).is_none());
    }
}
