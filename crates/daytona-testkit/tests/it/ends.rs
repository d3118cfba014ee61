//! The end of a stand-in: nothing of it stays.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use daytona_testkit::Standin;
use serde_json::json;

use crate::client::{Client, HOLD, LONG};

/// Starts a process that leaves its session, and returns a lock that it holds and a
/// directory of the sandbox, both as this process sees them.
async fn start(client: &Client) -> (File, std::path::PathBuf) {
    client
        .run(&format!("setsid {HOLD} > /dev/null 2>&1 &"))
        .await;
    client.until_held(true).await;
    let roots = fs::read_dir(std::env::temp_dir())
        .unwrap()
        .filter_map(Result::ok);
    let mut roots = roots.map(|it| it.path());
    let marker = format!("home/daytona/{}", client.id);
    client.run("touch \"$DAYTONA_SANDBOX_ID\"").await;
    let root = roots.find(|root| root.join(&marker).exists()).unwrap();
    (File::open(root.join("home/daytona/held")).unwrap(), root)
}

/// Waits until no process holds a lock.
async fn until_free(lock: File) {
    let wait = async {
        while lock.try_lock().is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, wait).await.unwrap();
}

#[tokio::test]
async fn closing_ends_processes_and_removes_files() {
    let client = Client::new().await;
    let (lock, root) = start(&client).await;
    client.standin.close().await;
    lock.try_lock().unwrap();
    assert!(!root.exists());
}

#[tokio::test]
async fn dropping_does_the_same() {
    let client = Client::new().await;
    let (lock, root) = start(&client).await;
    drop(client);
    until_free(lock).await;
    assert!(!root.exists());
}

#[tokio::test]
async fn processes_end_while_their_sandbox_stays_started() {
    let client = Client::new().await;
    let (lock, _) = start(&client).await;
    assert!(client.standin.end_processes(&client.id));
    until_free(lock).await;
    assert_eq!(client.run("echo again").await, (0, "again\n".to_owned()));
    assert_eq!(client.standin.sandboxes()[0]["state"], json!("started"));
    client.standin.close().await;
}

#[test]
fn the_program_says_where_it_listens_and_ends_with_its_input() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_daytona-standin"))
        .args(["--key", "k", "--latency-ms", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    let url = lines.next().unwrap().unwrap();
    assert!(
        url.starts_with("DAYTONA_API_URL=http://127.0.0.1:"),
        "{url}"
    );
    assert_eq!(lines.next().unwrap().unwrap(), "DAYTONA_API_KEY=k");
    drop(program.stdin.take());
    assert!(program.wait().unwrap().success());
}

#[tokio::test]
async fn two_standins_do_not_know_each_other() {
    let (one, two) = (
        Standin::start().await.unwrap(),
        Standin::start().await.unwrap(),
    );
    assert_ne!(one.api_url(), two.api_url());
    assert_ne!(one.api_key(), two.api_key());
    one.close().await;
    two.close().await;
}
