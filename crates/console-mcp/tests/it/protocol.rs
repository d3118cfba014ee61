//! The protocol as a client sees it: tools, results, resources.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use backend_core::{Backend, Error};
use backend_state::StateBackend;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use console_mcp::{Connect, Settings};
use console_tools::{Caller, Resolver, Toolset};
use permissions::Preset;
use serde_json::{Value, json};

use crate::support::client::{Client, TestBackend, failed, soon, text};

/// An image of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[tokio::test]
async fn tools_are_listed_with_all_that_is_known_of_them() {
    let mut client = Client::plain(TestBackend::default()).await;
    let listed = client.ask("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    let find = |name: &str| tools.iter().find(|tool| tool["name"] == name).unwrap();
    let read = find("read_file");
    assert_eq!(read["inputSchema"]["type"], "object");
    assert_eq!(read["annotations"]["readOnlyHint"], true);
    assert_eq!(read["title"], "Read file");
    let write = find("write_file");
    assert_eq!(write["annotations"]["readOnlyHint"], false);
    assert_eq!(write["annotations"]["destructiveHint"], true);
    for tool in tools {
        assert!(
            tool["description"]
                .as_str()
                .is_some_and(|text| text.len() > 20),
            "{tool}"
        );
        for hint in ["destructiveHint", "idempotentHint", "openWorldHint"] {
            assert!(tool["annotations"][hint].is_boolean(), "{tool}");
        }
        assert!(tool.get("outputSchema").is_none(), "{tool}");
    }
    // This backend runs no commands.
    assert!(!tools.iter().any(|tool| tool["name"] == "execute"));
    client.leave().await;
}

/// A backend that becomes unreachable after the client has initialized.
#[derive(Debug, Default)]
struct Failing(AtomicBool);

#[async_trait]
impl Resolver for Failing {
    async fn resolve(&self, _: &Caller) -> backend_core::Result<Arc<dyn Backend>> {
        if self.0.swap(true, Ordering::Relaxed) {
            Err(Error::unavailable("the daemon does not answer; start it"))
        } else {
            Ok(Arc::new(StateBackend::new()))
        }
    }
}

#[async_trait]
impl Connect for Failing {
    async fn connect(&self, _: &console_mcp::Client) -> backend_core::Result<Toolset> {
        let toolset = Toolset::resolving(Arc::new(Self::default())).build();
        Ok(toolset.unwrap())
    }
}

#[tokio::test]
async fn a_backend_that_cannot_be_reached_is_an_error() {
    let mut client = Client::new(Failing::default(), Settings::default(), json!({})).await;
    let result = client.call("ls", json!({})).await;
    assert!(text(&result).contains("does not answer"), "{result}");
    assert_eq!(result["isError"], true, "{result}");
    client.leave().await;
}

#[tokio::test]
async fn results_are_text_and_failures_are_results() {
    let mut client = Client::plain(TestBackend::default()).await;
    let written = client
        .call("write_file", json!({"path": "a.txt", "content": "one\n"}))
        .await;
    assert!(!failed(&written), "{written}");
    let read = client.call("read_file", json!({"path": "a.txt"})).await;
    assert!(text(&read).contains("one"), "{read}");
    assert!(read.get("structuredContent").is_none(), "{read}");
    let missing = client.call("read_file", json!({"path": "b.txt"})).await;
    assert!(
        failed(&missing) && text(&missing).starts_with("Error: "),
        "{missing}"
    );
    let unknown = client.call("reed_file", json!({"path": "a.txt"})).await;
    assert!(
        failed(&unknown) && text(&unknown).contains("read_file"),
        "{unknown}"
    );
    let wrong = client.call("read_file", json!({"pth": 1})).await;
    assert!(failed(&wrong), "{wrong}");
    // A client that counts errors must not count these.
    for result in [written, read, missing, unknown, wrong] {
        assert_eq!(result["isError"], false, "{result}");
    }
    client.leave().await;
}

#[tokio::test]
async fn failures_are_errors_for_those_who_want_that() {
    let mut settings = Settings::default();
    settings.mark_failures = true;
    let mut client = Client::new(TestBackend::default(), settings, json!({})).await;
    let missing = client.call("read_file", json!({"path": "b.txt"})).await;
    assert_eq!(missing["isError"], true, "{missing}");
    assert_eq!(missing["_meta"]["console-tools/failure"], "fixable");
    let listed = client.call("ls", json!({})).await;
    assert_eq!(listed["isError"], false, "{listed}");
    client.leave().await;
}

fn structured() -> Settings {
    let mut settings = Settings::default();
    settings.structured = true;
    settings
}

/// Checks what clients check first: no required field is missing, and no undeclared
/// field is present.
fn keeps(schema: &Value, data: &Value) {
    if let (Some(items), Some(values)) = (schema.get("items"), data.as_array()) {
        values.iter().for_each(|value| keeps(items, value));
    }
    let Some(properties) = schema.get("properties") else {
        return;
    };
    let fields = data.as_object();
    let fields = fields.unwrap_or_else(|| panic!("{data} is no object: {schema}"));
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(
            fields.contains_key(name.as_str().unwrap()),
            "{name}: {data}"
        );
    }
    for (name, value) in fields {
        let schema = properties.get(name);
        keeps(schema.unwrap_or_else(|| panic!("{name}: {data}")), value);
    }
}

#[tokio::test]
async fn data_says_all_that_the_text_says_and_keeps_to_its_schema() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("p.png"),
        STANDARD.decode(PIXEL).unwrap(),
    )
    .unwrap();
    std::fs::write(directory.path().join("d.pdf"), b"%PDF-1.4 tiny").unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\ntwo\n").unwrap();
    let backend = TestBackend::local(directory.path());
    let mut client = Client::new(backend, structured(), json!({})).await;
    let listed = client.ask("tools/list", json!({})).await;
    let promised = |name: &str| {
        let mut tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()["outputSchema"].clone()
    };
    for (tool, arguments) in [
        ("ls", json!({"path": "/"})),
        ("read_file", json!({"path": "a.txt"})),
        ("read_file", json!({"path": "p.png"})),
        ("read_file", json!({"path": "d.pdf"})),
        ("glob", json!({"pattern": "*.txt"})),
        ("grep", json!({"pattern": "two"})),
        ("grep", json!({"pattern": "two", "output_mode": "content"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "one", "new_string": "1"}),
        ),
        ("execute", json!({"command": "echo a; echo b >&2; exit 3"})),
        ("run_in_background", json!({"command": "sleep 600"})),
        ("list_shells", json!({})),
    ] {
        let result = client.call(tool, arguments).await;
        assert!(!failed(&result), "{tool}: {result}");
        let data = &result["structuredContent"];
        let shows = result["content"].as_array().unwrap().len() > 1;
        assert_eq!(data.is_object(), !shows, "{tool}: {result}");
        if shows {
            // Data would hide the image from some models.
            continue;
        }
        assert_eq!(data["text"], text(&result), "{tool}");
        assert!(data["data"].is_object(), "{tool}: {result}");
        // A tool that may return blocks promises no data.
        match promised(tool) {
            Value::Null => assert_eq!(tool, "read_file"),
            schema => keeps(&schema, data),
        }
    }
    for (tool, arguments) in [
        ("read_file", json!({"path": "nowhere"})),
        ("glob", json!({"patern": "*"})),
        (
            "edit_file",
            json!({"path": "a.txt", "old_string": "9", "new_string": "1"}),
        ),
    ] {
        let result = client.call(tool, arguments).await;
        let wanted = json!({"text": text(&result), "failure": "fixable"});
        assert_eq!(result["structuredContent"], wanted, "{result}");
        keeps(&promised(tool), &result["structuredContent"]);
    }
    client.leave().await;
}

#[tokio::test]
async fn a_reply_too_large_for_data_is_text_and_no_error() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..1_000 {
        std::fs::write(directory.path().join(format!("{number:03}")), "x").unwrap();
    }
    let backend = TestBackend {
        reply_bytes: Some(20_000),
        ..TestBackend::local(directory.path())
    };
    let mut client = Client::new(backend, structured(), json!({})).await;
    let result = client.call("ls", json!({"path": "."})).await;
    assert_eq!(result["isError"], false, "{result}");
    let data = &result["structuredContent"];
    assert_eq!(data["text"], text(&result));
    assert!(text(&result).contains("999"), "{result}");
    assert!(data.get("data").is_none(), "{data}");
    client.leave().await;
}

#[tokio::test]
async fn pictures_and_documents_are_blocks() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("p.png"),
        STANDARD.decode(PIXEL).unwrap(),
    )
    .unwrap();
    std::fs::write(directory.path().join("d e.pdf"), b"%PDF-1.4 tiny").unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let picture = client.call("read_file", json!({"path": "p.png"})).await;
    let block = &picture["content"][1];
    assert_eq!(
        (&block["type"], &block["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    let bytes = STANDARD.decode(block["data"].as_str().unwrap()).unwrap();
    assert!(bytes.starts_with(b"\x89PNG"));
    let document = client.call("read_file", json!({"path": "d e.pdf"})).await;
    let block = &document["content"][1];
    assert_eq!(block["type"], "resource");
    assert_eq!(block["resource"]["uri"], "file:///d%20e.pdf");
    assert_eq!(block["resource"]["mimeType"], "application/pdf");
    let bytes = STANDARD
        .decode(block["resource"]["blob"].as_str().unwrap())
        .unwrap();
    assert_eq!(bytes, b"%PDF-1.4 tiny");
    client.leave().await;
}

#[tokio::test]
async fn files_are_resources_in_pages() {
    let directory = tempfile::tempdir().unwrap();
    for number in 0..450 {
        std::fs::write(directory.path().join(format!("f{number:03}.txt")), "x").unwrap();
    }
    std::fs::write(directory.path().join("a b.bin"), b"\0\xff").unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let (mut seen, mut cursor) = (Vec::new(), None::<Value>);
    loop {
        let params = cursor
            .take()
            .map_or(json!({}), |cursor| json!({"cursor": cursor}));
        let page = client.ask("resources/list", params).await;
        let page = &page["result"];
        for resource in page["resources"].as_array().unwrap() {
            seen.push(resource["uri"].as_str().unwrap().to_owned());
        }
        match page.get("nextCursor") {
            Some(next) => cursor = Some(next.clone()),
            None => break,
        }
    }
    assert_eq!(seen.len(), 451);
    assert_eq!(seen[0], "file:///a%20b.bin");
    seen.dedup();
    assert_eq!(seen.len(), 451);
    let read = client
        .ask("resources/read", json!({"uri": "file:///f007.txt"}))
        .await;
    assert_eq!(read["result"]["contents"][0]["text"], "x");
    assert_eq!(read["result"]["contents"][0]["mimeType"], "text/plain");
    let read = client
        .ask("resources/read", json!({"uri": "file:///a%20b.bin"}))
        .await;
    assert_eq!(
        read["result"]["contents"][0]["blob"],
        STANDARD.encode(b"\0\xff")
    );
    for (uri, code) in [
        ("file:///nowhere", -32002),
        ("https://example.com/", -32002),
        ("file:///../../etc/passwd", -32002),
        ("file:///", -32602),
    ] {
        let error = client.ask("resources/read", json!({"uri": uri})).await;
        assert_eq!(error["error"]["code"], code, "{uri}: {error}");
    }
    for cursor in ["x", "-1", "99999999999999999999", "10000"] {
        let error = client
            .ask("resources/list", json!({"cursor": cursor}))
            .await;
        assert_eq!(error["error"]["code"], -32602, "{cursor}: {error}");
    }
    let templates = client.ask("resources/templates/list", json!({})).await;
    let template = &templates["result"]["resourceTemplates"][0];
    assert_eq!(template["uriTemplate"], "file:///{+path}");
    client.leave().await;
}

#[tokio::test]
async fn resources_stand_behind_the_policy_and_ask_nobody() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(".env"), "SECRET").unwrap();
    std::fs::write(directory.path().join("a.txt"), "fine").unwrap();
    let read = |uri: &str| json!({"uri": uri});
    // Denied by the rules.
    let backend = TestBackend {
        ruleset: Some(Preset::Permissive.ruleset()),
        ..TestBackend::local(directory.path())
    };
    let mut client = Client::new(backend.clone(), Settings::default(), json!({})).await;
    let secret = client.ask("resources/read", read("file:///.env")).await;
    assert!(
        secret.get("error").is_some() && !secret.to_string().contains("SECRET"),
        "{secret}"
    );
    let fine = client.ask("resources/read", read("file:///a.txt")).await;
    assert_eq!(fine["result"]["contents"][0]["text"], "fine");
    client.leave().await;
    // An access that needs approval is refused, although this client could be asked.
    let backend = TestBackend {
        ruleset: Some(Preset::Strict.ruleset()),
        ..backend
    };
    let able = json!({"elicitation": {}});
    let mut client = Client::new(backend, Settings::default(), able).await;
    let asked = client.ask("resources/read", read("file:///a.txt")).await;
    assert_eq!(asked["error"]["code"], -32602, "{asked}");
    assert!(client.events.try_recv().is_err(), "somebody was asked");
    client.leave().await;
}

#[tokio::test]
async fn large_files_are_no_resources() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("big"), vec![b'x'; 2_000]).unwrap();
    let mut settings = Settings::default();
    settings.resource_bytes = 1_000;
    let mut client = Client::new(TestBackend::local(directory.path()), settings, json!({})).await;
    let big = client
        .ask("resources/read", json!({"uri": "file:///big"}))
        .await;
    assert_eq!(big["error"]["code"], -32602, "{big}");
    client.leave().await;
}

#[tokio::test]
async fn old_and_new_clients_agree_on_a_version() {
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let mut client = Client::raw(TestBackend::default(), Settings::default());
        let params = json!({
            "protocolVersion": asked, "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let answer = client.ask("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], agreed, "{answer}");
        let pong = client.ask("ping", json!({})).await;
        assert_eq!(pong["result"], json!({}));
        client.leave().await;
    }
}

#[tokio::test]
async fn a_client_is_told_why_there_are_no_tools() {
    let nowhere = TestBackend::local(std::path::Path::new("/nowhere/at/all"));
    let mut client = Client::raw(nowhere, Settings::default());
    let answer = client.initialize(json!({})).await;
    assert_eq!(answer["error"]["code"], -32603, "{answer}");
    let error = soon(client.server).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("create it"), "{error}");
}
