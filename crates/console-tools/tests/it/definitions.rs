//! Tests of the tool definitions in each format.

use std::sync::Arc;

use console_tools::{Definitions, Options, Profile, Toolset};
use permissions::Preset;
use serde_json::{Value, json};

use crate::support::approver::{Swap, store};

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

/// Requirements for the schema of every tool, builtin or custom.
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
                let schema = definition.output_schema();
                assert!(!console || schema.is_some());
                if let Some(schema) = &schema {
                    assert_eq!(schema["type"], "object", "{}", definition.name);
                    if console {
                        walk(schema, &format!("{}, output", definition.name));
                    }
                }
            }
        }
    }
}

/// Builds a toolset with these descriptions.
fn described(
    profile: Profile,
    texts: &[(&str, &str)],
) -> Result<Toolset, console_tools::BuildError> {
    let mut options = Options::default();
    options.profile = profile;
    let texts = texts.iter();
    options.descriptions = texts
        .map(|(key, text)| ((*key).to_owned(), (*text).to_owned()))
        .collect();
    let backend = Arc::new(backend_state::StateBackend::new());
    Toolset::builder(backend)
        .options(options)
        .tool(Swap)
        .build()
}

#[test]
fn toolsets_share_the_schemas_that_they_do_not_change() {
    let schema = |texts: &[(&str, &str)], tool: &str| {
        let definitions = described(Profile::Coding, texts).unwrap().definitions();
        Arc::clone(&definitions.get(tool).unwrap().input_schema)
    };
    let one = schema(&[], "edit_file");
    let other = schema(&[("grep.pattern", "A regular expression.")], "edit_file");
    assert!(Arc::ptr_eq(&one, &other));
    let changed = schema(&[("edit_file.path", "A file.")], "edit_file");
    assert_ne!(one, changed);
    assert_eq!(one, schema(&[], "edit_file"));
}

#[test]
fn tools_and_arguments_can_be_described_in_other_words() {
    let texts = [
        ("grep", "Searches."),
        ("grep.pattern", "A regular expression."),
        ("edit_file.edits.old_string", "Before."),
        ("swap.one", "The first {file}."),
        // Not offered here, but not an error either.
        ("delete_file.path", "What to delete."),
    ];
    let plain = described(Profile::Coding, &[]).unwrap().definitions();
    let definitions = described(Profile::Coding, &texts).unwrap().definitions();
    let at = |tool: &str, pointer: &str| {
        let schema = &definitions.get(tool).unwrap().input_schema;
        schema.pointer(pointer).unwrap()["description"].clone()
    };
    assert_eq!(definitions.get("grep").unwrap().description, "Searches.");
    assert_eq!(at("grep", "/properties/pattern"), "A regular expression.");
    let old = "/properties/edits/items/properties/old_string";
    assert_eq!(at("edit_file", old), "Before.");
    assert_eq!(at("swap", "/properties/one"), "The first {file}.");
    // Nothing else has changed, neither here nor in another toolset.
    let mut grep = definitions.get("grep").unwrap().clone();
    let before = plain.get("grep").unwrap();
    grep.description.clone_from(&before.description);
    Arc::make_mut(&mut grep.input_schema)["properties"]["pattern"] =
        before.input_schema["properties"]["pattern"].clone();
    assert_eq!(grep, *before);
    let other = described(Profile::Coding, &[]).unwrap().definitions();
    assert_eq!(other.get("edit_file"), plain.get("edit_file"));
}

#[test]
fn what_cannot_be_described_is_an_error_that_says_what_can() {
    for (profile, key, told) in [
        (
            Profile::Coding,
            "grep.patern",
            "a description is given for 'patern', which is not an argument of grep; its arguments \
             are pattern, path, glob_pattern,",
        ),
        (
            Profile::Coding,
            "edit_file.edits.old",
            "a description is given for 'edits.old', which is not an argument of edit_file; its \
             arguments are old_string, new_string, replace_all",
        ),
        (
            Profile::Coding,
            "ls.path.name",
            "a description is given for 'path.name', which is not an argument of ls; its arguments \
             are none",
        ),
        (
            Profile::Coding,
            "delete_file.file",
            "a description is given for 'file', which is not an argument of delete_file; its \
             arguments are path, recursive",
        ),
        (
            Profile::Coding,
            "list_shells.",
            "a description is given for '', which is not an argument of list_shells; its arguments \
             are none",
        ),
        (
            Profile::Coding,
            "list_files.path",
            "a description is given for an unknown tool: list_files; the tools are ls,",
        ),
        (
            Profile::Filesystem,
            "read_file.limit",
            "a description is given for 'limit', which is not an argument of read_file; its \
             arguments are path, max_chars, offset",
        ),
    ] {
        let error = described(profile, &[(key, "x")]).unwrap_err();
        assert!(error.to_string().starts_with(told), "{key}: {error}");
    }
}
