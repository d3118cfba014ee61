//! The program under test, and what its turns come to.

use std::path::Path;

use examples::web::tester::{self, Server, Turn};
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

/// Returns the program with its data in this directory.
pub(crate) fn program(data: &Path) -> Command {
    tester::program(env!("CARGO_BIN_EXE_predictive_analytics"), data)
}

/// Starts the program with local sandboxes.
pub(crate) async fn start(data: &Path, options: &[&str]) -> Server {
    let mut program = program(data);
    Server::launch(program.args(["--backend", "local"]).args(options)).await
}

/// Starts a server with new data, which lasts as long as the directory.
pub(crate) async fn server() -> (TempDir, Server) {
    let data = tempfile::tempdir().unwrap();
    let server = start(data.path(), &[]).await;
    (data, server)
}

/// Says something. Returns the events without output, and the output of all calls.
pub(crate) async fn said(server: &Server, session: &str, text: &str) -> (Vec<Value>, String) {
    let mut turn = Turn::begin(server, session, text).await;
    let (mut events, mut output) = (turn.events().await, String::new());
    for event in &events {
        if event["type"] == "output" {
            output.push_str(event["text"].as_str().unwrap());
        }
    }
    events.retain(|event| event["type"] != "output");
    (events, output)
}

/// Returns the replies of a turn.
pub(crate) fn replies(events: &[Value]) -> Vec<&Value> {
    let replies = events.iter().filter(|event| event["type"] == "reply");
    replies.collect()
}

/// Returns the data in a reply.
pub(crate) fn data_of(reply: &Value) -> Value {
    assert_eq!(reply["failed"], false, "{reply}");
    serde_json::from_str(reply["text"].as_str().unwrap()).unwrap()
}
