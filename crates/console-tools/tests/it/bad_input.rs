//! Bad input to every tool: an error message, and no effect.
//!
//! The input is derived from each tool's own schema, so new tools are covered as well.
//! Nothing here is timed: the size limit of a call bounds the work.

use std::sync::Arc;

use console_tools::{Chat, FailureClass, Profile, Reply};
use serde_json::{Value, json};

use crate::support::fields::{CallFixture, Field, fields, profiles};

/// Maximum size of a message, in bytes.
const MESSAGE: usize = 2_048;

/// Paths, patterns and other texts that an attacker might try.
const ATTACKS: &[&str] = &[
    "",
    "\0",
    "a\0b",
    "..",
    "../../../../etc/passwd",
    "/../..",
    "/etc/passwd",
    "/proc/self/environ",
    "~",
    "~/.ssh/id_rsa",
    "C:\\Windows",
    "\\\\server\\share",
    "//server/share",
    "file:///etc/passwd",
    "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
    "a\nb",
    "a\r\nError: b",
    "\u{202e}\u{feff}x",
    "\u{1b}[2J",
    "[",
    "[z-a]",
    "[[:bad:]]",
    "{a,{b,{c,{d",
    "{a,b}{c,d}{e,f}{g,h}{i,j}{k,l}{m,n}{o,p}{q,r}{s,t}{u,v}{w,x}",
    "**/**/**/**/**/**/**/**/**/**/**/**/x",
    "(a+)+$",
    "(((((((((((",
    "(?=x)",
    "\\p{NoSuch}",
    "\\",
    "a{1000}{1000}{1000}",
    "-rf",
    "$(id)",
    "`id`",
];

/// Returns long attacks.
fn long_attacks() -> Vec<String> {
    vec![
        "x".repeat(4_096),
        "x/".repeat(2_048),
        format!("{}/", "x".repeat(200)).repeat(20),
        "../".repeat(2_000),
        "é".repeat(5_000),
        "\u{202e}".repeat(5_000),
        "**/".repeat(5_000),
        "{a,b}".repeat(3_000),
        "(".repeat(16_000),
        "[".repeat(16_000),
        "a|".repeat(8_000),
        "\\p{Lu}".repeat(200),
        "(a{100}){100}".repeat(1_000),
        "x".repeat(17_000),
        "x".repeat(1 << 20),
    ]
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

/// Returns the maximum size of a message, in bytes. The refusals of the file system
/// profile are pinned and contain the whole path.
fn most(chat: &Chat) -> usize {
    match chat.options().profile {
        Profile::Filesystem => MESSAGE + 2 * 4_096,
        _ => MESSAGE,
    }
}

/// Checks the properties that every failure has.
fn check_failure(chat: &Chat, reply: &Reply, what: &str) {
    let text = &reply.text;
    assert!(!reply.is_success(), "{what}: {text}");
    assert!(text.len() < most(chat), "{what}: {} bytes", text.len());
    assert!(!text.contains('\0'), "{what}: {text:?}");
    assert!(
        !text.contains("crashed; try a different approach"),
        "{what}: {text}"
    );
    assert_eq!(reply.structured, None, "{what}");
    let plain = chat.options().profile == Profile::Filesystem;
    assert!(plain || text.starts_with("Error: "), "{what}: {text}");
}

/// Checks for a fixable failure that names `field`.
fn check(chat: &Chat, reply: &Reply, tool: &str, field: &str, value: &Value) {
    let what = format!("{tool} with {field} = {}", shown(value));
    check_failure(chat, reply, &what);
    assert_eq!(reply.failure, Some(FailureClass::Fixable), "{what}");
    let text = &reply.text;
    assert!(
        text.contains(field),
        "{what}: the field is not named: {text}"
    );
}

/// Returns values of every type that `field` does not accept.
fn wrong(field: &Field) -> Vec<Value> {
    let mut wrong: Vec<Value> = [
        ("string", json!("a string")),
        ("integer", json!(7)),
        ("boolean", json!(true)),
        ("array", json!([[1]])),
        ("object", json!({"x": {}})),
        ("null", Value::Null),
    ]
    .into_iter()
    .filter(|(kind, _)| !field.takes(kind))
    .map(|(_, value)| value)
    .collect();
    if field.takes("integer") {
        wrong.extend([json!(1.5), json!(1e300), json!("1"), json!(u64::MAX)]);
        wrong.extend([json!(i64::MIN), json!(-1)].into_iter().filter(|_| {
            // The profile without minimums has its own messages.
            field.schema.get("minimum").is_some()
        }));
    }
    if field.takes("array") {
        wrong.extend([json!([null]), json!([{}]), json!([{"no_such": 1}])]);
    }
    if field.schema.get("enum").is_some() {
        wrong.extend([json!("no such"), json!("")]);
    }
    wrong
}

#[tokio::test]
async fn wrong_types_and_numbers_missing_and_unknown_fields() {
    for fixture in CallFixture::both().await {
        let before = fixture.dump().await;
        for (chat, definition) in &fixture.tools().await {
            let tool = definition.name.as_str();
            for field in fields(definition) {
                for value in wrong(&field) {
                    let reply = chat.call(tool, field.with(value.clone())).await;
                    check(chat, &reply, tool, &field.name, &value);
                    let text = &reply.text;
                    let says = ["must be", "missing", "not known"];
                    assert!(says.iter().any(|words| text.contains(words)), "{text}");
                }
                if field.required {
                    let reply = chat.call(tool, field.without()).await;
                    check(chat, &reply, tool, &field.name, &Value::Null);
                    assert!(reply.text.contains("missing"), "{}", reply.text);
                }
            }
            for name in ["no_such_field", "a\0b", &"x".repeat(100_000)] {
                let mut args = json!({name: 1});
                for field in fields(definition).iter().filter(|field| field.required) {
                    if !field.name.contains('.') {
                        args[&field.key] = field.with(json!("x"))[&field.key].clone();
                    }
                }
                let reply = chat.call(tool, args).await;
                check(chat, &reply, tool, "not known", &json!(1));
            }
            let many: Value = (0..10_000)
                .map(|n| (format!("f{n}"), json!(n)))
                .collect::<serde_json::Map<_, _>>()
                .into();
            let reply = chat.call(tool, many).await;
            check(chat, &reply, tool, "not known", &json!(1));
        }
        assert_eq!(fixture.dump().await, before);
    }
}

#[tokio::test]
async fn what_is_no_object_or_no_json() {
    for fixture in CallFixture::both().await {
        let before = fixture.dump().await;
        for (chat, definition) in &fixture.tools().await {
            let tool = definition.name.as_str();
            for raw in [
                "[]",
                "3",
                "true",
                "\"text\"",
                "{",
                "{]",
                "{\"a\":1}}",
                "{\"a\":1} x",
                "\u{feff}{}",
                "NaN",
                "{'a':1}",
                "{a:1}",
                "{\"a\":1,}",
                "{\"a\":01}",
                "{\"\\ud800\":1}",
                "\0",
                "<tool>",
                "{\"a\":\"\u{1}\"}",
            ] {
                let reply = chat.call(tool, raw).await;
                check(chat, &reply, tool, "arguments", &json!(raw));
            }
            for field in fields(definition) {
                for raw in [
                    "\"\\ud800\"",
                    "\"\\udc00\\ud800\"",
                    "\"\\ud83dx\"",
                    "\"\\u12\"",
                    "\"\\x00\"",
                    "\"\0\"",
                    "1e999",
                    "-",
                    "nul",
                ] {
                    let reply = chat.call(tool, &field.raw(raw)).await;
                    check(chat, &reply, tool, "arguments", &json!(raw));
                    let key = &field.key;
                    assert!(reply.text.contains(key), "{tool} {key}: {}", reply.text);
                }
            }
            for nothing in ["", " \n", "null", "{}"] {
                let needs = fields(definition).into_iter().find(|field| field.required);
                let Some(field) = needs.filter(|field| !field.name.contains('.')) else {
                    continue;
                };
                let reply = chat.call(tool, nothing).await;
                check(chat, &reply, tool, &field.name, &json!(nothing));
            }
        }
        assert_eq!(fixture.dump().await, before);
    }
}

/// If a field occurs twice the last one counts, for the check as well as for the call.
#[tokio::test]
async fn fields_that_are_there_twice() {
    let fixture = CallFixture::state().await;
    let before = fixture.dump().await;
    for (chat, definition) in &fixture.tools().await {
        let tool = definition.name.as_str();
        for field in fields(definition) {
            let key = Value::from(field.key.as_str());
            let wrong = wrong(&field).remove(0);
            let raw = field.raw(&format!("\"x\",{key}:{wrong}"));
            let reply = chat.call(tool, &raw).await;
            check(chat, &reply, tool, &field.name, &wrong);
        }
    }
    let twice = r#"{"path": "../x", "path": "d/b"}"#;
    let chat = fixture.chat(profiles().remove(0));
    assert!(chat.call("read_file", twice).await.is_success());
    assert_eq!(fixture.dump().await, before);
}

#[tokio::test]
async fn too_much_and_too_deep() {
    let fixture = CallFixture::state().await;
    let before = fixture.dump().await;
    let large = format!("\"{}\"", "x".repeat(10 << 20));
    let deep = format!("{}1{}", "[".repeat(2 << 20), "]".repeat(2 << 20));
    let wide: Value = (0..20_000).map(|_| json!([[]])).collect();
    for options in profiles() {
        let chat = &fixture.chat(options);
        for definition in chat.definitions().await.unwrap().iter() {
            let tool = definition.name.as_str();
            for field in fields(definition) {
                for raw in [&large, &deep] {
                    let reply = chat.call(tool, &field.raw(raw)).await;
                    check(chat, &reply, tool, "arguments", &Value::Null);
                }
                let reply = chat.call(tool, field.with(wide.clone())).await;
                check(chat, &reply, tool, &field.name, &Value::Null);
                let mut nested = json!(1);
                for _ in 0..1_000 {
                    nested = Value::Array(vec![nested]);
                }
                let reply = chat.call(tool, field.with(nested)).await;
                check(chat, &reply, tool, "arguments", &Value::Null);
            }
            let mut nested = json!(1);
            for depth in 0..50_000 {
                nested = match depth % 2 {
                    0 => Value::Array(vec![nested]),
                    // Moved, because copying it would recurse.
                    _ => Value::Object([("x".to_owned(), nested)].into_iter().collect()),
                };
            }
            let reply = chat.call(tool, nested).await;
            check(chat, &reply, tool, "arguments", &Value::Null);
        }
        let reply = chat.call(&"x".repeat(10 << 20), "{}").await;
        check(chat, &reply, "a long name", "no tool", &Value::Null);
    }
    assert_eq!(fixture.dump().await, before);
}

/// Returns `true` for fields that accept any text, and for paths of new files.
fn takes_any_text(tool: &str, field: &Field) -> bool {
    matches!(
        field.key.as_str(),
        "content" | "new_string" | "new_text" | "new_content" | "command" | "input"
    ) || (tool == "write_file" && field.key == "path")
}

#[tokio::test]
async fn attacks_in_every_text() {
    for fixture in CallFixture::both().await {
        let before = fixture.dump().await;
        for (chat, definition) in &fixture.tools().await {
            let tool = definition.name.as_str();
            for field in fields(definition) {
                if !field.takes("string") || takes_any_text(tool, &field) {
                    continue;
                }
                let attacks = ATTACKS.iter().map(|attack| (*attack).to_owned());
                for attack in attacks.chain(long_attacks()) {
                    let value = json!(attack);
                    let what = format!("{tool} with {} = {}", field.name, shown(&value));
                    let reply = chat.call(tool, field.with(value)).await;
                    if reply.is_success() {
                        assert!(reply.text.len() < most(chat), "{what}");
                    } else {
                        check_failure(chat, &reply, &what);
                    }
                    assert!(!reply.text.contains("classified"), "{what}: {}", reply.text);
                    assert!(!reply.text.contains("root:"), "{what}: {}", reply.text);
                }
            }
        }
        assert_eq!(fixture.dump().await, before);
    }
}

/// Invalid paths are refused with a message that names the field.
#[tokio::test]
async fn what_is_no_path_is_refused() {
    for fixture in CallFixture::both().await {
        let before = fixture.dump().await;
        for (chat, definition) in &fixture.tools().await {
            let tool = definition.name.as_str();
            for field in fields(definition) {
                let is_path = ["path", "source", "destination", "directory", "one", "two"];
                if !is_path.contains(&field.key.as_str()) {
                    continue;
                }
                for bad in ["a\0b", "../../../x", "~/x", "C:\\x", &"x/".repeat(4_000)] {
                    let what = format!("{tool} {} {}", field.name, shown(&json!(bad)));
                    let reply = chat.call(tool, field.with(json!(bad))).await;
                    check_failure(chat, &reply, &what);
                    let named = chat.options().profile == Profile::Filesystem
                        || tool == "swap"
                        || reply.text.contains(&field.key);
                    assert!(named, "{what}: {}", reply.text);
                }
            }
        }
        assert_eq!(fixture.dump().await, before);
    }
}

/// Odd names are valid, but the file is always created within the root.
#[tokio::test]
async fn nothing_is_written_elsewhere() {
    let fixture = CallFixture::local().await;
    let chat = fixture.chat(profiles().remove(0));
    let mut written = 0;
    for attack in ATTACKS {
        for tool in ["write_file", "copy_file", "move_file"] {
            let args = match tool {
                "write_file" => json!({"path": attack, "content": "x"}),
                _ => json!({"source": "d/b", "destination": attack}),
            };
            let reply = chat.call(tool, args).await;
            assert!(reply.text.len() < MESSAGE, "{}", reply.text);
            let odd = ['\0', '\u{1b}', '\u{202e}', '\u{feff}'];
            assert!(!reply.text.contains(odd), "{:?}", reply.text);
            written += usize::from(reply.is_success());
        }
    }
    assert!(written > 0);
    let around = fixture.around.as_ref().unwrap();
    let mut names: Vec<_> = std::fs::read_dir(around.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["root", "secret"]);
    let secret = std::fs::read_to_string(around.path().join("secret"));
    assert_eq!(secret.unwrap(), "classified");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn good_and_bad_calls_at_once() {
    const CALLS: usize = 200;
    for fixture in CallFixture::both().await {
        let lines: String = (0..CALLS).map(|n| format!("field {n}.\n")).collect();
        let chat = Arc::new(fixture.chat(profiles().remove(0)));
        let args = json!({"path": "shared", "content": lines});
        assert!(chat.call("write_file", args).await.is_success());
        let mut calls = Vec::new();
        for n in 0..CALLS {
            let chat = Arc::clone(&chat);
            calls.push(tokio::spawn(async move {
                let (tool, args, good) = match n % 8 {
                    0 => ("write_file", json!({"path": format!("new/{n}"), "content": "x"}), true),
                    1 => ("write_file", json!({"path": format!("new/{n}")}), false),
                    2 => ("edit_file", json!({"path": "shared", "old_string": format!("field {n}."), "new_string": format!("done {n}.")}), true),
                    3 => ("edit_file", json!({"path": "shared", "old_string": "field", "new_string": "x"}), false),
                    4 => ("read_file", json!({"path": "d/b"}), true),
                    5 => ("read_file", json!({"path": "../../etc/passwd"}), false),
                    6 => ("grep", json!({"pattern": "2"}), true),
                    _ => ("grep", json!({"pattern": "("}), false),
                };
                let reply = chat.call(tool, args).await;
                assert_eq!(reply.is_success(), good, "{tool}: {}", reply.text);
            }));
        }
        for call in calls {
            call.await.unwrap();
        }
        let dump = fixture.dump().await;
        let new = dump.iter().filter(|(path, _)| path.starts_with("/new/"));
        assert_eq!(new.count(), CALLS / 8);
        let shared = dump.iter().find(|(path, _)| path == "/shared").unwrap();
        let shared = String::from_utf8(shared.1.clone().unwrap()).unwrap();
        for (n, line) in shared.lines().enumerate() {
            let word = if n % 8 == 2 { "done" } else { "field" };
            assert_eq!(line, format!("{word} {n}."));
        }
    }
}
