//! Every field of every tool that a model can fill, and backends to try them on.

use std::sync::Arc;

use backend_core::ops::{LsOptions, ReadOptions};
use backend_core::{Backend, BackendExt as _, VPath};
use backend_local::LocalBackend;
use backend_state::StateBackend;
use console_tools::{Chat, Definition, Options, Toolset};
use permissions::Policy;
use permissions::approval::ApproveAll;
use serde_json::{Map, Value, json};

use super::approver::Swap;

/// The environment in which calls are made.
pub(crate) struct CallFixture {
    pub(crate) backend: Arc<dyn Backend>,
    /// The parent of a directory on disk.
    pub(crate) around: Option<tempfile::TempDir>,
}

impl CallFixture {
    pub(crate) async fn state() -> Self {
        Self::with(Arc::new(StateBackend::new()), None).await
    }

    pub(crate) async fn local() -> Self {
        let around = tempfile::tempdir().unwrap();
        std::fs::create_dir(around.path().join("root")).unwrap();
        std::fs::write(around.path().join("secret"), "classified").unwrap();
        let local = LocalBackend::builder(around.path().join("root")).enable_execute(true);
        Self::with(Arc::new(local.open().unwrap()), Some(around)).await
    }

    async fn with(backend: Arc<dyn Backend>, around: Option<tempfile::TempDir>) -> Self {
        for (path, content) in [("/a", "1\n"), ("/d/b", "2\n"), ("/d/.c", "3\n")] {
            backend.write_file(path, content).await.unwrap();
        }
        Self { backend, around }
    }

    pub(crate) async fn both() -> [Self; 2] {
        [Self::state().await, Self::local().await]
    }

    pub(crate) fn chat(&self, options: Options) -> Chat {
        let toolset = Toolset::builder(Arc::clone(&self.backend))
            .options(options)
            .policy(Policy::allow_all())
            .approver(ApproveAll)
            .tool(Swap);
        toolset.build().unwrap().conversation("c")
    }

    /// Returns every tool of every profile, each with the conversation that offers it.
    pub(crate) async fn tools(&self) -> Vec<(Arc<Chat>, Definition)> {
        let mut tools = Vec::new();
        for options in profiles() {
            let chat = Arc::new(self.chat(options));
            let offered = chat.definitions().await.unwrap();
            tools.extend(offered.iter().map(|tool| (Arc::clone(&chat), tool.clone())));
        }
        tools
    }

    /// Returns all entries and their contents.
    pub(crate) async fn dump(&self) -> Vec<(String, Option<Vec<u8>>)> {
        let mut all = Vec::new();
        let mut open = vec![VPath::root()];
        while let Some(directory) = open.pop() {
            let listing = self.backend.ls(&directory, LsOptions::default()).await;
            for entry in listing.unwrap().entries {
                let path = entry.path.to_string();
                if entry.is_dir() {
                    open.push(entry.path);
                    all.push((path, None));
                } else {
                    let read = self.backend.read(&entry.path, ReadOptions::default()).await;
                    all.push((path, Some(read.unwrap().data.to_vec())));
                }
            }
        }
        all.sort();
        all
    }
}

/// Returns every profile with each edit format, so that every tool is tried.
pub(crate) fn profiles() -> Vec<Options> {
    let mut all = Vec::new();
    for (profile, format) in [
        ("coding", "str_replace"),
        ("lean", "hashline"),
        ("filesystem", "str_replace"),
    ] {
        let options = json!({
            "profile": profile, "edit_format": format, "include_file_operations": true,
            "require_execute_approval": false,
        });
        all.push(serde_json::from_value(options).unwrap());
    }
    all
}

/// A field that can be filled.
pub(crate) struct Field {
    /// The name in messages.
    pub(crate) name: String,
    /// The last part of the name.
    pub(crate) key: String,
    pub(crate) schema: Value,
    pub(crate) required: bool,
    arguments: Map<String, Value>,
    /// The list that contains the field.
    list: Option<String>,
}

impl Field {
    /// Returns arguments that are valid except for this field.
    pub(crate) fn with(&self, value: Value) -> Value {
        self.changed(|fields| {
            fields.insert(self.key.clone(), value);
        })
    }

    /// Returns valid arguments without this field.
    pub(crate) fn without(&self) -> Value {
        self.changed(|fields| {
            fields.shift_remove(&self.key);
        })
    }

    fn changed(&self, change: impl FnOnce(&mut Map<String, Value>)) -> Value {
        let mut arguments = self.arguments.clone();
        match &self.list {
            None => change(&mut arguments),
            Some(list) => {
                let item = arguments[list][0].as_object_mut().unwrap();
                change(item);
            }
        }
        Value::Object(arguments)
    }

    /// Returns arguments as raw JSON, with `raw` as the value of this field.
    pub(crate) fn raw(&self, raw: &str) -> String {
        let mark = "\u{1}here\u{1}";
        let quoted = Value::from(mark).to_string();
        self.with(json!(mark)).to_string().replace(&quoted, raw)
    }

    pub(crate) fn takes(&self, kind: &str) -> bool {
        is_a(&self.schema, kind)
    }
}

fn is_a(schema: &Value, kind: &str) -> bool {
    let text = schema["type"].to_string() + &schema["anyOf"].to_string();
    text.contains(&format!("\"{kind}\""))
}

/// Returns harmless values for the required fields.
fn good(schema: &Value) -> Map<String, Value> {
    let mut good = Map::new();
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap();
        let field = &schema["properties"][name];
        let value = match name {
            "command" => json!("true"),
            _ if is_a(field, "string") => json!("no/such"),
            _ if is_a(field, "integer") => json!(1),
            _ if is_a(field, "boolean") => json!(false),
            _ => panic!("{name}: {field}"),
        };
        good.insert(name.to_owned(), value);
    }
    good
}

/// Returns every field of a tool, including those in lists.
pub(crate) fn fields(definition: &Definition) -> Vec<Field> {
    let schema = &definition.input_schema;
    let arguments = good(schema);
    let mut all = Vec::new();
    let required = |schema: &Value, name: &str| {
        let mut listed = schema["required"].as_array().into_iter().flatten();
        listed.any(|one| one == name)
    };
    for (name, field) in schema["properties"].as_object().unwrap() {
        all.push(Field {
            name: name.clone(),
            key: name.clone(),
            schema: field.clone(),
            required: required(schema, name),
            arguments: arguments.clone(),
            list: None,
        });
        let items = &field["items"];
        for (inner, field) in items["properties"].as_object().into_iter().flatten() {
            let mut arguments = arguments.clone();
            arguments.insert(name.clone(), json!([good(items)]));
            all.push(Field {
                name: format!("{name}[0].{inner}"),
                key: inner.clone(),
                schema: field.clone(),
                required: required(items, inner),
                arguments,
                list: Some(name.clone()),
            });
        }
    }
    all
}
