//! Clients over HTTP that say nothing for long: what they left ends, unless they listen.

use std::time::Duration;

use serde_json::json;

use crate::http::{for_ever, here};
use crate::support::client::{TestBackend, gone, text};
use crate::support::http::TestServer;

/// An idle timeout that no test reaches by being slow, and shorter than the time that a
/// command may take.
const IDLE: Duration = Duration::from_secs(80);

/// Lets a little more time pass than that, at once, for the server and everything else in
/// this process.
async fn pass_idle() {
    tokio::time::pause();
    tokio::time::advance(IDLE + Duration::from_secs(1)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn sessions_that_are_ended_or_idle_leave_nothing_running() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = here();
    settings.idle = IDLE;
    let server = TestServer::start(TestBackend::local(directory.path()), settings).await;
    let mut client = server.client(json!({})).await;
    let (pid, _, _stream) = for_ever(&mut client).await;
    assert!(client.send("DELETE", "").await.status < 300);
    gone(&pid).await;
    let mut client = server.client(json!({})).await;
    let background = json!({"command": "echo $$ > pid.new; mv pid.new pid; exec sleep 1000"});
    client.call("run_in_background", background).await;
    let wait = json!({"command": "until test -e pid; do sleep 0.01; done"});
    let call = json!({"name": "execute", "arguments": wait});
    // To the end of the stream: from then on the client listens to nothing.
    let (_, stream) = client.begin("tools/call", call).await;
    stream.text().await;
    let pid = std::fs::read_to_string(directory.path().join("pid")).unwrap();
    pass_idle().await;
    gone(pid.trim()).await;
    server.stop().await;
}

#[tokio::test]
async fn a_client_that_listens_is_not_idle() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = here();
    settings.idle = IDLE;
    let server = TestServer::start(TestBackend::local(directory.path()), settings).await;
    let mut client = server.client(json!({})).await;
    // Silent for longer than the idle timeout.
    let wait = "until test -e go; do sleep 0.01; done; echo done";
    let call = json!({"name": "execute", "arguments": {"command": wait}});
    let (_, stream) = client.begin("tools/call", call).await;
    pass_idle().await;
    std::fs::write(directory.path().join("go"), "").unwrap();
    assert_eq!(text(&stream.answer().await["result"]), "done\n");
    let mut client = server.client(json!({})).await;
    let listening = client.send("GET", "").await;
    assert_eq!(listening.status, 200);
    for _ in 0..3 {
        pass_idle().await;
        client.call("execute", json!({"command": "true"})).await;
    }
    drop(listening);
    server.stop().await;
}
