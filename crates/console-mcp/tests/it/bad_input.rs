//! Bad input gets a typed error, and the next message is read.

use console_mcp::Settings;
use serde_json::{Value, json};

use crate::support::client::{Client, TestBackend, failed, soon, text};

/// Returns the code of the next error without a request id.
async fn complaint(client: &mut Client) -> i64 {
    let event = soon(client.events.recv()).await.unwrap();
    assert_eq!(event["id"], Value::Null, "{event}");
    event["error"]["code"].as_i64().unwrap()
}

#[tokio::test]
async fn what_is_no_message_is_answered_and_passed_over() {
    let mut client = Client::plain(TestBackend::default()).await;
    for (line, code) in [
        (&b"garbage"[..], -32700),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1", -32700),
        (b"\xff\xfe", -32700),
        (b"[]", -32600),
        (
            b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}]",
            -32600,
        ),
        (b"17", -32600),
        (b"null", -32600),
        (b"\"text\"", -32600),
        (b"{}", -32600),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}",
            -32600,
        ),
    ] {
        client.write(line).await;
        client.write(b"\n").await;
        assert_eq!(
            complaint(&mut client).await,
            code,
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    // Nested deeper than any real message.
    client.write(&vec![b'['; 100_000]).await;
    client.write(b"\n").await;
    assert_eq!(complaint(&mut client).await, -32700);
    // These get no response.
    client
        .write(b"\n\r\n  \n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/strange\"}\n")
        .await;
    let pong = client.ask("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
    client.leave().await;
}

#[tokio::test]
async fn what_is_no_request_of_ours_has_an_error_with_its_id() {
    let mut client = Client::plain(TestBackend::default()).await;
    for (method, params, code) in [
        ("no/such/method", json!({}), -32601),
        ("prompts/get", json!({"name": "x"}), -32601),
        ("resources/subscribe", json!({"uri": "file:///a"}), -32601),
        ("tools/call", json!({"nam": "ls"}), -32602),
        ("tools/call", json!({"name": "ls", "arguments": []}), -32602),
        ("resources/read", json!({}), -32602),
        ("initialize", json!({}), -32602),
    ] {
        let answer = client.ask(method, params.clone()).await;
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
    }
    let again = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"}});
    let answer = client.ask("initialize", again).await;
    assert_eq!(answer["error"]["code"], -32600, "{answer}");
    client.leave().await;
}

#[tokio::test]
async fn messages_that_are_too_long_are_refused_and_the_next_is_read() {
    let mut settings = Settings::default();
    settings.frame_bytes = 10_000;
    let mut client = Client::new(TestBackend::default(), settings, json!({})).await;
    let mut long = vec![b'x'; 1_000_000];
    long.push(b'\n');
    client.write(&long).await;
    assert_eq!(complaint(&mut client).await, -32600);
    client.ask("ping", json!({})).await;
    assert!(client.events.try_recv().is_err(), "one line, one complaint");
    let written = client
        .call(
            "write_file",
            json!({"path": "a", "content": "x".repeat(9_000)}),
        )
        .await;
    assert!(!failed(&written), "{written}");
    let content = "x".repeat(11_000);
    let (_, _) = client
        .begin_call("write_file", json!({"path": "b", "content": content}))
        .await;
    assert_eq!(complaint(&mut client).await, -32600);
    let read = client.call("read_file", json!({"path": "b"})).await;
    assert!(failed(&read), "{read}");
    client.leave().await;
}

#[tokio::test]
async fn before_the_beginning_nothing_is_done() {
    let mut client = Client::raw(TestBackend::default(), Settings::default());
    client.write(b"garbage\n").await;
    assert_eq!(complaint(&mut client).await, -32700);
    client.notify("notifications/initialized", json!({})).await;
    client
        .notify("notifications/cancelled", json!({"requestId": 7}))
        .await;
    client
        .send(json!({"jsonrpc": "2.0", "id": 9, "result": {}}))
        .await;
    let early = client.ask("tools/list", json!({})).await;
    assert!(early["error"]["code"].is_i64(), "{early}");
    let answer = client.initialize(json!({})).await;
    assert!(
        answer["result"]["serverInfo"]["name"].is_string(),
        "{answer}"
    );
    let listed = client.ask("tools/list", json!({})).await;
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    client.leave().await;
}

#[tokio::test]
async fn a_client_that_says_nothing_is_no_failure() {
    Client::raw(TestBackend::default(), Settings::default())
        .leave()
        .await;
    let mut client = Client::raw(TestBackend::default(), Settings::default());
    client.write(b"{\"jsonrpc\":").await;
    client.leave().await;
}

#[tokio::test]
async fn an_id_is_used_once_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let command = "echo a; until test -e go; do sleep 0.01; done";
    let (id, answer) = client
        .begin_call("execute", json!({"command": command}))
        .await;
    client.printed().await;
    let ping = json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    client.send(ping.clone()).await;
    let refused = soon(answer).await.unwrap();
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    // The call continues, and its response arrives too.
    std::fs::write(directory.path().join("go"), "").unwrap();
    loop {
        let event = soon(client.events.recv()).await.unwrap();
        if event["id"] == id {
            assert_eq!(text(&event["result"]), "a\n");
            break;
        }
    }
    client.leave().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_at_once_are_all_answered() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("a.txt"), "one\n").unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let mut answers = Vec::new();
    for number in 0..1_000 {
        let (tool, arguments) = match number % 10 {
            0 => ("execute", json!({"command": format!("echo {number}")})),
            1 => (
                "write_file",
                json!({"path": format!("f{number}"), "content": "x"}),
            ),
            2 => ("nonsense", json!({})),
            _ => ("read_file", json!({"path": "a.txt"})),
        };
        answers.push((number, client.begin_call(tool, arguments).await.1));
    }
    for (number, answer) in answers {
        let answer = soon(answer).await.unwrap();
        let result = &answer["result"];
        assert_eq!(failed(result), number % 10 == 2, "{number}: {answer}");
        if number % 10 == 0 {
            assert_eq!(text(result), format!("{number}\n"));
        }
    }
    client.leave().await;
}

#[tokio::test]
async fn more_requests_than_anybody_needs_are_refused_not_kept() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.concurrent_calls = 1;
    settings.linger = std::time::Duration::ZERO;
    let mut client = Client::new(TestBackend::local(directory.path()), settings, json!({})).await;
    let mut answers = Vec::new();
    let sleep = json!({"command": "sleep 1000"});
    for _ in 0..2_100 {
        answers.push(client.begin_call("execute", sleep.clone()).await.1);
    }
    for answer in answers.drain(2_048..) {
        let answer = soon(answer).await.unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{answer}");
    }
    client.leave().await;
}

#[tokio::test]
async fn what_was_cancelled_counts_no_more() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.concurrent_calls = 1;
    let mut client = Client::new(TestBackend::local(directory.path()), settings, json!({})).await;
    let sleep = json!({"command": "sleep 1000"});
    for _ in 0..2_100 {
        let (id, _) = client.begin_call("execute", sleep.clone()).await;
        let params = json!({"requestId": id});
        client.notify("notifications/cancelled", params).await;
    }
    let result = client
        .call("execute", json!({"command": "echo alive"}))
        .await;
    assert_eq!(text(&result), "alive\n");
    client.leave().await;
}

#[tokio::test]
async fn answers_that_nobody_reads_do_not_pile_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.concurrent_calls = 2;
    let mut client = Client::new(TestBackend::local(directory.path()), settings, json!({})).await;
    client.stop_reading();
    // Three responses are more than the pipe holds.
    for number in 0..20 {
        let command = format!("touch ran-{number}; head -c 29000 /dev/zero | tr '\\0' x");
        let _ = client
            .begin_call("execute", json!({"command": command}))
            .await;
    }
    let wait = "until ls \"$0\" | grep -q ran; do sleep 0.02; done; sleep 0.5; ls \"$0\" | wc -l";
    let counted = tokio::process::Command::new("sh")
        .args(["-c", wait])
        .arg(directory.path())
        .output();
    let counted = String::from_utf8(soon(counted).await.unwrap().stdout).unwrap();
    let counted: usize = counted.trim().parse().unwrap();
    assert!(counted < 10, "{counted} calls ran");
    client.leave().await;
}
