//! Long-running commands: live output, cancellation, clients that disconnect.

use console_mcp::Settings;
use serde_json::json;

use crate::support::client::{Client, TestBackend, gone, soon, text};

/// Prints its process id, then runs forever.
const FOR_EVER: &str = "echo $$; exec sleep 1000";

#[tokio::test]
async fn output_is_told_while_a_command_runs() {
    let directory = tempfile::tempdir().unwrap();
    let fifo = directory.path().join("fifo");
    let made = std::process::Command::new("mkfifo")
        .arg(&fifo)
        .status()
        .unwrap();
    assert!(made.success());
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    // Waits for the test between its two lines.
    let command = "printf '\\033[31mfirst\\033[0m\\n'; read line < fifo; echo $line";
    let (id, answer) = client
        .begin_call("execute", json!({"command": command}))
        .await;
    let progress = client.event("notifications/progress").await;
    assert_eq!(progress["params"]["progressToken"], format!("token-{id}"));
    assert_eq!(progress["params"]["message"], "first");
    let first = progress["params"]["progress"].as_f64().unwrap();
    assert_eq!(client.printed().await, "first\n");
    let later = client.event("notifications/progress").await;
    assert!(
        later["params"]["progress"].as_f64().unwrap() > first,
        "{later}"
    );
    tokio::task::spawn_blocking(move || std::fs::write(fifo, "second\n"))
        .await
        .unwrap()
        .unwrap();
    let answer = soon(answer).await.unwrap();
    assert_eq!(text(&answer["result"]), "first\nsecond\n");
    client.leave().await;
}

#[tokio::test]
async fn who_wants_no_log_gets_none() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let set = client
        .ask("logging/setLevel", json!({"level": "warning"}))
        .await;
    assert_eq!(set["result"], json!({}));
    let command = "echo first; until test -e go; do sleep 0.01; done";
    let (_, answer) = client
        .begin_call("execute", json!({"command": command}))
        .await;
    client.event("notifications/progress").await;
    std::fs::write(directory.path().join("go"), "").unwrap();
    soon(answer).await.unwrap();
    while let Ok(event) = client.events.try_recv() {
        assert_ne!(event["method"], "notifications/message", "{event}");
    }
    let wrong = client
        .ask("logging/setLevel", json!({"level": "loud"}))
        .await;
    assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
    client.leave().await;
}

#[tokio::test]
async fn a_cancelled_command_is_gone() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let (id, answer) = client
        .begin_call("execute", json!({"command": FOR_EVER}))
        .await;
    let pid = client.printed().await;
    let params = json!({"requestId": id, "reason": "enough"});
    client.notify("notifications/cancelled", params).await;
    gone(pid.trim()).await;
    // There is no response, and the connection stays open.
    let next = client
        .call("execute", json!({"command": "echo alive"}))
        .await;
    assert_eq!(text(&next), "alive\n");
    client.leave().await;
    assert!(answer.await.is_err(), "a cancelled request is not answered");
}

#[tokio::test]
async fn a_client_that_goes_leaves_nothing_running() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.linger = std::time::Duration::ZERO;
    let mut client = Client::new(TestBackend::local(directory.path()), settings, json!({})).await;
    let arguments = json!({"command": FOR_EVER});
    let (_, _answer) = client.begin_call("execute", arguments.clone()).await;
    let one = client.printed().await;
    let (_, _answer) = client.begin_call("execute", arguments).await;
    let two = client.printed().await;
    client.leave().await;
    gone(one.trim()).await;
    gone(two.trim()).await;
}

#[tokio::test]
async fn background_shells_end_with_the_client() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    let command = "echo $$ > pid.new; mv pid.new pid; exec sleep 1000";
    client
        .call("run_in_background", json!({"command": command}))
        .await;
    let wait = "until test -e pid; do sleep 0.01; done; cat pid";
    let pid = client.call("execute", json!({"command": wait})).await;
    let pid = text(&pid).trim().to_owned();
    client.leave().await;
    gone(&pid).await;
}

#[tokio::test]
async fn what_was_asked_before_the_end_of_input_is_answered() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = Settings::default();
    settings.linger = std::time::Duration::from_secs(60);
    let mut client = Client::new(TestBackend::local(directory.path()), settings, json!({})).await;
    // Ends only after the end of input, but had begun before: starting it may take long.
    let command = "echo begun; until test -e go; do sleep 0.01; done; echo done";
    let (_, answer) = client
        .begin_call("execute", json!({"command": command}))
        .await;
    client.printed().await;
    client.end_input().await;
    std::fs::write(directory.path().join("go"), "").unwrap();
    let answer = soon(answer).await.unwrap();
    assert_eq!(text(&answer["result"]), "begun\ndone\n");
}

#[tokio::test]
async fn a_client_that_does_not_read_holds_no_command_up() {
    let directory = tempfile::tempdir().unwrap();
    let mut client = Client::plain(TestBackend::local(directory.path())).await;
    client.stop_reading();
    // Far more than the pipe holds, and slow enough for live output.
    let command = "for i in 1 2 3 4 5 6; do head -c 300000 /dev/zero | tr '\\0' x; sleep 0.2; done; \
                   touch finished; exec sleep 1000";
    let _ = client
        .begin_call("execute", json!({"command": command}))
        .await;
    let finished = directory.path().join("finished");
    let waited = tokio::process::Command::new("sh")
        .args(["-c", "until test -e \"$0\"; do sleep 0.02; done"])
        .arg(&finished)
        .kill_on_drop(true)
        .status();
    assert!(soon(waited).await.unwrap().success());
    client.leave().await;
}
