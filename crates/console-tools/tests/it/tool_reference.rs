//! Makes `docs/tool-reference.md` from the definitions that models get, and compares it.
//!
//! With `UPDATE_REFERENCE=1` in the environment the page is rewritten instead.

use std::fmt::Write as _;
use std::sync::Arc;

use backend_local::LocalBackend;
use console_tools::{Definition, Definitions, Options, Toolset};
use serde_json::{Value, json};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tool-reference.md");

const HEAD: &str = "\
# Tool reference

```console
$ agentbox tools                  # what a model is given, with its budgets
$ agentbox tools --json           # the same with the schemas
```

Made from the definitions that models get, by a test; do not edit.
[Tools](tools.md#the-tools) says how to choose and to use them.
An argument with neither a default nor *optional* is required; each schema is closed, and a number out of range is an error.
Names, arguments and defaults are those of pydantic-ai-backend; the defaults of further arguments change nothing.
";

fn definitions(profile: &str, edit_format: &str) -> Definitions {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path()).enable_execute(true);
    let options = json!({
        "profile": profile, "edit_format": edit_format, "include_file_operations": true,
    });
    let options = Options::deserialize(&options).unwrap();
    let toolset = Toolset::builder(Arc::new(backend.open().unwrap())).options(options);
    toolset.build().unwrap().definitions()
}

/// Returns the type of an argument in words.
fn kind(schema: &Value) -> String {
    let name = |name: &Value| match name.as_str().unwrap() {
        "array" => match schema["items"]["type"].as_str() {
            Some("object") | None => "list".to_owned(),
            Some(items) => format!("list of {items}s"),
        },
        "null" => String::new(),
        name => name.to_owned(),
    };
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().map(name).collect(),
        one => vec![name(one)],
    };
    if let Some(values) = schema["enum"].as_array() {
        let values = values.iter().filter_map(Value::as_str);
        let values: Vec<_> = values.map(|value| format!("`{value}`")).collect();
        return values.join(", ");
    }
    let types: Vec<_> = types.into_iter().filter(|name| !name.is_empty()).collect();
    types.join(" or ")
}

fn range(schema: &Value) -> String {
    let bound = |name: &str| schema.get(name).map(ToString::to_string);
    let (least, most) = (bound("minimum"), bound("maximum"));
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("from {least}"),
        (None, Some(most)) => format!("to {most}"),
        (None, None) => String::new(),
    }
}

/// Returns the description without the sentence about the default, and the default.
fn described(schema: &Value, is_required: bool) -> (String, String) {
    let text = schema["description"].as_str().unwrap();
    let (meaning, told) = match text.split_once(" Default: ") {
        Some((meaning, told)) => (meaning, Some(told.trim_end_matches('.'))),
        None => (text, None),
    };
    let default = match (told, schema.get("default")) {
        (Some(told), _) if told.contains(' ') || told.starts_with('`') => told.to_owned(),
        (Some(told), _) => format!("`{told}`"),
        (None, Some(default)) => format!("`{default}`"),
        (None, None) if is_required => String::new(),
        (None, None) => "*optional*".to_owned(),
    };
    (meaning.replace('|', "\\|"), default)
}

/// Adds the rows of the arguments of a schema, and of those in lists.
fn rows(text: &mut String, schema: &Value, above: &str) {
    let Some(arguments) = schema["properties"].as_object() else {
        return;
    };
    let required = schema["required"].as_array();
    for (name, schema) in arguments {
        let is_required = required.is_some_and(|all| all.contains(&json!(name)));
        let (meaning, default) = described(schema, is_required);
        let (kind, range) = (kind(schema), range(schema));
        let row = format!("| `{above}{name}` | {kind} | {default} | {range} | {meaning} |");
        let _ = writeln!(text, "{row}");
        rows(text, &schema["items"], &format!("{above}{name}[]."));
    }
}

fn properties(definition: &Definition) -> String {
    let hints = serde_json::to_value(definition.annotations).unwrap();
    let words = [
        ("read_only", "changes nothing"),
        ("destructive", "can destroy"),
        ("idempotent", "twice is as once"),
        ("open_world", "reaches beyond the backend"),
    ];
    let words = words.into_iter().filter(|(hint, _)| hints[hint] == true);
    let words: Vec<_> = words.map(|(_, words)| words).collect();
    words.join(", ")
}

fn tool(text: &mut String, definition: &Definition, advice: Option<&str>) {
    let Definition { name, .. } = definition;
    let _ = writeln!(text, "\n### `{name}`\n\n{}\n", definition.description);
    if let Some(advice) = advice.filter(|advice| !advice.is_empty()) {
        let _ = writeln!(text, "With the profile `coding` also: {advice}\n");
    }
    let hints = properties(definition);
    if !hints.is_empty() {
        let _ = writeln!(text, "Hints for clients: {hints}.\n");
    }
    let mut arguments = String::new();
    rows(&mut arguments, &definition.input_schema, "");
    if !arguments.is_empty() {
        let head = "| argument | type | default | range | meaning |\n|---|---|---|---|---|\n";
        let _ = write!(text, "{head}{arguments}");
    }
}

fn rendered() -> String {
    let mut text = HEAD.to_owned();
    text.push_str("\n## Profiles `coding` and `lean`\n");
    let sets = ["str_replace", "hashline"].map(|format| {
        let set = |profile| definitions(profile, format);
        (set("lean"), set("coding"))
    });
    let mut told: Vec<&str> = Vec::new();
    for (lean, coding) in &sets {
        for definition in lean.iter() {
            if told.contains(&definition.name.as_str()) {
                continue;
            }
            told.push(&definition.name);
            let more = &coding.get(&definition.name).unwrap().description;
            // The advice follows what both say; where it does not, all of it is shown.
            let advice = more.strip_prefix(&definition.description).unwrap_or(more);
            tool(&mut text, definition, Some(advice.trim()));
        }
    }
    text.push_str("\n## Profile `filesystem`\n");
    for definition in definitions("filesystem", "str_replace").iter() {
        tool(&mut text, definition, None);
    }
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text.trim_end().to_owned() + "\n"
}

#[test]
fn the_page_is_made_from_the_definitions() {
    let current = rendered();
    if std::env::var_os("UPDATE_REFERENCE").is_some() {
        std::fs::write(PAGE, &current).unwrap();
    }
    let page = std::fs::read_to_string(PAGE).unwrap();
    let mut lines = page.lines().zip(current.lines());
    assert_eq!(
        lines.find(|(page, current)| page != current),
        None,
        "run this test with UPDATE_REFERENCE=1 and look at the change"
    );
    assert_eq!(page.len(), current.len());
}
