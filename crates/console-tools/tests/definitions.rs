//! What a model is told, in each shape.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set up has failed"
)]

#[path = "support/people.rs"]
#[allow(dead_code, reason = "each test file uses its part")]
mod people;

use std::sync::Arc;

use console_tools::{Definitions, Toolset};
use people::{Swap, store};
use permissions::Preset;
use serde_json::{Value, json};

async fn swap_only() -> Definitions {
    let toolset = Toolset::builder(Arc::new(store().await))
        .ruleset(Preset::Strict.ruleset())
        .tool(Swap)
        .build()
        .unwrap();
    toolset.definitions()
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "one": {"type": "string", "description": "One file."},
            "two": {"type": "string", "description": "The other."},
            "times": {
                "type": ["integer", "null"],
                "description": "How often.",
                "minimum": 1,
                "maximum": 9,
            },
        },
        "required": ["one", "two"],
        "additionalProperties": false,
    })
}

fn of_swap(all: &Value, name: impl Fn(&Value) -> &Value) -> Value {
    let all = all.as_array().unwrap();
    let found = all.iter().find(|tool| name(tool) == "swap");
    found.unwrap().clone()
}

#[tokio::test]
async fn each_client_gets_its_shape() {
    let definitions = swap_only().await;
    let description = "Swaps the contents of two files.";
    assert_eq!(
        of_swap(&definitions.mcp(), |tool| &tool["name"]),
        json!({
            "name": "swap", "description": description, "inputSchema": schema(),
            "annotations": {
                "readOnlyHint": false, "destructiveHint": true,
                "idempotentHint": false, "openWorldHint": false,
            },
            "_meta": {"console-tools/asks": true},
        })
    );
    assert_eq!(
        of_swap(&definitions.openai(), |tool| &tool["function"]["name"]),
        json!({
            "type": "function",
            "function": {"name": "swap", "description": description, "parameters": schema()},
        })
    );
    assert_eq!(
        of_swap(&definitions.openai_responses(), |tool| &tool["name"]),
        json!({
            "type": "function", "name": "swap", "description": description,
            "parameters": schema(), "strict": false,
        })
    );
    assert_eq!(
        of_swap(&definitions.anthropic(), |tool| &tool["name"]),
        json!({"name": "swap", "description": description, "input_schema": schema()})
    );
}

/// What every tool that there is must be like, whoever wrote it.
#[tokio::test]
async fn every_schema_is_whole_and_closed() {
    fn walk(schema: &Value, at: &str) {
        let Some(fields) = schema.as_object() else {
            return;
        };
        for noise in ["$ref", "$defs", "$schema", "title", "format"] {
            assert!(!fields.contains_key(noise), "{noise} in {at}");
        }
        if let Some(known) = fields.get("properties").and_then(Value::as_object) {
            assert_eq!(
                fields.get("additionalProperties"),
                Some(&json!(false)),
                "{at}"
            );
            for (name, field) in known {
                let text = field["description"].as_str().unwrap_or_default();
                assert!(!text.trim().is_empty(), "{at}.{name} is not described");
                walk(field, &format!("{at}.{name}"));
            }
        }
        if let Some(items) = fields.get("items") {
            walk(items, &format!("{at}[]"));
        }
    }
    for profile in ["coding", "lean", "filesystem"] {
        for format in ["str_replace", "hashline"] {
            let options = json!({
                "profile": profile, "edit_format": format, "include_file_operations": true,
            });
            let toolset = Toolset::builder(Arc::new(store().await))
                .options(serde_json::from_value(options).unwrap())
                .tool(Swap);
            let toolset = toolset.build().unwrap();
            for definition in toolset.definitions().iter() {
                assert_eq!(
                    definition.input_schema["type"], "object",
                    "{}",
                    definition.name
                );
                assert!(!definition.description.is_empty(), "{}", definition.name);
                walk(&definition.input_schema, &definition.name);
                let console = profile != "filesystem" && definition.name != "swap";
                assert!(!console || definition.output_schema.is_some());
                if let Some(schema) = &definition.output_schema {
                    assert_eq!(schema["type"], "object", "{}", definition.name);
                    if console {
                        walk(schema, &format!("{}, output", definition.name));
                    }
                }
            }
        }
    }
}
