//! Pins every tool as models and clients see it, so that any change of wording shows.
//!
//! A missing or differing snapshot fails. `INSTA_UPDATE=always` writes it.

use std::fmt::Write as _;
use std::sync::Arc;

use backend_local::LocalBackend;
use console_tools::{Definition, Definitions, Options, Toolset};
use serde_json::{Value, json};

fn definitions(profile: &str, edit_format: &str) -> Definitions {
    let options = json!({
        "profile": profile, "edit_format": edit_format, "include_file_operations": true,
    });
    toolset(&options).definitions()
}

fn toolset(options: &Value) -> Toolset {
    let directory = tempfile::tempdir().unwrap();
    let backend = LocalBackend::builder(directory.path()).enable_execute(true);
    let toolset = Toolset::builder(Arc::new(backend.open().unwrap()))
        .options(Options::deserialize(options).unwrap());
    toolset.build().unwrap()
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap()
}

/// Formats a definition without its description.
fn told(definition: &Definition) -> String {
    let Definition {
        annotations, asks, ..
    } = definition;
    let mut hints = serde_json::to_value(annotations).unwrap();
    hints["asks"] = json!(asks);
    let mut text = format!(
        "{hints}\n\ninput_schema: {}",
        pretty(&definition.input_schema)
    );
    if let Some(schema) = definition.output_schema() {
        let _ = write!(text, "\n\noutput_schema: {}", pretty(&schema));
    }
    text
}

/// The descriptions of each profile and edit format, where they differ, then the common
/// part.
#[test]
fn the_console_tools() {
    let sets = ["coding", "lean"].map(|profile| {
        let of = |format| (format!("{profile}, {format}"), definitions(profile, format));
        [of("str_replace"), of("hashline")]
    });
    let sets: Vec<(String, Definitions)> = sets.into_iter().flatten().collect();
    let mut names: Vec<&str> = Vec::new();
    for (_, set) in &sets {
        for definition in set.iter() {
            if !names.contains(&definition.name.as_str()) {
                names.push(&definition.name);
            }
        }
    }
    assert_eq!(names.len(), 16, "{names:?}");
    for name in names {
        let mut text = String::new();
        let mut shared = None;
        let mut described: Vec<&str> = Vec::new();
        for (set, definitions) in &sets {
            let Some(definition) = definitions.get(name) else {
                continue;
            };
            if !described.contains(&definition.description.as_str()) {
                let _ = writeln!(text, "{set}: {}\n", definition.description);
                described.push(&definition.description);
            }
            let told = told(definition);
            assert_eq!(*shared.get_or_insert(told.clone()), told, "{name} in {set}");
        }
        text.push_str(&shared.unwrap());
        insta::assert_snapshot!(format!("console__{name}"), text);
    }
}

#[test]
fn the_filesystem_tools() {
    let definitions = definitions("filesystem", "str_replace");
    assert_eq!(definitions.len(), 7);
    for definition in definitions.iter() {
        let text = format!("{}\n\n{}", definition.description, told(definition));
        insta::assert_snapshot!(format!("filesystem__{}", definition.name), text);
    }
}

/// One tool in the format of each client. The other tools differ only in what the other
/// snapshots pin.
#[test]
fn the_shapes() {
    let definitions = definitions("lean", "str_replace");
    let shapes = [
        ("mcp", definitions.mcp()),
        ("openai", definitions.openai()),
        ("openai_responses", definitions.openai_responses()),
        ("anthropic", definitions.anthropic()),
    ];
    let mut text = Vec::new();
    for (shape, all) in shapes {
        let all = all.as_array().unwrap();
        let name = |tool: &Value| tool.get("function").unwrap_or(tool)["name"].clone();
        let names: Vec<Value> = all.iter().map(name).collect();
        let offered: Vec<Value> = definitions.iter().map(|one| json!(one.name)).collect();
        assert_eq!(names, offered, "{shape}");
        let one = all.iter().find(|tool| name(tool) == "kill_shell").unwrap();
        text.push(format!("{shape}: {}", pretty(one)));
    }
    insta::assert_snapshot!("shapes", text.join("\n\n"));
}

/// The system prompts.
#[test]
fn the_prompts() {
    let mut text = Vec::new();
    for (profile, edit_format, include_execute) in [
        ("coding", "str_replace", true),
        ("lean", "hashline", true),
        ("lean", "str_replace", false),
        ("filesystem", "str_replace", true),
    ] {
        let options = json!({
            "profile": profile, "edit_format": edit_format,
            "include_execute": include_execute, "include_background": include_execute,
        });
        let toolset = toolset(&options);
        text.push(format!("{options}\n{}", toolset.prompt()));
    }
    insta::assert_snapshot!("prompts", text.join("\n\n"));
}

/// The values of the options appear in the schemas too.
#[test]
fn defaults_are_those_of_the_options() {
    let options = json!({
        "default_ignore_hidden": false,
        "limits": {"read_lines": 70, "grep_results": 71, "execute_seconds": 72},
    });
    let definitions = toolset(&options).definitions();
    let field = |tool: &str, field: &str| {
        let definition = definitions.get(tool).unwrap();
        definition.input_schema["properties"][field]["description"].to_string()
    };
    assert!(field("read_file", "limit").contains("Default: 70."));
    assert!(field("grep", "max_results").contains("Default: 71."));
    assert!(field("grep", "ignore_hidden").contains("Default: false."));
    assert!(field("execute", "timeout").contains("Default: 72."));
}
