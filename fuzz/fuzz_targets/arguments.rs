//! Arbitrary arguments for any tool give a reply within its size limit. If they are not
//! JSON, the reply says how to correct them. Some inputs are arbitrary text, others
//! match the schema more or less.
#![no_main]

use std::sync::{Arc, LazyLock};

use backend_state::{Snapshot, StateBackend};
use console_tools::{EditFormat, FailureClass, Options, Profile, Reply, Toolset};
use futures::executor::block_on;
use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};

const REPLY_BYTES: usize = 8 * 1024;
/// Room for the notice that a reply was cut.
const NOTICE_BYTES: usize = 200;
const MAX_CALLS: usize = 8;

/// Input for one field: how well it fits the schema, its text and its number.
type Filling<'a> = (u8, &'a str, i64);
/// The tool to call, and the input for its fields.
type Call<'a> = (u8, Vec<Filling<'a>>);

const PATHS: [&str; 6] = [
    "/a.txt",
    "dir/b.rs",
    "/dir/long.txt",
    "/empty",
    "/binary",
    ".",
];

static FILES: LazyLock<Snapshot> = LazyLock::new(|| {
    let files = [
        ("/a.txt", "one\ntwo\nthree\n"),
        ("/dir/b.rs", "fn main() {}\n\tx = \"\u{e4}\u{1f600}\""),
        ("/dir/long.txt", &"a line\r\n".repeat(3_000)),
        ("/empty", ""),
        ("/binary", "\0\u{1}"),
    ];
    let files = files.map(|(path, text)| (path, text.to_owned()));
    Snapshot::from_files(files).expect("these files fit")
});

static TOOLSETS: LazyLock<Vec<(StateBackend, Toolset)>> = LazyLock::new(|| {
    let kinds = [
        (Profile::Coding, EditFormat::StrReplace),
        (Profile::Lean, EditFormat::Hashline),
        (Profile::Filesystem, EditFormat::StrReplace),
    ];
    let toolset = |(profile, edit_format)| {
        let mut options = Options::default();
        options.profile = profile;
        options.edit_format = edit_format;
        options.include_file_operations = true;
        options.image_support = true;
        options.document_support = true;
        options.limits.reply_bytes = REPLY_BYTES;
        let backend = StateBackend::new();
        let toolset = Toolset::builder(Arc::new(backend.clone())).options(options);
        (backend, toolset.build().expect("nothing contradicts"))
    };
    kinds.into_iter().map(toolset).collect()
});

/// Returns a value that matches the schema, unless the input asks for a bad one.
fn value(
    schema: &Value,
    filling: Filling<'_>,
    rest: &mut dyn Iterator<Item = Filling<'_>>,
) -> Value {
    let (kind, text, number) = filling;
    if kind % 16 == 1 {
        return Value::from(number);
    }
    if let Some(words) = schema["enum"].as_array().filter(|words| !words.is_empty()) {
        return words[number.unsigned_abs() as usize % words.len()].clone();
    }
    let is = |name: &str| match &schema["type"] {
        Value::Array(names) => names.iter().any(|each| each == name),
        one => one == name,
    };
    if is("integer") {
        // Mostly small numbers, which are meaningful.
        Value::from(if kind % 4 == 0 { number } else { number % 16 })
    } else if is("boolean") {
        Value::from(number % 2 == 0)
    } else if is("array") {
        Value::from(vec![object(&schema["items"], rest)])
    } else if kind % 2 == 0 {
        Value::from(PATHS[number.unsigned_abs() as usize % PATHS.len()])
    } else {
        Value::from(text)
    }
}

fn object(schema: &Value, fillings: &mut dyn Iterator<Item = Filling<'_>>) -> Value {
    let mut fields = Map::new();
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        match fillings.next() {
            Some(filling) if filling.0 % 16 != 0 => {
                let value = value(schema, filling, fillings);
                fields.insert(name.clone(), value);
            }
            _ => {}
        }
    }
    Value::Object(fields)
}

fn check(reply: &Reply, profile: Profile) {
    assert!(reply.text.len() <= REPLY_BYTES + NOTICE_BYTES);
    assert!(!reply.text.contains("crashed; try a different approach"));
    // The filesystem profile uses the messages of another library, without a prefix.
    let is_marked = reply.text.starts_with("Error: ") || profile == Profile::Filesystem;
    assert!(reply.is_success() || is_marked);
}

fuzz_target!(|input: (u8, &str, Vec<Call<'_>>)| {
    let (which, text, calls) = input;
    let (backend, toolset) = &TOOLSETS[usize::from(which) % TOOLSETS.len()];
    backend.restore(FILES.clone());
    let chat = toolset.conversation("fuzz");
    let tools = toolset.definitions();
    let profile = toolset.options().profile;

    for (tool, fillings) in calls.into_iter().take(MAX_CALLS) {
        let tool = &tools[usize::from(tool) % tools.len()];
        let arguments = object(&tool.input_schema, &mut fillings.into_iter());
        check(&block_on(chat.call(&tool.name, arguments)), profile);
    }

    let tool = &tools[usize::from(which / 3) % tools.len()];
    let reply = block_on(chat.call(&tool.name, text));
    check(&reply, profile);
    if !text.trim().is_empty() && serde_json::from_str::<Value>(text).is_err() {
        assert_eq!(reply.failure, Some(FailureClass::Fixable));
    }
    check(&block_on(chat.call(text, text)), profile);
});
