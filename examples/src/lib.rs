//! Runnable examples: `cargo run --example quickstart`. [`chat`] is the loop with a model
//! that several of them share.
//!
//! The rest is the project's README, so that its code is compiled and run.
#![doc = include_str!("../../README.md")]

pub mod chat;

#[doc = include_str!("../../docs/tools.md")]
pub mod tools {}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use backend_local::LocalBackend;
    use console_tools::{EditFormat, Options, Toolset};
    use serde_json::Value;

    const GUIDE: &str = include_str!("../../docs/tools.md");

    /// Returns the first two cells of each row of the table under this heading, by the
    /// first cell, a name.
    fn rows(heading: &str) -> BTreeMap<String, String> {
        let table = GUIDE.split_once(heading).expect("the table is there").1;
        let rows = table.lines().skip(2).take_while(|row| row.starts_with('|'));
        let cells = rows.map(|row| {
            let mut cells = row.trim_matches('|').split(" | ");
            let mut cell = || cells.next().unwrap_or_default().trim().to_owned();
            (cell().trim_matches(['`', ' ']).to_owned(), cell())
        });
        cells.collect()
    }

    #[test]
    fn the_guide_shows_the_example() {
        let guide = include_str!("../../docs/custom-backend.md");
        let example = include_str!("../custom_backend.rs");
        let (_, code) = example.split_once("\n\n").expect("code after the header");
        assert!(
            guide.contains(&format!("```rust\n{code}```\n")),
            "copy the example's code"
        );
    }

    #[test]
    fn the_table_of_tools_is_true() {
        let mut documented = rows("| tool | parameters |");
        let dir = tempfile::tempdir().unwrap();
        let local = LocalBackend::builder(dir.path()).enable_execute(true);
        let backend = Arc::new(local.open().unwrap());
        for edit_format in [EditFormat::StrReplace, EditFormat::Hashline] {
            let mut options = Options::default();
            options.edit_format = edit_format;
            options.include_file_operations = true;
            let toolset = Toolset::builder(Arc::clone(&backend) as _).options(options);
            for tool in toolset.build().unwrap().definitions().iter() {
                let fields = tool.input_schema["properties"].as_object().unwrap();
                let fields: Vec<_> = fields.keys().map(String::as_str).collect();
                let row = &documented[&tool.name];
                let named = row.split('`').skip(1).step_by(2);
                let (named, defaults): (Vec<_>, Vec<_>) = named
                    .map(|field| field.split_once('=').unwrap_or((field, "")))
                    .unzip();
                assert_eq!(named, fields, "{}", tool.name);
                for (name, default) in named.iter().zip(defaults) {
                    let field = &tool.input_schema["properties"][name];
                    let told = field["description"].as_str().unwrap_or_default();
                    let default = default.trim_matches('"');
                    let as_data = match &field["default"] {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    let as_text = match default {
                        "" => continue,
                        "." => "Default: the working directory.".to_owned(),
                        default => format!("Default: {default}."),
                    };
                    let told = told.replace('`', "");
                    let is_told = as_data == default || told.ends_with(&as_text);
                    assert!(is_told, "{} {name}: {field}", tool.name);
                }
            }
        }
        documented.retain(|name, _| name.parse::<permissions::tool::Tool>().is_err());
        assert_eq!(documented, BTreeMap::new(), "tools that there are not");
    }

    #[test]
    fn the_tables_of_options_and_limits_are_true() {
        let mut options = serde_json::to_value(Options::default()).unwrap();
        let fields = options.as_object_mut().unwrap();
        let limits = fields.remove("limits").unwrap();
        fields.remove("descriptions");
        let shown = |value: &Value| format!("`{value}`");
        assert_eq!(rows("| option | default |"), as_rows(&options, shown));
        let shown = |value: &Value| match value.as_u64().unwrap() {
            bytes if bytes % (1024 * 1024) == 0 => format!("{} MiB", bytes / (1024 * 1024)),
            bytes if bytes % 1024 == 0 => format!("{} KiB", bytes / 1024),
            number => number.to_string(),
        };
        assert_eq!(rows("| limit | default |"), as_rows(&limits, shown));
    }

    fn as_rows(table: &Value, shown: impl Fn(&Value) -> String) -> BTreeMap<String, String> {
        let fields = table.as_object().unwrap().iter();
        fields
            .map(|(name, value)| (name.clone(), shown(value)))
            .collect()
    }
}
