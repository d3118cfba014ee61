//! A client's roots narrow access and never widen it.

use console_mcp::Settings;
use serde_json::{Value, json};

use crate::support::client::{Client, TestBackend, failed, soon, text};

struct Rooted {
    client: Client,
    directory: tempfile::TempDir,
}

impl Rooted {
    async fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        for name in ["a/one.txt", "b/two.txt", "b/c/three.txt"] {
            let path = directory.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, format!("in {name}\n")).unwrap();
        }
        let mut settings = Settings::default();
        settings.host_root = Some(directory.path().to_owned());
        let able = json!({"roots": {"listChanged": true}});
        let client = Client::new(TestBackend::local(directory.path()), settings, able).await;
        Self { client, directory }
    }

    fn uri(&self, name: &str) -> Value {
        json!({"uri": format!("file://{}/{name}", self.directory.path().display())})
    }

    /// Calls a tool, and answers the server's request for roots with these.
    async fn call(&mut self, roots: &[Value], tool: &str, arguments: Value) -> Value {
        let (_, result) = self.client.begin_call(tool, arguments).await;
        let asked = self.client.event("roots/list").await;
        self.client
            .answer(&asked["id"], json!({"roots": roots}))
            .await;
        soon(result).await.unwrap()["result"].clone()
    }

    async fn changed(&mut self) {
        self.client
            .notify("notifications/roots/list_changed", json!({}))
            .await;
        // Requests and notifications are handled concurrently.
        self.client.ask("ping", json!({})).await;
    }
}

fn read(path: &str) -> Value {
    json!({"path": path})
}

#[tokio::test]
async fn only_what_lies_in_the_roots_is_used() {
    let mut rooted = Rooted::new().await;
    let roots = [
        rooted.uri("b"),
        json!({"uri": "file:///etc"}),
        json!({"uri": "nonsense"}),
    ];
    let outside = rooted.call(&roots, "read_file", read("a/one.txt")).await;
    assert!(
        failed(&outside) && text(&outside).contains("/b"),
        "{outside}"
    );
    let client = &mut rooted.client;
    let inside = client.call("read_file", read("b/two.txt")).await;
    assert!(text(&inside).contains("in b/two.txt"), "{inside}");
    for path in ["/etc/passwd", "/", "../a/one.txt", "b/../a/one.txt", "/a"] {
        let outside = client.call("read_file", read(path)).await;
        assert!(failed(&outside), "{path}: {outside}");
    }
    let written = client
        .call("write_file", json!({"path": "b/new", "content": "x"}))
        .await;
    assert!(!failed(&written), "{written}");
    let written = client
        .call("write_file", json!({"path": "a/new", "content": "x"}))
        .await;
    assert!(failed(&written), "{written}");
    let found = client
        .call("grep", json!({"pattern": "in", "path": "b"}))
        .await;
    assert!(text(&found).contains("two.txt"), "{found}");
    let found = client.call("glob", json!({"pattern": "**/*.txt"})).await;
    assert!(!text(&found).contains("one.txt"), "{found}");
    // Commands cannot be confined to directories.
    let command = client
        .call("execute", json!({"command": "cat a/one.txt"}))
        .await;
    assert!(
        failed(&command) && text(&command).contains("commands cannot be confined"),
        "{command}"
    );
    let tools = client.ask("tools/list", json!({})).await;
    assert!(!tools.to_string().contains("\"execute\""));
    let listed = client.ask("resources/list", json!({})).await;
    let uris: Vec<&str> = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|resource| resource["uri"].as_str().unwrap())
        .collect();
    assert_eq!(
        uris,
        [
            "file:///b/c/three.txt",
            "file:///b/new",
            "file:///b/two.txt"
        ]
    );
    let secret = client
        .ask("resources/read", json!({"uri": "file:///a/one.txt"}))
        .await;
    assert!(secret.get("error").is_some(), "{secret}");
    rooted.client.leave().await;
}

#[tokio::test]
async fn roots_around_the_directory_and_none_change_nothing() {
    for roots in [vec![], vec![json!({"uri": "file:///"})]] {
        let mut rooted = Rooted::new().await;
        let result = rooted
            .call(&roots, "execute", json!({"command": "cat a/one.txt"}))
            .await;
        assert_eq!(text(&result), "in a/one.txt\n");
        rooted.client.leave().await;
    }
}

#[tokio::test]
async fn roots_elsewhere_leave_nothing_and_say_why() {
    let mut rooted = Rooted::new().await;
    let roots = [json!({"uri": "file:///somewhere/else"})];
    let result = rooted.call(&roots, "ls", json!({"path": "/"})).await;
    assert!(
        failed(&result) && text(&result).contains("Permission denied: none of the client's roots"),
        "{result}"
    );
    let result = rooted
        .client
        .call("execute", json!({"command": "ls"}))
        .await;
    assert!(failed(&result), "{result}");
    let listed = rooted.client.ask("resources/list", json!({})).await;
    assert!(listed.get("error").is_some(), "{listed}");
    rooted.client.leave().await;
}

#[tokio::test]
async fn changed_roots_count_from_the_next_call() {
    let mut rooted = Rooted::new().await;
    let (a, b) = (rooted.uri("a"), rooted.uri("b"));
    let result = rooted.call(&[a], "read_file", read("a/one.txt")).await;
    assert!(!failed(&result), "{result}");
    rooted.changed().await;
    let result = rooted.call(&[b], "read_file", read("a/one.txt")).await;
    assert!(failed(&result), "{result}");
    let result = rooted.client.call("read_file", read("b/two.txt")).await;
    assert!(!failed(&result), "{result}");
    // With full access commands are available again, and the client is told.
    rooted.changed().await;
    let whole = rooted.uri("");
    let (_, result) = rooted
        .client
        .begin_call("read_file", read("a/one.txt"))
        .await;
    let asked = rooted.client.event("roots/list").await;
    rooted
        .client
        .answer(&asked["id"], json!({"roots": [whole]}))
        .await;
    rooted
        .client
        .event("notifications/tools/list_changed")
        .await;
    assert!(!failed(&soon(result).await.unwrap()["result"]));
    rooted.client.leave().await;
}

#[tokio::test]
async fn a_client_that_does_not_say_its_roots_gets_nothing() {
    let mut rooted = Rooted::new().await;
    let (_, result) = rooted
        .client
        .begin_call("read_file", read("a/one.txt"))
        .await;
    let asked = rooted.client.event("roots/list").await;
    let error = json!({"jsonrpc": "2.0", "id": asked["id"],
        "error": {"code": -32603, "message": "no"}});
    rooted.client.send(error).await;
    let result = &soon(result).await.unwrap()["result"];
    assert!(
        failed(result) && text(result).contains("has roots"),
        "{result}"
    );
    // It is asked again by the next call.
    let roots = [rooted.uri("a")];
    let result = rooted.call(&roots, "read_file", read("a/one.txt")).await;
    assert!(!failed(&result), "{result}");
    rooted.client.leave().await;
}

#[tokio::test]
async fn without_a_host_directory_roots_mean_nothing() {
    let able = json!({"roots": {}});
    let mut client = Client::new(TestBackend::default(), Settings::default(), able).await;
    let result = client
        .call("write_file", json!({"path": "a", "content": "x"}))
        .await;
    assert!(!failed(&result), "{result}");
    assert!(client.events.try_recv().is_err(), "the client was asked");
    client.leave().await;
}
